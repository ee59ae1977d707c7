"""Removes broadcasts that the next op does implicitly.

add(broadcast_to(x, s), y)  ->  add(x, y)    where the result has the same shape; other elementwise ops as well
add(tile(x, m), y)          ->  add(x, y)    where only dimensions of one element are repeated
add(fill(s, x), y)          ->  add(x, y)    where y is as large; constants of equal elements as well
add(fill(shape(y), x), y)   ->  add(x, y)    whatever the shape; broadcast_to as well, if x has one element
add(zeros_like(y), y)       ->  add(0, y)

Broadcasts move behind the ops that use them, which then compute fewer elements; the next op may broadcast implicitly.

exp(broadcast_to(x, s))     ->  broadcast_to(exp(x), s)       other elementwise ops as well
add(broadcast_to(x, s), y)  ->  broadcast_to(add(x, y), s)    where y has fewer elements, too
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from tfconvert.converter.ir.edit import rebuild
from tfconvert.converter.rewrite.pattern import Failure, Pattern
from tfconvert.converter.rewrite.rewriter import Rewriter
from tfconvert.converter.targets.litert.optimize import matching
from tfconvert.schema.dialects import tensor_data, tfl, types
from tfconvert.schema.dialects.tensor_data import Array
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value
from tfconvert.schema.tflite import operators

# The kernel of `atan2` does not broadcast.
_BINARY = sorted(operators.elementwise(2) - {"atan2"})
_BROADCASTING = (*_BINARY, "select_v2", "select")
# Ops that broadcast a value, and its index among their operands.
_DATA: Mapping[str, int] = {"tfl.broadcast_to": 0, "tfl.tile": 0, "tfl.fill": 1}
_SOURCES = frozenset(_DATA)
_CHOICES = ("tfl.select", "tfl.select_v2")
# Ops that may broadcast a value to another's shape.
_LIKE = frozenset({"tfl.broadcast_to", "tfl.fill", "tfl.zeros_like"})

# All kernels of these ops broadcast tensors of this rank.
_MAX_RANK = 4

# The ops that broadcast tensors of a higher rank.
_HIGHER: Mapping[str, int] = {"tfl.add": 6, "tfl.sub": 6, "tfl.mul": 6, "tfl.div": 5, "tfl.select_v2": 5}


_NOT_BROADCAST = Failure("no operand is broadcast, or the other one isn't as large as the result")


class _Broadcast(NamedTuple):
    """An operand that is broadcast: its position, and its defining op (of a constant, its number)."""

    position: int
    source: Operation | Array


def _match(op: Operation) -> _Broadcast | Failure:
    dims = matching.static_shape(op.results[0])
    if dims is None or len(dims) > _HIGHER.get(op.name, _MAX_RANK):
        return Failure("the result's shape is unknown, or has too many dimensions")
    if op.name == "tfl.select" and matching.static_shape(op.operands[0]) != dims:
        return Failure("the condition chooses between rows")
    for index, operand in enumerate(op.operands):
        source = operand.producer(_SOURCES)
        if source is None or not _broadcasts(source):
            continue
        if _shape(source.operands[_DATA[source.name]], *_without(op, index)) == dims:
            return _Broadcast(index, source)
    return _match_equal(op, dims)


def _match_equal(op: Operation, dims: types.Shape) -> _Broadcast | Failure:
    """Matches a constant of equal elements, without reading it from a file."""
    for index, operand in enumerate(op.operands):
        constant = tensor_data.constant_of(operand)
        if constant is None or (size := matching.size_of(constant)) < 2 or not tensor_data.is_small(constant):
            continue
        if isinstance(constant, tensor_data.DenseElementsAttr):
            width = len(constant.data) // size
            if constant.data[:width] != constant.data[width : 2 * width]:
                continue
        if types.from_mlir(operand.element) is None or operand.element == types.STRING:
            continue
        if isinstance(constant, tensor_data.TensorData) and not isinstance(constant.source, tensor_data.BufferSource):
            continue
        array = tensor_data.to_array(constant)
        first = array.reshape(-1)[:1]
        if array.tobytes() == first.tobytes() * array.size and _shape(*_without(op, index)) == dims:
            return _Broadcast(index, first.reshape(()))
    return _NOT_BROADCAST


def _without(op: Operation, index: int) -> list[Value]:
    return [other for place, other in enumerate(op.operands) if place != index]


def _broadcasts(source: Operation) -> bool:
    """Returns whether an op only repeats dimensions of one element."""
    before = matching.static_shape(source.operands[_DATA[source.name]])
    after = matching.static_shape(source.results[0])
    if before is None or after is None or len(before) > len(after):
        return False
    aligned = (1,) * (len(after) - len(before)) + before
    return all(old in (1, new) for old, new in zip(aligned, after, strict=True))


def _shape(*values: Value) -> types.Shape | None:
    """Returns the shape that operands broadcast to."""
    shapes = [matching.static_shape(value) for value in values]
    known = [shape for shape in shapes if shape is not None]
    return matching.broadcast(*known) if len(known) == len(shapes) else None


def _match_like(op: Operation) -> _Broadcast | Failure:
    """Matches an operand that is broadcast to the other one's shape, which may be dynamic."""
    rank = len(op.results[0].shape or [0] * (_MAX_RANK + 1))
    if rank > _MAX_RANK:
        return Failure("the rank is unknown, or too high")
    for index, operand in enumerate(op.operands):
        source = operand.producer(_LIKE)
        if source is not None and _is_as_large(source, op.operands[1 - index]):
            return _Broadcast(index, source)
    return Failure("no operand is made of one element in the shape of the other")


