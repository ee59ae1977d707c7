"""The facts about a `tfl` op for the rules on the runtime's kernels: types, scales and options, without the IR."""

from __future__ import annotations

from tfconvert.schema.dialects import quant, tfl, types
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value
from tfconvert.schema.tflite.versions import ABSENT, Call, Operand


def is_constant(value: Value) -> bool:
    """Returns whether a value is known before the model runs."""
    owner = value.owner
    return isinstance(owner, Operation) and owner.name.removeprefix(tfl.PREFIX) in tfl.CONSTANTS


def _operand_of(value: Value) -> Operand:
    """Returns the facts about a value, `ABSENT` if it is absent or of a type that LiteRT does not have."""
    element = types.element_of(value.type)
    row = types.from_mlir(quant.storage_of(element))
    if row is None or not row.tflite:
        return ABSENT
    shape = types.shape_of(value.type)
    if isinstance(element, quant.UniformType):
        data = element.data
        return Operand(row.tflite, shape, data.scales, False, data.zero_points, data.axis, 0, is_constant(value))
    block_size = element.data.block_size if isinstance(element, quant.BlockedType) else 0
    return Operand(row.tflite, shape, block_size=block_size, is_constant=is_constant(value))


def call_of(op: tfl.TFLOp) -> Call:
    """Returns the facts about an op; of its options those that are set, without the functions that it calls."""
    calls = tfl.SUBGRAPHS.get(op.op_name, {})
    fields = {name: tfl.python_value(value) for name, value in op.properties.items() if name not in calls}
    return Call(tuple(map(_operand_of, op.operands)), tuple(map(_operand_of, op.results)), fields)
