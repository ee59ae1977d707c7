"""Loops over sequences, one step an iteration: their inputs, states and collected outputs.

The variables of such a loop are counters, loop-invariant values (sequences and weights among them), states, rows that
are collected in a tensor, and the row of the last step.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from tfconvert.converter.control_flow.constructs import Construct, returned
from tfconvert.converter.control_flow.decisions import invariants, origin
from tfconvert.converter.ir.constants import constant_array, constant_int
from tfconvert.converter.rewrite.pattern import need
from tfconvert.schema.dialects import tf, tf_effects, types
from tfconvert.schema.ir.block import Block
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import FloatType
from tfconvert.schema.ir.values import BlockArgument, OpResult, Value

_COUNTING = "its condition is not just a count"


class Read(NamedTuple):
    """A step of a sequence, as the body reads it.

    Attributes:
        sequence: The whole sequence, outside of the loop.
        axis: The axis of the steps.
    """

    sequence: Value
    axis: int


@dataclass(frozen=True, slots=True)
class Scan:
    """A loop that counts from zero.

    Attributes:
        loop: The loop.
        limits: The upper bounds of its counters: numbers, or arguments of the condition that never change.
        counters: The places of the counters among the variables.
        reads: The steps of sequences that the body reads, by value.
        states: The next values of the variables that the body reads, by place.
        stacks: The row that a step adds, by the variable in which rows are collected.
        lasts: The row of the last step, by the variable of one row with another dimension in front.
    """

    loop: Construct
    limits: tuple[BlockArgument | int, ...]
    counters: frozenset[int]
    reads: Mapping[Value, Read]
    states: dict[int, Value] = field(default_factory=dict)
    stacks: dict[int, Value] = field(default_factory=dict)
    lasts: dict[int, Value] = field(default_factory=dict)

    @property
    def body(self) -> Block:
        return self.loop.functions[1].body.block

    @property
    def bounds(self) -> list[Value | int]:
        """The upper bounds of its counters, outside of the loop."""
        operands = self.loop.given
        return [operands[limit.index] if isinstance(limit, BlockArgument) else limit for limit in self.limits]

    def state(self, index: int) -> Value:
        """Returns the body's argument for a state."""
        return self.body.args[index]


def scan_of(loop: Construct) -> Scan:
    """Returns a loop as one over sequences."""
    body = loop.functions[1].body.block
    for function in loop.functions:
        for op in function.body.block.ops:
            need(op.name == "func.return" or tf_effects.is_pure(op), f"there is an op with effects in it, {op.name}")
    fixed = invariants(body)
    limits, counters = _counting(loop, fixed)
    reads = _reads(loop, fixed, counters)
    scan = Scan(loop, tuple(limits), frozenset(counters), reads)
    for index, value in enumerate(returned(body)):
        if index not in fixed and index not in counters:
            _classify(scan, index, origin(value))
    return scan


def fixed_values(scan: Scan) -> frozenset[Value]:
    """Returns the values in the body that are the same in every iteration."""
    body = scan.body
    fixed: set[Value] = {body.args[index] for index in invariants(body)}
    for op in body.ops:
        if all(operand in fixed for operand in op.operands):
            fixed.update(op.results)
    return frozenset(fixed)


def _counting(loop: Construct, fixed: frozenset[int]) -> tuple[list[BlockArgument | int], set[int]]:
    """Returns the upper bounds of a loop's counters, and their places."""
    condition, body = (function.body.block for function in loop.functions)
    counters = {index for index, value in enumerate(returned(body)) if _is_counter(loop, body, index, value)}
    limits: list[BlockArgument | int] = []
    todo = list(returned(condition))
    seen: set[Value] = set()
    while todo:
        value = origin(todo.pop())
        if value in seen:
            continue
        seen.add(value)
        need(isinstance(value, OpResult), _COUNTING)
        assert isinstance(value, OpResult)
        if value.op.name == "tf.LogicalAnd":
            todo += value.op.operands
            continue
        need(value.op.name == "tf.Less", _COUNTING)
        counter, bound = map(origin, value.op.operands)
        need(isinstance(counter, BlockArgument) and counter.index in counters, _COUNTING)
        limits.append(_limit(fixed, bound))
    return limits, counters


def _is_counter(loop: Construct, body: Block, index: int, value: Value) -> bool:
    """Returns whether a variable begins at zero and grows by one."""
    value = origin(value)
    if not isinstance(value, OpResult) or value.op.name not in ("tf.AddV2", "tf.Add"):
        return False
    operands = [origin(operand) for operand in value.op.operands]
    argument = body.args[index]
    steps = [operand for operand in operands if operand is not argument]
    if types.element_of(argument.type) not in (types.I32, types.I64):
        return False
    return len(steps) == 1 and constant_int(steps[0]) == 1 and constant_int(loop.given[index]) == 0