def _is_as_large(source: Operation, other: Value) -> bool:
    """Returns whether an op repeats one element in the shape of another value."""
    if source.name == "tfl.zeros_like":
        return source.operands[0] is other
    size, element = source.operands if source.name == "tfl.fill" else source.operands[::-1]
    shape = size.producer("tfl.shape")
    return matching.static_shape(element) == () and shape is not None and shape.operands[0] is other


def _rewrite_like(op: Operation, match: _Broadcast, rewriter: Rewriter) -> None:
    operands = list(op.operands)
    assert isinstance(match.source, Operation), "the match looks for no constants"
    if match.source.name == "tfl.zeros_like":
        dtype = types.numpy_dtype(op.operands[match.position].element)
        operands[match.position] = matching.insert_constant(rewriter, np.zeros((), dtype))
    else:
        operands[match.position] = match.source.operands[1 if match.source.name == "tfl.fill" else 0]
    rewriter.replace(rewriter.insert(rebuild(op, operands)))


def _rewrite(op: Operation, match: _Broadcast, rewriter: Rewriter) -> None:
    operands = list(op.operands)
    if isinstance(match.source, Operation):
        operands[match.position] = match.source.operands[_DATA[match.source.name]]
    else:
        operands[match.position] = matching.insert_constant(rewriter, match.source, op.operands[match.position])
    if op.name == "tfl.select":
        rewriter.replace(rewriter.insert(tfl.build("select_v2", operands, [op.results[0].type])))
    else:
        rewriter.replace(rewriter.insert(rebuild(op, operands)))


_UNARY = sorted(operators.elementwise(1))
_SOURCE = frozenset({"tfl.broadcast_to"})

# All kernels of these ops broadcast tensors of this rank.


class _Moved(NamedTuple):
    """A broadcast that moves behind the op that uses it.

    Attributes:
        position: The operand.
        source: The broadcast.
        shape: The shape of the op's result without it.
    """

    position: int
    source: Operation
    shape: types.Shape


def _movable(op: Operation) -> _Moved | Failure:
    dims = matching.static_shape(op.results[0])
    if dims is None or len(dims) > _MAX_RANK:
        return Failure("the result's shape is unknown, or has too many dimensions")
    for index, operand in enumerate(op.operands):
        source = operand.sole_producer(_SOURCE)
        if source is None or matching.static_shape(operand) != dims:
            continue
        others = [other for place, other in enumerate(op.operands) if place != index]
        shapes = [matching.static_shape(value) for value in (source.operands[0], *others)]
        known = [shape for shape in shapes if shape is not None]
        shape = matching.broadcast(*known) if len(known) == len(shapes) else None
        if shape is not None and shape != dims:
            return _Moved(index, source, shape)
    return Failure("no operand is broadcast only for this op, or the result would be as large without")


def _move(op: Operation, match: _Moved, rewriter: Rewriter) -> None:
    operands = list(op.operands)
    operands[match.position] = match.source.operands[0]
    result = op.results[0].type
    small = rewriter.insert(rebuild(op, operands, [types.tensor(types.element_of(result), match.shape)]))
    rewriter.replace(rewriter.insert(tfl.build("broadcast_to", [small.results[0], match.source.operands[1]], [result])))


PATTERNS: tuple[Pattern[Any], ...] = (
    *(Pattern(f"broadcast-into-{name}", f"tfl.{name}", _match, _rewrite, benefit=0) for name in _BROADCASTING),
    *(
        Pattern(
            f"{where}-like-into-{name}", f"tfl.{name}", _match_like, _rewrite_like, depth=2, producers={index: _LIKE}
        )
        for name in _BROADCASTING
        if f"tfl.{name}" not in _CHOICES
        for index, where in enumerate(("left", "right"))
    ),
    *(
        Pattern(f"broadcast-behind-{name}", f"tfl.{name}", _movable, _move, producers={0: _SOURCE}, benefit=0)
        for name in _UNARY
    ),
    *(
        Pattern(
            f"{where}-broadcast-behind-{name}", f"tfl.{name}", _movable, _move, producers={index: _SOURCE}, benefit=0
        )
        for name in _BINARY
        for index, where in enumerate(("left", "right"))
    ),
)
