"""Graphs that fast forms rewrite, in sizes that networks have. `benchmarks.form_speed` times them, tests run them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tests.converter.targets.litert.forms import scatter_cases
from tests.converter.targets.litert.optimize.graph import Graph, f32, i32, random
from tfconvert.converter.targets.litert.forms.scatter_speed import Sizes
from tfconvert.schema.dialects import types
from tfconvert.schema.ir.values import Value


class FastCase(NamedTuple):
    """A graph of one input.

    Attributes:
        pattern: The pattern that applies.
        shape: The input's shape.
        make: Adds the ops.
        expected: The operators that they become.
    """

    pattern: str
    shape: Sequence[int]
    make: Callable[[Graph, Value], Value]
    expected: str

    @property
    def name(self) -> str:
        """The pattern and the sizes."""
        return f"{self.pattern}-{'x'.join(map(str, self.shape))}"


def _shape(value: Value) -> types.Shape:
    return value.shape or ()


def _row(g: Graph, x: Value, index: int, **options: Any) -> Value:
    """Adds the slice of one index of the first dimension, which it drops."""
    shape = _shape(x)
    whole = (1 << len(shape)) - 2
    rest = [0] * (len(shape) - 1)
    masks: dict[str, Any] = {"begin_mask": whole, "end_mask": whole, "shrink_axis_mask": 1, **options}
    return g.op("strided_slice", x, [index, *rest], [index + 1, *rest], [1] * len(shape), shape=shape[1:], **masks)


def _heads(g: Graph, x: Value) -> Value:
    query, key, value = (_row(g, x, index) for index in (0, 1, 2))
    return g.op("add", g.op("mul", query, key), value)


def _one_row(g: Graph, x: Value) -> Value:
    return _row(g, x, 1)


def _strided(*strides: int, begin: Sequence[int] | None = None) -> Callable[[Graph, Value], Value]:
    def make(g: Graph, x: Value) -> Value:
        shape = [-(-dim // stride) if dim > 0 else dim for dim, stride in zip(_shape(x), strides, strict=True)]
        zeros, end = [0] * len(strides), (1 << len(strides)) - 1
        first = list(begin or zeros)
        masks: dict[str, Any] = {
            "begin_mask": sum(1 << axis for axis, at in enumerate(first) if not at),
            "end_mask": end,
        }
        return g.op("strided_slice", x, first, zeros, list(strides), shape=shape, **masks)

    return make


def _phases(*order: tuple[int, int]) -> Callable[[Graph, Value], Value]:
    def make(g: Graph, x: Value) -> Value:
        batch, height, width, channels = _shape(x)
        parts = [_strided(1, 2, 2, 1, begin=(0, row, column, 0))(g, x) for row, column in order]
        shape = (batch, height // 2, width // 2, 4 * channels)
        return g.op("concatenation", *parts, shape=shape, axis=3, fused_activation_function="NONE")

    return make


def _interleaved(g: Graph, x: Value) -> Value:
    return g.op("pack", x, g.op("neg", x), shape=(*_shape(x), 2), values_count=2, axis=len(_shape(x)))


def _split(g: Graph, x: Value) -> Value:
    """Adds the parts of boxes: centres, extents, and scores of their classes."""
    centre, extent, scores = g.split(x, [2, 2, _shape(x)[-1] - 4], len(_shape(x)) - 1)
    return g.op(
        "mul", g.op("mul", centre, extent), g.op("reduce_max", scores, [-1], shape=(*_shape(x)[:-1], 1), keep_dims=True)
    )


def _masked(mask: np.ndarray | None = None) -> Callable[[Graph, Value], Value]:
    def make(g: Graph, x: Value) -> Value:
        chosen: Value | np.ndarray | None = mask
        if chosen is None:
            length = _shape(x)[-1]
            lengths = g.op("reduce_max", x, [1, 2], shape=(1, length), keep_dims=False)
            seen = g.op("greater", lengths, f32(0.9), element=types.I1, shape=(1, length))
            causal = np.tril(np.ones((length, length), bool))
            chosen = g.op("logical_and", seen, causal, element=types.I1, shape=(length, length))
        y = g.op("select_v2", chosen, x, f32(-1e9), element=types.F32, shape=_shape(x))
        return g.op("softmax", y, beta=1.0)

    return make


def _reduced(name: str, axes: list[int]) -> Callable[[Graph, Value], Value]:
    def make(g: Graph, x: Value) -> Value:
        shape = [1 if axis in axes else dim for axis, dim in enumerate(_shape(x))]
        return g.op(name, x, axes, shape=shape, keep_dims=True)

    return make


def _grouped(name: str) -> Callable[[Graph, Value], Value]:
    def make(g: Graph, x: Value) -> Value:
        mean = _reduced("mean", [1, 2])(g, x)
        return g.op(name, x, _reduced("mean", [4])(g, mean), shape=_shape(x))

    return make


def _scaled(g: Graph, x: Value) -> Value:
    mean = _reduced("mean", [1, 2])(g, x)
    return g.op("mul", g.op("mul", x, mean), random(_shape(x)[-1]))


def _broadcast(*shape: int) -> Callable[[Graph, Value], Value]:
    return lambda g, x: g.op("broadcast_to", x, list(shape), shape=shape)


def _mirrored(border: int, mode: str = "REFLECT") -> Callable[[Graph, Value], Value]:
    def make(g: Graph, x: Value) -> Value:
        batch, height, width, channels = _shape(x)
        pads = i32([[0, 0], [border, border], [border, border - 1], [0, 0]])
        shape = (batch, height + 2 * border, width + 2 * border - 1, channels)
        return g.op("mirror_pad", x, pads, shape=shape, mode=mode)

    return make


def _nearest(times: float, *, has_centers: bool = True) -> Callable[[Graph, Value], Value]:
    def make(g: Graph, x: Value) -> Value:
        batch, height, width, channels = _shape(x)
        height, width = round(height * times), round(width * times)
        shape = (batch, height, width, channels)
        options: dict[str, Any] = {"align_corners": False, "half_pixel_centers": has_centers}
        return g.op("resize_nearest_neighbor", x, [height, width], shape=shape, **options)

    return make


def _repeated(g: Graph, x: Value) -> Value:
    """Repeats each pixel twice in both directions, between elementwise operators."""
    batch, height, width, channels = _shape(x)
    apart, wide = (batch, height, 1, width, 1, channels), (batch, 2 * height, 2 * width, channels)
    y = g.op("reshape", g.op("abs", x), list(apart[1:]), shape=apart[1:], new_shape=apart[1:])
    y = g.op("tile", y, [1, 2, 1, 2, 1], shape=(height, 2, width, 2, channels))
    return g.op("neg", g.op("reshape", y, list(wide), shape=wide, new_shape=wide))


def _deconvolved(channels: int, size: int, stride: int, padding: str = "SAME") -> Callable[[Graph, Value], Value]:
    def make(g: Graph, x: Value) -> Value:
        batch, height, width, inputs = _shape(x)
        longer = max(size - stride, 0) if padding == "VALID" else 0
        shape = (batch, height * stride + longer, width * stride + longer, channels)
        options: dict[str, Any] = {"padding": padding, "stride_h": stride, "stride_w": stride}
        operands = (list(shape), random(channels, size, size, inputs, scale=0.1), x, random(channels, seed=2))
        return g.op("transpose_conv", *operands, shape=shape, **options, fused_activation_function="RELU")

    return make


def _windows(channels: int, size: int, stride: int) -> Callable[[Graph, Value], Value]:
    """A convolution along rows."""

    def make(g: Graph, x: Value) -> Value:
        batch, height, width, inputs = _shape(x)
        weights = random(channels, 1, size, inputs, scale=0.1)
        options: dict[str, Any] = {"padding": "VALID", "stride_w": stride, "stride_h": 1}
        options |= {"dilation_w_factor": 1, "dilation_h_factor": 1, "fused_activation_function": "RELU"}
        shape = (batch, height, (width - size) // stride + 1, channels)
        return g.op("conv_2d", x, weights, random(channels, seed=2), shape=shape, **options)

    return make


def _deconvolved_rows(g: Graph, x: Value) -> Value:
    batch, _, length, inputs = _shape(x)
    options: dict[str, Any] = {"padding": "SAME", "stride_h": 1, "stride_w": 4, "fused_activation_function": "NONE"}
    shape = (batch, 1, 4 * length, 16)
    return g.op(
        "transpose_conv", list(shape), random(16, 1, 8, inputs, scale=0.1), x, random(16), shape=shape, **options
    )


def _pooler(name: str) -> Callable[[Graph, Value], Value]:
    """A dense layer with a residual connection and a normalization, of which the first row is used."""

    def make(g: Graph, x: Value) -> Value:
        batch, length, depth = _shape(x)
        wide = g.op(
            "fully_connected", x, random(4 * depth, depth, scale=0.1), None, **_DENSE, shape=(batch, length, 4 * depth)
        )
        wide = g.op("gelu", wide, approximate=False)
        y = g.op("fully_connected", wide, random(depth, 4 * depth, scale=0.1), random(depth), **_DENSE, shape=_shape(x))
        y = g.op("add", x, y)
        mean = g.op("mean", y, [2], shape=(batch, length, 1), keep_dims=True)
        difference = g.op("squared_difference", y, mean)
        variance = g.op("mean", difference, [2], shape=(batch, length, 1), keep_dims=True)
        y = g.op("mul", g.op("sub", y, mean), g.op("rsqrt", variance))
        if name == "slice":
            return g.op("slice", y, [0, 3, 0], [1, 2, depth], shape=(batch, 2, depth))
        if name != "strided_slice":
            return _pooled_token(g, x, y, name)
        masks: dict[str, Any] = {"begin_mask": 5, "end_mask": 5, "shrink_axis_mask": 2}
        return g.op("strided_slice", y, [0, 0, 0], [0, 1, 0], [1, 1, 1], shape=(batch, depth), **masks)

    return make


def _branches(g: Graph, x: Value) -> Value:
    """Adds the branches of RepVGG: convolutions of nine pixels and of one, and a normalization."""
    channels = _shape(x)[-1]
    y = g.op("add", *(g.conv(x, random(channels, size, size, channels, scale=0.1)) for size in (3, 1)))
    same = g.op("add", g.op("mul", x, random(channels)), random(channels, seed=1))
    return g.op("add", y, same, fused_activation_function="RELU")


def _depthwise_branches(g: Graph, x: Value) -> Value:
    options: dict[str, Any] = {"padding": "SAME", "stride_h": 2, "stride_w": 2, "depth_multiplier": 1}
    batch, height, width, channels = _shape(x)
    shape = (batch, height // 2, width // 2, channels)
    large, small = (
        g.op(
            "depthwise_conv_2d", x, random(1, size, size, channels), random(channels, seed=size), shape=shape, **options
        )
        for size in (5, 3)
    )
    return g.op("add", large, small)


def _groups(g: Graph, x: Value) -> Value:
    shape, count = _shape(x), 16
    each = shape[-1] // count
    parts = g.split(x, [each] * count, 3)
    results = [
        g.conv(part, random(each, 3, 3, each, seed=index), random(each, seed=index)) for index, part in enumerate(parts)
    ]
    return g.op("concatenation", *results, shape=shape, axis=3, fused_activation_function="NONE")


def _averaged(begin: int) -> Callable[[Graph, Value], Value]:
    """Dense layers with a residual connection, and the mean of their rows from one on."""

    def make(g: Graph, x: Value) -> Value:
        batch, length, depth = _shape(x)
        wide = (batch, length, 4 * depth)
        y = g.op("fully_connected", x, random(4 * depth, depth, scale=0.1), None, **_DENSE, shape=wide)
        y = g.op("gelu", y, approximate=False)
        y = g.op("fully_connected", y, random(depth, 4 * depth, scale=0.1), random(depth), **_DENSE, shape=_shape(x))
        y = g.op("add", x, y)
        if begin:
            shape = (batch, length - begin, depth)
            masks: dict[str, Any] = {"begin_mask": 5, "end_mask": 7}
            y = g.op("strided_slice", y, [0, begin, 0], [0, 0, 0], [1, 1, 1], shape=shape, **masks)
        return g.op("mean", y, [1], shape=(batch, depth), keep_dims=False)

    return make


def _averaged_image(g: Graph, x: Value) -> Value:
    y = g.conv(x, random(100, 1, 1, _shape(x)[-1]), random(100))
    return g.op("mean", y, [1, 2], shape=(_shape(x)[0], 1, 1, 100), keep_dims=True)


def _correlation(g: Graph, x: Value) -> Value:
    """Adds the products of an image with its neighbours."""
    batch, height, width, channels = _shape(x)
    inner = (batch, height - 2, width - 2, channels)
    middle, maps = g.op("slice", x, [0, 1, 1, 0], list(inner), shape=inner), []
    for row in range(3):
        for column in range(3):
            part = g.op("slice", x, [0, row, column, 0], list(inner), shape=inner)
            maps.append(g.op("mean", g.op("mul", middle, part), [3], shape=(*inner[:3], 1), keep_dims=True))
    return g.op("concatenation", *maps, shape=(*inner[:3], 9), axis=3, fused_activation_function="NONE")


def _stacked(g: Graph, x: Value) -> Value:
    values = [g.op("mul", x, float(index)) for index in range(8)]
    return g.op("pack", *values, shape=(*_shape(x), 8), values_count=8, axis=len(_shape(x)))


def _pooled_token(g: Graph, x: Value, y: Value, name: str) -> Value:
    """Takes the row where another tensor is largest, as that of the last token."""
    batch, length, depth = _shape(x)
    most = g.op("reduce_max", x, [2], shape=(batch, length))
    row = g.op("arg_max", most, i32(1), shape=(batch,), element=types.I32, output_type="INT32")
    if name == "gather":
        return g.op("gather", y, row, shape=(batch, depth), axis=1, batch_dims=1)
    indices = g.op("pack", i32([0]), row, shape=(batch, 2), element=types.I32, values_count=2, axis=1)
    return g.op("gather_nd", y, indices, shape=(batch, depth))


def _layer_norm(g: Graph, x: Value) -> Value:
    last = len(_shape(x)) - 1
    mean = _reduced("mean", [last])(g, x)
    variance = _reduced("mean", [last])(g, g.op("squared_difference", x, mean))
    return g.op("mul", g.op("sub", x, mean), g.op("rsqrt", g.op("add", variance, f32(1e-3))))


_DENSE: dict[str, Any] = {"fused_activation_function": "NONE", "keep_num_dims": True}

_NORM = "mean sub square mean rsqrt"
_TRANSPOSED = "transpose reduce_max sub exp sum div mul transpose"

FAST_CASES = [
    FastCase("unpack-slices", (3, 16, 3, 16, 16), _heads, "unpack mul add"),
    FastCase("unpack-slices", (3, 1, 12, 197, 64), _heads, "unpack mul add"),
    FastCase("drop-by-reshape", (3, 4, 64, 32), _one_row, "slice reshape"),
    FastCase("every-nth", (1, 56, 56, 64), _strided(1, 2, 2, 1), "reshape slice reshape"),
    FastCase("every-nth", (1, 64, 64, 3), _strided(1, 2, 2, 1, begin=(0, 1, 1, 0)), "reshape slice reshape"),
    FastCase("every-nth", (1, 4, 64, 32), _strided(1, 1, 1, 2), "reshape transpose slice reshape"),
    FastCase("phases", (1, 16, 16, 48), _phases((0, 0), (1, 0), (0, 1), (1, 1)), "reshape transpose reshape"),
    FastCase("phases", (1, 320, 320, 3), _phases((0, 0), (0, 1), (1, 0), (1, 1)), "space_to_depth"),
    FastCase("interleave", (1, 4, 64, 16), _interleaved, "neg reshape reshape concatenation transpose reshape"),
    FastCase(
        "interleave",
        (1, 16, 16),
        _stacked,
        " ".join(["mul"] * 8 + ["reshape"] * 8 + ["concatenation transpose reshape"]),
    ),
    FastCase(
        "join-maps",
        (1, 18, 18, 32),
        _correlation,
        " ".join(["slice"] + ["slice mul"] * 9 + ["mean"] * 9 + ["concatenation transpose reshape"]),
    ),
    FastCase("split-by-slices", (1, 16, 16, 3, 15), _split, "slice slice slice mul reduce_max mul"),
    FastCase(
        "mask-by-minimum", (1, 12, 128, 128), _masked(np.tril(np.ones((1, 12, 128, 128), bool))), "minimum softmax"
    ),
    FastCase(
        "mask-by-minimum", (1, 4, 160, 160), _masked(np.tril(np.ones((160, 160), bool))), "select_v2 minimum softmax"
    ),
    FastCase("mask-by-minimum", (1, 4, 64, 64), _masked(), "reduce_max greater select_v2 minimum minimum softmax"),
    FastCase(
        "softmax-by-steps", (1, 64, 64, 5), lambda g, x: g.op("softmax", x, beta=1.0), f"reshape {_TRANSPOSED} reshape"
    ),
    FastCase(
        "softmax-by-steps", (1, 1920, 11), lambda g, x: g.op("softmax", x, beta=1.0), f"reshape {_TRANSPOSED} reshape"
    ),
    FastCase(
        "softmax-by-steps", (16, 3, 16, 16), lambda g, x: g.op("softmax", x, beta=1.0), f"reshape {_TRANSPOSED} reshape"
    ),
    FastCase(
        "log-softmax-by-steps", (1, 50, 1000), lambda g, x: g.op("log_softmax", x), "reduce_max sub exp sum log sub"
    ),
    FastCase(
        "normalize-by-steps",
        (1, 4, 64, 32),
        lambda g, x: g.op("l2_normalization", x, fused_activation_function="NONE"),
        "square sum maximum rsqrt mul",
    ),
    FastCase("square-of-difference", (1, 64, 128), _layer_norm, "mean sub square mean add rsqrt mul"),
    FastCase("square-of-difference", (1, 48, 48, 24), _layer_norm, "mean sub square mean add rsqrt mul"),
    FastCase("reduce-in-steps-mean", (1, 64, 64, 8, 2), _reduced("mean", [1, 2, 4]), "mean mean"),
    FastCase("reduce-in-steps-mean", (1, 64, 64, 16, 1), _reduced("mean", [1, 2, 4]), "mean"),
    FastCase("reduce-in-steps-sum", (1, 16, 16, 32, 10), _reduced("sum", [1, 2, 4]), "sum sum"),
    *(
        FastCase(f"broadcast-in-full-{name}", (1, 32, 32, 8, 4), _grouped(name), f"mean mean mul {name}")
        for name in ("add", "div", "maximum", "minimum", "mul", "squared_difference", "sub")
    ),
    FastCase("join-factors", (1, 32, 32, 64), _scaled, "mean mul mul"),
    FastCase("mean-before-product", (1, 64, 128), _averaged(0), "fully_connected gelu mean fully_connected mean add"),
    FastCase(
        "mean-before-product",
        (1, 65, 128),
        _averaged(1),
        "fully_connected gelu slice mean fully_connected slice mean add",
    ),
    FastCase("mean-before-product", (1, 12, 12, 256), _averaged_image, "mean fully_connected"),
    FastCase("sum-of-convolutions", (1, 24, 24, 48), _branches, "conv_2d{RELU}"),
    FastCase("sum-of-convolutions", (1, 24, 24, 96), _depthwise_branches, "depthwise_conv_2d"),
    FastCase("convolutions-in-groups", (1, 32, 32, 64), _groups, "conv_2d"),
    FastCase("samples-as-channels", (1, 1, 576, 1), _windows(258, 256, 128), "reshape conv_2d{RELU}"),
    FastCase("samples-as-channels", (1, 1, 4096, 1), _windows(128, 16, 8), "reshape conv_2d{RELU}"),
    FastCase("broadcast-by-fill", (1, 1), _broadcast(64, 64), "reshape fill"),
    FastCase("broadcast-by-tiles", (1, 64, 1, 64), _broadcast(1, 64, 8, 64), "tile"),
    FastCase("broadcast-by-tiles", (64,), _broadcast(32, 8, 64), "reshape tile"),
    FastCase("broadcast-by-ones", (1, 64, 1), _broadcast(1, 64, 64), "fill mul"),
    FastCase("broadcast-by-ones", (8, 1, 8), _broadcast(8, 16, 8), "fill mul"),
    FastCase("mirror-by-rows", (1, 64, 64, 32), _mirrored(1), "gather gather"),
    FastCase(
        "mirror-by-rows",
        (1, 64, 64, 3),
        _mirrored(2),
        " ".join(["slice"] * 3 + ["concatenation"] + ["slice"] * 4 + ["concatenation"]),
    ),
    FastCase("enlarge-by-copies", (1, 64, 64, 4), _nearest(2), "reshape concatenation reshape concatenation reshape"),
    FastCase("resize-by-rows", (1, 32, 32, 32), _nearest(2), "gather gather"),
    FastCase("resize-by-rows", (1, 16, 16, 128), _nearest(2), "gather gather"),
    FastCase("resize-by-rows", (1, 64, 64, 3), _nearest(1.5), "gather gather"),
    FastCase("resize-by-rows", (1, 64, 64, 16), _nearest(0.375, has_centers=False), "gather gather"),
    FastCase(
        "tile-by-copies", (1, 32, 32, 32), _repeated, "abs reshape concatenation reshape concatenation reshape neg"
    ),
    FastCase("transpose-by-convolution", (1, 16, 16, 64), _deconvolved(32, 2, 2), "conv_2d{RELU} depth_to_space"),
    FastCase("transpose-by-convolution", (1, 32, 32, 32), _deconvolved(16, 3, 2), "pad conv_2d{RELU} depth_to_space"),
    FastCase(
        "transpose-by-convolution", (1, 16, 16, 64), _deconvolved(32, 4, 2), "pad conv_2d{RELU} depth_to_space slice"
    ),
    FastCase(
        "transpose-by-convolution",
        (1, 9, 9, 16),
        _deconvolved(8, 5, 3, "VALID"),
        "pad conv_2d{RELU} depth_to_space slice",
    ),
    FastCase("transpose-by-convolution", (1, 1, 200, 32), _deconvolved_rows, "pad conv_2d reshape slice"),
    *(
        FastCase(pattern, shape, make(Sizes(*shape, updates)), becomes)
        for pattern, shape, updates, make, becomes in (
            ("scatter-rows", (16384, 1), 64, scatter_cases.rows_replaced, "stablehlo_scatter"),
            ("scatter-rows", (4096, 1), 16, scatter_cases.known_rows_replaced, "stablehlo_scatter"),
            ("scatter-rows", (65536, 8), 4, scatter_cases.rows_replaced, "stablehlo_scatter"),
            ("scatter-value", (16384, 2), 64, scatter_cases.rows_filled, "stablehlo_scatter"),
            ("scatter-extremes", (16384, 2), 64, scatter_cases.extremes("max"), "stablehlo_scatter"),
            ("scatter-extremes", (16384, 2), 64, scatter_cases.extremes("min"), "stablehlo_scatter"),
            ("scatter-by-add", (65536, 8), 4, scatter_cases.rows_combined("add", "sum"), "stablehlo_scatter"),
            ("scatter-by-mul", (16384, 2), 64, scatter_cases.rows_combined("mul", "prod"), "stablehlo_scatter"),
            ("scatter-by-maximum", (16384, 2), 64, scatter_cases.rows_combined("maximum", "max"), "stablehlo_scatter"),
            ("scatter-by-minimum", (16384, 2), 64, scatter_cases.rows_combined("minimum", "min"), "stablehlo_scatter"),
            ("scatter-sums", (65536, 8), 8, scatter_cases.sums_added("add"), "stablehlo_scatter"),
            ("scatter-differences", (65536, 8), 8, scatter_cases.sums_added("sub"), "neg stablehlo_scatter"),
        )
    ),
    FastCase(
        "segment-sums",
        (64, 16),
        scatter_cases.segments_combined("sum")(Sizes(4096, 16, 64)),
        "maximum equal reshape select_v2 reshape scatter_nd",
    ),
    FastCase(
        "segment-sums-added",
        (4096, 16),
        scatter_cases.rows_combined("add", "sum")(Sizes(4096, 16, 256)),
        "maximum equal reshape select_v2 reshape scatter_nd add",
    ),
    *(
        FastCase(f"scatter-segments-{name}", (8, 2), made(Sizes(16384, 2, 8)), "fill stablehlo_scatter")
        for name in ("max", "min", "prod")
        for made in (scatter_cases.segments_combined(name),)
    ),
    *(
        FastCase("scatter-where", scatter_cases.apart(each), scatter_cases.element_replaced(each), becomes)
        for each, becomes in (
            (Sizes(4096, 16, 1), "stablehlo_scatter"),
            (Sizes(65536, 1, 64), "pack stablehlo_scatter"),
        )
    ),
    FastCase(
        "narrow-strided_slice",
        (1, 64, 128),
        _pooler("strided_slice"),
        f"slice fully_connected gelu fully_connected add {_NORM} mul reshape",
    ),
    *(
        FastCase(
            f"narrow-{name}",
            (1, 64, 128),
            _pooler(name),
            f"reduce_max arg_max gather fully_connected gelu fully_connected add {_NORM} mul reshape",
        )
        for name in ("gather", "gather_nd")
    ),
    FastCase(
        "narrow-slice", (1, 64, 128), _pooler("slice"), f"slice fully_connected gelu fully_connected add {_NORM} mul"
    ),
]
"""A graph or several of each pattern for floats."""
