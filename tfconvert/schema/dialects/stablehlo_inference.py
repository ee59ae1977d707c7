"""The sizes and elements of the results of StableHLO's ops, inferred from their operands and properties.

The rules compute with whatever sizes are: numbers some of which are unknown, symbols, formulas of the sizes of
arguments, or numbers of the program. So the verifier, the builders, shape functions and buffers have the same ones.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, Self

from tfconvert.schema.dialects import stablehlo, types
from tfconvert.schema.dialects.stablehlo import ConvAttr, DimensionNumbersAttr
from tfconvert.schema.dialects.stablehlo_properties import integer, ints, pairs, text
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import INDEX, ComplexType, FloatType, IntegerType
from tfconvert.schema.ir.values import Value

Number = Any
"""An `int` where it is known, else a formula, a value, or whatever stands for what isn't known."""


class Arithmetic(Protocol):
    """Computes numbers from others."""

    def compute(self, name: str, *operands: Number, kind: Attribute = INDEX) -> Number:
        """Returns the result of an operation of the algebra of sizes on numbers of a type."""

    def cast(self, number: Number, source: Attribute, target: Attribute) -> Number:
        """Returns a number of another integer type."""


class Sizing(Protocol):
    """The queries of rules."""

    @property
    def scalars(self) -> Arithmetic:
        """The arithmetic."""

    def sizes(self, value: Value) -> Sequence[Number]:
        """Returns the sizes of a value."""

    def numbers(self, value: Value) -> Sequence[Number]:
        """Returns the numbers that a small value holds, in row-major order."""

    def indices(self, value: Value) -> Sequence[Number]:
        """Returns the numbers that a small value holds, as sizes."""


class Dry(ABC):
    """A sizing that emits nothing, and reads no operands."""

    __slots__ = ()

    @property
    def scalars(self) -> Self:
        return self

    @abstractmethod
    def compute(self, name: str, *operands: Number, kind: Attribute = INDEX) -> Number: ...

    def cast(self, number: Number, source: Attribute, target: Attribute) -> Number:
        return number

    def numbers(self, value: Value) -> Sequence[Number]:
        return [None] * math.prod(value.shape or ())

    def indices(self, value: Value) -> Sequence[Number]:
        return self.numbers(value)


Rule = Callable[[Sizing, Operation], Sequence[Number]]
"""Returns the sizes of an op's results, which all have the same, or the numbers that its result holds."""


def dims_of(op: Operation, name: str) -> DimensionNumbersAttr:
    """Returns the property of the dimensions that an op treats differently."""
    found = op.properties[name]
    assert isinstance(found, DimensionNumbersAttr)
    return found


def _like(operand: int) -> Rule:
    return lambda sizing, op: sizing.sizes(op.operands[operand])


def _given(operand: int) -> Rule:
    return lambda sizing, op: sizing.indices(op.operands[operand])


def _span(sizing: Sizing, low: Number, high: Number, step: Number) -> Number:
    """Returns how many numbers there are from one to before another, in steps."""
    compute = sizing.scalars.compute
    return compute("ceil_divide", compute("subtract", high, low), step)


def _transpose(sizing: Sizing, op: Operation) -> Sequence[Number]:
    sizes = sizing.sizes(op.operands[0])
    return [sizes[axis] for axis in ints(op, "permutation")]


def _concatenate(sizing: Sizing, op: Operation) -> Sequence[Number]:
    axis = integer(op, "dimension")
    found = list(sizing.sizes(op.operands[0]))
    found[axis] = 0
    for operand in op.operands:
        found[axis] = sizing.scalars.compute("add", found[axis], sizing.sizes(operand)[axis])
    return found


def _slice(sizing: Sizing, op: Operation) -> Sequence[Number]:
    bounds = zip(ints(op, "start_indices"), ints(op, "limit_indices"), ints(op, "strides"), strict=True)
    return [_span(sizing, *each) for each in bounds]


def _real_dynamic_slice(sizing: Sizing, op: Operation) -> Sequence[Number]:
    starts, limits, strides = (sizing.indices(operand) for operand in op.operands[1:])
    return [_span(sizing, *each) for each in zip(starts, limits, strides, strict=True)]


def _padded(sizing: Sizing, size: Number, low: Number, high: Number, interior: Number) -> Number:
    compute = sizing.scalars.compute
    found = compute("add", size, compute("add", low, high))
    if interior == 0:
        return found
    gaps = compute("maximum", compute("subtract", size, 1), 0)
    return compute("add", found, compute("multiply", gaps, interior))


_PADDINGS = ("edge_padding_low", "edge_padding_high", "interior_padding")


def _pad(sizing: Sizing, op: Operation) -> Sequence[Number]:
    amounts = (ints(op, name) for name in _PADDINGS)
    return [_padded(sizing, *each) for each in zip(sizing.sizes(op.operands[0]), *amounts, strict=True)]


def _dynamic_pad(sizing: Sizing, op: Operation) -> Sequence[Number]:
    amounts = (sizing.indices(operand) for operand in op.operands[2:])
    return [_padded(sizing, *each) for each in zip(sizing.sizes(op.operands[0]), *amounts, strict=True)]


