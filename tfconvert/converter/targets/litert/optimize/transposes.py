"""Simplifies transposes: removes trivial ones, merges two, folds constants, uses reshapes where only ones move.

    transpose(transpose(x, p), q)     ->  transpose(x, p[q])
    transpose(constant, p)            ->  constant
    transpose(x : 2x1x3, [1, 0, 2])   ->  reshape(x, [1, 2, 3])
    relu(transpose(x, p))             ->  transpose(relu(x), p)
    add(transpose(x, p), transpose(y, p))  ->  transpose(add(x, y), p)
    add(transpose(x, p), constant)    ->  transpose(add(x, constant'), p)

The last three move a transpose down, where another one may cancel it, as in nets with channels first.

Transposes also move down past paddings, concatenations and reductions.

Rewrites:
    pad(transpose(x, p), b)                          ->  transpose(pad(x, b'), p)
    concatenation(transpose(x, p), transpose(y, p))  ->  transpose(concatenation(x, y), p)
    mean(transpose(x, p), axes)                      ->  mean(x, p[axes])         where the others keep their order
    mean{keep_dims}(transpose(x, p), axes)           ->  transpose(mean{keep_dims}(x, p[axes]), p)
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tfconvert.converter.ir.constants import constant_ints
from tfconvert.converter.ir.edit import rebuild
from tfconvert.converter.rewrite.declarative import own_rule
from tfconvert.converter.rewrite.dsl import array, check, computed, constant, op, tfl, value
from tfconvert.converter.rewrite.pattern import Failure, Pattern
from tfconvert.converter.rewrite.rewriter import Rewriter
from tfconvert.converter.targets.litert.optimize import matching, pads
from tfconvert.schema.dialects import attributes, tensor_data, types
from tfconvert.schema.dialects import tfl as dialect
from tfconvert.schema.dialects.dims import constant_target
from tfconvert.schema.dialects.tensor_data import Array, Constant
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value
from tfconvert.schema.tflite import operators

Permutation = tuple[int, ...]

_TRANSPOSE = "tfl.transpose"
_UNARY = sorted(operators.elementwise(1))
_BINARY = sorted(operators.elementwise(2, 3))


def permutation_of(op: Operation) -> Permutation | None:
    """Returns a transpose's permutation, `None` if it is computed, or the rank unknown."""
    permutation, dims = constant_ints(op.operands[1]), op.operands[0].shape
    if permutation is None or dims is None or sorted(permutation) != list(range(len(dims))):
        return None
    return permutation


def _moves_nothing(root: Operation) -> bool:
    permutation = permutation_of(root)
    return permutation is not None and list(permutation) == sorted(permutation)


def _composed(p: Array, q: Array) -> Array | Failure:
    if p.shape != q.shape or p.ndim != 1 or sorted(q) != list(range(len(p))):
        return Failure("they are not permutations of the same dimensions")
    return np.asarray(p[q])


def _transposed(rewriter: Rewriter, value: Value, permutation: Permutation, result_type: Attribute) -> Value:
    order = matching.insert_constant(rewriter, np.array(permutation, np.int32))
    return rewriter.insert(dialect.build("transpose", [value, order], [result_type])).results[0]


def _moved_constant(c: Constant, root: Operation) -> Constant | Failure:
    permutation = permutation_of(root)
    return (
        Failure("the permutation is computed") if permutation is None else matching.transposed_constant(c, permutation)
    )


def _target(root: Operation) -> Array | Failure:
    """Returns the shape for a reshape in place of a transpose."""
    permutation, dims = permutation_of(root), root.operands[0].shape
    if permutation is None or dims is None:
        return Failure("the permutation or the rank is unknown")
    moved = [index for index in permutation if dims[index] != 1]
    if moved != sorted(moved):
        return Failure("dimensions other than 1 move")
    target = constant_target(root.results[0].shape)
    return Failure("more than one dimension is unknown") if target is None else np.array(target, np.int32)


def _order_of(transpose: Operation, root: Operation) -> Array | Failure:
    """Returns the permutation of a transpose before an elementwise op."""
    permutation = permutation_of(transpose)
    if permutation is None or root.operands[0].shape != root.results[0].shape:
        return Failure("the permutation is computed, or the shape changes")
    return np.array(permutation, np.int32)


