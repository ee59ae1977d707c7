"""Masks of attention as what composites take: numbers of shape `[1, 1, T, S]` that are added to the scores."""

from __future__ import annotations

import math

import numpy as np

from tfconvert.converter.ir.constants import constant_number
from tfconvert.converter.ir.tf_builder import TFLBuilder
from tfconvert.converter.targets.litert.forms import questions
from tfconvert.converter.targets.litert.odml.norms import reshape
from tfconvert.converter.targets.litert.odml.outline import Insert, constant, given
from tfconvert.schema.dialects import tensor_data, types
from tfconvert.schema.dialects.tensor_data import Array
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value
from tfconvert.schema.tflite import operators

# Constants up to this size are read, to see whether all heads have the same mask.
_MAX_BYTES = 1 << 24

# Scores vanish in numbers below, so that adding one is choosing it.
_SWALLOWS = -1e30
# Below, a score that was added to has no weight beside one that wasn't.
_HIDES = -1e9

_ELEMENTWISE = frozenset(f"tfl.{name}" for name in operators.elementwise(1, 2, 3) | {"cast", "select"})
_REPEATS = frozenset(("tfl.broadcast_to", "tfl.tile"))


def added(mask: Value, rows: int, columns: int) -> Insert | None:
    """Returns how to insert a mask that is added to scores; `None` if heads or examples have masks of their own.

    Args:
        mask: The mask.
        rows: How many queries there are.
        columns: How many keys there are.
    """
    wanted = (1, 1, rows, columns)
    if mask.shape == wanted:
        return given(mask)
    array = _headless_array(mask)
    if array is not None:
        return constant(_broadcast(array, wanted))
    insert = _headless(mask)
    return None if insert is None else lambda builder: _tiled(builder, insert(builder), wanted)


def chosen(condition: Value, otherwise: Value, rows: int, columns: int) -> Insert | None:
    """Returns how to insert the sum that has the effect of keeping scores under a condition only.

    Args:
        condition: Where scores are kept.
        otherwise: The large negative number elsewhere.
        rows: How many queries there are.
        columns: How many keys there are.
    """
    number = constant_number(otherwise)
    wanted = (1, 1, rows, columns)
    if number is None or number > _HIDES:
        return None
    array = _headless_array(condition)
    if array is not None:
        kept = _broadcast(array.astype(bool), wanted)
        if number > _SWALLOWS and not kept.any(-1).all():
            return None
        return constant(np.where(kept, np.float32(0), np.float32(number)))
    insert = None if number > _SWALLOWS else _headless(condition)
    if insert is None:
        return None

    def select(builder: TFLBuilder) -> Value:
        kept = _tiled(builder, insert(builder), wanted)
        kind = types.tensor(types.F32, wanted)
        zeros = builder.constant(np.zeros(wanted, np.float32))
        return builder.tfl("select_v2", (kept, zeros, builder.constant(np.array(number, np.float32))), kind)

    return select


def _broadcast(array: Array, wanted: tuple[int, ...]) -> Array:
    return np.ascontiguousarray(np.broadcast_to(array, wanted))


def _headless_array(value: Value) -> Array | None:
    """Returns a constant that is the same for all examples and heads, without these; `None` if it isn't."""
    held = tensor_data.constant_of(value)
    dims = () if held is None else questions.dims_of(held)
    element = value.element
    if held is None or math.prod(dims) * types.numpy_dtype(element).itemsize > _MAX_BYTES:
        return None
    last = ((1, 1) + dims)[-2:]
    array = tensor_data.to_array(held).reshape(-1, *last)
    return array[:1, None] if (array == array[:1]).all() else None


def _headless(value: Value) -> Insert | None:
    """Returns how to insert a value of rank 4 with one example and one head, which others repeat."""
    dims = questions.known_shape(value)
    if dims is None:
        return None
    array = _headless_array(value)
    if array is not None:
        return constant(array)
    if math.prod(dims[:-2]) == 1:
        whole = (1, 1, *((1, 1) + dims)[-2:])
        return given(value) if whole == dims else lambda builder: reshape(builder, value, whole)
    op = value.owner
    if not isinstance(op, Operation):
        return None
    if op.name in _REPEATS:
        return _unrepeated(op, dims)
    return _recomputed(op) if op.name in _ELEMENTWISE and questions.is_plain(op) else None


def _unrepeated(op: Operation, dims: types.Shape) -> Insert | None:
    source = questions.known_shape(op.operands[0])
    is_broadcast = source is not None and all(
        one in (1, other) for one, other in zip(source[::-1], dims[::-1], strict=False)
    )
    return _headless(op.operands[0]) if is_broadcast else None


def _recomputed(op: Operation) -> Insert | None:
    if op.name == "tfl.logical_and":
        for one, other in (op.operands, op.operands[::-1]):
            array = _headless_array(one)
            if array is not None and array.all():
                return _headless(other)
    inserts = [_headless(operand) for operand in op.operands]
    known = [insert for insert in inserts if insert is not None]
    if len(known) < len(inserts):
        return None

    def insert(builder: TFLBuilder) -> Value:
        operands = [each(builder) for each in known]
        dims = np.broadcast_shapes(*(operand.shape or () for operand in operands))
        kind = types.tensor(op.results[0].element, dims)
        return builder.tfl(op.name.removeprefix("tfl."), operands, kind, op.properties)

    return insert


def _tiled(builder: TFLBuilder, value: Value, wanted: tuple[int, ...]) -> Value:
    dims = questions.known_shape(value) or ()
    if dims == wanted:
        return value
    times = [size // own for size, own in zip(wanted, dims, strict=True)]
    kind = types.tensor(value.element, wanted)
    return builder.tfl("tile", (value, builder.ints(times)), kind)
