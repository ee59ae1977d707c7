"""Calls of products of matrices and of operators on images, on numbers that are stored as they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from benchmarks.kernel_probe.draw import ALL, FLOATS, NUMBERS, Draw, Family, Plan, fed, fixed
from benchmarks.kernel_probe.operators import NO_ACTIVATION, POOL, SAME
from benchmarks.kernel_probe.tensors import Tensor

_TYPES = (*NUMBERS, "complex64")


def _small(d: Draw, shape: Sequence[int]) -> Tensor:
    """Returns numbers whose products' sums an integer of 32 bits holds."""
    return d.x(shape, -2, 2) if d.is_float else d.x(shape, -9, 9)


def _product(d: Draw, x: Tensor, w: Tensor, bias: int, options: Mapping[str, Any]) -> Iterator[Plan]:
    for weights in (w, replace(w, is_constant=True)):
        yield Plan([x, weights, replace(_small(d, (bias,)), is_constant=True)], [d.type], options)
        yield Plan([x, weights, None], [d.type], options)
        yield Plan([x, weights], [d.type], options)


def _convolution(d: Draw) -> Iterator[Plan]:
    yield from _product(d, _small(d, (1, 5, 6, 4)), _small(d, (6, 3, 3, 4)), 6, SAME)
    yield from _product(d, _small(d, (2, 5, 6, 4)), _small(d, (6, 3, 3, 2)), 6, {**SAME, "padding": "VALID"})


def _depthwise(d: Draw) -> Iterator[Plan]:
    yield from _product(d, _small(d, (1, 5, 6, 4)), _small(d, (1, 3, 3, 8)), 8, {**SAME, "depth_multiplier": 2})


def _transposed(d: Draw) -> Iterator[Plan]:
    options = {**SAME, "stride_w": 2, "stride_h": 2}
    for shape in (fixed, fed):
        for w in (_small(d, (3, 3, 3, 4)), replace(_small(d, (3, 3, 3, 4)), is_constant=True)):
            operands = [shape((1, 6, 8, 3)), w, _small(d, (1, 3, 4, 4))]
            yield Plan(operands, [d.type], options)
            yield Plan([*operands, replace(_small(d, (3,)), is_constant=True)], [d.type], options)


def _volume(d: Draw) -> Iterator[Plan]:
    options = {**SAME, "stride_d": 1}
    yield from _product(d, _small(d, (1, 4, 4, 3, 2)), _small(d, (2, 2, 2, 2, 5)), 5, options)


def _transposed_volume(d: Draw) -> Iterator[Plan]:
    options = {**SAME, "stride_d": 2, "stride_w": 2, "stride_h": 2}
    yield Plan([fixed((1, 4, 4, 6, 5)), _small(d, (2, 2, 2, 5, 3)), _small(d, (1, 2, 2, 3, 3))], [d.type], options)


def _dense(d: Draw) -> Iterator[Plan]:
    for keep in (False, True):
        options = {**NO_ACTIVATION, "keep_num_dims": keep, "weights_format": "DEFAULT"}
        x, w = _small(d, (*d.shape[:-1], 5)), _small(d, (7, 5))
        for weights in (w, replace(w, is_constant=True)):
            yield Plan([x, weights, None], [d.type], options)
            yield Plan([x, weights], [d.type], options)
            yield Plan([x, weights, replace(_small(d, (7,)), is_constant=True)], [d.type], options)


def _matrices(d: Draw) -> Iterator[Plan]:
    batch = d.shape[:-2]
    for left, right in ((batch, batch), (batch, (1,) * len(batch)), (batch, ())):
        for is_x, is_y in ((False, False), (False, True), (True, False)):
            x = _small(d, (*left, *((4, 3) if is_x else (3, 4))))
            y = _small(d, (*right, *((5, 4) if is_y else (4, 5))))
            options = {"adj_x": is_x, "adj_y": is_y, "asymmetric_quantize_inputs": False}
            yield Plan([x, y], [d.type], options)
            yield Plan([x, replace(y, is_constant=True)], [d.type], options)


def _pool(d: Draw) -> Iterator[Plan]:
    for padding in ("SAME", "VALID"):
        yield Plan([_small(d, (1, 5, 6, 4))], [d.type], {**POOL, "padding": padding})


def _resize(name: str, d: Draw) -> Iterator[Plan]:
    is_mean = name == "RESIZE_BILINEAR"
    x, result = ((-50, 50), d.type if d.is_float else "f32") if is_mean else ((None, None), d.type)
    for align, half in ((False, False), (True, False), (False, True)):
        options = {"align_corners": align, "half_pixel_centers": half}
        for parameter in (fixed, fed):
            yield Plan([d.x((1, 4, 5, 3), *x), parameter((7, 9))], [result], options)


def _local_response(d: Draw) -> Iterator[Plan]:
    yield Plan([d.x((1, 4, 5, 7))], [d.type], {"radius": 2, "bias": 1.0, "alpha": 0.5, "beta": 0.75})


def _transform(d: Draw) -> Iterator[Plan]:
    shape = (*d.shape[:-2], 4, 8)
    yield Plan([d.x(shape), fixed((4, 8))], ["complex64"])


# The operators.
FAMILIES: tuple[Family, ...] = (
    Family("CONV_2D", _convolution, _TYPES, (4,)),
    Family("DEPTHWISE_CONV_2D", _depthwise, _TYPES, (4,)),
    Family("TRANSPOSE_CONV", _transposed, _TYPES, (4,)),
    Family("CONV_3D", _volume, _TYPES, (5,)),
    Family("CONV_3D_TRANSPOSE", _transposed_volume, _TYPES, (5,)),
    Family("FULLY_CONNECTED", _dense, _TYPES, range(1, 9)),
    Family("BATCH_MATMUL", _matrices, _TYPES, range(2, 9)),
    *(Family(name, _pool, _TYPES, (4,)) for name in ("AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D")),
    Family("RESIZE_BILINEAR", partial(_resize, "RESIZE_BILINEAR"), NUMBERS, (4,)),
    Family("RESIZE_NEAREST_NEIGHBOR", partial(_resize, "RESIZE_NEAREST_NEIGHBOR"), ALL[:-1], (4,)),
    Family("LOCAL_RESPONSE_NORMALIZATION", _local_response, FLOATS, (4,)),
    Family("RFFT2D", _transform, ("f32",), range(2, 9)),
)