def _match_binary(op: Operation) -> tuple[list[Operation], Permutation] | Failure:
    """Matches two equally transposed operands, or one and a constant."""
    sources = [operand.producer(_TRANSPOSE) for operand in op.operands]
    found = [source for source in sources if source is not None]
    if not found or any(user is not op for source in found for user in _users(source)):
        return Failure("no operand is transposed, or one is used elsewhere too")
    permutation = permutation_of(found[0])
    if permutation is None or any(permutation_of(source) != permutation for source in found[1:]):
        return Failure("the operands are transposed in different ways")
    rank = len(permutation)
    for source, operand in zip(sources, op.operands, strict=True):
        if source is not None:
            continue
        constant = tensor_data.constant_of(operand)
        if constant is None or len(matching.dims_of(constant)) > rank:
            return Failure("the other operand is neither transposed nor constant")
    dims = op.results[0].shape
    if dims is None or all(dims != source.results[0].shape for source in found):
        return Failure("the result is larger than the transposed operand")
    return found, permutation


def _users(op: Operation) -> list[Operation]:
    return [use.operation for use in op.results[0].uses]


def _rewrite_binary(op: Operation, match: tuple[list[Operation], Permutation], rewriter: Rewriter) -> None:
    _, permutation = match
    operands = [_before(operand, permutation, rewriter) for operand in op.operands]
    dims = op.results[0].shape
    assert dims is not None, "checked by the match"
    before = tuple(dims[permutation.index(index)] for index in range(len(dims)))
    result_type = types.tensor(op.results[0].element, before)
    moved = rewriter.insert(rebuild(op, operands, [result_type])).results[0]
    rewriter.replace(_transposed(rewriter, moved, permutation, op.results[0].type))


def _before(operand: Value, permutation: Permutation, rewriter: Rewriter) -> Value:
    """Returns an operand before its transpose; a constant is transposed back."""
    source = operand.producer(_TRANSPOSE)
    if source is not None:
        return source.operands[0]
    constant = tensor_data.constant_of(operand)
    assert constant is not None, "checked by the match"
    dims = matching.dims_of(constant)
    if len(dims) == 0:
        return operand
    full = (1,) * (len(permutation) - len(dims)) + dims
    inverse = tuple(permutation.index(index) for index in range(len(permutation)))
    aligned = tensor_data.defer("reshape", (constant,), full, full)
    return matching.insert_constant(rewriter, matching.transposed_constant(aligned, inverse), operand)


X, C, P = value("x"), constant("c"), array("p")
_COMPOSED, _MOVED = computed(_composed, "order"), computed(_moved_constant, "moved")
_TARGET, _ORDER = computed(_target, "target"), computed(_order_of, "order")
_TRANSPOSED = tfl.transpose(X, P).once().named("transpose")
_UNARIES = tuple(op(f"tfl.{name}", _TRANSPOSED) for name in _UNARY)


# The producer of the first operand, if one of these patterns can match.
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


def _all_transposed(op: Operation, values: list[Value]) -> _Transposed | Failure:
    sources = []
    for each in values:
        source = each.sole_producer("tfl.transpose")
        if source is None:
            return Failure("an operand isn't transposed, or is used elsewhere too")
        sources.append(source)
    permutation = permutation_of(sources[0])
    if permutation is None or any(permutation_of(source) != permutation for source in sources[1:]):
        return Failure("the permutations are computed, or differ")
    ranks = {len(value.shape or ()) for value in values}
    if ranks != {len(permutation)} or op.results[0].shape is None:
        return Failure("the rank is unknown")
    return _Transposed(sources, permutation)


def _keeps_rank(op: Operation) -> bool:
    dims, before = op.results[0].shape, op.operands[0].shape
    return dims is not None and before is not None and len(dims) == len(before)


def _match_pad(op: Operation) -> _Transposed | Failure:
    if pads.paddings_of(op) is None or not _keeps_rank(op):
        return Failure("the padding is computed")
    return _all_transposed(op, [op.operands[0]])


