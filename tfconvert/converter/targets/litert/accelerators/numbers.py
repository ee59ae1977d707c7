"""Elements: integers of 64 bits are computed in 32."""

from __future__ import annotations

from tfconvert.converter.rewrite.pattern import need
from tfconvert.converter.targets.litert.accelerators.builder import AcceleratorBuilder, form
from tfconvert.schema.dialects import tfl, types
from tfconvert.schema.ir.values import Value


def _cast_once(op: tfl.TFLOp, build: AcceleratorBuilder) -> Value:
    """A cast of a cast of 64-bit integers: one cast, or none."""
    inner = op.operands[0].owner
    need(isinstance(inner, tfl.TFLOp) and inner.op_name == "cast", "it casts no cast")
    assert isinstance(inner, tfl.TFLOp)
    value = inner.operands[0]
    need(types.element_of(inner.results[0].type) == types.I64, "the first one is not to integers of 64 bits")
    need(types.element_of(value.type) == types.I32, "the first one is not of integers of 32 bits")
    return build.to(value, types.element_of(op.results[0].type))


PATTERNS = (form("cast-once", "cast", _cast_once),)
