"""Cuts a file into models of one operator each, to run every operator by itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from tfconvert.converter.executor import control_flow
from tfconvert.schema.dialects import tfl_file, types
from tfconvert.schema.dialects.func import FuncOp, ReturnOp, functions_of
from tfconvert.schema.ir.block import Block, Region
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import FunctionType
from tfconvert.schema.ir.values import Value

_CONSTANTS = frozenset(("tfl.pseudo_const", "tfl.pseudo_qconst", "tfl.no_value"))

# Operators that compute nothing by themselves.
_ALONE = frozenset(("tfl.assign_variable", "tfl.call_once", "tfl.read_variable", "tfl.var_handle"))


class Cut(NamedTuple):
    """One operator as a model.

    Attributes:
        op: The operator in the whole model.
        inputs: The values that the model takes.
        module: The model; `None` if the operator can't run by itself, since it works on a variable or a table.
    """

    op: Operation
    inputs: tuple[Value, ...]
    module: ModuleOp | None


def cuts(module: ModuleOp) -> Iterator[Cut]:
    """Yields the operators of a file's first subgraph, in the order in which they run.

    Args:
        module: The image of a file.
    """
    functions = functions_of(module)
    for op in next(iter(functions.values())).body.block.ops:
        if isinstance(op, ReturnOp) or _is_constant(op):
            continue
        inputs = tuple(dict.fromkeys(value for value in op.operands if not _is_given(value)))
        is_bound = op.name in _ALONE or any(types.element_of(value.type) == types.RESOURCE for value in op.operands)
        yield Cut(op, inputs, None if is_bound else _module(module, functions, op, inputs))


def _is_constant(op: Operation) -> bool:
    return op.name in _CONSTANTS or tfl_file.IS_VARIABLE in op.attributes


def _is_given(value: Value) -> bool:
    return isinstance(value.owner, Operation) and _is_constant(value.owner)


def _module(module: ModuleOp, functions: Mapping[str, FuncOp], op: Operation, inputs: tuple[Value, ...]) -> ModuleOp:
    block, copies = Block(), dict[Value, Value]()
    for number, value in enumerate(inputs):
        copies[value] = block.insert_arg(value.type, number)
    for value in op.operands:
        if value not in copies and isinstance(value.owner, Operation):
            block.add_op(value.owner.clone(copies))
    copy = op.clone(copies)
    block.add_op(copy)
    block.add_op(ReturnOp.of(list(copy.results)))
    kind = FunctionType.get([value.type for value in inputs], [value.type for value in copy.results])
    main = FuncOp.of("main", kind, Region(block))
    return ModuleOp.of([main, *(functions[name].clone() for name in _called(functions, op))], module.attributes)


def _called(functions: Mapping[str, FuncOp], op: Operation) -> list[str]:
    """Returns the functions that an operator runs, and those that they run."""
    found = dict.fromkeys(control_flow.callees(op))
    waiting = list(found)
    while waiting:
        for inner in control_flow.all_ops(functions[waiting.pop()]):
            for name in control_flow.callees(inner):
                if name not in found:
                    found[name] = None
                    waiting.append(name)
    return list(found)
