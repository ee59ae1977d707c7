"""Folds the shape of a transposed sequence into the shape of the sequence, so that the transpose becomes dead."""

from __future__ import annotations

from tfconvert.converter.ir.constants import constant_array
from tfconvert.converter.ir.edit import erase
from tfconvert.converter.ir.tf_builder import TFBuilder
from tfconvert.schema.dialects import tf, types
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

_MASKS = ("begin_mask", "ellipsis_mask", "new_axis_mask")


def read_sizes_before(sequence: Value) -> None:
    """Reads sizes from a sequence that are read from the shape of its transpose; a transpose without other users dies.

    Args:
        sequence: A tensor.
    """
    for use in list(sequence.uses):
        transpose = use.operation
        order = constant_array(transpose.operands[1]) if transpose.name == "tf.Transpose" else None
        if order is None:
            continue
        shapes = [each.operation for each in transpose.results[0].uses]
        if not all(op.name == "tf.Shape" for op in shapes):
            continue
        for op in shapes:
            _read(op, sequence, [int(axis) for axis in order])
            erase(op)
        erase(transpose)


def _read(op: Operation, sequence: Value, order: list[int]) -> None:
    """Replaces the shape of a sequence's transpose."""
    insert = TFBuilder(op)
    element = types.element_of(op.results[0].type)
    whole = insert.cast(insert.shape(sequence), element)
    for user in {use.operation: None for use in op.results[0].uses}:
        index = _index_picked(user)
        if index is not None:
            user.results[0].replace_all_uses_with(insert.pick(whole, order[index]))
            erase(user)
    if op.results[0].first_use is not None:
        permuted = insert.tf("GatherV2", (whole, insert.ints(order), 0), op.results[0].type, {"batch_dims": 0})
        op.results[0].replace_all_uses_with(permuted)


def _index_picked(op: Operation) -> int | None:
    """Returns which element an op takes of a vector, `None` if it does anything else."""
    begin = constant_array(op.operands[1]) if op.name == "tf.StridedSlice" else None
    if begin is None or begin.size != 1 or int(tf.get(op, "shrink_axis_mask", 0)) != 1:
        return None
    return None if any(tf.get(op, name, 0) for name in _MASKS) else int(begin[0])
