"""Changes of the variables of loops: unused and equal ones are removed, invariant ops are hoisted."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence

from tfconvert.converter.control_flow.constructs import Construct, change_signature, drop, invariants, returned, without
from tfconvert.converter.ir.edit import erase, erase_dead, update_function_type
from tfconvert.schema.dialects import tf, tf_effects
from tfconvert.schema.dialects.call_interfaces import Kind
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.ir.block import Block
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import BlockArgument, Value


def drop_unused(found: Construct) -> Operation | None:
    """Drops dead results, arguments and loop variables.

    Unused results and then unused arguments are dropped. A loop variable is dropped if no condition, effect or used
    result depends on it, in this or a later iteration.

    Args:
        found: An op whose functions have no other users.

    Returns:
        The op that replaces it, or `None` if nothing is dead.
    """
    for body in found.bodies:
        erase_dead(body)
    results, arguments = _of_loop(found) if found.kind is Kind.LOOP else _of_branches(found)
    if not results and not arguments:
        return None
    operands = without(found.given, arguments)
    return change_signature(
        found.op, [*found.op.operands[: len(found.op.operands) - len(found.given)], *operands], results
    )


def _of_branches(found: Construct) -> tuple[set[int], set[int]]:
    """Drops results, then arguments of all branches; returns their indices."""
    results = {index for index, result in enumerate(found.op.results) if result.first_use is None}
    functions = dict.fromkeys(found.functions)
    if results:
        for function in functions:
            drop(function, (), results)
            erase_dead(function.body.block)
    arguments = {
        index for index in range(len(found.given)) if all(body.args[index].first_use is None for body in found.bodies)
    }
    if arguments:
        for function in functions:
            drop(function, arguments, ())
    return results, arguments


def _of_loop(found: Construct) -> tuple[set[int], set[int]]:
    """Drops variables; returns their indices among the results and the arguments."""
    condition, body = found.functions
    live = _live(found, condition.body.block, body.body.block)
    dead = set(range(len(found.given))) - live
    if dead:
        drop(body, (), dead)
        erase_dead(body.body.block)
        drop(body, dead, ())
        drop(condition, dead, ())
    return dead, dead


def _live(found: Construct, condition: Block, body: Block) -> set[int]:
    """Returns the indices of the live variables, walking back from required values."""
    live = {
        index
        for index, (argument, result) in enumerate(zip(condition.args, found.op.results, strict=True))
        if argument.first_use is not None or result.first_use is not None
    }
    returns = returned(body)
    todo: list[Value] = [returns[index] for index in live]
    seen: set[Operation] = set()
    for op in body.ops:
        if op is not body.last_op and (not op.results or tf.has_side_effects(op)):
            seen.add(op)
            todo += _used(op)
    while todo:
        value = todo.pop()
        owner = value.owner
        if isinstance(owner, Operation):
            if owner not in seen:
                seen.add(owner)
                todo += _used(owner)
        elif owner is body and isinstance(value, BlockArgument) and value.index not in live:
            live.add(value.index)
            todo.append(returns[value.index])
    return live


def _used(op: Operation) -> Iterator[Value]:
    """Yields the values that an op and its regions use."""
    yield from op.operands
    for region in op.regions:
        for inner in region.walk():
            yield from inner.operands


# Maximum number of analyses of a body; variables that aren't proved equal by then stay separate.
_MAX_ROUNDS = 8


def merge_equal(found: Construct) -> int:
    """Replaces equal loop variables by one of them, in the loop's functions and results.

    Args:
        found: A loop whose functions have no other users.

    Returns:
        The number of variables that are now used only to compute their next values.
    """
    condition, body = (function.body.block for function in found.functions)
    classes = _classes(found, body)
    merged = 0
    for index, first in enumerate(classes):
        if first != index:
            merged += 1
            for values in (condition.args, body.args, found.op.results):
                values[index].replace_all_uses_with(values[first])
    return merged


def _classes(found: Construct, body: Block) -> list[int]:
    """Returns for each variable the first one that is always equal to it."""
    classes = _partition(
        (_start(value), value.type, argument.type, result.type)
        for value, argument, result in zip(found.given, body.args, found.op.results, strict=True)
    )
    for _ in range(_MAX_ROUNDS):
        if len(set(classes)) == len(classes):
            break
        numbers = _numbers(body, classes)
        refined = _partition((old, numbers[value]) for old, value in zip(classes, returned(body), strict=True))
        if refined == classes:
            return classes
        classes = refined
    return list(range(len(classes)))


def _partition(keys: Iterable[Hashable]) -> list[int]:
    """Returns for each key the index of the first equal one."""
    places: dict[Hashable, int] = {}
    return [places.setdefault(key, index) for index, key in enumerate(keys)]


def _start(value: Value) -> Hashable:
    owner = value.owner
    if isinstance(owner, Operation) and owner.name == "tf.Const":
        return frozenset(owner.properties.items())
    return id(value)


def _numbers(body: Block, classes: Sequence[int]) -> dict[Value, int]:
    """Returns value numbers of a body: equal numbers mean equal values, if variables of a class are equal."""
    numbers: dict[Value, int] = {argument: -1 - classes[argument.index] for argument in body.args}
    known: dict[Hashable, int] = {}
    for op in body.ops:
        operands = tuple(numbers[value] for value in op.operands)
        is_pure = not op.regions and op.name.startswith("tf.") and tf_effects.is_pure(op)
        key: Hashable = (op.name, operands, frozenset(op.properties.items())) if is_pure else id(op)
        first = known.setdefault(key, len(numbers))
        # Results of one op have consecutive numbers; those of different ops don't overlap.
        numbers.update((result, first + place) for place, result in enumerate(op.results))
    return numbers


# Ops that justify an additional variable.
_HEAVY = frozenset(
    {
        "tf.BatchMatMul",
        "tf.BatchMatMulV2",
        "tf.BatchMatMulV3",
        "tf.Conv2D",
        "tf.Conv3D",
        "tf.DepthwiseConv2dNative",
        "tf.Einsum",
        "tf.MatMul",
    }
)

# Ops that may be hoisted with them: they can't fail, so they may run even if the loop never does.
_LIGHT = frozenset(
    {
        "tf.Abs",
        "tf.AddV2",
        "tf.BiasAdd",
        "tf.Cast",
        "tf.Const",
        "tf.Exp",
        "tf.Identity",
        "tf.Maximum",
        "tf.Minimum",
        "tf.Mul",
        "tf.Neg",
        "tf.Relu",
        "tf.Sigmoid",
        "tf.Sqrt",
        "tf.Square",
        "tf.Sub",
        "tf.Tanh",
        "tf.Transpose",
    }
)


def hoist(found: Construct) -> Construct:
    """Hoists loop-invariant ops out of a loop.

    Args:
        found: A loop whose functions have no other users.

    Returns:
        The loop that replaces it, or the same loop.
    """
    body = found.functions[1].body.block
    if found.kind is not Kind.LOOP or not any(op.name in _HEAVY for op in body.ops):
        return found
    fixed = _fixed_ops(body)
    kept = [op for op in fixed if op.name in _HEAVY and _is_needed_inside(op, fixed)]
    if not kept:
        return found
    outside: dict[Value, Value] = {body.args[index]: found.given[index] for index in invariants(body)}
    for op in _needed_by(kept, fixed):
        copy = op.clone(outside)
        assert found.op.parent is not None
        found.op.parent.insert_op_before(copy, found.op)
        outside.update(zip(op.results, copy.results, strict=True))
    return _with_variables(found, [op.results[0] for op in kept], [outside[op.results[0]] for op in kept])


def _fixed_ops(body: Block) -> dict[Operation, None]:
    """Returns the loop-invariant ops that may be hoisted, in order."""
    constant = invariants(body)
    fixed: dict[Operation, None] = {}
    for op in body.ops:
        if (op.name in _HEAVY or op.name in _LIGHT) and all(
            value.owner in fixed or (isinstance(value, BlockArgument) and value.index in constant)
            for value in op.operands
        ):
            fixed[op] = None
    return fixed


def _is_needed_inside(op: Operation, fixed: dict[Operation, None]) -> bool:
    return any(use.operation not in fixed for use in op.results[0].uses)


def _needed_by(roots: Sequence[Operation], fixed: dict[Operation, None]) -> list[Operation]:
    """Returns ops and all ops that they depend on, in order."""
    needed: set[Operation] = set()
    todo = list(roots)
    while todo:
        op = todo.pop()
        if op not in needed:
            needed.add(op)
            todo += [value.owner for value in op.operands if isinstance(value.owner, Operation)]
    return [op for op in fixed if op in needed]


def _with_variables(found: Construct, inside: Sequence[Value], outside: Sequence[Value]) -> Construct:
    """Passes values to a loop, which uses them instead of computing them."""
    condition, body = found.functions
    for value, operand in zip(inside, outside, strict=True):
        _add_argument(condition, operand)
        argument = _add_argument(body, operand)
        last, owner = body.body.block.last_op, value.owner
        assert last is not None
        assert isinstance(owner, Operation)
        value.replace_all_uses_with(argument)
        erase(owner)
        last.set_operands([*last.operands, argument])
    update_function_type(condition)
    update_function_type(body)
    made = change_signature(found.op, [*found.op.operands, *outside], (), [value.type for value in outside])
    return Construct(made, found.kind, found.functions)


def _add_argument(function: FuncOp, operand: Value) -> Value:
    for key in ("arg_attrs", "res_attrs"):
        function.properties.pop(key, None)  # the value names of a private function are not used
    block = function.body.block
    return block.insert_arg(operand.type, len(block.args))
