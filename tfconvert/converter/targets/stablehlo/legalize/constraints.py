"""Assertions about the sizes of operands that can't be proved from symbols alone, and about indices.

An assertion is a `stablehlo.custom_call @shape_assertion` at the first op that needs it. The pass
`materialize-constraints` decides which of them stay, and where.

TensorFlow's CPU kernels raise an error where an index is out of range. StableHLO clamps such an index when it reads,
and drops the element when it writes, so the op is safe without the assertion. Assertions about indices are marked
`LATE`: they may come later, or be left out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tfconvert.schema.dialects import attributes as attrs
from tfconvert.schema.dialects import tensor_data, types
from tfconvert.schema.dialects.locations import told_at
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.attributes import UNIT, StringAttr
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import IntegerType
from tfconvert.schema.ir.values import Value

if TYPE_CHECKING:
    from tfconvert.converter.targets.stablehlo.legalize.stablehlo_builder import StableHLOBuilder


_CALL = "stablehlo.custom_call"
_TARGET = "shape_assertion"

EQUAL_OR_ONE = "the sizes of operands must be equal or 1"


def require(emit: StableHLOBuilder, holds: Value, what: str) -> Operation:
    """Inserts an assertion that a scalar is true, with a message that names the node and its source line."""
    properties: dict[str, attrs.Value] = {
        "api_version": attrs.int32(2),
        "call_target_name": _TARGET,
        "has_side_effect": True,
    }
    made = emit.op(_CALL, (holds,), (), properties)
    made.attributes["error_message"] = attrs.string(told_at(emit.location, what))
    return made


def is_assertion(op: Operation) -> bool:
    """Returns whether an op is an assertion."""
    target = op.properties.get("call_target_name") if op.name == _CALL else None
    return isinstance(target, StringAttr) and target.data == _TARGET


def require_equal(emit: StableHLOBuilder, one: int, other: int, what: str) -> None:
    """Asserts that two sizes are equal, unless they are known to be.

    A size that nothing holds where it is needed can't be compared: then the engine's own checks must do.
    """
    one, other = emit.sizes.find(one), emit.sizes.find(other)
    if one != other and min(one, other) < 0 and _are_at_hand(emit, (one, other)):
        require(emit, _is(emit, emit.size(one), emit.size(other)), what)


def require_equal_or_one(emit: StableHLOBuilder, one: int, other: int, what: str) -> None:
    """Asserts that a size is equal to another one, or that one of the two is 1; the first one is not known."""
    if not _are_at_hand(emit, (one, other)):
        return
    holds = _either(emit, _is(emit, emit.size(one), emit.size(other)), _is(emit, emit.size(one), 1))
    if other < 0:
        holds = _either(emit, holds, _is(emit, emit.size(other), 1))
    require(emit, holds, what)


def require_count(emit: StableHLOBuilder, own: Sequence[int], dims: Sequence[int], what: str) -> None:
    """Asserts that two shapes hold equally many elements, unless they have the same sizes in some order."""
    above, below = sorted(map(emit.sizes.find, own)), sorted(map(emit.sizes.find, dims))
    for dim in tuple(below):
        if dim in above:
            above.remove(dim)
            below.remove(dim)
    is_known = min((*above, *below), default=1) >= 0
    if (is_known and math.prod(above) == math.prod(below)) or not _are_at_hand(emit, (*above, *below)):
        return
    # All factors count: shapes of no elements are equal whatever their other sizes are.
    one, other = emit.product(own), emit.product(dims)
    if not (isinstance(one, int) and one == other):
        require(emit, _is(emit, one, other), what)


def require_within(emit: StableHLOBuilder, begin: Value | int, limit: Value | int, dim: int, what: str) -> None:
    """Asserts that a slice begins at 0 or later, is not of less than no elements, and ends where its operand does."""
    end = emit.size(dim)
    for low, high in ((0, begin), (begin, limit), (limit, end)):
        if low is high or (isinstance(low, int) and isinstance(high, int)):
            continue
        require(emit, emit.compare("LE", emit.value(low), emit.value(high)), what)


def _are_at_hand(emit: StableHLOBuilder, dims: Sequence[int]) -> bool:
    found = [emit.sizes.find(dim) for dim in dims]
    return all(
        dim >= 0 or emit.sizes.cached(emit.block, dim) is not None or emit.sizes.place(emit.block, dim) is not None
        for dim in found
    )


def _is(emit: StableHLOBuilder, one: Value | int, other: Value | int) -> Value:
    return emit.compare("EQ", emit.value(one), emit.value(other))


def _either(emit: StableHLOBuilder, one: Value, other: Value) -> Value:
    return emit.one("or", (one, other), dims=())


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
    size = emit.convert(emit.value(emit.size(dim)), indices.element)
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
    sizes = emit.convert(emit.shape(dims), indices.element)
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
    is_one = tensor_data.constant_of(number) is not None and number.shape == ()
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
    element: Attribute = indices.element
    is_narrow = isinstance(element, IntegerType) and element.width < 32
    return emit.convert(indices, types.I32) if is_narrow else indices