def _dot(sizing: Sizing, op: Operation) -> Sequence[Number]:
    dims = dims_of(op, "dot_dimension_numbers")
    lhs, rhs = (sizing.sizes(operand) for operand in op.operands)
    batch = dims.of("lhs_batching_dimensions")
    left = {*batch, *dims.of("lhs_contracting_dimensions")}
    right = {*dims.of("rhs_batching_dimensions"), *dims.of("rhs_contracting_dimensions")}
    return [
        *(lhs[axis] for axis in batch),
        *(size for axis, size in enumerate(lhs) if axis not in left),
        *(size for axis, size in enumerate(rhs) if axis not in right),
    ]


def _windows(sizing: Sizing, size: Number, window: Number, amounts: Sequence[Number], steps: Sequence[int]) -> Number:
    """Returns how many windows fit; `steps` are the stride and the dilations of the input and the window."""
    stride, base, dilation = steps
    compute = sizing.scalars.compute
    low, high = amounts
    padded = _padded(sizing, size, low, high, base - 1)
    if padded == 0:
        return 0
    extent = compute("add", compute("multiply", compute("subtract", window, 1), dilation), 1)
    room = compute("maximum", compute("add", compute("subtract", padded, extent), stride), 0)
    return compute("divide", room, stride)


def window_counts(sizing: Sizing, op: Operation) -> Sequence[Number]:
    """Returns how many windows there are along each dimension of an op's first operand."""
    sizes = sizing.sizes(op.operands[0])
    window = ints(op, "window_dimensions", (1,) * len(sizes))
    names = ("window_strides", "base_dilations", "window_dilations")
    steps = zip(*(ints(op, name, (1,) * len(window)) for name in names), strict=True)
    rows = zip(sizes, window, pairs(op, "padding", len(window)), steps, strict=True)
    return [_windows(sizing, *row) for row in rows]


def convolution_layouts(op: Operation) -> ConvAttr:
    """Returns what the dimensions of a convolution are."""
    found = op.properties["dimension_numbers"]
    assert isinstance(found, ConvAttr)
    return found


def _convolution(sizing: Sizing, op: Operation) -> Sequence[Number]:
    lhs, kernel, result = convolution_layouts(op).layouts
    inputs, window = (sizing.sizes(operand) for operand in op.operands[:2])
    count = len(lhs) - 2
    padding: Sequence[Sequence[Number]] = pairs(op, "padding", count)
    if op.name == "stablehlo.dynamic_conv":
        held = sizing.indices(op.operands[2])
        padding = [held[2 * axis : 2 * axis + 2] for axis in range(count)]
    names = ("window_strides", "lhs_dilation", "rhs_dilation")
    steps = list(zip(*(ints(op, name, (1,) * count) for name in names), strict=True))
    batch = sizing.scalars.compute("divide", inputs[lhs.index("b")], integer(op, "batch_group_count", 1))
    found: dict[str, Number] = {"b": batch, "f": window[kernel.index("o")]}
    for axis in range(count):
        name = str(axis)
        found[name] = _windows(sizing, inputs[lhs.index(name)], window[kernel.index(name)], padding[axis], steps[axis])
    return [found[name] for name in result]


def _reduce(sizing: Sizing, op: Operation) -> Sequence[Number]:
    dropped = ints(op, "dimensions")
    return [size for axis, size in enumerate(sizing.sizes(op.operands[0])) if axis not in dropped]


def _gathered(sizing: Sizing, op: Operation, sizes: Sequence[Number]) -> Sequence[Number]:
    dims = dims_of(op, "dimension_numbers")
    at = dims.dims[-1]
    indices = sizing.sizes(op.operands[1])
    batch = [size for axis, size in enumerate(indices) if axis != at]
    dropped = {*dims.of("collapsed_slice_dims"), *dims.of("operand_batching_dims")}
    kept = iter([size for axis, size in enumerate(sizes) if axis not in dropped])
    offsets, outer = dims.of("offset_dims"), iter(batch)
    return [next(kept if axis in offsets else outer) for axis in range(len(batch) + len(offsets))]


def _gather(sizing: Sizing, op: Operation) -> Sequence[Number]:
    return _gathered(sizing, op, ints(op, "slice_sizes"))


def _dynamic_gather(sizing: Sizing, op: Operation) -> Sequence[Number]:
    return _gathered(sizing, op, sizing.indices(op.operands[2]))


def _top_k(sizing: Sizing, op: Operation) -> Sequence[Number]:
    return [*sizing.sizes(op.operands[0])[:-1], integer(op, "k")]


def _set_size(sizing: Sizing, op: Operation) -> Sequence[Number]:
    found = list(sizing.sizes(op.operands[0]))
    found[integer(op, "dimension")] = sizing.indices(op.operands[1])[0]
    return found


def _broadcast(sizing: Sizing, op: Operation) -> Sequence[Number]:
    return [*ints(op, "broadcast_sizes"), *sizing.sizes(op.operands[0])]


