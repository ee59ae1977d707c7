"""Fourier transforms: the one kernel is the transform of real images."""

from __future__ import annotations

import numpy as np
from xdsl.ir import Operation, SSAValue

from converter.legalize.emit import Emit
from converter.legalize.row import Entry, Lowering, Row, all_of, constant_operand, ints
from schema.dialects import types


def _is_power_of_two(op: Operation) -> str | None:
    if any(length < 1 or length & (length - 1) for length in ints(op.operands[1])):
        return "the kernel wants lengths that are powers of two"
    return None


def _rank_is_known(op: Operation) -> str | None:
    shapes = types.shape_of(op.operands[0].type), types.shape_of(op.results[0].type)
    return "the rank is not known" if shapes[0] is None or shapes[1] is None else None


def _rfft(op: Operation, emit: Emit) -> SSAValue:
    """A vector is an image of one row."""
    shape, result = types.shape_of(op.operands[0].type), types.shape_of(op.results[0].type)
    assert shape is not None
    assert result is not None
    element = types.element_of(op.results[0].type)
    axis = emit.constant(np.array(-2, np.int32))
    rows_type = types.tensor(types.element_of(op.operands[0].type), (*shape[:-1], 1, shape[-1]))
    rows = emit.tf("ExpandDims", (op.operands[0], axis), rows_type)
    transformed = emit.tfl(
        "rfft2d", (rows, emit.ints((1, *ints(op.operands[1])))), types.tensor(element, (*result[:-1], 1, result[-1]))
    )
    return emit.tf("Squeeze", (transformed,), op.results[0].type, {"squeeze_dims": [-2]})


_CONSTRAINT = all_of(constant_operand(1, "the length"), _is_power_of_two, _rank_is_known)

ENTRIES: tuple[Entry, ...] = (
    Lowering("RFFT", "rfft2d", _rfft, "f32", _CONSTRAINT),
    Row("RFFT2D", "rfft2d", "f32", narrow=(1,), constraint=all_of(constant_operand(1, "the length"), _is_power_of_two)),
)
