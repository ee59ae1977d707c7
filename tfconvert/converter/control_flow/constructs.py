"""Loops and conditionals: their bodies, and analyses of conditions, invariants and trip counts."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar

from tfconvert.converter.ir import symbol_table
from tfconvert.converter.ir.edit import erase, rebuild, update_function_type
from tfconvert.converter.ir.tf_builder import TFBuilder
from tfconvert.ops.folding import fold
from tfconvert.schema.dialects import tensor_data, tf, types
from tfconvert.schema.dialects.call_interfaces import IFS, INTERFACES, KINDS, Kind, callees
from tfconvert.schema.dialects.func import FuncOp, functions_of
from tfconvert.schema.dialects.tensor_data import Constant
from tfconvert.schema.dialects.tf_traits import IDENTITIES, full_names
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.attributes import ArrayAttr
from tfconvert.schema.ir.block import Block
from tfconvert.schema.ir.builder import OpBuilder
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import BlockArgument, OpResult, Value

Item = TypeVar("Item")


def body_of(function: FuncOp) -> Block | None:
    """Returns a function's only block if it ends in `func.return`, or `None`."""
    blocks = function.body.blocks
    if len(blocks) != 1 or (last := blocks[0].last_op) is None or last.name != "func.return":
        return None
    return blocks[0]


def returned(block: Block) -> Sequence[Value]:
    """Returns the values that a function's block returns."""
    last = block.last_op
    return () if last is None else last.operands


class Construct(NamedTuple):
    """An op with the functions that it runs.

    Attributes:
        op: The op.
        kind: The kind of control flow.
        functions: The functions; of a loop the condition and the body.
    """

    op: Operation
    kind: Kind
    functions: tuple[FuncOp, ...]

    @property
    def given(self) -> Sequence[Value]:
        """The operands that are passed to the functions."""
        return self.op.operands[INTERFACES[self.op.name].first_operand :]

    @property
    def bodies(self) -> tuple[Block, ...]:
        """The functions' blocks, each once, although branches may be the same."""
        return tuple(dict.fromkeys(function.body.block for function in self.functions))


def construct(op: Operation, functions: Mapping[str, FuncOp]) -> Construct | None:
    """Returns an op of `INTERFACES` with its functions.

    Args:
        op: The op.
        functions: The module's functions.

    Returns:
        `None` if a function is missing, doesn't have one block, or doesn't match the op's operands and results.
    """
    interface, names = INTERFACES[op.name], callees(op)
    kind = interface.kind
    found = [functions[name] for name in names if name in functions]
    expected = interface.arity or max(len(names), 1)
    if not len(found) == len(names) == expected or len(op.operands) < interface.first_operand:
        return None
    made = Construct(op, kind, tuple(found))
    given, results = len(made.given), len(op.results)
    for index, function in enumerate(found):
        block = body_of(function)
        returns = 1 if kind is Kind.LOOP and index == 0 else results
        if block is None or len(block.args) != given or len(returned(block)) != returns:
            return None
    return made if kind is not Kind.LOOP or given == results else None


def own_loops(module: ModuleOp) -> Iterator[Construct]:
    """Yields the loops whose functions have no other users; they may be changed meanwhile."""
    functions = functions_of(module)
    ops = [op for function in functions.values() for op in function.body.walk() if op.name in KINDS]
    references = Counter(symbol_table.names_outside(module))
    references.update(name for name, function in functions.items() if not symbol_table.is_private(function))
    references.update(name for op in ops for name in callees(op))
    for op in ops:
        found = construct(op, functions) if KINDS[op.name] is Kind.LOOP else None
        if found is not None and all(references[name] == 1 for name in callees(op)):
            yield found


