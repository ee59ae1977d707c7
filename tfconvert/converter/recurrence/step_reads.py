"""Recognises `x[i]`, `x[:, i]`, gathers and unpacks as reads of one time step."""

from __future__ import annotations

from typing import NamedTuple

from tfconvert.converter.ir.constants import constant_array, constant_int
from tfconvert.schema.dialects import tf, types
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import OpResult, Value

_MASKS = ("begin", "end", "shrink_axis", "ellipsis", "new_axis")


class Place(NamedTuple):
    """The source of a step.

    Attributes:
        sequence: The sequence.
        axis: The axis of the steps, one of its first two.
        step: The step's index; counted from the end if negative.
    """

    sequence: Value
    axis: int
    step: int


def place_of(value: Value) -> Place | None:
    """Returns the source of a value that is a step of a sequence of vectors, `None` if it isn't one."""
    place = read_of(value)
    return place if place is not None and len(types.shape_of(place.sequence.type) or ()) == 3 else None


def read_of(value: Value) -> Place | None:
    """Returns the source of a value that is a step of a sequence of any rank, `None` if its index isn't known."""
    if not isinstance(value, OpResult) or not value.op.operands:
        return None
    found = _FINDERS.get(value.op.name)
    place = None if found is None else found(value)
    shape = types.shape_of(value.op.operands[0].type)
    if place is None or shape is None or place.axis > min(1, len(shape) - 1):
        return None
    length = shape[place.axis]
    return place._replace(step=place.step + length) if place.step < 0 <= length else place


def _sliced(value: OpResult) -> Place | None:
    """Returns the place of `x[i]` and `x[:, i]`."""
    whole, begins, _, strides = value.op.operands
    begin, steps = constant_array(begins), constant_array(strides)
    masks = {name: int(tf.get(value.op, f"{name}_mask", 0)) for name in _MASKS}
    if begin is None or steps is None or any(steps != 1) or masks["ellipsis"] or masks["new_axis"]:
        return None
    if masks["shrink_axis"] not in (1, 2) or masks["begin"] & masks["shrink_axis"]:
        return None
    axis = masks["shrink_axis"] >> 1
    others = ((1 << len(begin)) - 1) & ~masks["shrink_axis"]
    if axis >= len(begin) or masks["begin"] & others != others or masks["end"] & others != others:
        return None
    return Place(whole, axis, int(begin[axis]))


def _gathered(value: OpResult) -> Place | None:
    whole, indices, axes = value.op.operands
    index, axis = constant_int(indices), constant_int(axes)
    if index is None or axis not in (0, 1) or types.shape_of(indices.type) != () or tf.get(value.op, "batch_dims"):
        return None
    return Place(whole, axis or 0, index)


def _unpacked(value: OpResult) -> Place | None:
    whole = value.op.operands[0]
    return Place(whole, int(tf.get(value.op, "axis", 0)) % len(types.shape_of(whole.type) or (1,)), value.index)


_FINDERS = {"tf.GatherV2": _gathered, "tf.StridedSlice": _sliced, "tf.Unpack": _unpacked}


def takes(op: Operation, value: Value, indices: tuple[int, ...]) -> bool:
    """Returns whether an op reads a certain step, and nothing else, from a sequence whose steps are along axis 0.

    Args:
        op: The op.
        value: The sequence.
        indices: The possible indices of the step, counted from the end if negative.
    """
    place = place_of(op.results[0]) if len(op.results) == 1 else None
    if place is None or place.sequence is not value or place.axis != 0:
        return False
    length = (types.shape_of(value.type) or (-1,))[0]
    return place.step in indices or (length >= 0 and place.step - length in indices)
