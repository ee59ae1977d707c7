"""Rules for the numbers that small tensors of integers hold; they compute with whatever sizes are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tfconvert.schema.dialects import tensor_data, types
from tfconvert.schema.dialects.stablehlo_inference import Number, Rule, Sizing
from tfconvert.schema.dialects.stablehlo_properties import integer, ints, text
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import INDEX


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
