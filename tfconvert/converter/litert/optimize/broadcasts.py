"""Removes broadcasts that the next op does by itself.

add(broadcast_to(x, s), y)  ->  add(x, y)    where the result has the same shape; other elementwise ops as well
add(tile(x, m), y)          ->  add(x, y)    where only dimensions of one element are repeated
"""

from __future__ import annotations

from typing import NamedTuple

from tfconvert.converter.ir.edit import rebuild
from tfconvert.converter.litert.optimize import matching
from tfconvert.converter.rewrite.pattern import Failure, Pattern
from tfconvert.converter.rewrite.rewriter import Rewriter
from tfconvert.schema.dialects import types
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

_BROADCASTING = ("add", "sub", "mul", "div", "maximum", "minimum", "squared_difference")
_SOURCES = frozenset({"tfl.broadcast_to", "tfl.tile"})

_MAX_RANK = 4
"""All kernels of these ops broadcast tensors of this rank."""


class _Broadcast(NamedTuple):
    """An operand that is broadcast: its position and its defining op."""

    position: int
    source: Operation


def _match(op: Operation) -> _Broadcast | Failure:
    dims = matching.static_shape(op.results[0])
    if dims is None or len(dims) > _MAX_RANK or len(op.operands) != 2:
        return Failure("the result's shape is unknown, or has too many dimensions")
    for index, operand in enumerate(op.operands):
        source = matching.producer(operand, _SOURCES)
        if source is not None and _broadcasts(source) and _shape(source.operands[0], op.operands[1 - index]) == dims:
            return _Broadcast(index, source)
    return Failure("no operand is broadcast, or the other one isn't as large as the result")


def _broadcasts(source: Operation) -> bool:
    """Returns whether an op repeats nothing but dimensions of one element."""
    before, after = matching.static_shape(source.operands[0]), matching.static_shape(source.results[0])
    if before is None or after is None or len(before) > len(after):
        return False
    aligned = (1,) * (len(after) - len(before)) + before
    return all(old in (1, new) for old, new in zip(aligned, after, strict=True))


def _shape(one: Value, other: Value) -> types.Shape | None:
    """Returns the shape that two operands broadcast to."""
    first, second = matching.static_shape(one), matching.static_shape(other)
    return None if first is None or second is None else matching.broadcast(first, second)


def _rewrite(op: Operation, match: _Broadcast, rewriter: Rewriter) -> None:
    operands = list(op.operands)
    operands[match.position] = match.source.operands[0]
    rewriter.replace(rewriter.insert(rebuild(op, operands)))


PATTERNS: tuple[Pattern[_Broadcast], ...] = tuple(
    Pattern(f"broadcast-into-{name}", f"tfl.{name}", _match, _rewrite) for name in _BROADCASTING
)
