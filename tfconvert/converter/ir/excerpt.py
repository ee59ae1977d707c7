"""Some ops of a function as a module of their own, to run them by themselves."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import NamedTuple

from tfconvert.converter.ir import symbol_table
from tfconvert.schema.dialects import tensor_data, tfl_file
from tfconvert.schema.dialects.func import FuncOp, ReturnOp, functions_of
from tfconvert.schema.ir.block import Block, Region
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import FunctionType
from tfconvert.schema.ir.values import Value

_CONSTANTS = tensor_data.CONSTANT_OPS | {"tfl.no_value"}


class Excerpt(NamedTuple):
    """A copy of some ops.

    Attributes:
        module: A module whose function `main` has the copies, and the functions that they run.
        inputs: The values that its arguments stand for.
        outputs: The values that it returns copies of.
        copies: The copy of each op.
    """

    module: ModuleOp
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    copies: Mapping[Operation, Operation]


def is_given(op: Operation) -> bool:
    """Returns whether an op computes nothing: a constant, an absent operand, or an operator's own variable."""
    return op.name in _CONSTANTS or tfl_file.IS_VARIABLE in op.attributes


def excerpt(module: ModuleOp, ops: Iterable[Operation]) -> Excerpt:
    """Returns a copy of ops.

    Args:
        module: Their module.
        ops: Ops of one block, in order. The constants that they use are copied with them; others are left out.
    """
    chosen = {op: None for op in ops if not is_given(op)}
    inside = {result for op in chosen for result in op.results}
    operands = dict.fromkeys(value for op in chosen for value in op.operands if value not in inside)
    block, copies, inputs = Block(), dict[Value, Value](), list[Value]()
    for value in operands:
        owner = value.owner
        if isinstance(owner, Operation) and is_given(owner):
            block.add_op(owner.clone(copies))
        else:
            inputs.append(value)
            copies[value] = block.add_arg(value.type)
    made = {op: op.clone(copies) for op in chosen}
    for copy in made.values():
        block.add_op(copy)
    outputs = tuple(value for op in chosen for value in _outputs(op, chosen))
    block.add_op(ReturnOp.of([copies[value] for value in outputs]))
    kind = FunctionType.get([value.type for value in inputs], [value.type for value in outputs])
    functions = functions_of(module)
    names = _called(functions, chosen)
    called = [function.clone() for name, function in functions.items() if name in names]
    main = FuncOp.of("main", kind, Region(block))
    return Excerpt(ModuleOp.of([main, *called], module.attributes), tuple(inputs), outputs, made)


def _outputs(op: Operation, ops: Container[Operation]) -> Sequence[Value]:
    """Returns the results of an op that others than some ops use; all if nothing uses any."""
    used = [value for value in op.results if not value.is_unused]
    return [value for value in used if any(use.operation not in ops for use in value.uses)] if used else op.results


def with_neighbours(ops: Iterable[Operation], names: Container[str]) -> list[Operation]:
    """Returns ops of one block, in order, with those beside them that only feed them, or that alone use a result.

    Args:
        ops: The ops.
        names: The names of the neighbours to add.
    """
    found = set(ops)
    for op in tuple(found):
        sources = [value.owner for value in op.operands if value.has_one_use()]
        users = [value.first_use.operation for value in op.results if value.first_use and value.has_one_use()]
        found |= {each for each in (*sources, *users) if isinstance(each, Operation) and each.name in names}
    block = next((op.parent for op in found), None)
    return [] if block is None else [op for op in block.ops if op in found]


def _called(functions: Mapping[str, FuncOp], ops: Iterable[Operation]) -> set[str]:
    """Returns the functions that ops run, and those that these run."""
    found: set[str] = set()
    waiting = [name for op in ops for name in symbol_table.names(op)]
    while waiting:
        name = waiting.pop()
        if name in functions and name not in found:
            found.add(name)
            waiting += (each for op in symbol_table.referring_ops(functions[name]) for each in symbol_table.names(op))
    return found