def inline_body(block: Block, given: Sequence[Value], before: Operation, *, moves: bool) -> list[Value]:
    """Inlines a function before an op.

    Args:
        block: The function's block.
        given: The values that replace its arguments.
        before: The op.
        moves: Whether the function has no other users: its ops are moved instead of copied, and its rest is not a valid
            function any more.

    Returns:
        The values that the function returns.
    """
    *ops, last = block.ops
    if moves:
        for argument, value in zip(block.args, given, strict=True):
            argument.replace_all_uses_with(value)
        for op in ops:
            op.detach()
        values = list(last.operands)
        erase(last)
    else:
        mapping: dict[Value, Value] = dict(zip(block.args, given, strict=True))
        ops = [op.clone(mapping) for op in ops]
        values = [mapping.get(value, value) for value in last.operands]
    builder = OpBuilder(before)
    for op in ops:
        builder.insert(op)
    return values


def drop(function: FuncOp, arguments: Collection[int], results: Collection[int]) -> None:
    """Drops unused arguments, and results, of a function of one block.

    Args:
        function: The function.
        arguments: Indices of the arguments.
        results: Indices of the results.
    """
    block, last = function.body.block, function.body.block.last_op
    assert last is not None
    if results:
        last.set_operands(without(last.operands, results))
    for index in sorted(arguments, reverse=True):
        block.erase_arg(block.args[index])
    for key, dropped in (("arg_attrs", arguments), ("res_attrs", results)):
        own = function.properties.get(key)
        if dropped and isinstance(own, ArrayAttr):
            function.properties[key] = ArrayAttr.get(without(own.data, dropped))
    update_function_type(function)


def change_signature(
    op: Operation, operands: Sequence[Value], dropped: Collection[int], added: Sequence[Attribute] = ()
) -> Operation:
    """Replaces an op by one with other operands and results.

    Args:
        op: The op, which is erased.
        operands: The new op's operands.
        dropped: Indices of the results to drop, which must be unused.
        added: The types of additional results, appended to the others.
    """
    kept = without(op.results, dropped)
    made = OpBuilder(op).insert(rebuild(op, operands, [*(result.type for result in kept), *added]))
    for old, new in zip(kept, made.results, strict=False):
        new.name_hint = old.name_hint
        old.replace_all_uses_with(new)
    erase(op)
    return made


def without(items: Iterable[Item], dropped: Collection[int]) -> list[Item]:
    """Returns items without those at some indices."""
    return [item for index, item in enumerate(items) if index not in dropped]


def is_boolean(value: Value) -> bool:
    """Returns whether a value is a boolean scalar, as LiteRT requires; an unknown rank must be a scalar's."""
    return value.element == types.I1 and value.shape in ((), None)


_IDENTITIES = full_names(IDENTITIES)


def decided_branch(found: Construct) -> int | None:
    """Returns the index of the branch that an `If` or `Case` always takes, or `None`."""
    if len(set(found.functions)) == 1:
        return 0
    constant = tensor_data.constant_of(found.op.operands[0])
    return None if constant is None else branch_of(found, tensor_data.to_array(constant))


def branch_of(found: Construct, value: tensor_data.Array) -> int | None:
    """Returns the index of the branch that a condition or an index selects.

    Returns:
        `None` if it is neither a number nor a boolean: its meaning depends on whether it has elements.
    """
    if value.shape != () or value.dtype.kind not in "biuf":
        return None
    if found.op.name in IFS:
        return 0 if value else 1
    index, count = int(value), len(found.functions)
    return index if 0 <= index < count else count - 1


def origin(value: Value) -> Value:
    """Returns a value's source, looking through identities."""
    while isinstance(value, OpResult) and value.op.name in _IDENTITIES:
        value = value.op.operands[value.index]
    return value


def invariants(block: Block) -> frozenset[int]:
    """Returns the indices of loop-invariant variables, which the body returns unchanged."""
    found = set()
    for index, value in enumerate(map(origin, returned(block))):
        if isinstance(value, BlockArgument) and value.block is block and value.index == index:
            found.add(index)
    return frozenset(found)


