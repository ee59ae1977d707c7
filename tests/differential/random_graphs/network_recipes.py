"""Recipes of the ops of networks: products, convolutions, pooling, normalization, images, transforms."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from tests.differential.random_graphs.program import Builder, Ref
from tests.differential.random_graphs.recipes import Recipe
from tests.differential.random_graphs.values import draw_array

_FLOATS = ("float32", "float32", "float32", "float16", "bfloat16")


def _like(build: Builder, one: Ref, shape: tuple[int, ...], constant: float = 0.7) -> Ref:
    return build.leaf(draw_array(build.random, build.type_of(one), shape, odd=0.03), constant)


def _matmul(build: Builder) -> None:
    one = build.pick((*_FLOATS, "int32"), rank=2)
    first, second = (build.random.random() < 0.3 for _ in range(2))
    inner = build.array(one).shape[0 if first else 1]
    width = build.random.randint(1, 5)
    other = _like(build, one, (width, inner) if second else (inner, width), 0.6)
    build.op("MatMul", a=one, b=other, transpose_a=first, transpose_b=second)


def _batch_matmul(build: Builder) -> None:
    one = build.pick((*_FLOATS, "int32"), rank=range(2, 6))
    shape = build.array(one).shape
    first, second = (build.random.random() < 0.3 for _ in range(2))
    inner, width = shape[-2 if first else -1], build.random.randint(1, 4)
    batch = tuple(1 if build.random.random() < 0.3 else size for size in shape[:-2])[
        build.random.randint(0, len(shape) - 2) :
    ]
    other = _like(build, one, (*batch, *((width, inner) if second else (inner, width))), 0.4)
    build.op("BatchMatMulV2", x=one, y=other, adj_x=first, adj_y=second)


def _einsum(build: Builder) -> None:
    one = build.pick(("float32",), rank=range(1, 4))
    letters = "abc"[: build.array(one).ndim]
    sizes = {**dict(zip(letters, build.array(one).shape, strict=True)), "d": 2, "e": 3}
    other = "".join(build.random.sample(sorted(sizes), build.random.randint(1, 3)))
    result = "".join(letter for letter in dict.fromkeys(letters + other) if build.random.random() < 0.7)
    second = _like(build, one, tuple(sizes[letter] for letter in other), 0.4)
    build.op("Einsum", inputs=[one, second], equation=f"{letters},{other}->{result}")


def _image(build: Builder, name: str = "", depth: int = 0) -> Ref:
    shape = (
        build.random.randint(1, 2),
        build.random.randint(3, 7),
        build.random.randint(3, 7),
        depth or build.random.randint(1, 4),
    )
    types = (name,) if name else _FLOATS
    return (
        build.pick(types, rank=4, shape=shape)
        if build.random.random() < 0.3
        else build.pick(
            types,
            rank=4,
            suits=lambda array: min(array.shape) > 0 and (not depth or array.shape[-1] == depth),
            shape=None if not depth else shape,
        )
    )


def _window(build: Builder) -> dict[str, object]:
    stride = build.random.randint(1, 3)
    return {
        "strides": [1, stride, build.random.choice((stride, 1)), 1],
        "padding": build.random.choice(("SAME", "VALID")),
    }


def _conv(op: str, build: Builder) -> None:
    one = _image(build)
    channels = build.array(one).shape[-1]
    height, width = (build.random.randint(1, 3) for _ in range(2))
    settings = _window(build)
    if build.random.random() < 0.25:
        settings["strides"] = [1, 1, 1, 1]
        settings["dilations"] = [1, build.random.randint(1, 2), build.random.randint(1, 2), 1]
    if op == "DepthwiseConv2dNative":
        settings["strides"] = [1, *[build.random.randint(1, 2)] * 2, 1]
        settings.pop("dilations", None)
        weights = _like(build, one, (height, width, channels, build.random.randint(1, 2)), 0.85)
    else:
        groups = build.random.choice([each for each in range(1, channels + 1) if channels % each == 0] or [1])
        groups = groups if build.random.random() < 0.15 else 1
        weights = _like(build, one, (height, width, channels // groups, groups * build.random.randint(1, 3)), 0.85)
    build.op(op, input=one, filter=weights, **settings)


def _transposed(build: Builder) -> None:
    one = _image(build, "float32")
    batch, height, width, channels = build.array(one).shape
    stride, size, depth = build.random.randint(1, 2), build.random.randint(1, 3), build.random.randint(1, 3)
    padding = build.random.choice(("SAME", "VALID"))
    grown = [each * stride if padding == "SAME" else (each - 1) * stride + size for each in (height, width)]
    weights = _like(build, one, (size, size, depth, channels), 0.9)
    build.op(
        "Conv2DBackpropInput",
        input_sizes=build.fixed([batch, *grown, depth]),
        filter=weights,
        out_backprop=one,
        strides=[1, stride, stride, 1],
        padding=padding,
    )


def _volume(op: str, build: Builder) -> None:
    one = build.pick(("float32",), rank=5, suits=lambda array: min(array.shape) > 0)
    sizes = [build.random.randint(1, 2) for _ in range(3)]
    stride = [1, *(build.random.randint(1, 2) for _ in range(3)), 1]
    padding = build.random.choice(("SAME", "VALID"))
    if op == "Conv3D":
        weights = _like(build, one, (*sizes, build.array(one).shape[-1], 2), 0.9)
        build.op(op, input=one, filter=weights, strides=stride, padding=padding)
    else:
        build.op(op, input=one, ksize=_fitting(build, one, sizes), strides=stride, padding=padding)


def _pool(op: str, build: Builder) -> None:
    one = _image(build)
    sizes = _fitting(build, one, [build.random.randint(1, 3), build.random.randint(1, 3)])
    build.op(op, **{"value" if op == "AvgPool" else "input": one}, ksize=sizes, **_window(build))


def _fitting(build: Builder, one: Ref, sizes: Sequence[int]) -> list[int]:
    """Returns the sizes of a window, none larger than the image or volume, for which TensorFlow ends the process."""
    dims = build.array(one).shape[1:-1]
    return [1, *(min(size, dim) for size, dim in zip(sizes, dims, strict=True)), 1]


def _batch_norm(build: Builder) -> None:
    one = _image(build, "float32")
    channels = build.array(one).shape[-1:]
    scale, offset, mean = (_like(build, one, channels, 0.9) for _ in range(3))
    variance = build.leaf(np.abs(draw_array(build.random, "float32", channels, odd=0)), 0.9)
    build.op("FusedBatchNormV3", x=one, scale=scale, offset=offset, mean=mean, variance=variance, is_training=False)


def _softmax(op: str, build: Builder) -> None:
    build.op(op, logits=build.pick(_FLOATS, rank=range(1, 6)))


def _norm(build: Builder) -> None:
    build.op(
        "LRN", input=_image(build, "float32"), depth_radius=build.random.randint(0, 3), bias=1.0, alpha=0.5, beta=0.5
    )


def _l2(build: Builder) -> None:
    build.op("L2Loss", t=build.pick(("float32",)))


def _resize(op: str, build: Builder) -> None:
    settings = build.random.choice(({}, {}, {"align_corners": True}, {"half_pixel_centers": True}))
    settings = settings if op != "ResizeArea" else {}
    one = _image(build, build.random.choice(("float32", "float32", "uint8", "int8")))
    build.op(op, images=one, size=build.fixed([build.random.randint(1, 8) for _ in range(2)]), **settings)


def _cross_entropy(build: Builder) -> None:
    one = build.pick(("float32",), rank=2)
    shape = build.array(one).shape
    if build.random.random() < 0.5:
        build.op("SoftmaxCrossEntropyWithLogits", features=one, labels=_like(build, one, shape, 0.3))
    elif min(shape):
        labels = build.leaf(np.array([build.random.randrange(shape[1]) for _ in range(shape[0])], "int32"))
        build.op("SparseSoftmaxCrossEntropyWithLogits", features=one, labels=labels)


def _spectrum(op: str, build: Builder) -> None:
    length = build.random.choice((2, 4, 8, 5))
    if op == "RFFT":
        build.op(op, input=build.pick(("float32",), rank=range(1, 4)), fft_length=build.fixed([length]))
    elif op == "RFFT2D":
        build.op(op, input=build.pick(("float32",), rank=range(2, 4)), fft_length=build.fixed([4, length]))
    else:
        build.op(op, input=build.pick(("complex64",), rank=range(1, 4)), fft_length=build.fixed([length]))


def _cross(build: Builder) -> None:
    one = build.pick(("float32", "int32"), rank=range(1, 4), shape=(2, 3))
    build.op("Cross", a=one, b=build.pick([build.type_of(one)], shape=build.array(one).shape))


def _color(op: str, build: Builder) -> None:
    one = build.leaf(np.abs(np.sin(draw_array(build.random, "float32", (2, 3, 3), odd=0))))
    build.op(op, images=one)


def _patches(build: Builder) -> None:
    size, step, rate = (build.random.randint(1, 2) for _ in range(3))
    windows = {"ksizes": [1, size, size, 1], "strides": [1, step, step, 1], "rates": [1, rate, rate, 1]}
    padding = build.random.choice(("SAME", "VALID"))
    build.op("ExtractImagePatches", images=_image(build, "float32"), **windows, padding=padding)


def _stitch(build: Builder) -> None:
    count = build.random.randint(1, 4)
    order = list(range(2 * count))
    build.random.shuffle(order)
    values = [build.leaf(draw_array(build.random, "float32", (count, 2))) for _ in range(2)]
    places = [build.fixed(order[:count]), build.fixed(order[count:])]
    build.op("DynamicStitch", indices=places, data=values)


def _quantized(build: Builder) -> None:
    one = build.pick(("float32",))
    low, high = build.fixed(-4, "float32"), build.fixed(4, "float32")
    settings = {"signed_input": True, "num_bits": 8, "range_given": True}
    build.op("QuantizeAndDequantizeV2", input=one, input_min=low, input_max=high, **settings)


# Recipes by name.
NETWORKS: dict[str, Recipe] = {
    **{op: partial(_conv, op) for op in ("Conv2D", "DepthwiseConv2dNative")},
    **{op: partial(_volume, op) for op in ("Conv3D", "MaxPool3D", "AvgPool3D")},
    **{op: partial(_pool, op) for op in ("MaxPool", "AvgPool")},
    **{op: partial(_softmax, op) for op in ("Softmax", "LogSoftmax")},
    **{op: partial(_resize, op) for op in ("ResizeBilinear", "ResizeNearestNeighbor", "ResizeBicubic", "ResizeArea")},
    **{op: partial(_spectrum, op) for op in ("RFFT", "RFFT2D", "IRFFT")},
    **{op: partial(_color, op) for op in ("RGBToHSV", "HSVToRGB")},
    "MatMul": _matmul,
    "BatchMatMulV2": _batch_matmul,
    "Einsum": _einsum,
    "Conv2DBackpropInput": _transposed,
    "FusedBatchNormV3": _batch_norm,
    "LRN": _norm,
    "L2Loss": _l2,
    "SoftmaxCrossEntropyWithLogits": _cross_entropy,
    "Cross": _cross,
    "ExtractImagePatches": _patches,
    "DynamicStitch": _stitch,
    "QuantizeAndDequantizeV2": _quantized,
}
