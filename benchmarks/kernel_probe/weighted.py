"""Calls of operators that multiply by weights."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from benchmarks.kernel_probe.case import Case, random
from benchmarks.kernel_probe.operators import NO_ACTIVATION, NO_OPTIONS, SAME
from benchmarks.kernel_probe.tensors import Array, Tensor, bias, like, plain, weights, with_offset, with_scales, within
from tfconvert.schema.dialects import tfl

Operands = Callable[[Tensor, Tensor, Sequence[Tensor | None]], list[Tensor | None]]

_ASYMMETRIC = {"asymmetric_quantize_inputs": True}

_FORMS = ("i8", "u8", "i4", "i2", "i16", "f16")
_KINDS = ("i8", "u8", "i16", "f32")
_BIASES: Mapping[str, Sequence[str]] = {"f32": ("f32",), "i8": ("i32", "i64"), "u8": ("i32",), "i16": ("i32", "i64")}


def _in_order(x: Tensor, w: Tensor, biases: Sequence[Tensor | None]) -> list[Tensor | None]:
    return [x, w, *biases]


def _shape_first(x: Tensor, w: Tensor, biases: Sequence[Tensor | None]) -> list[Tensor | None]:
    return [plain([1, 6, 6, 4]), w, x, *biases]


class Product(NamedTuple):
    """An operator with weights."""

    name: str  # Its name.
    shape: Sequence[int]  # The operand's shape.
    weights: Sequence[int]  # The weights' shape.
    axis: int  # The axis of the weights that counts the results.
    result: Sequence[int]  # The result's shape.
    options: Mapping[str, Any]  # The options.
    operands: Operands = _in_order  # Puts the operands in order.
    # Whether the kernel may have floats with integer weights, so that there is an option for it.
    is_hybrid: bool = False


_PRODUCTS = (
    Product("CONV_2D", (1, 6, 6, 8), (16, 3, 3, 8), 0, (1, 6, 6, 16), SAME),
    Product("CONV_2D", (1, 6, 6, 8), (16, 3, 3, 4), 0, (1, 6, 6, 16), SAME),
    Product("DEPTHWISE_CONV_2D", (1, 6, 6, 8), (1, 3, 3, 8), 3, (1, 6, 6, 8), {**SAME, "depth_multiplier": 1}),
    Product("FULLY_CONNECTED", (4, 32), (16, 32), 0, (4, 16), NO_ACTIVATION, is_hybrid=True),
    Product(
        "TRANSPOSE_CONV",
        (1, 3, 3, 8),
        (4, 3, 3, 8),
        0,
        (1, 6, 6, 4),
        {**SAME, "stride_w": 2, "stride_h": 2},
        _shape_first,
    ),
    Product("CONV_3D", (1, 4, 4, 4, 4), (3, 3, 3, 4, 4), 4, (1, 4, 4, 4, 4), {**SAME, "stride_d": 1}),
)


def _products() -> Iterator[Case]:
    for seed, product in enumerate(_PRODUCTS):
        draw = random(2000 + seed)
        value, filters = draw.uniform(-1, 2, product.shape), draw.normal(0, 0.2, product.weights)
        offsets = draw.uniform(-1, 1, product.weights[product.axis])
        for kind in _KINDS:
            x = within(kind, value, -1, 2)
            for form in _FORMS:
                yield from _of_form(product, x, form, filters, offsets)
            yield from _mistakes(product, x, filters, offsets)


def _of_form(product: Product, x: Tensor, form: str, filters: Array, offsets: Array) -> Iterator[Case]:
    """Yields the calls with one form of weights."""
    if (form == "f16") != (x.type == "f32" and form == "f16") or (form == "i16") != (x.type == form == "i16"):
        return
    axes = (None,) if form in ("u8", "f16", "i16") else (None, product.axis)
    for axis in axes:
        w = weights(form, filters, axis)
        for biases in _bias_forms(x, w, offsets):
            yield _case(product, x, w, biases)
            if (
                x.type == "i16"
                and biases
                and biases[0] is not None
                and tfl.SUMS in tfl.option_fields(product.name.lower())
            ):
                yield _case(product, x, w, biases, {tfl.SUMS: {"i32": "INT32", "i64": "INT64"}[biases[0].type]})
            if product.is_hybrid and x.type == "f32" and form != "f16":
                yield _case(product, x, w, biases, _ASYMMETRIC)


def _bias_forms(x: Tensor, w: Tensor, offsets: Array) -> Iterator[Sequence[Tensor | None]]:
    yield ()
    yield (None,)
    for kind in _BIASES[x.type]:
        yield (bias(kind, offsets, x, w),)


def _mistakes(product: Product, x: Tensor, filters: Array, offsets: Array) -> Iterator[Case]:
    """Yields calls that are right but for zero points of the weights or the bias's scale, or have another axis."""
    kind = _BIASES[x.type][-1 if x.type == "i16" else 0]
    for axis in (None, product.axis):
        w = weights("i8", filters, axis)
        fitting = bias(kind, offsets, x, w)
        for biases in ((), (fitting,)):
            yield _case(product, x, with_offset(w, 20), biases)
        if fitting.scales:
            yield _case(product, x, w, (with_scales(fitting, 16),))
    other = product.axis - 1 if product.axis else len(product.weights) - 1
    w = weights("i8", filters, other)
    yield _case(product, x, w, (bias(kind, offsets, x, weights("i8", filters)),))
    yield _case(product, x, w, ())


