"""Tables of rows: as floats of 32 bits."""

from __future__ import annotations

from typing import Any

from tfconvert.converter.rewrite.pattern import Pattern, need
from tfconvert.converter.targets.litert.accelerators.builder import (
    AcceleratorBuilder,
    dequantized,
    form,
    static_shape,
    stored_constant,
)
from tfconvert.schema.dialects import quant, tensor_data, tfl, types
from tfconvert.schema.ir.values import Value


def _whole_floats(op: tfl.TFLOp, build: AcceleratorBuilder) -> Value:
    """An op that takes rows of a table of 16-bit floats: of a table of 32-bit floats."""
    at = 0 if op.op_name == "gather" else 1
    table = op.operands[at]
    source = dequantized(table)
    stored = stored_constant(source)
    need(source is not table and types.element_of(source.type) == types.F16, "its table is not one of 16-bit floats")
    assert stored is not None
    wide = tensor_data.defer("cast", (stored,), static_shape(table), element=types.F32)
    operands = [build.constant(wide) if value is table else value for value in op.operands]
    return build.again(op, operands).results[0]


def _scale_for_each_row(op: tfl.TFLOp, build: AcceleratorBuilder) -> Value:
    """A lookup in a table of integers with one scale: the scale for each row."""
    table = op.operands[1]
    element = types.element_of(table.type)
    stored = stored_constant(table)
    need(isinstance(element, quant.UniformType) and element.data.axis is None, "its table has no single scale")
    assert isinstance(element, quant.UniformType)
    assert stored is not None
    shape, data = static_shape(table), element.data
    need(data.zero_points == (0,), "its zero point is not 0")
    rows = data._replace(scales=data.scales * shape[0], zero_points=data.zero_points * shape[0], axis=0)
    kind = types.tensor(quant.UniformType.get(rows), shape)
    return build.again(op, [op.operands[0], build.insert(tfl.constant(stored, result_type=kind)).results[0]]).results[0]


PATTERNS: tuple[Pattern[Any], ...] = (
    *(form(f"{name}-of-whole-floats", name, _whole_floats, 9) for name in ("embedding_lookup", "gather")),
    form("lookup-with-scales-of-rows", "embedding_lookup", _scale_for_each_row),
)
