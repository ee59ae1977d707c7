"""Sequences, as recurrent layers take and return them."""

from __future__ import annotations

from typing import NamedTuple

from tfconvert.converter.ir.constants import constant_array, constant_int
from tfconvert.converter.rewrite.pattern import need
from tfconvert.schema.dialects import types
from tfconvert.schema.dialects.call_interfaces import KINDS, Kind
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import OpResult, Value


class Steps(NamedTuple):
    """A sequence.

    Attributes:
        value: A tensor of the steps, of rank 3.
        axis: The axis of the steps; the other one of the first two is the batch.
        is_reversed: Whether the last step comes first.
    """

    value: Value
    axis: int
    is_reversed: bool = False

    @property
    def batch(self) -> int:
        """The number of sequences, -1 if unknown."""
        return (types.shape_of(self.value.type) or ())[1 - self.axis]

    @property
    def features(self) -> int:
        """The number of elements of a step."""
        return (types.shape_of(self.value.type) or ())[2]

    @property
    def length(self) -> int:
        """The number of steps, -1 if unknown."""
        return (types.shape_of(self.value.type) or ())[self.axis]


def ordered(axis: int, length: int, batch: int, features: int) -> tuple[int, ...]:
    """Returns the shape of a sequence whose steps lie along an axis."""
    return (length, batch, features) if axis == 0 else (batch, length, features)


def steps_of(value: Value, axis: int) -> Steps:
    """Returns a sequence as it is before batch and time were transposed, and before it was reversed.

    Args:
        value: The sequence.
        axis: The axis of the steps.
    """
    is_reversed = False
    while isinstance(value, OpResult) and value.op.name in ("tf.ConcatV2", "tf.Transpose", "tf.ReverseV2"):
        if value.op.name == "tf.ConcatV2":
            (only, *more) = _not_empty(value.op, axis)
            if more:
                break
            value = only
            continue
        order = constant_array(value.op.operands[1])
        order = None if order is None else order.reshape(-1)
        if value.op.name == "tf.Transpose" and order is not None and order.tolist() == [1, 0, 2]:
            if axis == 1 and _is_loop(value.op.operands[0]):
                break  # what a framework's loop collects, steps first, is mostly available batch first as well
            axis = 1 - axis
        elif value.op.name == "tf.ReverseV2" and order is not None and order.tolist() in ([axis], [axis - 3]):
            is_reversed = not is_reversed
        else:
            break
        value = value.op.operands[0]
    shape = types.shape_of(value.type)
    need(shape is not None and len(shape) == 3 and shape[2] > 0, "its input is not a sequence of vectors of known size")
    need(types.element_of(value.type) == types.F32, f"it computes with {types.element_of(value.type)}, not f32")
    return Steps(value, axis, is_reversed)


def _is_loop(value: Value) -> bool:
    return isinstance(value, OpResult) and KINDS.get(value.op.name) is Kind.LOOP


def _not_empty(concat: Operation, axis: int) -> list[Value]:
    """Returns the non-empty values that an op concatenates along an axis; its result if that is another axis."""
    *values, along = concat.operands
    found = [value for value in values if (types.shape_of(value.type) or (-1,) * 3)[axis] != 0]
    return found if constant_int(along) == axis and found else [concat.results[0], concat.results[0]]