def _limit(fixed: frozenset[int], bound: Value) -> BlockArgument | int:
    number = constant_int(bound)
    if number is not None:
        return number
    need(isinstance(bound, BlockArgument) and bound.index in fixed, _COUNTING)
    assert isinstance(bound, BlockArgument)
    return bound


def _reads(loop: Construct, fixed: frozenset[int], counters: set[int]) -> dict[Value, Read]:
    """Returns the steps that the body reads from sequences at its counters."""
    body = loop.functions[1].body.block
    reads: dict[Value, Read] = {}
    for op in body.ops:
        found = _READERS.get(op.name)
        place = found(op) if found is not None else None
        if place is None:
            continue
        sequence, index = origin(op.operands[0]), origin(place[0])
        if (
            isinstance(sequence, BlockArgument)
            and isinstance(index, BlockArgument)
            and sequence.index in fixed
            and index.index in counters
        ):
            reads[op.results[0]] = Read(loop.given[sequence.index], place[1])
    return reads


def _gathered(op: Operation) -> tuple[Value, int] | None:
    """Returns the index and the axis at which an op takes a row."""
    axis = constant_int(op.operands[2])
    return None if axis not in (0, 1) or tf.get(op, "batch_dims") or axis is None else (op.operands[1], axis)


def _sliced(op: Operation) -> tuple[Value, int] | None:
    """Returns the same for `x[i]` and `x[:, i]`, whose end is its begin plus one."""
    _, begin, _, strides = op.operands
    masks = [int(tf.get(op, name, 0)) for name in ("begin_mask", "end_mask", "shrink_axis_mask")]
    others = [tf.get(op, name, 0) for name in ("ellipsis_mask", "new_axis_mask")]
    places = begin.op.operands if isinstance(begin, OpResult) and begin.op.name == "tf.Pack" else ()
    steps = constant_array(strides)
    axis = masks[2] >> 1
    if any(others) or masks[2] not in (1, 2) or axis >= len(places) or steps is None or any(steps != 1):
        return None
    whole_axes = (1 << len(places)) - 1 - masks[2]
    if masks[0] & whole_axes != whole_axes or masks[1] & whole_axes != whole_axes or masks[0] & masks[2]:
        return None
    return places[axis], axis


_READERS = {"tf.GatherV2": _gathered, "tf.StridedSlice": _sliced}


def _classify(scan: Scan, index: int, value: Value) -> None:
    argument = scan.body.args[index]
    row = _row_written(scan, argument, value)
    if row is not None:
        scan.stacks[index] = row
    elif argument.first_use is None:
        row = widened(value)
        scan.lasts[index] = value if row is None else row
    else:
        scan.states[index] = value


def _row_written(scan: Scan, argument: Value, value: Value) -> Value | None:
    """Returns the row that an iteration writes at the counter's place into a tensor, as its only use."""
    if not isinstance(value, OpResult) or value.op.name != "tf.XlaDynamicUpdateSlice" or not argument.has_one_use():
        return None
    into, update, place = value.op.operands
    first, *rest = place.op.operands if isinstance(place, OpResult) and place.op.name == "tf.Pack" else (place,)
    counter = origin(first)
    is_counter = isinstance(counter, BlockArgument) and counter.index in scan.counters
    if into is not argument or not is_counter or any(constant_int(item) != 0 for item in rest):
        return None
    is_whole = (types.shape_of(into.type) or ())[1:] == (types.shape_of(update.type) or ())[1:]
    return widened(update) if is_whole else None


def widened(value: Value) -> Value | None:
    """Returns the source of a value that was expanded by a leading dimension."""
    if isinstance(value, OpResult) and value.op.name == "tf.ExpandDims" and constant_int(value.op.operands[1]) == 0:
        return origin(value.op.operands[0])
    return None


_CONVOLUTIONS = frozenset({"tf.Conv2D", "tf.Conv3D", "tf.DepthwiseConv2dNative"})
_PRODUCTS = _CONVOLUTIONS | {"tf.BatchMatMulV2", "tf.Einsum", "tf.MatMul"}


def looks_recurrent(loop: Construct) -> bool:
    """Returns whether a loop multiplies something by matrices, or convolves it, and forwards vectors."""
    body = loop.functions[1].body.block
    if not any(op.name in _PRODUCTS for op in body.ops):
        return False
    fixed = invariants(body)
    return any(
        index not in fixed and isinstance(types.element_of(argument.type), FloatType) and argument.first_use is not None
        for index, argument in enumerate(body.args)
    )


def convolves(scan: Scan) -> bool:
    """Returns whether there is a convolution in a loop."""
    return any(op.name in _CONVOLUTIONS for op in scan.body.ops)
