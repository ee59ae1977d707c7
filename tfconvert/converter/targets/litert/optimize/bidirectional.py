"""Fuses recurrent layers that process one sequence in both directions into one operator.

    f = rnn(x), b = rnn(reverse(x)):
      f, reverse(b)                    ->  both, f and backwards, of one bidirectional_rnn(x)
      f, b[last]                       ->  its first result, and the first step of its second
    concatenation(f, b)                ->  bidirectional_rnn{merge_outputs}(x)      where f and b are its results
    strided_slice(shape(rnn(x)), at)   ->  strided_slice(shape(x), at)              the batch, or the number of steps
    strided_slice(shape(concatenation(x, y)), at)   ->  the same, but for the dimension that grows

The same for LSTM. The initial states don't change. The kernel that merges the outputs of an LSTM mixes them up if the
batch comes first and is larger than one; these keep the concatenation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tfconvert.converter.ir.constants import constant_ints
from tfconvert.converter.ir.edit import rebuild
from tfconvert.converter.rewrite.pattern import Declined, Pattern, need, required
from tfconvert.converter.targets.litert.forms import questions
from tfconvert.converter.targets.litert.forms.builder import FormBuilder
from tfconvert.converter.targets.litert.forms.form import Emit, planned
from tfconvert.converter.targets.litert.forms.questions import option, shape_of
from tfconvert.schema.dialects import attributes
from tfconvert.schema.dialects import tfl as dialect
from tfconvert.schema.ir.locations import UNKNOWN_LOC
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

_REVERSE = "tfl.reverse_v2"
_SLICE = "tfl.strided_slice"


class _Cell(NamedTuple):
    """The operators for one kind of cell.

    Attributes:
        both: The name of the bidirectional operator.
        weights: The weights among the operands of the unidirectional operator.
        own: The operands after the input of the bidirectional operator, for one direction, then for the other.
        states: The operands after these, in the same order.
        absent: Operands that a layer must not have, since the bidirectional operator doesn't support them.
        unused: The number of unused operands at the end of the bidirectional operator.
        options: Options that must be equal.
        refused: A flag that only the unidirectional operator supports.
        projection: The index of the unidirectional operator's projection; 0 if it has none.
    """

    both: str
    weights: range
    own: range
    states: range
    absent: range
    unused: int
    options: tuple[str, ...]
    refused: str = ""
    projection: int = 0


_OPTIONS = ("time_major", "fused_activation_function", "asymmetric_quantize_inputs")
_CELLS: Mapping[str, _Cell] = {
    "tfl.unidirectional_sequence_lstm": _Cell(
        "bidirectional_sequence_lstm",
        range(1, 18),
        range(1, 18),
        range(18, 20),
        range(20, 24),
        9,
        (*_OPTIONS, "cell_clip", "proj_clip"),
        "diagonal_recurrent_tensors",
        16,
    ),
    "tfl.unidirectional_sequence_rnn": _Cell(
        "bidirectional_sequence_rnn", range(1, 4), range(1, 5), range(0), range(0), 3, _OPTIONS
    ),
}


def _both_directions(backward: Operation) -> Emit:
    reverse = required(backward.operands[0].producer(_REVERSE), "it goes through what isn't reversed")
    need(_is_in_time(reverse, backward), "it doesn't go through a sequence backwards")
    cell = _CELLS[backward.name]
    reverses: list[Operation] = []
    steps: list[tuple[Operation, int]] = []
    for use in backward.results[0].uses:
        user = use.operation
        step = _step_of(user, backward) if use.index == 0 and user.name == _SLICE else None
        if step is not None:
            steps.append((user, step))
        else:
            is_reversed = user.name == _REVERSE and use.index == 0 and _is_in_time(user, backward)
            need(is_reversed, "its result isn't reversed again")
            reverses.append(user)
    reason = "no layer goes through the same sequence forwards"
    for use in reverse.operands[0].uses:
        forward = use.operation
        if use.index == 0 and forward.name == backward.name and forward.parent is backward.parent:
            reason = _difference(forward, backward, cell)
            first = None if reason else _place(forward, backward)
            if first is not None:
                return lambda build: _join(build.at(first), forward, backward, reverses, steps)
            reason = reason or "one of them uses a value that is computed between them"
    raise Declined(reason)


def _time_axis(layer: Operation) -> int:
    return 0 if option(layer, "time_major") else 1


def _is_in_time(reverse: Operation, layer: Operation) -> bool:
    return questions.axes(reverse.operands[1], (-1, -1, -1)) == frozenset({_time_axis(layer)})


def _step_of(reader: Operation, layer: Operation) -> int | None:
    """Returns the index of the step that a slice of a backward layer's result reads; `None` if not exactly one."""
    axis, begin = _time_axis(layer), constant_ints(reader.operands[1])
    others = 7 & ~(1 << axis)
    masks = {name: option(reader, f"{name}_mask") for name in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")}
    if begin is None or len(begin) != 3 or constant_ints(reader.operands[3]) != (1, 1, 1):
        return None
    whole = masks["begin"] & others == others and masks["end"] & others == others
    if not whole or masks["begin"] >> axis & 1 or masks["shrink_axis"] != 1 << axis:
        return None
    return None if masks["ellipsis"] or masks["new_axis"] else -1 - begin[axis]


def _difference(forward: Operation, backward: Operation, cell: _Cell) -> str:
    """Returns why one operator can't compute two layers, or an empty string."""
    if any(option(forward, name) != option(backward, name) for name in cell.options):
        return "the layers' options differ"
    for layer in (forward, backward):
        if cell.projection and _is_widened(layer.operands[cell.projection]):
            return "a layer's output is wider than its state, for which the kernel has no room"
        if cell.refused and option(layer, cell.refused):
            return "the weights are diagonal"
        if any(dialect.has_operand(layer, index) for index in cell.absent):
            return "a layer is normalized"
        if not all(map(questions.is_float, (layer.operands[cell.weights[1]], layer.results[0]))):
            return "the elements aren't 32-bit floats"
    if any(forward.operands[index].type != backward.operands[index].type for index in cell.weights):
        return "the layers' weights differ in shape"
    return ""


def _is_widened(projection: Value) -> bool:
    """Returns whether a matrix may have more rows than columns; false without one."""
    if dialect.is_absent(projection):
        return False
    dims = projection.shape
    return dims is None or dims[0] > dims[1]


def _place(one: Operation, other: Operation) -> Operation | None:
    """Returns the first of two ops if all operands of the second one are available there, or `None`.

    Constants are always available. The reverse of the sequence is no longer an operand.
    """
    first, second = one, other
    between = _ops_between(first, second)
    if between is None:
        first, second = other, one
        between = _ops_between(first, second)
    if between is None or any(value.owner in between for value in second.operands[1:] if not _is_anywhere(value)):
        return None
    return first


def _ops_between(first: Operation, second: Operation) -> set[Operation] | None:
    """Returns the ops between two of the same block, `None` if these are in the opposite order."""
    between: set[Operation] = {first}
    current = first.next_op
    while current is not second:
        if current is None:
            return None
        between.add(current)
        current = current.next_op
    return between


def _is_anywhere(value: Value) -> bool:
    owner = value.owner
    return isinstance(owner, dialect.TFLOp) and owner.op_name in dialect.BESIDE


def _join(
    build: FormBuilder,
    forward: Operation,
    backward: Operation,
    reverses: Sequence[Operation],
    steps: Sequence[tuple[Operation, int]],
) -> None:
    """Makes one layer of two, at the place of the first of them.

    Args:
        build: Inserts there.
        forward: The forward layer.
        backward: The backward layer.
        reverses: The ops that reverse the backward layer's result.
        steps: The ops that read one step of it, with the index of the step in the order of the sequence.
    """
    cell, rewriter, none = _CELLS[backward.name], build.rewriter, build.absent()
    layers = [(layer, group) for group in (cell.own, cell.states) for layer in (forward, backward)]
    own = [_at(layer.operands[index], build) for layer, group in layers for index in group]
    options: dict[str, Any] = {name: option(forward, name) for name in cell.options}
    kinds = [forward.results[0].type, backward.results[0].type]
    operands = [forward.operands[0], *own, *[none] * cell.unused]
    there, back = build.tfl_op(cell.both, operands, kinds, {**options, "merge_outputs": False}).results
    rewriter.replace_value(forward.results[0], there)
    for each in reverses:
        rewriter.replace_value(each.results[0], back)
    for reader, step in steps:
        begin, early = [0, 0, 0], build.at(reader)
        begin[_time_axis(backward)] = step
        start = early.derived(np.array(begin, np.int32), reader.operands[1])
        taken = early.again(reader, [back, start, *reader.operands[2:]])
        rewriter.replace_value(reader.results[0], taken.results[0])
    for each in (*reverses, *(reader for reader, _ in steps), forward, backward):
        rewriter.erase(each)


def _at(value: Value, build: FormBuilder) -> Value:
    """Returns a value that is available at a builder's place: the operand itself, or a copy of a constant."""
    owner = value.owner
    if not isinstance(owner, dialect.TFLOp) or not _is_anywhere(value):
        return value
    again = owner.clone()
    again.location = owner.location
    if again.location is UNKNOWN_LOC and build.before is not None:
        again.location = build.before.location
    return build.insert(again).results[0]


_BOTH = tuple(f"tfl.{cell.both}" for cell in _CELLS.values())


def _merged(op: Operation) -> Emit:
    """A concatenation of exactly the results of both directions."""
    both = required(op.operands[0].producer(_BOTH), "it isn't of results of a layer")
    is_joined = list(op.operands) == list(both.results) and questions.is_plain(op) and option(op, "axis") in (2, -1)
    need(is_joined, "it doesn't join both directions of a layer")
    need(all(result.has_one_use() for result in both.results), "the directions are used elsewhere, too")
    mixes = both.name == _BOTH[0] and not option(both, "time_major") and (both.results[0].shape or (0,))[0] != 1
    need(not mixes, "the kernel would mix up the batch")
    merges = {"merge_outputs": attributes.boolean(True)}
    return lambda build: build.insert(rebuild(both, both.operands, [op.results[0].type], merges))


_KEEPING_SIZES = frozenset((*_CELLS, *_BOTH, _REVERSE, "tfl.concatenation"))


def _extent(op: Operation) -> Emit:
    """A size of a value whose defining op has an operand of the same size."""
    sizes = required(op.operands[0].producer("tfl.shape"), "it isn't of sizes")
    source = required(sizes.operands[0].producer(_KEEPING_SIZES), "it is not a size of a layer's result")
    rank, bounds = len(shape_of(source.results[0])), list(map(constant_ints, op.operands[1:]))
    masks = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask")
    (axis,) = bounds[0] if bounds[0] is not None and len(bounds[0]) == 1 else (-1,)
    is_one = bounds == [(axis,), (axis + 1,), (1,)] and 0 <= axis < rank and not any(option(op, name) for name in masks)
    need(is_one, "it isn't one size, counted from the first")
    if source.name == "tfl.concatenation":
        is_kept = option(source, "axis") % rank != axis
    else:
        is_kept = source.name == _REVERSE or axis < 2
    need(is_kept, "the size changes")
    return lambda build: build.again(op, [build.again(sizes, source.operands[:1]).results[0], *op.operands[1:]])


NEEDS = (
    "bidirectional_sequence_lstm bidirectional_sequence_rnn shape "
    "unidirectional_sequence_lstm unidirectional_sequence_rnn"
)
"""The operators without any of which no pattern matches."""

PATTERNS: tuple[Pattern[Any], ...] = (
    *(
        planned(f"both-directions-of-{name.rpartition('_')[2]}", name[4:], _both_directions, 1, 2, {0: (_REVERSE,)})
        for name in _CELLS
    ),
    planned("merge-directions", "concatenation", _merged, producers={0: _BOTH}),
    planned("extent-of-sequence", "strided_slice", _extent, depth=2, producers={0: ("tfl.shape",)}),
)