def _case(
    product: Product, x: Tensor, w: Tensor, biases: Sequence[Tensor | None], options: Mapping[str, Any] = NO_OPTIONS
) -> Case:
    products = np.abs(w.value).sum() / w.value.shape[product.axis]
    result = within(x.type, like(product.result), -products * 1.2 - 1, products * 1.2 + 1)
    # Without a bias, some kernels for floats end the process.
    zero = [] if biases else [plain(np.zeros(product.weights[product.axis]), np.float32)]
    operands = product.operands(x, w, biases)
    return Case(product.name, operands, [result], {**product.options, **options}, more=zero)


def _other_dense() -> Iterator[Case]:
    """Yields dense layers with scales for blocks, with weights that are computed, and with results of other types."""
    draw = random(2100)
    value, filters, offsets = draw.uniform(-1, 2, (4, 64)), draw.normal(0, 0.2, (16, 64)), draw.uniform(-1, 1, 16)
    dense = Product("FULLY_CONNECTED", (4, 64), (16, 64), 0, (4, 16), NO_ACTIVATION)
    for kind in ("f32", "i8", "i16"):
        x = within(kind, value, -1, 2)
        for form in ("i4", "i8", "i2"):
            for size in (32, 64):
                yield _case(dense, x, weights(form, filters, block=size), (None,))
                yield _case(dense, x, weights(form, filters, block=size), ())
        if kind != "f32":
            for low in (-1, -0.7):
                yield _case(dense, x, within(kind, filters, low, 1), (None,))
    for source, target in (("i8", "i16"), ("i8", "f32"), ("i16", "f32"), ("i16", "i8"), ("i8", "u8")):
        x, w = within(source, value, -1, 2), weights("i8", filters)
        for biases in _bias_forms(x, w, offsets):
            yield Case("FULLY_CONNECTED", [x, w, *biases], [within(target, like((4, 16)), -9, 9)], NO_ACTIVATION)


def _matrix_products() -> Iterator[Case]:
    draw = random(2200)
    value, matrix = draw.uniform(-1, 2, (2, 4, 16)), draw.normal(0, 0.2, (2, 16, 8))
    for kind in _KINDS:
        x, result = within(kind, value, -1, 2), within(kind, like((2, 4, 8)), -8, 8)
        for is_transposed in (False, True):
            y = np.ascontiguousarray(matrix.transpose(0, 2, 1)) if is_transposed else matrix
            for asymmetric in (False, True) if kind == "f32" else (False,):
                options = {"adj_x": False, "adj_y": is_transposed, "asymmetric_quantize_inputs": asymmetric}
                for second in _second(kind, y, 1 if is_transposed else 2):
                    yield Case("BATCH_MATMUL", [x, second], [result], options)
                if kind != "f32":
                    first = replace(x, is_constant=True)
                    yield Case("BATCH_MATMUL", [first, within(kind, y, -0.8, 1)], [result], options)


def _second(kind: str, y: Array, axis: int) -> Iterator[Tensor]:
    """Yields the second operand in its forms."""
    if kind != "f32":
        yield within(kind, y, -1, 1)
        yield within(kind, y, -0.8, 1)
        yield within(kind, y, -0.8, 1, is_constant=True)
        yield within(kind, y, -1, 2)
    else:
        yield within("i8", y, -1, 1)
        yield within("i8", y, -0.8, 1)
    for form in ("i8", "i4", "i2", "u8", "f16"):
        if form != "f16" or kind == "f32":
            yield weights(form, y)
            yield from (weights(form, y, each) for each in ((axis, 3 - axis) if form in ("i8", "i4") else ()))
    yield with_offset(weights("i8", y), 20)


def cases() -> Iterator[Case]:
    """Yields all calls."""
    yield from _products()
    yield from _other_dense()
    yield from _matrix_products()
