"""Elements: integers of 64 bits are computed in 32, which is exact as long as they fit these."""

from __future__ import annotations

from typing import Any

import numpy as np

from tfconvert.converter.rewrite.pattern import need
from tfconvert.converter.targets.litert.accelerators.builder import PREPARES, AcceleratorBuilder, Rewrite
from tfconvert.converter.targets.litert.accelerators.rewrites import NARROWED
from tfconvert.schema.dialects import tensor_data, tfl, types
from tfconvert.schema.ir.values import Value

# Options that name the type of a result.
_TYPE_OPTIONS = ("output_type", "out_type", "out_data_type", "idx_out_type")

_LIMITS = np.iinfo(np.int32)


def _narrow(op: tfl.TFLOp, build: AcceleratorBuilder) -> list[Value]:
    """An op of 64-bit integers: of 32-bit integers, between casts."""
    values = [*op.operands, *op.results]
    need(any(types.element_of(value.type) == types.I64 for value in values), "it has no integers of 64 bits")
    need(op.op_name != "cast" or types.I32 not in map(_element, values), "it is such a cast")
    operands = [_narrowed(build, value) for value in op.operands]
    kinds = [types.tensor(_narrow_of(_element(result)), types.shape_of(result.type)) for result in op.results]
    fields = tfl.option_fields(op.op_name)
    changed = {name: tfl.to_attribute(fields[name], "INT32") for name in _TYPE_OPTIONS if name in fields}
    changed = {name: value for name, value in changed.items() if tfl.attribute(op, name) == "INT64"}
    new = build.insert(tfl.TFLOp(op.name, operands, kinds, {**op.properties, **changed}, op.attributes))
    return [build.to(value, _element(old)) for value, old in zip(new.results, op.results, strict=True)]


def _element(value: Value) -> Any:
    return types.element_of(value.type)


def _narrow_of(element: Any) -> Any:
    return types.I32 if element == types.I64 else element


def _narrowed(build: AcceleratorBuilder, value: Value) -> Value:
    if tfl.is_absent(value) or types.element_of(value.type) != types.I64:
        return value
    constant = tensor_data.constant_of(value)
    if constant is None:
        return build.to(value, types.I32)
    array = tensor_data.to_array(constant)
    fits = not array.size or (array.min() >= _LIMITS.min and array.max() <= _LIMITS.max)
    need(bool(fits), "a constant does not fit 32 bits")
    return build.constant(array.astype(np.int32))


def _cast_once(op: tfl.TFLOp, build: AcceleratorBuilder) -> Value:
    """A cast of 32-bit integers that were cast to 64 bits: one cast, or none."""
    inner = op.operands[0].owner
    need(isinstance(inner, tfl.TFLOp) and inner.op_name == "cast", "it casts no cast")
    assert isinstance(inner, tfl.TFLOp)
    value = inner.operands[0]
    need(types.element_of(inner.results[0].type) == types.I64, "the first one is not to integers of 64 bits")
    need(types.element_of(value.type) == types.I32, "the first one is not of integers of 32 bits")
    return build.to(value, types.element_of(op.results[0].type))


REWRITES = (
    Rewrite("cast-once", "cast", _cast_once, PREPARES + 1),
    *(Rewrite(f"{name}-in-32-bits", name, _narrow, PREPARES) for name in NARROWED.split()),
)
