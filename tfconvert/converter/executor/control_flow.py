"""Functional control flow: calls, branches and loops over functions or over regions, as tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from tfconvert.converter.executor.tasks import Machine, Task, Values, bad, is_true
from tfconvert.ops.call import Results
from tfconvert.schema.dialects import call_interfaces, tfl
from tfconvert.schema.dialects.call_interfaces import INTERFACES, symbols
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

_CALL_ONCE = "tfl.call_once"

# An op that is computed by its decomposition.
_COMPOSITE = "stablehlo.composite"

# Operators of LiteRT that run functions.
_LITERT = frozenset((_CALL_ONCE, "tfl.if", "tfl.while"))

Body = Callable[[Machine, Operation, Results, Values], Task]
"""Returns the task of an op with bodies, from its operands' values and the values visible to its regions."""


def _call(machine: Machine, op: Operation, inputs: Results, values: Values) -> Task:
    return (yield machine.call(callees(op)[0], inputs))


def _if(machine: Machine, op: Operation, inputs: Results, values: Values) -> Task:
    then_branch, else_branch = callees(op)
    return (yield machine.call(then_branch if is_true(inputs[0]) else else_branch, inputs[1:]))


def _case(machine: Machine, op: Operation, inputs: Results, values: Values) -> Task:
    branches = callees(op)
    return (yield machine.call(branches[_branch(op, inputs, len(branches))], inputs[1:]))


def _while(machine: Machine, op: Operation, inputs: Results, values: Values) -> Task:
    condition, body = callees(op)
    for _ in _iterations(machine, op):
        (again,) = yield machine.call(condition, inputs)
        if not is_true(again):
            break
        inputs = yield machine.call(body, inputs)
    return inputs


def _if_region(machine: Machine, op: Operation, inputs: Results, values: Values) -> Task:
    return (yield machine.run_block(op.regions[0 if is_true(inputs[0]) else 1].block, values))


def _case_region(machine: Machine, op: Operation, inputs: Results, values: Values) -> Task:
    return (yield machine.run_block(op.regions[_branch(op, inputs, len(op.regions))].block, values))


def _while_region(machine: Machine, op: Operation, inputs: Results, values: Values) -> Task:
    condition, body = (region.block for region in op.regions)
    for _ in _iterations(machine, op):
        # Outlined loops of LiteRT capture values that they don't change.
        values.update(zip(condition.args, inputs, strict=False))
        # The condition yields whether to continue and, in newer texts, the loop's variables.
        again, *_rest = yield machine.run_block(condition, values)
        if not is_true(again):
            break
        values.update(zip(body.args, inputs, strict=False))
        inputs = yield machine.run_block(body, values)
    return inputs


def _call_once(machine: Machine, op: Operation, inputs: Results, values: Values) -> Task:
    (name,) = callees(op)
    if name not in machine.initialized:
        machine.initialized.add(name)
        yield machine.begin(name)
    return ()


def _litert_if(machine: Machine, op: Operation, inputs: Results, values: Values) -> Task:
    return _if_region(machine, op, inputs, values) if op.regions else _if(machine, op, inputs, values)


def _litert_while(machine: Machine, op: Operation, inputs: Results, values: Values) -> Task:
    return _while_region(machine, op, inputs, values) if op.regions else _while(machine, op, inputs, values)


def _wrapped(machine: Machine, op: Operation, inputs: Results, values: Values) -> Task:
    block = op.regions[0].block
    values.update(zip(block.args, inputs, strict=True))
    return (yield machine.run_block(block, values))


def _branch(op: Operation, inputs: Results, count: int) -> int:
    """Returns the branch of a `Case`; an index out of range means the last one."""
    if not count:
        raise bad(op, "the op has no branches")
    index = int(inputs[0].reshape(-1)[0]) if inputs[0].size else -1
    return index if 0 <= index < count else count - 1


def _iterations(machine: Machine, op: Operation) -> Iterator[None]:
    """Yields once for each permitted evaluation of a loop's condition."""
    limit, count = machine.max_iterations, 0
    while limit is None or count <= limit:
        count += 1
        machine.deadline.iterate()
        yield
    raise endless(op, limit)


def endless(op: Operation, limit: int) -> Exception:
    """Returns the error of a loop that exceeds its limit."""
    return bad(op, f"the loop has not ended after {limit} iterations", "endless-loop")


OPS: Mapping[str, Body] = {
    "func.call": _call,
    "stablehlo.case": _case_region,
    _COMPOSITE: _call,
    "stablehlo.if": _if_region,
    "stablehlo.while": _while_region,
    "tf.Case": _case,
    "tf.CaseRegion": _case_region,
    "tf.If": _if,
    "tf.IfRegion": _if_region,
    "tf.PartitionedCall": _call,
    "tf.StatefulPartitionedCall": _call,
    "tf.StatelessCase": _case,
    "tf.StatelessIf": _if,
    "tf.StatelessWhile": _while,
    "tf.While": _while,
    "tf.WhileRegion": _while_region,
    "tfl.custom_tf": _wrapped,
    "tfl.if": _litert_if,
    "tfl.while": _litert_while,
    _CALL_ONCE: _call_once,
}
"""Op -> the task of its bodies."""


def callees(op: Operation) -> list[str]:
    """Returns the functions that an op may call."""
    if op.name in _LITERT and not op.regions:
        return [name for key in tfl.SUBGRAPHS[op.name.removeprefix(tfl.PREFIX)] for name in _named(op, key)]
    if op.name == _COMPOSITE:
        return _named(op, "decomposition")
    interface = INTERFACES.get(op.name)
    if interface is None or interface.arity is None:
        return call_interfaces.callees(op)
    return [name for key in interface.properties for name in _named(op, key)]


def _named(op: Operation, name: str) -> list[str]:
    attribute = op.properties.get(name)
    found = [] if attribute is None else symbols(attribute)
    if len(found) != 1:
        raise bad(op, f"attribute {name!r} names no function")
    return found


Captures = dict[Operation, tuple[Value, ...]]
"""Op with regions -> the values from outside that they use, each once, in order."""


def captures(op: Operation, known: Captures) -> tuple[Value, ...]:
    """Returns the values from outside that an op's regions use.

    Args:
        op: The op.
        known: The captures of ops so far; updated with this op and those inside it.
    """
    if not op.regions:
        return ()
    if op not in known:
        nested = [op]
        for outer in nested:
            nested += [inner for inner in _ops_inside(outer) if inner.regions]
        for each in reversed(nested):
            known[each] = _captures(each, known)
    return known[op]


def _ops_inside(op: Operation) -> Iterator[Operation]:
    for region in op.regions:
        for block in region.blocks:
            yield from block.ops


def _captures(op: Operation, known: Captures) -> tuple[Value, ...]:
    inside: set[Value] = {arg for region in op.regions for block in region.blocks for arg in block.args}
    used: dict[Value, None] = {}
    for inner in _ops_inside(op):
        inside.update(inner.results)
        used.update(dict.fromkeys(inner.operands))
        used.update(dict.fromkeys(known.get(inner, ())))
    return tuple(value for value in used if value not in inside)


def all_ops(op: Operation) -> Iterator[Operation]:
    """Yields all ops nested in an op's regions, without recursion."""
    waiting = [op]
    while waiting:
        for inner in _ops_inside(waiting.pop()):
            yield inner
            if inner.regions:
                waiting.append(inner)
