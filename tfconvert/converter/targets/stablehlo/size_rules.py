"""Rules for the sizes of ops' results, and for the numbers that small tensors of integers hold.

The rules compute with whatever the sizes are: formulas of the arguments' sizes, or numbers of the program.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from tfconvert.converter.executor.stablehlo.properties import integer, ints, pairs, text
from tfconvert.schema.dialects import tensor_data, types
from tfconvert.schema.dialects.stablehlo import ConvAttr, DimensionNumbersAttr
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import INDEX
from tfconvert.schema.ir.values import Value

Number = Any
"""An `int` where it is known, else a formula or a value."""


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


Rule = Callable[[Sizing, Operation], Sequence[Number]]
"""Returns the sizes of an op's results, of which all have the same, or the numbers that its result holds."""


def dims_of(op: Operation, name: str) -> DimensionNumbersAttr:
    """Returns the property of the dimensions that an op treats differently."""
    found = op.properties[name]
    assert isinstance(found, DimensionNumbersAttr)
    return found


def rank_of(value: Value) -> int:
    return len(value.shape or ())


# Sizes of results.


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
    extent = compute("add", compute("multiply", compute("subtract", window, 1), dilation), 1)
    room = compute("maximum", compute("add", compute("subtract", padded, extent), stride), 0)
    return compute("divide", room, stride)


def _reduce_window(sizing: Sizing, op: Operation) -> Sequence[Number]:
    window = ints(op, "window_dimensions")
    names = ("window_strides", "base_dilations", "window_dilations")
    steps = zip(*(ints(op, name, (1,) * len(window)) for name in names), strict=True)
    rows = zip(sizing.sizes(op.operands[0]), window, pairs(op, "padding", len(window)), steps, strict=True)
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
    batch = iter([size for axis, size in enumerate(indices) if axis != at])
    dropped = {*dims.of("collapsed_slice_dims"), *dims.of("operand_batching_dims")}
    kept = iter([size for axis, size in enumerate(sizes) if axis not in dropped])
    offsets = dims.of("offset_dims")
    return [next(kept) if axis in offsets else next(batch) for axis in range(rank_of(op.results[0]))]


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


# Ops whose results have the sizes of the first operand, as far as their types don't tell them.
_FIRST = (
    "stablehlo.abs",
    "stablehlo.batch_norm_inference",
    "stablehlo.bitcast_convert",
    "stablehlo.cholesky",
    "stablehlo.compare",
    "stablehlo.complex",
    "stablehlo.convert",
    "stablehlo.dynamic_update_slice",
    "stablehlo.fft",
    "stablehlo.imag",
    "stablehlo.is_finite",
    "stablehlo.real",
    "stablehlo.reverse",
    "stablehlo.scatter",
    "stablehlo.select_and_scatter",
    "stablehlo.sort",
    "chlo.is_inf",
    "chlo.is_neg_inf",
    "chlo.is_pos_inf",
)

SIZES: Mapping[str, Rule] = {
    **dict.fromkeys(_FIRST, _like(0)),
    "chlo.top_k": _top_k,
    "stablehlo.clamp": _like(1),
    "stablehlo.concatenate": _concatenate,
    "stablehlo.convolution": _convolution,
    "stablehlo.dot_general": _dot,
    "stablehlo.dynamic_broadcast_in_dim": _given(1),
    "stablehlo.dynamic_conv": _convolution,
    "stablehlo.dynamic_gather": _dynamic_gather,
    "stablehlo.dynamic_iota": _given(0),
    "stablehlo.dynamic_pad": _dynamic_pad,
    "stablehlo.dynamic_reshape": _given(1),
    "stablehlo.gather": _gather,
    "stablehlo.pad": _pad,
    "stablehlo.real_dynamic_slice": _real_dynamic_slice,
    "stablehlo.reduce": _reduce,
    "stablehlo.reduce_window": _reduce_window,
    "stablehlo.rng": _given(2),
    "stablehlo.select": _like(1),
    "stablehlo.set_dimension_size": _set_size,
    "stablehlo.slice": _slice,
    "stablehlo.transpose": _transpose,
    "stablehlo.triangular_solve": _like(1),
}
"""Op -> the sizes of its results, of those whose table doesn't say that operands and results have one type."""


# Numbers in small tensors.


def _constant(sizing: Sizing, op: Operation) -> Sequence[Number]:
    return [int(each) for each in tensor_data.to_array(op.properties["value"]).reshape(-1)]


def _size(sizing: Sizing, op: Operation) -> Sequence[Number]:
    size = sizing.sizes(op.operands[0])[integer(op, "dimension")]
    return [sizing.scalars.cast(size, INDEX, op.results[0].element)]


def _same(sizing: Sizing, op: Operation) -> Sequence[Number]:
    return sizing.numbers(op.operands[0])


def _joined(sizing: Sizing, op: Operation) -> Sequence[Number]:
    return [number for operand in op.operands for number in sizing.numbers(operand)]


def _part(sizing: Sizing, op: Operation) -> Sequence[Number]:
    (start,), (limit,), (stride,) = (ints(op, name) for name in ("start_indices", "limit_indices", "strides"))
    return sizing.numbers(op.operands[0])[start:limit:stride]