def pass_through_operands(found: Construct) -> dict[int, Value]:
    """Returns the results that always equal operands, regardless of branches and iterations."""
    if found.kind is Kind.LOOP:
        return {index: found.given[index] for index in invariants(found.functions[1].body.block)}
    ways = [[_argument(value, body) for value in returned(body)] for body in found.bodies]
    return {
        index: found.given[place]
        for index, place in enumerate(ways[0])
        if place is not None and all(way[index] == place for way in ways)
    }


def _argument(value: Value, block: Block) -> int | None:
    value = origin(value)
    return value.index if isinstance(value, BlockArgument) and value.block is block else None


def sink_constants(found: Construct) -> int:
    """Sinks constant operands into the callees; returns how many.

    A loop still forwards the variable while it exists.
    """
    places: Iterable[int] = range(len(found.given))
    kept: frozenset[Operation | None] = frozenset()
    if found.kind is Kind.LOOP:
        body = found.functions[1].body.block
        places, kept = sorted(invariants(body)), frozenset({body.last_op})
    count = 0
    for index in places:
        constant = tensor_data.constant_of(found.given[index])
        if constant is not None:
            count += sum(_sink(block, index, constant, kept) for block in found.bodies)
    return count


def _sink(block: Block, index: int, constant: tensor_data.Constant, kept: frozenset[Operation | None]) -> bool:
    uses = [use for use in block.args[index].uses if use.operation not in kept]
    if not uses:
        return False
    made = TFBuilder.at_block_begin(block).constant(constant)
    for use in uses:
        use.operation.set_operand(use.index, made)
    return True


# Maximum number of ops of a condition that is computed.
_MAX_OPS = 64

Constants = dict[Value, Constant]


def trip_count(found: Construct, limit: int) -> int | None:
    """Returns the number of iterations of a loop.

    Args:
        found: The loop.
        limit: Maximum number of iterations to count.

    Returns:
        `None` if constants don't determine it, or it exceeds the limit.
    """
    condition, body = (function.body.block for function in found.functions)
    (predicate,) = returned(condition)
    if any(tf.has_side_effects(op) for op in condition.ops if op is not condition.last_op):
        return None
    ahead = _slice(condition, [predicate])
    if ahead is None or predicate.element != types.I1 or predicate.shape not in ((), None):
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


def reads_by_count(found: Construct, names: Collection[str]) -> Iterator[Operation]:
    """Yields the ops of a loop's body that the number of the iteration tells what to read from their first operand.

    Args:
        found: The loop.
        names: The names of ops that read.
    """
    condition, body = (function.body.block for function in found.functions)
    ahead = _slice(condition, returned(condition))
    variables, again = (set[int](), None) if ahead is None else _recurrence(ahead[1], body)
    if again is not None:
        for op in body.ops:
            if op.name in names and (places := _slice(body, op.operands[1:])) is not None and places[1] <= variables:
                yield op


def _recurrence(variables: set[int], body: Block) -> tuple[set[int], list[Operation] | None]:
    """Returns the variables that some depend on across iterations, and the ops that compute them."""
    while True:
        values = returned(body)
        found = _slice(body, [values[index] for index in variables])
        if found is None:
            return variables, None
        if found[1] <= variables:
            return variables, found[0]
        variables = variables | found[1]


def _slice(block: Block, roots: Sequence[Value]) -> tuple[list[Operation], set[int]] | None:
    """Returns the ops that values depend on, in order, and the indices of the arguments that they depend on.

    Returns:
        `None` if there are too many, or one of them can't be computed separately.
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
    """Returns the values of ops, or `None` if one of them can't be computed."""
    computed: Constants = {}
    for op in ops:
        if op.name == "tf.Const":
            results = [tensor_data.constant_of(op.results[0])]
        else:
            operands = [_value(value, computed, block, state) for value in op.operands]
            small = [value for value in operands if value is not None and tensor_data.is_small(value)]
            if len(small) < len(operands):
                return None
            results = list(fold(op, small, [result.shape for result in op.results]) or ())
        if len(results) != len(op.results):
            return None
        computed.update((result, value) for result, value in zip(op.results, results, strict=True) if value is not None)
    return computed
