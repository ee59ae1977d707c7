"""The trip count of a loop, where constants determine it: only its condition and what that depends on are computed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from tfconvert.converter.control_flow.constructs import Construct, returned
from tfconvert.ops.folding import fold
from tfconvert.schema.dialects import tensor_data, tf, types
from tfconvert.schema.dialects.tensor_data import Constant
from tfconvert.schema.dialects.types import shape_of
from tfconvert.schema.ir.block import Block
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import BlockArgument, Value

# Conditions that depend on more ops than this are not computed.
_MAX_OPS = 64

Constants = dict[Value, Constant]


def trip_count(found: Construct, limit: int) -> int | None:
    """Returns how often a loop's body runs.

    Args:
        found: The loop.
        limit: The most iterations that are of interest.

    Returns:
        `None` if constants don't determine it, or there are more iterations.
    """
    condition, body = (function.body.block for function in found.functions)
    (predicate,) = returned(condition)
    if any(tf.has_side_effects(op) for op in condition.ops if op is not condition.last_op):
        return None
    ahead = _slice(condition, [predicate])
    if ahead is None or types.element_of(predicate.type) != types.I1 or shape_of(predicate.type) not in ((), None):
        return None
    variables, again = _recurrence(ahead[1], body) if limit else (ahead[1], [])
    if again is None:
        return None
    state = {index: tensor_data.constant_of(found.given[index]) for index in variables}
    for count in range(limit + 1):
        after = _computed(ahead[0], condition, state)
        decided = None if after is None else _value(predicate, after, condition, state)
        if decided is None or math.prod(decided.shape) != 1:
            return None
        if not tensor_data.to_array(decided).item():
            return count
        values = _computed(again, body, state) if count < limit else None
        if values is None:
            return None
        returns = returned(body)
        state = {index: _value(returns[index], values, body, state) for index in variables}
    return None


def _recurrence(variables: set[int], body: Block) -> tuple[set[int], list[Operation] | None]:
    """Returns the variables on which some depend from one iteration to the next, and the ops that compute these."""
    while True:
        values = returned(body)
        found = _slice(body, [values[index] for index in variables])
        if found is None:
            return variables, None
        if found[1] <= variables:
            return variables, found[0]
        variables = variables | found[1]


def _slice(block: Block, roots: Sequence[Value]) -> tuple[list[Operation], set[int]] | None:
    """Returns the ops that values depend on, in order, and the places of the arguments that they depend on.

    Returns:
        `None` if there are too many, or one of them can't be computed alone.
    """
    ops: set[Operation] = set()
    arguments: set[int] = set()
    todo = list(roots)
    while todo:
        value = todo.pop()
        owner = value.owner
        if isinstance(value, BlockArgument):
            arguments.add(value.index)
        elif isinstance(owner, Operation) and owner not in ops:
            ops.add(owner)
            if owner.regions or len(ops) > _MAX_OPS:
                return None
            todo += owner.operands
    return [op for op in block.ops if op in ops] if ops else [], arguments


def _value(value: Value, computed: Constants, block: Block, state: Mapping[int, Constant | None]) -> Constant | None:
    if isinstance(value, BlockArgument) and value.block is block:
        return state[value.index]
    return computed.get(value)


def _computed(ops: Sequence[Operation], block: Block, state: Mapping[int, Constant | None]) -> Constants | None:
    """Returns what ops compute, `None` if one of them can't be computed."""
    computed: Constants = {}
    for op in ops:
        if op.name == "tf.Const":
            results = [tensor_data.constant_of(op.results[0])]
        else:
            operands = [_value(value, computed, block, state) for value in op.operands]
            small = [value for value in operands if value is not None and tensor_data.is_small(value)]
            if len(small) < len(operands):
                return None
            results = list(fold(op, small, [shape_of(result.type) for result in op.results]) or ())
        if len(results) != len(op.results):
            return None
        computed.update((result, value) for result, value in zip(op.results, results, strict=True) if value is not None)
    return computed
