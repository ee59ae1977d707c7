"""Transposes sink past paddings, concatenations and reductions, to where another one undoes them.

Rewrites:
    pad(transpose(x, p), b)                          ->  transpose(pad(x, b'), p)
    concatenation(transpose(x, p), transpose(y, p))  ->  transpose(concatenation(x, y), p)
    mean(transpose(x, p), axes)                      ->  mean(x, p[axes])         where the others keep their order
    mean{keep_dims}(transpose(x, p), axes)           ->  transpose(mean{keep_dims}(x, p[axes]), p)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tfconvert.converter.ir.edit import rebuild
from tfconvert.converter.rewrite.pattern import Failure, Pattern
from tfconvert.converter.rewrite.rewriter import Rewriter
from tfconvert.converter.targets.litert.optimize import matching, pads, transposes
from tfconvert.converter.targets.litert.optimize.transposes import Permutation
from tfconvert.schema.dialects import attributes, tfl, types
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

# The producer of the first operand, wherever one of these patterns can match.
_FROM_TRANSPOSE = {0: ("tfl.transpose",)}

_REDUCTIONS = ("mean", "sum", "reduce_max", "reduce_min", "reduce_prod")


class _Transposed(NamedTuple):
    """The transposes before an op, all alike.

    Attributes:
        sources: The transposes.
        permutation: The permutation of each of them.
    """

    sources: list[Operation]
    permutation: Permutation


def _transposed(op: Operation, values: list[Value]) -> _Transposed | Failure:
    sources = []
    for value in values:
        source = matching.sole_producer(value, "tfl.transpose")
        if source is None:
            return Failure("an operand isn't transposed, or is used elsewhere too")
        sources.append(source)
    permutation = transposes.permutation_of(sources[0])
    if permutation is None or any(transposes.permutation_of(source) != permutation for source in sources[1:]):
        return Failure("the permutations are computed, or differ")
    ranks = {len(matching.shape(value) or ()) for value in values}
    if ranks != {len(permutation)} or matching.shape(op.results[0]) is None:
        return Failure("the rank is unknown")
    return _Transposed(sources, permutation)


def _keeps_rank(op: Operation) -> bool:
    dims, before = matching.shape(op.results[0]), matching.shape(op.operands[0])
    return dims is not None and before is not None and len(dims) == len(before)


def _match_pad(op: Operation) -> _Transposed | Failure:
    if pads.paddings_of(op) is None or not _keeps_rank(op):
        return Failure("the padding is computed")
    return _transposed(op, [op.operands[0]])


def _rewrite_pad(op: Operation, match: _Transposed, rewriter: Rewriter) -> None:
    paddings = pads.paddings_of(op)
    assert paddings is not None, "checked by the match"
    before = np.array([paddings[match.permutation.index(axis)] for axis in range(len(paddings))], np.int32)
    value = matching.insert_constant(rewriter, before, op.operands[1])
    _replace(op, [match.sources[0].operands[0], value, *op.operands[2:]], match, rewriter)


def _match_concatenation(op: Operation) -> _Transposed | Failure:
    dims, axis = matching.shape(op.results[0]), tfl.attribute(op, "axis")
    if dims is None or not _keeps_rank(op) or not -len(dims) <= axis < len(dims):
        return Failure("the rank is unknown")
    return _transposed(op, list(op.operands))


def _rewrite_concatenation(op: Operation, match: _Transposed, rewriter: Rewriter) -> None:
    axis = match.permutation[tfl.attribute(op, "axis")]
    operands = [source.operands[0] for source in match.sources]
    _replace(op, operands, match, rewriter, {"axis": attributes.int32(axis)})


def _replace(
    op: Operation,
    operands: list[Value],
    match: _Transposed,
    rewriter: Rewriter,
    options: dict[str, Attribute] | None = None,
) -> None:
    """Replaces an op by itself on the operands before their transposes, and a transpose."""
    dims = matching.shape(op.results[0])
    assert dims is not None, "checked by the match"
    before = tuple(dims[match.permutation.index(index)] for index in range(len(dims)))
    result_type = types.tensor(types.element_of(op.results[0].type), before)
    moved = rewriter.insert(rebuild(op, operands, [result_type], options)).results[0]
    order = matching.insert_constant(rewriter, np.array(match.permutation, np.int32))
    rewriter.replace(rewriter.insert(tfl.build("transpose", [moved, order], [op.results[0].type])))


def _match_reduction(op: Operation) -> tuple[_Transposed, tuple[int, ...]] | Failure:
    """Matches a reduction; returns the axes that it has before the transpose."""
    found = _transposed(op, [op.operands[0]])
    if isinstance(found, Failure):
        return found
    reduced, permutation = matching.axes(op.operands[1], matching.shape(op.operands[0])), found.permutation
    if reduced is None:
        return Failure("the axes are computed")
    left = [source for index, source in enumerate(permutation) if index not in reduced]
    if not _keeps_rank(op) if tfl.attribute(op, "keep_dims") else left != sorted(left):
        return Failure("the dimensions that stay change their order")
    return found, tuple(sorted(permutation[axis] for axis in reduced))


def _rewrite_reduction(op: Operation, match: tuple[_Transposed, tuple[int, ...]], rewriter: Rewriter) -> None:
    found, axes = match
    value = matching.insert_constant(rewriter, np.array(axes, np.int32), op.operands[1])
    operands = [found.sources[0].operands[0], value]
    if tfl.attribute(op, "keep_dims"):
        # There is less to transpose after the reduction.
        _replace(op, operands, found, rewriter)
    else:
        rewriter.replace(rewriter.insert(rebuild(op, operands)))


PATTERNS: tuple[Pattern[_Transposed] | Pattern[tuple[_Transposed, tuple[int, ...]]], ...] = (
    *(
        Pattern(f"transpose-after-{name}", f"tfl.{name}", _match_pad, _rewrite_pad, depth=2, producers=_FROM_TRANSPOSE)
        for name in ("pad", "padv2")
    ),
    Pattern(
        "transpose-after-concatenation",
        "tfl.concatenation",
        _match_concatenation,
        _rewrite_concatenation,
        depth=2,
        producers=_FROM_TRANSPOSE,
    ),
    *(
        Pattern(
            f"no-transpose-before-{name}",
            f"tfl.{name}",
            _match_reduction,
            _rewrite_reduction,
            depth=2,
            producers=_FROM_TRANSPOSE,
        )
        for name in _REDUCTIONS
    ),
)
