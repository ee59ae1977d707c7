"""Where sizes come from: the operand whose size along an axis is that of a result along one of its axes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tfconvert.schema.dialects import stablehlo, types
from tfconvert.schema.dialects.stablehlo import DotAttr
from tfconvert.schema.ir.attributes import DenseArrayAttr, IntegerAttr
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import BlockArgument, OpResult, Value

Source = Callable[[Operation, OpResult, int], tuple[Value, int] | None]

_LOOP = "stablehlo.while"


def source_of(value: OpResult, axis: int) -> tuple[Value, int] | None:
    """Returns a value, and its axis, that has the same size as an axis of a result; `None` if none is known."""
    op = value.op
    definition = stablehlo.definitions().get(op.name)
    if definition is not None and definition.types in ("same", "compare"):
        return op.operands[0], axis
    rule = _SOURCES.get(op.name)
    return None if rule is None else rule(op, value, axis)


def carried_from(value: Value, axis: int) -> tuple[Value, int] | None:
    """Returns what a loop carries at first, for what it carries later, if each step leaves the size as it was."""
    loop = value.op if isinstance(value, OpResult) else value.owner.parent_op()
    if loop is None or loop.name != _LOOP:
        return None
    assert isinstance(value, OpResult | BlockArgument)
    index = value.index
    block = loop.regions[1].block
    end = block.last_op
    assert end is not None
    value, place = end.operands[index], axis
    while value is not block.args[index]:
        source = source_of(value, place) if isinstance(value, OpResult) else None
        if source is None:
            return None
        value, place = source
    return (loop.operands[index], axis) if place == axis else None


def product_of(value: Value, axis: int) -> tuple[Value, int] | None:
    """Returns the operand, and its axis, that has the size of an axis of a product; `None` if it is not one."""
    if not isinstance(value, OpResult) or value.op.name != "stablehlo.dot_general":
        return None
    numbers = value.op.properties["dot_dimension_numbers"]
    assert isinstance(numbers, DotAttr)
    lhs, rhs = value.op.operands
    batch = numbers.of("lhs_batching_dimensions")
    places = [(lhs, each) for each in batch]
    for operand, name in ((lhs, "lhs"), (rhs, "rhs")):
        shape = types.shape_of(operand.type)
        assert shape is not None
        gone = (*numbers.of(f"{name}_batching_dimensions"), *numbers.of(f"{name}_contracting_dimensions"))
        places += [(operand, each) for each in range(len(shape)) if each not in gone]
    return places[axis]


def _reduced(op: Operation, value: OpResult, axis: int) -> tuple[Value, int]:
    gone = ints_of(op, "dimensions")
    shape = types.shape_of(op.operands[0].type)
    assert shape is not None
    return op.operands[0], [each for each in range(len(shape)) if each not in gone][axis]


def _concatenated(op: Operation, value: OpResult, axis: int) -> tuple[Value, int] | None:
    return None if axis == int_of(op, "dimension") else (op.operands[0], axis)


def _same(op: Operation, value: OpResult, axis: int) -> tuple[Value, int]:
    return op.operands[0], axis


# Where the sizes of results come from.
_SOURCES: Mapping[str, Source] = {
    "stablehlo.bitcast_convert": _same,
    "stablehlo.clamp": lambda op, value, axis: (op.operands[1], axis),
    "stablehlo.compare": _same,
    "stablehlo.concatenate": _concatenated,
    "stablehlo.convert": _same,
    "stablehlo.dynamic_update_slice": _same,
    "stablehlo.is_finite": _same,
    "stablehlo.reduce": _reduced,
    "stablehlo.reverse": _same,
    "stablehlo.scatter": _same,
    "stablehlo.select": lambda op, value, axis: (op.operands[1], axis),
    "stablehlo.sort": lambda op, value, axis: (op.operands[value.index], axis),
    "stablehlo.transpose": lambda op, value, axis: (op.operands[0], ints_of(op, "permutation")[axis]),
    "tensor.insert_slice": lambda op, value, axis: (op.operands[1], axis),
    "linalg.generic": lambda op, value, axis: (op.operands[-1], axis),
    "linalg.fill": lambda op, value, axis: (op.operands[1], axis),
}


def int_of(op: Operation, name: str) -> int:
    """Returns a property that is an integer."""
    value = op.properties[name]
    assert isinstance(value, IntegerAttr)
    return value.value


def ints_of(op: Operation, name: str) -> tuple[int, ...]:
    """Returns a property of integers."""
    value = op.properties[name]
    assert isinstance(value, DenseArrayAttr)
    return tuple([int(each) for each in value.values])
