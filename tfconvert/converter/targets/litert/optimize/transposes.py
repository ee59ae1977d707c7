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

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tfconvert.converter.ir.constants import constant_ints
from tfconvert.converter.rewrite.declarative import own_rule
from tfconvert.converter.rewrite.dsl import array, check, computed, constant, op, tfl, value
from tfconvert.converter.rewrite.pattern import Failure, Pattern, need, required
from tfconvert.converter.targets.litert.forms import questions
from tfconvert.converter.targets.litert.forms.builder import FormBuilder
from tfconvert.converter.targets.litert.forms.form import Emit, planned
from tfconvert.converter.targets.litert.forms.questions import option, shape_of
from tfconvert.converter.targets.litert.optimize import pads
from tfconvert.schema.dialects import tensor_data
from tfconvert.schema.dialects.dims import constant_target
from tfconvert.schema.dialects.tensor_data import Array, Constant
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


def _moved_constant(c: Constant, root: Operation) -> Constant | Failure:
    permutation = permutation_of(root)
    return (
        Failure("the permutation is computed") if permutation is None else questions.transposed_constant(c, permutation)
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


X, C, P = value("x"), constant("c"), array("p")
_COMPOSED, _MOVED = computed(_composed, "order"), computed(_moved_constant, "moved")
_TARGET, _ORDER = computed(_target, "target"), computed(_order_of, "order")
_TRANSPOSED = tfl.transpose(X, P).once().named("transpose")
_UNARIES = tuple(op(f"tfl.{name}", _TRANSPOSED) for name in _UNARY)


# The producer of the first operand, if one of these patterns can match.
_FROM_TRANSPOSE = {0: (_TRANSPOSE,)}

_REDUCTIONS = ("mean", "sum", "reduce_max", "reduce_min", "reduce_prod")


def _inverse(permutation: Permutation) -> Permutation:
    return tuple([permutation.index(axis) for axis in range(len(permutation))])


def _common_permutation(sources: Sequence[Operation]) -> Permutation:
    """Returns the permutation of transposes that are all alike."""
    permutation = required(permutation_of(sources[0]), "a permutation is computed")
    need(all(permutation_of(each) == permutation for each in sources), "the permutations differ")
    return permutation


def _untransposed(op: Operation, values: Sequence[Value]) -> tuple[list[Value], Permutation]:
    """Returns what an op's operands are transposed from, all in the same way and only for it."""
    sources = [required(each.sole_producer(_TRANSPOSE), "an operand isn't transposed for it alone") for each in values]
    permutation = _common_permutation(sources)
    need({len(shape_of(each)) for each in (*values, op.results[0])} == {len(permutation)}, "the rank changes")
    return [source.operands[0] for source in sources], permutation


def _behind(
    build: FormBuilder,
    op: Operation,
    operands: Sequence[Value],
    permutation: Permutation,
    options: Mapping[str, Any] | None = None,
) -> Value:
    """Inserts an op on operands before their transpose, and the transpose of its result."""
    dims, result = shape_of(op.results[0]), op.results[0]
    before = tuple([dims[axis] for axis in _inverse(permutation)])
    moved = build.again(op, operands, [before], options)
    return build.tfl("transpose", (moved.results[0], build.ints(permutation)), result.type)


def _binary(op: Operation) -> Emit:
    """Two equally transposed operands, or one and a constant."""
    sources = [operand.producer(_TRANSPOSE) for operand in op.operands]
    found = [source for source in sources if source is not None]
    users = {use.operation for source in found for use in source.results[0].uses}
    need(users == {op}, "no operand is transposed, or one is used elsewhere too")
    permutation, dims = _common_permutation(found), shape_of(op.results[0])
    for source, operand in zip(sources, op.operands, strict=True):
        constant = tensor_data.constant_of(operand)
        is_known = constant is not None and len(questions.dims_of(constant)) <= len(permutation)
        need(source is not None or is_known, "the other operand is neither transposed nor constant")
    need(any(dims == source.results[0].shape for source in found), "the result is larger than the transposed operand")
    return lambda build: _behind(build, op, [_before(build, each, permutation) for each in op.operands], permutation)


def _before(build: FormBuilder, operand: Value, permutation: Permutation) -> Value:
    """Returns an operand before its transpose; a constant is transposed back."""
    source, constant = operand.producer(_TRANSPOSE), tensor_data.constant_of(operand)
    if source is not None:
        return source.operands[0]
    assert constant is not None, "checked by the plan"
    dims = questions.dims_of(constant)
    if not dims:
        return operand
    full = (1,) * (len(permutation) - len(dims)) + dims
    aligned = tensor_data.defer("reshape", (constant,), full, full)
    return build.derived(questions.transposed_constant(aligned, _inverse(permutation)), operand)


def _pad(op: Operation) -> Emit:
    paddings = required(pads.paddings_of(op), "the padding is computed")
    (value,), permutation = _untransposed(op, op.operands[:1])
    before = np.array([paddings[axis] for axis in _inverse(permutation)], np.int32)
    return lambda build: _behind(
        build, op, (value, build.derived(before, op.operands[1]), *op.operands[2:]), permutation
    )


def _concatenation(op: Operation) -> Emit:
    rank, axis = len(shape_of(op.results[0])), option(op, "axis")
    need(-rank <= axis < rank, "there is no such axis")
    values, permutation = _untransposed(op, op.operands)
    return lambda build: _behind(build, op, values, permutation, {"axis": permutation[axis]})


def _reduction(op: Operation) -> Emit:
    source = required(op.operands[0].sole_producer(_TRANSPOSE), "it isn't of what is transposed for it alone")
    permutation = _common_permutation([source])
    reduced = required(questions.axes(op.operands[1], op.operands[0].shape), "the axes are computed")
    left = [axis for index, axis in enumerate(permutation) if index not in reduced]
    keeps = option(op, "keep_dims")
    need(len(shape_of(op.results[0])) == len(permutation) if keeps else left == sorted(left), "the order changes")
    axes = np.array(sorted(permutation[axis] for axis in reduced), np.int32)

    def emit_reduction(build: FormBuilder) -> Value | Operation:
        operands = (source.operands[0], build.derived(axes, op.operands[1]))
        # There is less to transpose after the reduction.
        return _behind(build, op, operands, permutation) if keeps else build.again(op, operands)

    return emit_reduction


NEEDS = "transpose"
"""The operators without any of which no pattern matches."""

PATTERNS: tuple[Pattern[Any], ...] = (
    own_rule(
        "no-transpose",
        tfl.transpose(X, P),
        X,
        benefit=20,
        where=[questions.KEEPS_TYPE, check("it moves dimensions", _moves_nothing)],
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
    *(planned(f"transpose-after-{name}", name, _binary, depth=2) for name in _BINARY),
    *(
        planned(f"transpose-after-{name}", name, plan, depth=2, producers=_FROM_TRANSPOSE)
        for name, plan in (("pad", _pad), ("padv2", _pad), ("concatenation", _concatenation))
    ),
    *(
        planned(f"no-transpose-before-{name}", name, _reduction, depth=2, producers=_FROM_TRANSPOSE)
        for name in _REDUCTIONS
    ),
)