def _repeated(numbers: Sequence[Number], count: int) -> Sequence[Number]:
    return numbers if len(numbers) == count else [*numbers] * count


def _broadcast(sizing: Sizing, op: Operation) -> Sequence[Number]:
    count = 1
    for size in op.results[0].shape or ():
        count *= size
    return _repeated(sizing.numbers(op.operands[0]), count)


def _iota(sizing: Sizing, op: Operation) -> Sequence[Number]:
    return range((op.results[0].shape or (1,))[0])


def _reverse(sizing: Sizing, op: Operation) -> Sequence[Number]:
    numbers = sizing.numbers(op.operands[0])
    return numbers[::-1] if ints(op, "dimensions") else numbers


def _convert(sizing: Sizing, op: Operation) -> Sequence[Number]:
    source, target = (value.element for value in (op.operands[0], op.results[0]))
    return [sizing.scalars.cast(number, source, target) for number in sizing.numbers(op.operands[0])]


def _binary(name: str) -> Rule:
    def rule(sizing: Sizing, op: Operation) -> Sequence[Number]:
        kind = op.results[0].element
        return [
            sizing.scalars.compute(name, x, y, kind=kind)
            for x, y in zip(*map(sizing.numbers, op.operands), strict=True)
        ]

    return rule


def _negate(sizing: Sizing, op: Operation) -> Sequence[Number]:
    kind = op.results[0].element
    return [sizing.scalars.compute("subtract", 0, number, kind=kind) for number in sizing.numbers(op.operands[0])]


def _not(sizing: Sizing, op: Operation) -> Sequence[Number]:
    kind = op.results[0].element
    ones = 1 if kind is types.I1 else -1
    return [sizing.scalars.compute("xor", number, ones, kind=kind) for number in sizing.numbers(op.operands[0])]


def _compare(sizing: Sizing, op: Operation) -> Sequence[Number]:
    direction, kind = text(op, "comparison_direction"), op.operands[0].element
    rows = zip(*map(sizing.numbers, op.operands), strict=True)
    return [sizing.scalars.compute(direction, *row, kind=kind) for row in rows]


def _select(sizing: Sizing, op: Operation) -> Sequence[Number]:
    conditions, xs, ys = map(sizing.numbers, op.operands)
    kind = op.results[0].element
    rows = zip(_repeated(conditions, len(xs)), xs, ys, strict=True)
    return [sizing.scalars.compute("select", *row, kind=kind) for row in rows]


def _clamp(sizing: Sizing, op: Operation) -> Sequence[Number]:
    low, numbers, high = map(sizing.numbers, op.operands)
    kind, count = op.results[0].element, len(numbers)
    compute = sizing.scalars.compute
    raised = [compute("maximum", x, y, kind=kind) for x, y in zip(numbers, _repeated(low, count), strict=True)]
    return [compute("minimum", x, y, kind=kind) for x, y in zip(raised, _repeated(high, count), strict=True)]


_JOINED = frozenset({"add", "maximum", "minimum", "multiply"})


def reducer(op: Operation) -> str:
    """Returns the operation that a reduction's body is, without its dialect; empty if it is more than one."""
    ops = list(op.regions[0].block.ops)
    name = ops[0].name.removeprefix("stablehlo.")
    is_plain = len(ops) == 2 and tuple(ops[1].operands) == tuple(ops[0].results)
    return name if is_plain and set(ops[0].operands) == set(op.regions[0].block.args) else ""


def _reduced(sizing: Sizing, op: Operation) -> Sequence[Number]:
    name = reducer(op)
    if name not in _JOINED or len(op.operands) != 2 or len(ints(op, "dimensions")) != 1:
        return ()
    numbers, (total,) = map(sizing.numbers, op.operands)
    for number in numbers:
        total = sizing.scalars.compute(name, total, number, kind=op.results[0].element)
    return (total,)


def _dynamic_slice(sizing: Sizing, op: Operation) -> Sequence[Number]:
    """Returns the numbers of a slice whose start is known."""
    numbers, (start,) = map(sizing.numbers, op.operands)
    (size,) = ints(op, "slice_sizes")
    if not isinstance(start, int):
        return ()
    start = max(0, min(start, len(numbers) - size))
    return numbers[start : start + size]


NUMBERS: Mapping[str, Rule] = {
    **{
        f"stablehlo.{name}": _binary(name)
        for name in ("add", "and", "divide", "maximum", "minimum", "multiply", "or", "remainder", "subtract", "xor")
    },
    "stablehlo.broadcast_in_dim": _broadcast,
    "stablehlo.clamp": _clamp,
    "stablehlo.compare": _compare,
    "stablehlo.concatenate": _joined,
    "stablehlo.constant": _constant,
    "stablehlo.convert": _convert,
    "stablehlo.dynamic_slice": _dynamic_slice,
    "stablehlo.get_dimension_size": _size,
    "stablehlo.iota": _iota,
    "stablehlo.negate": _negate,
    "stablehlo.not": _not,
    "stablehlo.optimization_barrier": _same,
    "stablehlo.reduce": _reduced,
    "stablehlo.reshape": _same,
    "stablehlo.reverse": _reverse,
    "stablehlo.select": _select,
    "stablehlo.slice": _part,
}
"""Op -> the numbers of its result, a small tensor of integers; empty where nothing tells them."""
