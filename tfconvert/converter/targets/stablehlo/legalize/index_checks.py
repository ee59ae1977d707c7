"""Assertions that indices are in range, for engines that check values when they run.

TensorFlow's kernels for processors raise an error where an index is out of range. StableHLO moves it into the operand
where something is read, and drops what would be written there. So an op that doesn't mind stays as safe as it was when
its assertion comes later, or is left out: assertions about indices are marked `LATE`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tfconvert.converter.targets.stablehlo.legalize.constraints import require
from tfconvert.schema.dialects import tensor_data, types
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.attributes import UNIT
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import IntegerType
from tfconvert.schema.ir.values import Value

if TYPE_CHECKING:
    from tfconvert.converter.targets.stablehlo.legalize.stablehlo_builder import StableHLOBuilder

_FILLS = frozenset({"stablehlo.broadcast_in_dim", "stablehlo.dynamic_broadcast_in_dim"})

LATE = "tf.late"
"""The attribute of assertions that may stand after what they are about."""


def require_indices(emit: StableHLOBuilder, indices: Value, dim: int, *, lowest: bool = True) -> None:
    """Asserts that indices are in range, unless that is known.

    Args:
        emit: The emitter.
        indices: The indices, a tensor of any shape.
        dim: The size that they index.
        lowest: Whether they must not be negative; what has a negative one may be left out by the op.
    """
    if not emit.checks_indices or _are_known(emit, indices, (dim,), lowest=lowest):
        return
    places = emit.dims(indices)
    indices = _wide(emit, _filled_with(indices))
    size = emit.convert(emit.value(emit.size(dim)), types.element_of(indices.type))
    holds = emit.compare("LT", indices, size)
    if lowest:
        holds = emit.binary("and", emit.compare("GE", indices, 0), holds)
    if not emit.dims(indices):
        for place in (each for each in places if emit.sizes.find(each) < 0):
            holds = emit.binary("or", emit.compare("EQ", emit.value(emit.size(place)), 0), holds)
    _require_all(emit, holds, f"an index is out of range for the size {_shown(emit, (dim,))[0]}")


def require_index_vectors(emit: StableHLOBuilder, indices: Value, dims: Sequence[int]) -> None:
    """Asserts that index vectors are in range, unless that is known.

    Args:
        emit: The emitter.
        indices: The vectors, along the last axis.
        dims: The size that each number of a vector indexes.
    """
    if not emit.checks_indices or not dims or _are_known(emit, indices, dims):
        return
    indices = _wide(emit, indices)
    places = emit.dims(indices)
    sizes = emit.convert(emit.shape(dims), types.element_of(indices.type))
    limits = emit.broadcast(sizes, places, (len(places) - 1,))
    holds = emit.binary("and", emit.compare("GE", indices, 0), emit.compare("LT", indices, limits))
    _require_all(emit, holds, f"an index is out of range for the shape [{', '.join(_shown(emit, dims))}]")


def _require_all(emit: StableHLOBuilder, holds: Value, what: str) -> None:
    rank = len(emit.dims(holds))
    if rank:
        holds = emit.reduce("and", holds, range(rank), True)
    require(emit, holds, what).attributes[LATE] = UNIT


def _filled_with(indices: Value) -> Value:
    """Returns the constant that all indices are, or the indices.

    Comparing every element of a tensor that is filled with one number is of no use, and IREE 3.13 fails to compile it.
    """
    number = indices
    while isinstance(op := number.owner, Operation) and op.name in _FILLS:
        number = op.operands[0]
    is_one = tensor_data.constant_of(number) is not None and types.shape_of(number.type) == ()
    return number if is_one else indices


def _shown(emit: StableHLOBuilder, dims: Sequence[int]) -> list[str]:
    return [str(dim) if dim >= 0 else "?" for dim in map(emit.sizes.find, dims)]


def _are_known(emit: StableHLOBuilder, indices: Value, dims: Sequence[int], *, lowest: bool = True) -> bool:
    """Returns whether indices are constants that are in range."""
    sizes = [emit.sizes.find(dim) for dim in dims]
    known = tensor_data.constant_of(indices)
    if known is None or not tensor_data.is_small(known) or min(sizes) < 0:
        return False
    array = tensor_data.to_array(known)
    return bool(np.all(array < np.array(sizes)) and (not lowest or np.all(array >= 0)))


def _wide(emit: StableHLOBuilder, indices: Value) -> Value:
    """Returns indices in a type that holds every size."""
    element: Attribute = types.element_of(indices.type)
    is_narrow = isinstance(element, IntegerType) and element.width < 32
    return emit.convert(indices, types.I32) if is_narrow else indices
