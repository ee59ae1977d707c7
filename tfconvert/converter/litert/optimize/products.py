"""Transposes of the last two dimensions go into batched matrix products.

batch_matmul(transpose(x, [..., n, n - 1]), y)  ->  batch_matmul{adj_x}(x, y)    y as well
"""

from __future__ import annotations

from typing import NamedTuple

from tfconvert.converter.ir.constants import constant_ints
from tfconvert.converter.ir.edit import rebuild
from tfconvert.converter.litert.optimize import matching
from tfconvert.converter.rewrite.pattern import Failure, Pattern
from tfconvert.converter.rewrite.rewriter import Rewriter
from tfconvert.schema.dialects import attributes, tfl
from tfconvert.schema.ir.operation import Operation

_FLAGS = ("adj_x", "adj_y")


class _Adjoint(NamedTuple):
    """An operand that is transposed: its position and the transpose."""

    position: int
    transpose: Operation


def _match(op: Operation) -> _Adjoint | Failure:
    for index, operand in enumerate(op.operands):
        transpose = matching.producer(operand, "tfl.transpose")
        permutation = None if transpose is None else constant_ints(transpose.operands[1])
        if transpose is None or permutation is None or len(permutation) < 2:
            continue
        rank = len(permutation)
        if permutation == (*range(rank - 2), rank - 1, rank - 2):
            return _Adjoint(index, transpose)
    return Failure("no operand has its last two dimensions transposed")


def _rewrite(op: Operation, match: _Adjoint, rewriter: Rewriter) -> None:
    flag = _FLAGS[match.position]
    operands = list(op.operands)
    operands[match.position] = match.transpose.operands[0]
    options = {flag: attributes.boolean(not tfl.attribute(op, flag))}
    rewriter.replace(rewriter.insert(rebuild(op, operands, None, options)))


PATTERNS: tuple[Pattern[_Adjoint], ...] = (
    Pattern("transpose-into-product", "tfl.batch_matmul", _match, _rewrite, depth=2),
)
