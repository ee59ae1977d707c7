"""The elements of small integer values, such as vectors of sizes, as formulas: what StableHLO's ops make of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tfconvert.converter.executor.stablehlo.properties import ints, text
from tfconvert.converter.targets.stablehlo.formulas.formula import Term, make, select, total
from tfconvert.schema.dialects import tensor_data, types
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import IntegerType

MOST = 32
"""Up to how many elements are followed."""

Elements = tuple[Term, ...]

Rule = Callable[[Operation, Sequence[Elements]], Elements | None]
"""Returns the elements of an op's result from those of its operands, `None` if they are not known."""


def is_small(kind: Attribute, allow_two: bool = False) -> bool:
    """Returns whether values of a type are few integers, of known size.

    Args:
        kind: The type.
        allow_two: Whether there may be two dimensions, else at most one.
    """
    shape = types.shape_of(kind)
    if shape is None or not isinstance(types.element_of(kind), IntegerType) or len(shape) > 1 + allow_two:
        return False
    return all(0 <= size <= MOST for size in shape)


def _constant(op: Operation, operands: Sequence[Elements]) -> Elements:
    return tuple(int(each) for each in tensor_data.to_array(op.properties["value"]).reshape(-1))


def _binary(kind: str) -> Rule:
    def rule(op: Operation, operands: Sequence[Elements]) -> Elements:
        return tuple(make(kind, one, other) for one, other in zip(*operands, strict=True))

    return rule


def _compare(op: Operation, operands: Sequence[Elements]) -> Elements:
    kind = text(op, "comparison_direction")
    return tuple(make(kind, one, other) for one, other in zip(*operands, strict=True))


def _select(op: Operation, operands: Sequence[Elements]) -> Elements:
    conditions, one, other = operands
    conditions = conditions * len(one) if len(conditions) == 1 else conditions
    return tuple(map(select, conditions, one, other))


def _clamp(op: Operation, operands: Sequence[Elements]) -> Elements:
    low, each, high = (each * len(operands[1]) if len(each) == 1 else each for each in operands)
    return tuple(make("minimum", make("maximum", x, a), b) for a, x, b in zip(low, each, high, strict=True))


def _negate(op: Operation, operands: Sequence[Elements]) -> Elements:
    return tuple(make("subtract", 0, each) for each in operands[0])


def _forward(op: Operation, operands: Sequence[Elements]) -> Elements:
    return operands[0]


def _convert(op: Operation, operands: Sequence[Elements]) -> Elements | None:
    source, target = (types.element_of(each.type) for each in (op.operands[0], op.results[0]))
    return None if target is types.I1 and source is not types.I1 else operands[0]


def _concatenate(op: Operation, operands: Sequence[Elements]) -> Elements:
    return tuple(each for operand in operands for each in operand)


def _slice(op: Operation, operands: Sequence[Elements]) -> Elements:
    (start,), (limit,), (stride,) = (ints(op, name) for name in ("start_indices", "limit_indices", "strides"))
    return operands[0][start:limit:stride]


def _broadcast(op: Operation, operands: Sequence[Elements]) -> Elements | None:
    shape = types.shape_of(op.results[0].type) or ()
    size = shape[0] if shape else 1
    return operands[0] * size if len(operands[0]) == 1 else operands[0]


def _iota(op: Operation, operands: Sequence[Elements]) -> Elements:
    shape = types.shape_of(op.results[0].type) or (1,)
    return tuple(range(shape[0]))


def _reverse(op: Operation, operands: Sequence[Elements]) -> Elements:
    return operands[0][::-1] if ints(op, "dimensions") else operands[0]


_JOINED = frozenset({"add", "maximum", "minimum", "multiply"})


def reducer(op: Operation) -> str:
    """Returns the operation that a reduction's body is, without its dialect; empty if it is more than one."""
    ops = list(op.regions[0].block.ops)
    name = ops[0].name.removeprefix("stablehlo.")
    is_plain = len(ops) == 2 and tuple(ops[1].operands) == tuple(ops[0].results)
    return name if is_plain and set(ops[0].operands) == set(op.regions[0].block.args) else ""


def _reduce(op: Operation, operands: Sequence[Elements]) -> Elements | None:
    name = reducer(op)
    if name not in _JOINED or len(operands) != 2 or len(ints(op, "dimensions")) != 1:
        return None
    return (total(name, operands[0], operands[1][0]),)


def _gather_one(op: Operation, operands: Sequence[Elements]) -> Elements | None:
    """Returns the elements of a `dynamic_slice` whose start is known."""
    values, (start,) = operands
    (size,) = ints(op, "slice_sizes")
    if not isinstance(start, int):
        return None
    start = max(0, min(start, len(values) - size))
    return values[start : start + size]


RULES: Mapping[str, Rule] = {
    **{
        f"stablehlo.{kind}": _binary(kind)
        for kind in ("add", "and", "divide", "maximum", "minimum", "multiply", "or", "remainder", "subtract")
    },
    "stablehlo.broadcast_in_dim": _broadcast,
    "stablehlo.clamp": _clamp,
    "stablehlo.compare": _compare,
    "stablehlo.concatenate": _concatenate,
    "stablehlo.constant": _constant,
    "stablehlo.convert": _convert,
    "stablehlo.dynamic_slice": _gather_one,
    "stablehlo.iota": _iota,
    "stablehlo.negate": _negate,
    "stablehlo.optimization_barrier": _forward,
    "stablehlo.reduce": _reduce,
    "stablehlo.reshape": _forward,
    "stablehlo.reverse": _reverse,
    "stablehlo.select": _select,
    "stablehlo.slice": _slice,
}
"""Op -> rule."""
