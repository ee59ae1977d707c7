"""Forms of operators that multiply by weights, and of pools."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from benchmarks.accelerator_probe.trial import Result, Shape, Trial, data, draw, integers, pairs, result_of, weight
from benchmarks.kernel_probe.operators import SAME
from benchmarks.kernel_probe.tensors import Tensor, bias

_MODES = ("f32", "f32<f16", "computed", "i8", "i8c", "f32<i8", "f32<i8c")
_CONV: Mapping[str, Any] = {**SAME, "dilation_w_factor": 1, "dilation_h_factor": 1}


def _weighted(
    name: str,
    shape: Shape,
    filters: Shape,
    options: Mapping[str, Any],
    mode: str = "f32",
    kind: str = "f32",
    *,
    biased: str = "constant",
    axis: int = 0,
    first: Sequence[Tensor] = (),
    results: int = 0,
) -> Trial:
    """Returns a form: `first` come before the weights, if these come before the data."""
    x, (w, is_dequantized) = data(kind, shape), weight(mode, filters, axis)
    count = results or filters[axis]
    operands: list[Tensor | None] = [*first, w, x] if first else [x, w]
    if biased == "constant":
        operands.append(bias("i32" if kind == "i8" else "f32", draw((count,)), x, w))
    elif biased:
        operands.append(Tensor("f32", draw((count,))))
    elif name == "FULLY_CONNECTED":
        operands.append(None)
    origins = frozenset((operands.index(w),)) if is_dequantized else frozenset()
    return Trial(name, operands, [result_of(kind)], options, mode, origins)


def _convolutions() -> Iterator[Trial]:
    image = (1, 8, 8, 4)
    variants: Sequence[Mapping[str, Any]] = (
        {},
        {"padding": "VALID"},
        {"stride_w": 2, "stride_h": 2},
        {"padding": "VALID", "stride_w": 2, "stride_h": 2},
        {"dilation_w_factor": 2, "dilation_h_factor": 2},
        *({"fused_activation_function": name} for name in ("RELU", "RELU6", "RELU_N1_TO_1", "TANH", "SIGN_BIT")),
    )
    for change in variants:
        for mode in ("f32", "i8", "i8c", "f32<f16", "computed"):
            yield _weighted("CONV_2D", image, (5, 3, 3, 4), {**_CONV, **change}, mode)
            yield _depthwise(image, (1, 3, 3, 4), 1, change, mode)
        for mode in ("i8", "i8c"):
            yield _weighted("CONV_2D", image, (5, 3, 3, 4), {**_CONV, **change}, mode, "i8")
            yield _depthwise(image, (1, 3, 3, 4), 1, change, mode, "i8")
    for mode in _MODES:
        yield _weighted("CONV_2D", image, (5, 3, 3, 4), _CONV, mode)
        yield _weighted("CONV_2D", image, (5, 1, 1, 4), _CONV, mode)
        yield _weighted("CONV_2D", (1, 1, 1, 4), (5, 1, 1, 4), _CONV, mode)
        yield _weighted("CONV_2D", (2, 8, 8, 4), (8, 3, 3, 4), _CONV, mode)
        yield _weighted("CONV_2D", (1, 8, 8, 32), (16, 1, 1, 32), _CONV, mode)
        yield _weighted("CONV_2D", image, (5, 3, 3, 4), _CONV, mode, biased="computed")
        yield _weighted("CONV_2D", image, (5, 3, 3, 4), _CONV, mode, biased="")
        yield _depthwise(image, (1, 3, 3, 4), 1, {}, mode, biased="computed")
        yield _depthwise(image, (1, 3, 3, 4), 1, {}, mode, biased="")
        for filters, shape, times in (
            ((1, 3, 3, 4), image, 1),
            ((1, 3, 3, 8), image, 2),
            ((1, 3, 3, 4), (1, 8, 8, 1), 4),
            ((1, 3, 3, 6), (1, 8, 8, 2), 3),
            ((1, 3, 3, 4), (2, 8, 8, 4), 1),
            ((1, 1, 5, 4), (1, 1, 16, 4), 1),
        ):
            yield _depthwise(shape, filters, times, {}, mode)
    # By the channels of the image: the results, and the channels of a filter.
    groups = {
        8: ((6, 4), (8, 2), (8, 1), (16, 4), (24, 4), (16, 1), (12, 4)),
        32: ((32, 16),),
        64: ((64, 8),),
        2: ((8, 1),),
        4: ((8, 2),),
        16: ((8, 8),),
        12: ((8, 6),),
    }
    for (channels, (results, each)), mode in product(pairs(groups), ("f32", "i8c")):
        for kind in ("f32", "i8") if mode == "i8c" else ("f32",):
            yield _weighted("CONV_2D", (1, 8, 8, channels), (results, 3, 3, each), _CONV, mode, kind)
    for shape, filters, steps in (
        ((1, 1, 16, 4), (5, 1, 5, 4), 1),
        ((1, 8, 8, 4), (5, 4, 4, 4), 2),
        ((1, 16, 16, 3), (4, 9, 9, 3), 1),
        ((1, 9, 9, 4), (5, 1, 1, 4), 3),
        ((1, 8, 8, 4), (1, 3, 3, 4), 1),
        ((1, 8, 8, 3), (7, 3, 3, 3), 1),
    ):
        yield _weighted("CONV_2D", shape, filters, {**_CONV, "stride_w": steps, "stride_h": steps})


def _depthwise(
    shape: Shape,
    filters: Shape,
    times: int,
    change: Mapping[str, Any],
    mode: str,
    kind: str = "f32",
    biased: str = "constant",
) -> Trial:
    options = {**_CONV, **change, "depth_multiplier": times}
    return _weighted("DEPTHWISE_CONV_2D", shape, filters, options, mode, kind, biased=biased, axis=3)


def _transposed() -> Iterator[Trial]:
    forms: Sequence[tuple[Shape, Shape, Shape, str, int]] = (
        ((1, 8, 8, 4), (5, 3, 3, 4), (1, 16, 16, 5), "SAME", 2),
        ((1, 8, 8, 4), (5, 2, 2, 4), (1, 16, 16, 5), "SAME", 2),
        ((1, 8, 8, 4), (5, 4, 4, 4), (1, 16, 16, 5), "SAME", 2),
        ((1, 8, 8, 4), (5, 3, 3, 4), (1, 17, 17, 5), "VALID", 2),
        ((1, 8, 8, 4), (5, 3, 3, 4), (1, 8, 8, 5), "SAME", 1),
        ((1, 8, 8, 4), (5, 3, 3, 4), (1, 24, 24, 5), "SAME", 3),
        ((2, 8, 8, 4), (5, 3, 3, 4), (2, 16, 16, 5), "SAME", 2),
        ((1, 8, 8, 4), (5, 3, 3, 4), (1, 15, 15, 5), "SAME", 2),
        ((1, 8, 8, 4), (5, 2, 2, 4), (1, 16, 16, 5), "VALID", 2),
        ((1, 8, 8, 4), (8, 4, 4, 4), (1, 15, 16, 8), "SAME", 2),
        ((1, 4, 4, 8), (8, 3, 3, 8), (1, 7, 7, 8), "SAME", 2),
        ((1, 8, 8, 4), (5, 4, 4, 4), (1, 18, 18, 5), "VALID", 2),
        # The GPU pads as the sizes of operands want, not those of results.
        ((1, 7, 7, 4), (5, 3, 3, 4), (1, 14, 14, 5), "SAME", 2),
        ((1, 5, 5, 4), (5, 3, 3, 4), (1, 9, 9, 5), "SAME", 2),
        ((1, 7, 8, 4), (5, 3, 3, 4), (1, 14, 16, 5), "SAME", 2),
        ((1, 8, 7, 4), (5, 5, 5, 4), (1, 16, 14, 5), "SAME", 2),
        ((1, 7, 7, 4), (5, 4, 4, 4), (1, 14, 14, 5), "SAME", 2),
        ((1, 7, 7, 4), (5, 3, 3, 4), (1, 21, 21, 5), "SAME", 3),
        ((1, 5, 5, 4), (5, 3, 3, 4), (1, 15, 15, 5), "SAME", 3),
        ((1, 6, 6, 4), (5, 4, 4, 4), (1, 24, 24, 5), "SAME", 4),
        ((1, 7, 7, 4), (5, 3, 3, 4), (1, 15, 15, 5), "VALID", 2),
    )
    for shape, filters, result, padding, steps in forms:
        options = {**SAME, "padding": padding, "stride_w": steps, "stride_h": steps}
        for biased in ("", "constant"):
            first = [integers(result)]
            yield _weighted("TRANSPOSE_CONV", shape, filters, options, first=first, biased=biased)
            for mode in ("i8", "i8c"):
                yield _weighted("TRANSPOSE_CONV", shape, filters, options, mode, "i8", first=first, biased=biased)
    shape, filters, result, padding, steps = forms[0]
    options = {**SAME, "padding": padding, "stride_w": steps, "stride_h": steps}
    for mode in _MODES:
        yield _weighted("TRANSPOSE_CONV", shape, filters, options, mode, first=[integers(result)], biased="")
    for activation in ("RELU", "RELU6"):
        fused = {**options, "fused_activation_function": activation}
        yield _weighted("TRANSPOSE_CONV", shape, filters, fused, first=[integers(result)])
    yield _weighted("TRANSPOSE_CONV", shape, filters, options, first=[integers(result, constant=False)])
    cube_options = {**_CONV, "stride_d": 1, "dilation_d_factor": 1}
    volume = [data("f32", (1, 4, 6, 6, 3)), data("f32", (3, 3, 3, 3, 4), constant=True)]
    yield Trial("CONV_3D", [*volume, data("f32", (4,), constant=True)], options=cube_options)
    backwards = data("f32", (3, 3, 3, 4, 3), constant=True)
    whole = [integers((1, 4, 6, 6, 4)), backwards, data("f32", (1, 4, 6, 6, 3))]
    yield Trial("CONV_3D_TRANSPOSE", whole, options=cube_options)


def _dense() -> Iterator[Trial]:
    plain = {"fused_activation_function": "NONE", "keep_num_dims": False}
    kept = {**plain, "keep_num_dims": True}
    forms: Sequence[tuple[Shape, int, Mapping[str, Any], int]] = (
        ((1, 8), 5, plain, 8),
        ((3, 8), 5, plain, 8),
        ((3, 8), 8, plain, 8),
        ((1, 7), 5, plain, 7),
        ((6, 64), 32, plain, 64),
        ((2, 3, 8), 5, kept, 8),
        ((1, 3, 8), 5, kept, 8),
        ((2, 3, 8), 5, plain, 8),
        ((1, 2, 2, 4), 5, plain, 16),
        ((1, 2, 3, 8), 5, kept, 8),
        ((2, 2, 3, 8), 5, kept, 8),
        ((1, 2, 2, 3, 8), 5, kept, 8),
        ((2, 4, 4), 5, plain, 16),
        ((1, 64), 16, plain, 64),
        ((1, 4, 2), 5, plain, 8),
        *(((1, 8), 8, {**plain, "fused_activation_function": name}, 8) for name in ("RELU", "RELU6", "RELU_N1_TO_1")),
        *(((1, 3, 8), 8, {**kept, "fused_activation_function": name}, 8) for name in ("RELU",)),
    )
    for (shape, count, options, size), biased in product(forms, ("constant", "", "computed")):
        for mode in _MODES:
            yield _weighted("FULLY_CONNECTED", shape, (count, size), options, mode, biased=biased)
        for mode in ("i8", "i8c"):
            if biased != "computed":
                yield _weighted("FULLY_CONNECTED", shape, (count, size), options, mode, "i8", biased=biased)


def _narrow() -> Iterator[Trial]:
    """Yields weights of 4 bits."""
    plain = {"fused_activation_function": "NONE", "keep_num_dims": False}
    for mode, kind, biased in product(("i4", "i4c"), ("i8", "f32"), ("constant", "")):
        yield _weighted("CONV_2D", (1, 8, 8, 4), (5, 3, 3, 4), _CONV, mode, kind, biased=biased)
        yield _weighted("CONV_2D", (1, 8, 8, 32), (16, 1, 1, 32), _CONV, mode, kind, biased=biased)
        yield _depthwise((1, 8, 8, 4), (1, 3, 3, 4), 1, {}, mode, kind, biased=biased)
        for shape, units in (((1, 8), 5), ((3, 8), 8), ((6, 64), 32)):
            yield _weighted("FULLY_CONNECTED", shape, (units, shape[-1]), plain, mode, kind, biased=biased)


def _products() -> Iterator[Trial]:
    forms: Mapping[Shape, Sequence[Shape]] = {
        (3, 4): ((4, 5),),
        (1, 3, 4): ((1, 4, 5), (2, 4, 5), (4, 5)),
        (2, 3, 4): ((2, 4, 5), (1, 4, 5), (4, 5)),
        (1, 2, 3, 4): ((1, 2, 4, 5), (4, 5), (2, 4, 5)),
        (2, 2, 3, 4): ((2, 2, 4, 5),),
        (1, 2, 2, 3, 4): ((1, 2, 2, 4, 5),),
        (1, 4, 3, 4): ((1, 1, 4, 5),),
        (1, 1, 3, 4): ((1, 4, 4, 5), (1, 1, 4, 5)),
        (1, 2, 1, 4): ((1, 2, 4, 5),),
        (1, 2, 3, 7): ((1, 2, 7, 5),),
        (1, 4, 6, 8): ((1, 4, 8, 6),),
        (2, 4, 6, 8): ((2, 4, 8, 6),),
        (4, 6, 8): ((4, 8, 6),),
        (3, 8): ((8, 8),),
        (1, 8): ((8, 4),),
        (2, 1, 3, 4): ((2, 4, 4, 5),),
    }
    for (left, right), flips in product(pairs(forms), product((False, True), repeat=2)):
        a, b = (_flipped(shape, is_flipped) for shape, is_flipped in zip((left, right), flips, strict=True))
        options = {"adj_x": flips[0], "adj_y": flips[1]}
        for constants in ((False, False), (False, True), (True, False)):
            operands = [data("f32", shape, constant=held) for shape, held in zip((a, b), constants, strict=True)]
            yield Trial("BATCH_MATMUL", operands, options=options)
        if flips in ((False, False), (False, True)):
            for held in (False, True):
                yield Trial("BATCH_MATMUL", [data("i8", a), data("i8", b, constant=held)], [result_of("i8")], options)
    yield from _squares()
    for mode in ("f32<f16", "i8", "i8c"):
        for a, b in (((1, 3, 4), (1, 4, 5)), ((2, 3, 4), (4, 5)), ((2, 3, 4), (2, 4, 5)), ((1, 2, 3, 4), (1, 2, 4, 5))):
            w, is_dequantized = weight(mode, b, len(b) - 1)
            origins = frozenset((1,)) if is_dequantized else frozenset()
            yield Trial("BATCH_MATMUL", [data("f32", a), w], options={"adj_x": False, "adj_y": False}, origins=origins)


def _squares() -> Iterator[Trial]:
    """Yields products of a tensor with itself."""
    batches = ((1, 2), (1, 1), (2, 2), (2, 1), (1, 2, 2))
    squares: Sequence[Shape] = ((3, 3), (1, 3, 3), (2, 4, 4), *((*batch, 4, 4) for batch in batches))
    for shape, flips in product((*squares, (1, 3, 4), (1, 2, 3, 4), (2, 3, 4)), product((False, True), repeat=2)):
        if shape in squares or flips[0] != flips[1]:
            for kind in ("f32", "i8") if not flips[0] else ("f32",):
                x = data(kind, shape)
                yield Trial("BATCH_MATMUL", [x, x], [result_of(kind)], {"adj_x": flips[0], "adj_y": flips[1]})


def _flipped(shape: Shape, is_flipped: bool) -> Shape:
    return (*shape[:-2], shape[-1], shape[-2]) if is_flipped else shape


def _pools() -> Iterator[Trial]:
    for name in ("AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D"):
        for size, steps, padding, activation in (
            (2, 2, "VALID", "NONE"),
            (3, 2, "SAME", "NONE"),
            (3, 1, "SAME", "NONE"),
            (8, 1, "VALID", "NONE"),
            (2, 2, "VALID", "RELU"),
            (2, 2, "VALID", "RELU6"),
        ):
            window = {"stride_w": steps, "stride_h": steps, "filter_width": size, "filter_height": size}
            options = {**window, "padding": padding, "fused_activation_function": activation}
            for shape, kind in product(((1, 8, 8, 4), (2, 8, 8, 4), (1, 8, 8, 3)), ("f32", "i8", "u8", "i16")):
                yield Trial(name, [data(kind, shape)], [result_of(kind)], options)
    radius = {"radius": 2, "bias": 1.0, "alpha": 1.0, "beta": 0.5}
    yield Trial("LOCAL_RESPONSE_NORMALIZATION", [data("f32", (1, 8, 8, 4))], options=radius)


def _recurrent() -> Iterator[Trial]:
    def held(*shape: int) -> Tensor:
        return data("f32", shape, -0.3, 0.3, constant=True)

    def state(*shape: int) -> Tensor:
        return Tensor("f32", np.zeros(shape), is_variable=True)

    for units in (8, 6):
        gates = [held(units, 4) for _ in range(4)] + [held(units, units) for _ in range(4)]
        biases = [held(units) for _ in range(4)]
        whole = [
            *gates,
            None,
            None,
            None,
            *biases,
            None,
            None,
            state(1, units),
            state(1, units),
            None,
            None,
            None,
            None,
        ]
        options = {"fused_activation_function": "TANH"}
        yield Trial("LSTM", [data("f32", (1, 4)), *whole], options=options)
        yield Trial("UNIDIRECTIONAL_SEQUENCE_LSTM", [data("f32", (1, 5, 4)), *whole], options=options)
        cell = [held(units, 4), held(units, units), held(units), state(1, units)]
        yield Trial("UNIDIRECTIONAL_SEQUENCE_RNN", [data("f32", (1, 5, 4)), *cell], options=options)
        basic = [data("f32", (1, 4)), data("f32", (1, units)), held(4 * units, 4 + units), held(4 * units)]
        kind = {"kernel_type": "BASIC", "fused_activation_function": "TANH"}
        yield Trial("LSTM", [*basic, data("f32", (1, units))], [Result()] * 4, kind)
    svdf = [data("f32", (1, 4)), held(3, 4), held(3, 5), held(3), state(1, 15)]
    yield Trial("SVDF", svdf, options={"rank": 1, "fused_activation_function": "NONE"})


def trials() -> Iterator[Trial]:
    """Yields the forms."""
    yield from _convolutions()
    yield from _transposed()
    yield from _dense()
    yield from _narrow()
    yield from _products()
    yield from _pools()
    yield from _recurrent()