def _rewrite_pad(op: Operation, match: _Transposed, rewriter: Rewriter) -> None:
    paddings = pads.paddings_of(op)
    assert paddings is not None, "checked by the match"
    before = np.array([paddings[match.permutation.index(axis)] for axis in range(len(paddings))], np.int32)
    value = matching.insert_constant(rewriter, before, op.operands[1])
    _replace(op, [match.sources[0].operands[0], value, *op.operands[2:]], match, rewriter)


def _match_concatenation(op: Operation) -> _Transposed | Failure:
    dims, axis = op.results[0].shape, dialect.attribute(op, "axis")
    if dims is None or not _keeps_rank(op) or not -len(dims) <= axis < len(dims):
        return Failure("the rank is unknown")
    return _all_transposed(op, list(op.operands))


def _rewrite_concatenation(op: Operation, match: _Transposed, rewriter: Rewriter) -> None:
    axis = match.permutation[dialect.attribute(op, "axis")]
    operands = [source.operands[0] for source in match.sources]
    _replace(op, operands, match, rewriter, {"axis": attributes.int32(axis)})


def _replace(
    op: Operation,
    operands: list[Value],
    match: _Transposed,
    rewriter: Rewriter,
    options: dict[str, Attribute] | None = None,
) -> None:
    dims = op.results[0].shape
    assert dims is not None, "checked by the match"
    before = tuple(dims[match.permutation.index(index)] for index in range(len(dims)))
    result_type = types.tensor(op.results[0].element, before)
    moved = rewriter.insert(rebuild(op, operands, [result_type], options)).results[0]
    order = matching.insert_constant(rewriter, np.array(match.permutation, np.int32))
    rewriter.replace(rewriter.insert(dialect.build("transpose", [moved, order], [op.results[0].type])))


def _match_reduction(op: Operation) -> tuple[_Transposed, tuple[int, ...]] | Failure:
    """Matches a reduction; returns the axes that it has before the transpose."""
    found = _all_transposed(op, [op.operands[0]])
    if isinstance(found, Failure):
        return found
    reduced, permutation = matching.axes(op.operands[1], op.operands[0].shape), found.permutation
    if reduced is None:
        return Failure("the axes are computed")
    left = [source for index, source in enumerate(permutation) if index not in reduced]
    if not _keeps_rank(op) if dialect.attribute(op, "keep_dims") else left != sorted(left):
        return Failure("the remaining dimensions change their order")
    return found, tuple(sorted(permutation[axis] for axis in reduced))


def _rewrite_reduction(op: Operation, match: tuple[_Transposed, tuple[int, ...]], rewriter: Rewriter) -> None:
    found, axes = match
    value = matching.insert_constant(rewriter, np.array(axes, np.int32), op.operands[1])
    operands = [found.sources[0].operands[0], value]
    if dialect.attribute(op, "keep_dims"):
        # There is less to transpose after the reduction.
        _replace(op, operands, found, rewriter)
    else:
        rewriter.replace(rewriter.insert(rebuild(op, operands)))


PATTERNS: tuple[Pattern[Any], ...] = (
    own_rule(
        "no-transpose",
        tfl.transpose(X, P),
        X,
        benefit=20,
        where=[matching.KEEPS_TYPE, check("it moves dimensions", _moves_nothing)],
    ),
    own_rule("fold-transpose", tfl.transpose(C, P), _MOVED, where=[_MOVED], benefit=15),
    own_rule(
        "transpose-transpose",
        tfl.transpose(tfl.transpose(X, P), array("q")),
        tfl.transpose(X, _COMPOSED),
        where=[_COMPOSED],
        benefit=12,
    ),
    own_rule("transpose-to-reshape", tfl.transpose(X, P), tfl.reshape(X, _TARGET), where=[_TARGET], benefit=5),
    *(
        own_rule(
            f"transpose-after-{each.names[0][4:]}",
            each,
            tfl.transpose(each.rebuilt(X).like(X), _ORDER),
            where=[_ORDER],
            benefit=1,
        )
        for each in _UNARIES
    ),
    *(Pattern(f"transpose-after-{name}", f"tfl.{name}", _match_binary, _rewrite_binary, depth=2) for name in _BINARY),
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
