"""Broadcasts go behind the ops that use them, which then compute fewer elements; what follows may do them by itself.

exp(broadcast_to(x, s))     ->  broadcast_to(exp(x), s)       other elementwise ops as well
add(broadcast_to(x, s), y)  ->  broadcast_to(add(x, y), s)    where y has fewer elements, too
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tfconvert.converter.ir.edit import rebuild
from tfconvert.converter.rewrite.pattern import Failure, Pattern
from tfconvert.converter.rewrite.rewriter import Rewriter
from tfconvert.converter.targets.litert.optimize import matching
from tfconvert.schema.dialects import tfl, types
from tfconvert.schema.ir.operation import Operation

_UNARY = (
    "abs",
    "ceil",
    "cos",
    "exp",
    "floor",
    "log",
    "logical_not",
    "logistic",
    "neg",
    "relu",
    "relu6",
    "round",
    "rsqrt",
    "sin",
    "sqrt",
    "square",
    "tanh",
)
_BINARY = (
    "add",
    "sub",
    "mul",
    "div",
    "maximum",
    "minimum",
    "squared_difference",
    "equal",
    "not_equal",
    "less",
    "less_equal",
    "greater",
    "greater_equal",
    "pow",
    "floor_div",
    "floor_mod",
    "logical_and",
    "logical_or",
)
_SOURCE = frozenset({"tfl.broadcast_to"})

# All kernels of these ops broadcast tensors of this rank.
_MAX_RANK = 4


class _Moved(NamedTuple):
    """A broadcast that goes behind the op that uses it.

    Attributes:
        position: The operand.
        source: The broadcast.
        shape: The shape of the op's result without it.
    """

    position: int
    source: Operation
    shape: types.Shape


def _match(op: Operation) -> _Moved | Failure:
    dims = matching.static_shape(op.results[0])
    if dims is None or len(dims) > _MAX_RANK:
        return Failure("the result's shape is unknown, or has too many dimensions")
    for index, operand in enumerate(op.operands):
        source = matching.sole_producer(operand, _SOURCE)
        if source is None or matching.static_shape(operand) != dims:
            continue
        others = [other for place, other in enumerate(op.operands) if place != index]
        shapes = [matching.static_shape(value) for value in (source.operands[0], *others)]
        known = [shape for shape in shapes if shape is not None]
        shape = matching.broadcast(*known) if len(known) == len(shapes) else None
        if shape is not None and shape != dims:
            return _Moved(index, source, shape)
    return Failure("no operand is broadcast only for this op, or the result would be as large without")


def _rewrite(op: Operation, match: _Moved, rewriter: Rewriter) -> None:
    operands = list(op.operands)
    operands[match.position] = match.source.operands[0]
    result = op.results[0].type
    small = rewriter.insert(rebuild(op, operands, [types.tensor(types.element_of(result), match.shape)]))
    rewriter.replace(rewriter.insert(tfl.build("broadcast_to", [small.results[0], match.source.operands[1]], [result])))


PATTERNS: tuple[Pattern[Any], ...] = (
    *(
        Pattern(f"broadcast-behind-{name}", f"tfl.{name}", _match, _rewrite, producers={0: _SOURCE}, benefit=0)
        for name in _UNARY
    ),
    *(
        Pattern(
            f"{where}-broadcast-behind-{name}", f"tfl.{name}", _match, _rewrite, producers={index: _SOURCE}, benefit=0
        )
        for name in _BINARY
        for index, where in enumerate(("left", "right"))
    ),
)
