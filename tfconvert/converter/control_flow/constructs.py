"""Functional control flow: ops with the functions that they run (`call_interfaces`), their operands and results."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from tfconvert.converter.ir.edit import erase, rebuild, update_function_type
from tfconvert.schema.dialects import types
from tfconvert.schema.dialects.call_interfaces import INTERFACES, Kind, callees
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.attributes import ArrayAttr
from tfconvert.schema.ir.block import Block
from tfconvert.schema.ir.builder import OpBuilder
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

Item = TypeVar("Item")


def body_of(function: FuncOp) -> Block | None:
    """Returns a function's only block if that ends in `func.return`, else `None`."""
    blocks = function.body.blocks
    if len(blocks) != 1 or (last := blocks[0].last_op) is None or last.name != "func.return":
        return None
    return blocks[0]


def returned(block: Block) -> Sequence[Value]:
    """Returns the values that a function's block ends in."""
    last = block.last_op
    return () if last is None else last.operands


class Construct(NamedTuple):
    """An op with the functions that it runs.

    Attributes:
        op: The op.
        kind: How it runs them.
        functions: The functions; of a loop the condition and the body.
    """

    op: Operation
    kind: Kind
    functions: tuple[FuncOp, ...]

    @property
    def given(self) -> Sequence[Value]:
        """The operands that the functions get."""
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
        `None` if a function is missing, has no body of one block, or takes or returns other values than the op has.
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


def inline_body(block: Block, given: Sequence[Value], before: Operation, *, moves: bool) -> list[Value]:
    """Inlines a function before an op.

    Args:
        block: The function's block.
        given: The values that replace its arguments.
        before: The op.
        moves: Whether nothing else needs the function: its ops are moved out of it instead of copied, and what is left
            of it is not a function any more.

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
        arguments: The arguments' places.
        results: The results' places.
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
        dropped: The places of the results to drop, which must be unused.
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
    """Returns items without those at some places."""
    return [item for index, item in enumerate(items) if index not in dropped]


def is_boolean(value: Value) -> bool:
    """Returns whether a value is a condition as LiteRT requires it; one of unknown rank can only be a scalar."""
    return types.element_of(value.type) == types.I1 and types.shape_of(value.type) in ((), None)
