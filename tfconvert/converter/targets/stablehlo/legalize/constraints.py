"""Assertions of what ops need of their operands' sizes, where it can't be proved from symbols alone.

An assertion is a `stablehlo.custom_call @shape_assertion` where it is needed first; the pass `materialize-constraints`
says which of them are kept, and where.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tfconvert.schema.dialects import attributes as attrs
from tfconvert.schema.dialects import types
from tfconvert.schema.dialects.locations import told_at
from tfconvert.schema.ir.attributes import StringAttr
from tfconvert.schema.ir.operation import Operation
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
    return emit.one("or", (one, other), types.I1, ())
