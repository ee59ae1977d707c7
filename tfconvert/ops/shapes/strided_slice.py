"""The five masks of `StridedSlice`, made explicit: one entry for each dimension of the result or of the operand."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tfconvert.ops.operands import Operands
from tfconvert.schema.dialects.dims import UNKNOWN, MismatchError, Partial, text
from tfconvert.schema.dialects.types import Shape


class Entry(NamedTuple):
    """An entry of a slice.

    Attributes:
        axis: The dimension that is sliced, -1 where a new one of length 1 comes in.
        begin: The first index, `UNKNOWN` if not known; `None` for the natural end.
        end: The index to stop before, likewise.
        stride: The step, `UNKNOWN` if not known.
        shrinks: Whether only `begin` is taken and the dimension vanishes.
    """

    axis: int
    begin: int | None = None
    end: int | None = None
    stride: int = 1
    shrinks: bool = False


def entries(operands: Operands, rank: int) -> list[Entry] | None:
    """Returns the entries of a `StridedSlice`, in the order of the dimensions.

    Args:
        operands: The op, whose operands 1 to 3 are begin, end and strides.
        rank: The rank of the sliced value.

    Returns:
        The entries, or `None` if not even their number is known.

    Raises:
        MismatchError: More dimensions are sliced than there are, or begin, end and strides are not equally long
            vectors.
    """
    shapes = operands.shapes(1, 4)
    if any(shape is not None and len(shape) != 1 for shape in shapes):
        raise MismatchError("begin, end and strides should have rank 1")
    specs = [operands.elements(index) for index in (1, 2, 3)]
    counts = {len(spec) for spec in specs if spec is not None}
    if not counts:
        return None
    if None in specs:
        # Vectors of so many elements that they are not followed.
        counts.update(shape[0] for shape in shapes if shape is not None and shape[0] >= 0)
    if len(counts) > 1:
        raise MismatchError("begin, end and strides should be equally long")
    count = counts.pop()
    begin, end, strides = (spec if spec is not None else (UNKNOWN,) * count for spec in specs)
    return list(_entries(operands, (begin, end, strides), rank))


def _entries(operands: Operands, specs: tuple[Partial, Partial, Partial], rank: int) -> Iterator[Entry]:
    begin_mask, end_mask, ellipsis, new, shrink = (
        operands.integer(f"{name}_mask") for name in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")
    )
    begin, end, strides = specs
    count = len(begin)
    consumed = sum(not (ellipsis >> index & 1) and not (new >> index & 1) for index in range(count))
    if consumed > rank:
        raise MismatchError(f"{consumed} dimensions of a value of rank {rank} can't be sliced")
    axis = 0
    for index in range(count):
        if ellipsis >> index & 1:
            for _ in range(rank - consumed):
                yield Entry(axis)
                axis += 1
            consumed = rank
        elif new >> index & 1:
            yield Entry(-1)
        else:
            yield Entry(
                axis,
                None if begin_mask >> index & 1 else begin[index],
                None if end_mask >> index & 1 else end[index],
                strides[index],
                bool(shrink >> index & 1),
            )
            axis += 1
    for rest in range(axis, rank):
        yield Entry(rest)


def length(entry: Entry, dim: int) -> int:
    """Returns how many elements of a dimension an entry takes, -1 if unknown.

    Raises:
        MismatchError: The step is 0.
    """
    begin, end, stride = entry.begin, entry.end, entry.stride
    if stride == 0:
        raise MismatchError("its strides should not be 0")
    if begin is None and end is None and stride in (1, -1):
        return dim
    if begin == 0 and stride == 1 and (end is None or (end == dim and dim < 0)):
        return dim
    if stride <= UNKNOWN or any(bound is not None and bound <= UNKNOWN for bound in (begin, end)):
        return -1
    if dim >= 0:
        return len(range(*slice(begin, end, stride).indices(dim)))
    return _length_of_unknown(begin, end, stride)


def _length_of_unknown(begin: int | None, end: int | None, stride: int) -> int:
    """A slice of a dimension that isn't known may still be known to be empty."""
    if end == 0 and stride > 0:
        return 0
    if begin is None or end is None or (begin < 0) != (end < 0):
        return -1
    return 0 if (end - begin) * stride <= 0 else -1


def sliced(operands: Operands) -> tuple[Shape | None]:
    """Returns the shape of a `StridedSlice`'s result."""
    shape = operands.shape(0)
    if shape is None:
        return (None,)
    found = entries(operands, len(shape))
    if found is None:
        return (None,)
    result: list[int] = []
    for entry in found:
        if entry.axis < 0:
            result.append(1)
        elif entry.shrinks:
            _check_index(entry, shape)
        else:
            result.append(length(entry, shape[entry.axis]))
    return (tuple(result),)


def _check_index(entry: Entry, shape: Shape) -> None:
    dim, index = shape[entry.axis], entry.begin
    if dim >= 0 and index is not None and index > UNKNOWN and not -dim <= index < dim:
        raise MismatchError(f"index {index} is out of range for dimension {entry.axis} of {text(shape)}")
