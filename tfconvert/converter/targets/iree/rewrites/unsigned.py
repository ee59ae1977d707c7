"""Unsigned integers: IREE takes them in StableHLO's ops only, so that other ops get their bits as signless ones."""

from __future__ import annotations

from tfconvert.converter.targets.iree.rewrites.linalg_builder import LinalgBuilder
from tfconvert.schema.dialects import types
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import IntegerType, Signedness
from tfconvert.schema.ir.values import OpResult, Value

# Ops that don't look at the elements that they move, and that IREE or a rewrite takes to other ops.
_MOVING = frozenset(
    {
        f"stablehlo.{name}"
        for name in (
            "concatenate",
            "dynamic_broadcast_in_dim",
            "dynamic_gather",
            "dynamic_pad",
            "dynamic_reshape",
            "dynamic_update_slice",
            "gather",
            "get_dimension_size",
            "pad",
            "real_dynamic_slice",
        )
    }
)

_WITHOUT = frozenset({"stablehlo.add", "stablehlo.multiply", "stablehlo.return", "stablehlo.subtract"})


def is_unsigned(value: Value) -> bool:
    """Returns whether a tensor's elements are unsigned integers."""
    element = types.element_of(value.type)
    return isinstance(element, IntegerType) and element.signedness is Signedness.UNSIGNED


def bits(emit: LinalgBuilder, value: Value) -> Value:
    """Returns a tensor with signless elements of the same bits."""
    return emit.one("stablehlo.bitcast_convert", (value,), _signless(value))


def without_sign(op: Operation) -> None:
    """Lets an op that only moves elements move their bits."""
    if not any(map(is_unsigned, (*op.operands, *op.results))) or not (op.name in _MOVING or _is_scatter(op)):
        return
    for region in op.regions:
        for value in (*region.block.args, *[result for inner in region.block.ops for result in inner.results]):
            value.type = _signless(value)
    emit = LinalgBuilder(op)
    for number, operand in enumerate(op.operands):
        if is_unsigned(operand):
            op.set_operand(number, bits(emit, operand))
    after = op.next_op
    assert after is not None
    for result in op.results:
        if is_unsigned(result):
            _give_sign(LinalgBuilder(after), result)


def _give_sign(emit: LinalgBuilder, result: OpResult) -> None:
    """Makes a result signless; what uses it gets it with its sign."""
    kind, uses = result.type, tuple(result.uses)
    result.type = _signless(result)
    signed = emit.one("stablehlo.bitcast_convert", (result,), kind)
    for use in uses:
        use.operation.set_operand(use.index, signed)


def _is_scatter(op: Operation) -> bool:
    """Returns whether an op is a scatter whose body computes the same with and without signs."""
    return op.name == "stablehlo.scatter" and all(inner.name in _WITHOUT for inner in op.regions[0].block.ops)


def _signless(value: Value) -> Attribute:
    element, shape = types.element_of(value.type), types.shape_of(value.type)
    assert isinstance(element, IntegerType)
    assert shape is not None
    return types.tensor(IntegerType.get(element.width), shape)
