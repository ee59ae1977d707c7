"""Some ops of a function as a module of their own, to run them by themselves."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
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
    """

    module: ModuleOp
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]


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
    for op in chosen:
        block.add_op(op.clone(copies))
    outputs = tuple(value for op in chosen for value in op.results if _is_output(value, chosen))
    block.add_op(ReturnOp.of([copies[value] for value in outputs]))
    kind = FunctionType.get([value.type for value in inputs], [value.type for value in outputs])
    functions = functions_of(module)
    called = [functions[name].clone() for name in _called(functions, chosen)]
    main = FuncOp.of("main", kind, Region(block))
    return Excerpt(ModuleOp.of([main, *called], module.attributes), tuple(inputs), outputs)


def _is_output(value: Value, ops: Container[Operation]) -> bool:
    """Returns whether a value is used elsewhere than by some ops, or not at all."""
    return value.is_unused or any(use.operation not in ops for use in value.uses)


def _called(functions: Mapping[str, FuncOp], ops: Iterable[Operation]) -> list[str]:
    """Returns the functions that ops run, and those that these run."""
    found = dict.fromkeys(name for op in ops for name in symbol_table.names(op) if name in functions)
    waiting = list(found)
    while waiting:
        for inner in symbol_table.referring_ops(functions[waiting.pop()]):
            for name in symbol_table.names(inner):
                if name in functions and name not in found:
                    found[name] = None
                    waiting.append(name)
    return list(found)
