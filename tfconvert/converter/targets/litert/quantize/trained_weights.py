"""Fake-quantized weights of float operators, as integers with the scales that they were trained with."""

from __future__ import annotations

from tfconvert.converter.ir.tf_builder import TFLBuilder
from tfconvert.converter.targets.litert.fake_quant import constant_behind
from tfconvert.converter.targets.litert.quantize import fake_quant, hybrid, weights
from tfconvert.schema.dialects import attributes as attrs
from tfconvert.schema.dialects import tfl, types
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.dialects.quant import Uniform
from tfconvert.schema.ir.types import I8
from tfconvert.schema.ir.values import Value


def store_trained_weights(function: FuncOp) -> int:
    """Stores the fake-quantized weights of hybrid operators as integers; returns how many operators got them."""
    count = 0
    for op in [op for op in function.body.block.ops if isinstance(op, tfl.TFLOp) and op.op_name in hybrid.ROWS]:
        row = hybrid.ROWS[op.op_name]
        found = {at: _uniform(op, row, op.operands[at]) for at in row.weights if tfl.has_operand(op, at)}
        # The kernels of recurrent operators want all of their weights as integers.
        if row.is_hybrid and found and None not in found.values():
            for at, uniform in found.items():
                assert uniform is not None
                _store(op, at, uniform)
            if hybrid.ASYMMETRIC in tfl.option_fields(op.op_name):
                op.properties[hybrid.ASYMMETRIC] = attrs.boolean(True)
            count += 1
    return count


def _uniform(op: tfl.TFLOp, row: hybrid.Row, value: Value) -> Uniform | None:
    """Returns the mapping of a weight that its hybrid kernel takes, `None` if it wasn't trained with one."""
    uniform = fake_quant.trained_uniform(value)
    if uniform is None or constant_behind(value) is None or types.element_of(op.operands[0].type) is not types.F32:
        return None
    if uniform.storage is not I8 or any(uniform.zero_points) or uniform.axis not in (None, row.axis):
        return None
    if uniform.axis is not None:
        return uniform if row.per_channel else None
    if not hybrid.is_grouped(op):
        return uniform
    count = (types.shape_of(value.type) or ())[row.axis or 0]
    return uniform._replace(scales=uniform.scales * count, zero_points=(0,) * count, axis=row.axis)


def _store(op: tfl.TFLOp, at: int, uniform: Uniform) -> None:
    constant = constant_behind(op.operands[at])
    assert constant is not None, "checked before"
    made = weights.quantize_symmetric(constant, uniform)
    stored = TFLBuilder(op).insert(tfl.constant(made.stored, result_type=made.type))
    op.set_operand(at, stored.results[0])
