"""Slices before the operators whose results they cut, so that only rows are computed which are used.

    slice(fully_connected(x, w))      ->  fully_connected(slice(x), w)
    slice(add(x, y))                  ->  add(slice(x), slice(y))
    gather(fully_connected(x, w), i)  ->  fully_connected(gather(x, i), w)

A classifier on a transformer reads the last layer's first or last row, or that of a token: then the layer's products,
but for keys and values, have one row instead of all. All operators between are cut together if a product is among them,
and as far as nothing else uses their results.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

import numpy as np

from tfconvert.converter.ir.constants import constant_ints
from tfconvert.converter.rewrite.pattern import Failure, Pattern, attempt, need
from tfconvert.converter.rewrite.rewriter import Rewriter
from tfconvert.converter.targets.litert.forms.builder import FormBuilder
from tfconvert.converter.targets.litert.forms.questions import is_float, like, option, ranges_of, shape_of
from tfconvert.schema.dialects import tensor_data, tfl, types
from tfconvert.schema.ir.block import Block
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value
from tfconvert.schema.tflite import operators

# A part is at most a half, so that more slices are worth it.
_SHARE = 2
# Larger constants are sliced when the model runs.
_MAX_READ = 1 << 20

_Axes = Sequence[int | None]
"""The axis along which each operand is cut; `None` for those that stay whole."""


@dataclass(frozen=True, slots=True)
class _Cut:
    """A range of a dimension, or the positions in a value if `rows` is one."""

    axis: int
    begin: int
    count: int
    rows: Value | None = None


@dataclass(slots=True)
class _Narrowing:
    """The cut values and ops.

    Attributes:
        cuts: How values are cut.
        ops: The ops that compute parts, and the axes of their operands.
        slices: The slices that become needless.
    """

    cuts: dict[Value, _Cut] = field(default_factory=dict)
    ops: dict[Operation, _Axes] = field(default_factory=dict)
    slices: list[Operation] = field(default_factory=list)


def _cut_of(op: Operation) -> _Cut | None:
    """Returns the part that a slice takes, if it cuts one dimension."""
    ranges, shape = attempt(ranges_of, op), op.operands[0].shape or ()
    if isinstance(ranges, Failure) or any(each is not None and each.step != 1 for each in ranges):
        return None
    cut = [(axis, each) for axis, each in enumerate(ranges) if each is not None and each != range(shape[axis])]
    if len(cut) != 1 or shape[cut[0][0]] < 0:
        return None
    ((axis, part),) = cut
    is_small = 0 < len(part) <= shape[axis] // _SHARE and part.stop <= shape[axis]
    return _Cut(axis, part.start, len(part)) if is_small else None


def _picked(op: Operation) -> _Cut | None:
    """Returns the part that a gather takes of one dimension."""
    shape, rows = op.operands[0].shape, op.operands[1]
    if shape is None or not types.is_static(shape):
        return None
    if op.name == "tfl.gather":
        axis, before = tfl.attribute(op, "axis") % len(shape), tfl.attribute(op, "batch_dims")
    else:
        indices = rows.owner
        if (
            not isinstance(indices, tfl.TFLOp)
            or indices.name != "tfl.pack"
            or tfl.attribute(indices, "axis") not in (-1, 1)
        ):
            return None
        # All indices but the last one are zeros, of dimensions of one.
        axis = before = len(indices.operands) - 1
        rows = indices.operands[-1]
    dims = rows.shape
    if dims is None or not types.is_static(dims) or any(dim != 1 for dim in shape[:before]) or axis >= len(shape):
        return None
    count = prod(dims)
    return _Cut(axis, 0, count, rows) if 0 < count <= shape[axis] // _SHARE else None


def _elementwise(op: Operation, axis: int) -> _Axes:
    result = shape_of(op.results[0])
    axes: list[int | None] = []
    for operand in op.operands:
        own = axis - len(result) + len(shape_of(operand))
        axes.append(own if own >= 0 and shape_of(operand)[own] != 1 else None)
    return axes


def _along_last(op: Operation, axis: int) -> _Axes:
    need(axis < len(shape_of(op.results[0])) - 1, "the last dimension is cut")
    return [axis]


def _reduction(op: Operation, axis: int) -> _Axes:
    rank = len(shape_of(op.operands[0]))
    found = constant_ints(op.operands[1])
    need(found is not None, "the axes are computed")
    axes = {each % rank for each in found or ()}
    kept = range(rank) if option(op, "keep_dims") else [each for each in range(rank) if each not in axes]
    need(kept[axis] not in axes, "the dimension is reduced")
    return [kept[axis], None]


def _dense(op: Operation, axis: int) -> _Axes:
    rank = len(shape_of(op.results[0]))
    need(rank == len(shape_of(op.operands[0])) and axis < rank - 1, "rows are joined, or columns are cut")
    need(tensor_data.constant_of(op.operands[1]) is not None, "the weights are computed")
    return [axis, None, None][: len(op.operands)]


def _product(op: Operation, axis: int) -> _Axes:
    rank = len(shape_of(op.results[0]))
    need(all(len(shape_of(operand)) == rank for operand in op.operands), "an operand is broadcast")
    if axis == rank - 2:
        return [rank - 1 if option(op, "adj_x") else rank - 2, None]
    if axis == rank - 1:
        return [None, rank - 2 if option(op, "adj_y") else rank - 1]
    return _elementwise(op, axis)


def _transposition(op: Operation, axis: int) -> _Axes:
    permutation = constant_ints(op.operands[1])
    need(permutation is not None, "the permutation is computed")
    return [(permutation or ())[axis], None]


def _reshape(op: Operation, axis: int) -> _Axes:
    old, new = shape_of(op.operands[0]), shape_of(op.results[0])
    need(new.count(-1) <= 1 and old.count(-1) <= 1, "several sizes are unknown")
    places = [at for at in range(len(old)) if old[at] == new[axis] and prod(old[:at]) == prod(new[:axis])]
    need(bool(places), "the dimension is joined or split")
    return [places[0], None]


def _joined(op: Operation, axis: int) -> _Axes:
    rank = len(shape_of(op.results[0]))
    need(option(op, "axis") % rank != axis, "parts are joined along the dimension")
    return [axis] * len(op.operands)


_CUT = operators.elementwise(1, 2, 3) | {"cast"}
_PRODUCTS = frozenset(("tfl.batch_matmul", "tfl.fully_connected"))

_OPERANDS: Mapping[str, Callable[[Operation, int], _Axes]] = {
    **{f"tfl.{name}": _elementwise for name in _CUT},
    **{f"tfl.{name}": _along_last for name in ("softmax", "log_softmax")},
    **{f"tfl.{name}": _reduction for name in ("mean", "sum", "reduce_max", "reduce_min")},
    "tfl.fully_connected": _dense,
    "tfl.batch_matmul": _product,
    "tfl.transpose": _transposition,
    "tfl.reshape": _reshape,
    "tfl.concatenation": _joined,
}
"""How the operands of an op are cut, for a cut along an axis of its result."""

_SLICES = ("tfl.slice", "tfl.strided_slice")
_GATHERS = ("tfl.gather", "tfl.gather_nd")

# The number of multiplications that a gather must save, since XNNPACK doesn't run it.
_MIN_SAVED = 1 << 20


def _match(op: Operation) -> _Narrowing | Failure:
    owner = op.operands[0].owner
    if not isinstance(owner, Operation) or owner.name not in _OPERANDS:
        return Failure("nothing before it computes rows apart")
    cut = _part_of(op)
    if cut is None:
        return Failure("it doesn't take a small part of one dimension")
    found = _Narrowing({op.operands[0]: cut})
    # A value may have several users that are found one after the other.
    while _extend(found, op.parent):
        pass
    if not any(each.name in _PRODUCTS for each in found.ops):
        return Failure("no product becomes smaller")
    if cut.rows is not None and sum(map(_work, found.ops)) < _MIN_SAVED:
        return Failure("the products are small")
    return found


def _part_of(op: Operation) -> _Cut | None:
    """Returns the part that a slice or a gather takes."""
    if op.name in _SLICES:
        return _cut_of(op)
    return _picked(op) if op.name in _GATHERS else None


def _work(op: Operation) -> int:
    """Returns the number of multiplications of a dense layer, 0 of other ops."""
    is_dense = op.name == "tfl.fully_connected"
    return prod(shape_of(op.results[0])) * shape_of(op.operands[1])[-1] if is_dense else 0


def _extend(found: _Narrowing, block: Block | None) -> bool:
    """Adds the ops of a block whose results are used in parts alone; returns whether there were any."""
    before = len(found.ops)
    for value, cut in tuple(found.cuts.items()):
        op = value.owner
        if not isinstance(op, Operation) or op in found.ops or op.name not in _OPERANDS or op.parent is not block:
            continue
        slices = _needless(value, cut, found)
        axes = Failure("it is used elsewhere") if slices is None else attempt(_OPERANDS[op.name], op, cut.axis)
        if isinstance(axes, Failure) or slices is None:
            continue
        cuts = {
            operand: replace(cut, axis=axis)
            for operand, axis in zip(op.operands, axes, strict=False)
            if axis is not None
        }
        if all(found.cuts.get(operand, own) == own for operand, own in cuts.items()):
            found.cuts |= cuts
            found.ops[op] = axes
            found.slices += slices
    return len(found.ops) > before


def _needless(value: Value, cut: _Cut, found: _Narrowing) -> list[Operation] | None:
    """Returns the slices that take a part of a value; `None` if anything else uses it, but for ops that are cut."""
    slices = []
    for use in value.uses:
        user = use.operation
        if user in found.ops:
            if found.ops[user][use.index] != cut.axis:
                return None
        elif use.index == 0 and _part_of(user) == cut and (cut.rows is None or not found.ops):
            slices.append(user)
        else:
            return None
    return slices


def _rewrite(op: Operation, match: _Narrowing, rewriter: Rewriter) -> None:
    parts: dict[Value, Value] = {}
    block = op.parent
    assert block is not None
    computes_rows = match.cuts[op.operands[0]].rows is not None
    for each in [other for other in block.ops if other in match.ops]:
        # Positions may be computed after the ops.
        build = FormBuilder(rewriter, op if computes_rows else each, is_fast=True)
        operands = list(each.operands)
        for index, axis in enumerate(match.ops[each]):
            value = operands[index]
            if axis is None:
                continue
            if value not in parts:
                parts[value] = _part(build, value, match.cuts[value])
            operands[index] = parts[value]
        parts[each.results[0]] = _copy(build, each, operands, match.cuts[each.results[0]])
    for each in match.slices:
        result, part = each.results[0], parts[each.operands[0]]
        if result.type != part.type:
            part = FormBuilder(rewriter, each, is_fast=True).reshape(part, shape_of(result))
        rewriter.replace_value(result, part)


def _part(build: FormBuilder, value: Value, cut: _Cut) -> Value:
    if cut.rows is not None:
        return build.gather(value, build.reshape(cut.rows, (cut.count,)), cut.axis)
    constant = tensor_data.constant_of(value)
    if constant is not None and is_float(value) and prod(shape_of(value)) <= _MAX_READ:
        array = np.take(tensor_data.to_array(constant), range(cut.begin, cut.begin + cut.count), cut.axis)
        return build.constant(np.ascontiguousarray(array), value.element)
    return build.cut(value, cut.axis, cut.begin, cut.count)


def _copy(build: FormBuilder, op: Operation, operands: list[Value], cut: _Cut) -> Value:
    shape = list(shape_of(op.results[0]))
    shape[cut.axis] = cut.count
    if op.name == "tfl.reshape":
        return build.reshape(operands[0], shape)
    kinds = [like(op.results[0], shape)]
    copy = tfl.TFLOp(op.name, operands, kinds, op.properties, op.attributes, location=op.location)
    return build.insert(copy).results[0]


FAST: tuple[Pattern[Any], ...] = tuple(
    Pattern(f"narrow-{root[4:]}", root, _match, _rewrite, benefit=9, depth=1) for root in (*_SLICES, *_GATHERS)
)