def _bitcast(sizing: Sizing, op: Operation) -> Sequence[Number]:
    """Returns the operand's sizes; the last one holds the narrow elements that are a wider one together."""
    sizes = list(sizing.sizes(op.operands[0]))
    before, after = (_width(value.element) for value in (op.operands[0], op.results[0]))
    if before == after or 0 in (before, after):
        return sizes
    return [*sizes, before // after] if before > after else sizes[:-1]


def _width(element: Attribute) -> int:
    """Returns the number of bits of an element, 0 for quantized ones."""
    if isinstance(element, ComplexType):
        return 2 * _width(element.element_type)
    return element.width if isinstance(element, FloatType | IntegerType) else 0


def _fft(sizing: Sizing, op: Operation) -> Sequence[Number]:
    *others, last = ints(op, "fft_length")
    outer = sizing.sizes(op.operands[0])[: -1 - len(others)]
    return [*outer, *others, last // 2 + 1 if text(op, "fft_type") == "RFFT" else last]


def _dynamic_slice(sizing: Sizing, op: Operation) -> Sequence[Number]:
    return ints(op, "slice_sizes")


def _matrix_product(sizing: Sizing, op: Operation) -> Sequence[Number]:
    lhs, rhs = (sizing.sizes(operand) for operand in op.operands)
    return [*lhs[:-1], *rhs[1:]]


def _scalar(sizing: Sizing, op: Operation) -> Sequence[Number]:
    return ()


# Ops whose results have the sizes of the first operand, but for those whose table says so.
_FIRST = (
    "abs batch_norm_inference complex convert dynamic_update_slice imag is_finite real scatter select_and_scatter sort"
)

_RULES: Mapping[str, Rule] = {
    **{f"stablehlo.{name}": _like(0) for name in _FIRST.split()},
    **dict.fromkeys(("chlo.is_inf", "chlo.is_neg_inf", "chlo.is_pos_inf"), _like(0)),
    "chlo.top_k": _top_k,
    "stablehlo.bitcast_convert": _bitcast,
    "stablehlo.broadcast": _broadcast,
    "stablehlo.clamp": _like(1),
    "stablehlo.concatenate": _concatenate,
    "stablehlo.convolution": _convolution,
    "stablehlo.dot": _matrix_product,
    "stablehlo.dot_general": _dot,
    "stablehlo.dynamic_broadcast_in_dim": _given(1),
    "stablehlo.dynamic_conv": _convolution,
    "stablehlo.dynamic_gather": _dynamic_gather,
    "stablehlo.dynamic_iota": _given(0),
    "stablehlo.dynamic_pad": _dynamic_pad,
    "stablehlo.dynamic_reshape": _given(1),
    "stablehlo.dynamic_slice": _dynamic_slice,
    "stablehlo.fft": _fft,
    "stablehlo.gather": _gather,
    "stablehlo.get_dimension_size": _scalar,
    "stablehlo.pad": _pad,
    "stablehlo.real_dynamic_slice": _real_dynamic_slice,
    "stablehlo.reduce": _reduce,
    "stablehlo.reduce_window": window_counts,
    "stablehlo.rng": _given(2),
    "stablehlo.select": _like(1),
    "stablehlo.set_dimension_size": _set_size,
    "stablehlo.slice": _slice,
    "stablehlo.transpose": _transpose,
    "stablehlo.triangular_solve": _like(1),
}


def infer(sizing: Sizing, op: Operation) -> Sequence[Number] | None:
    """Returns the sizes of an op's results, which all have the same.

    `None` if operands and properties don't tell: only the result's type has the sizes of a static broadcast.
    """
    rule = _RULES.get(op.name)
    if rule is not None:
        return rule(sizing, op)
    definition = stablehlo.definitions().get(op.name)
    return sizing.sizes(op.operands[0]) if definition is not None and definition.types in ("same", "compare") else None


def _component(op: Operation) -> Attribute:
    """Returns the type of the parts of complex numbers, that of others itself."""
    element = op.operands[0].element
    return element.element_type if isinstance(element, ComplexType) else element


def _transformed(op: Operation) -> Attribute:
    kind, element = text(op, "fft_type"), op.operands[0].element
    return ComplexType.get(element) if kind == "RFFT" else _component(op) if kind == "IRFFT" else element


_ELEMENTS: Mapping[str, Callable[[Operation], Attribute]] = {
    **dict.fromkeys(("stablehlo.abs", "stablehlo.imag", "stablehlo.real"), _component),
    **dict.fromkeys(("stablehlo.clamp", "stablehlo.select"), lambda op: op.operands[1].element),
    **dict.fromkeys(("stablehlo.compare", "stablehlo.is_finite"), lambda op: types.I1),
    "stablehlo.complex": lambda op: ComplexType.get(op.operands[0].element),
    "stablehlo.fft": _transformed,
    "stablehlo.get_dimension_size": lambda op: types.I32,
}


def infer_element(op: Operation) -> Attribute:
    """Returns the element type of an op's result: the first operand's, or what the kind of op makes of it.

    Conversions, products and numbers without operands can have others.
    """
    rule = _ELEMENTS.get(op.name)
    return op.operands[0].element if rule is None else rule(op)
