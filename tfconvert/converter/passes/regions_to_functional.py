"""Pass `regions-to-functional`: outlines the regions of `tf.IfRegion`, `tf.CaseRegion` and `tf.WhileRegion`.

Values that a region captures are passed to its function: to a branch as arguments, to a loop as loop-invariant
variables. Constants are copied into the function instead. A region that only calls a function becomes that function.

Before:

    func.func @main(%p: tensor<i1>, %n: tensor<i32>, %x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = "tf.IfRegion"(%p) <{_then_func_name = "grow", is_stateless = true}> ({
        %1 = "tf.Exp"(%x) : (tensor<2xf32>) -> tensor<2xf32>
        "tf.Yield"(%1) : (tensor<2xf32>) -> ()
      }, {
        "tf.Yield"(%x) : (tensor<2xf32>) -> ()
      }) : (tensor<i1>) -> tensor<2xf32>
      %2 = "tf.Const"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
      %3 = "tf.WhileRegion"(%2) <{is_stateless = true, parallel_iterations = 10 : i64}> ({
      ^bb0(%i: tensor<i32>):
        %4 = "tf.Less"(%i, %n) : (tensor<i32>, tensor<i32>) -> tensor<i1>
        "tf.Yield"(%4) : (tensor<i1>) -> ()
      }, {
      ^bb0(%i: tensor<i32>):
        %5 = "tf.AddV2"(%i, %2) : (tensor<i32>, tensor<i32>) -> tensor<i32>
        "tf.Yield"(%5) : (tensor<i32>) -> ()
      }) : (tensor<i32>) -> tensor<i32>
      func.return %0 : tensor<2xf32>
    }

After:

    func.func @main(%p: tensor<i1>, %n: tensor<i32>, %x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = "tf.If"(%p, %x) <{is_stateless = true, then_branch = @grow, else_branch = @if_else}>
          : (tensor<i1>, tensor<2xf32>) -> tensor<2xf32>
      %1 = "tf.Const"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
      %2:2 = "tf.While"(%1, %n) <{cond = @while_cond, body = @while_body, is_stateless = true,
          parallel_iterations = 10 : i64}> : (tensor<i32>, tensor<i32>) -> (tensor<i32>, tensor<i32>)
      func.return %0 : tensor<2xf32>
    }
    func.func private @while_cond(%i: tensor<i32>, %n: tensor<i32>) -> tensor<i1> {
      %0 = "tf.Less"(%i, %n) : (tensor<i32>, tensor<i32>) -> tensor<i1>
      func.return %0 : tensor<i1>
    }
    func.func private @while_body(%i: tensor<i32>, %n: tensor<i32>) -> (tensor<i32>, tensor<i32>) {
      %0 = "tf.Const"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
      %1 = "tf.AddV2"(%i, %0) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      func.return %1, %n : tensor<i32>, tensor<i32>
    }
    func.func private @grow(%x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = "tf.Exp"(%x) : (tensor<2xf32>) -> tensor<2xf32>
      func.return %0 : tensor<2xf32>
    }
    func.func private @if_else(%x: tensor<2xf32>) -> tensor<2xf32> {
      func.return %x : tensor<2xf32>
    }
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import ClassVar

from tfconvert.converter.ir import symbol_table
from tfconvert.converter.ir.edit import erase, replace_op
from tfconvert.converter.pipeline.pass_result import NOTHING_DONE, PassResult
from tfconvert.schema.dialects import attributes as attrs
from tfconvert.schema.dialects import tf
from tfconvert.schema.dialects.call_interfaces import CALLS, REGION_FORMS
from tfconvert.schema.dialects.func import ReturnOp
from tfconvert.schema.dialects.locations import node_of
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.attributes import StringAttr
from tfconvert.schema.ir.block import Block, Region
from tfconvert.schema.ir.builder import OpBuilder
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

_NAMES = ("_then_func_name", "_else_func_name", "_cond_func_name", "_body_func_name")


class RegionsToFunctional:
    """Converts control flow over regions to control flow over functions."""

    __slots__ = ()

    name: ClassVar[str] = "regions-to-functional"

    def apply(self, module: ModuleOp) -> PassResult:
        ops = _with_regions(module)
        if not ops:
            return NOTHING_DONE
        functions = symbol_table.FunctionMaker(module)
        applied = Counter(op.name.removeprefix("tf.") for op in ops)
        for op in reversed(ops):
            _outline(op, functions)
        return PassResult(applied)


def _with_regions(module: ModuleOp) -> list[Operation]:
    """Returns the ops to rewrite, outer ones before those inside."""
    found: list[Operation] = []
    todo: list[Operation] = [module]
    while todo:
        for region in todo.pop().regions:
            for block in region.blocks:
                inner = [op for op in block.ops if op.regions]
                found += [op for op in inner if op.name in REGION_FORMS]
                todo += inner
    return found


def _outline(op: Operation, functions: symbol_table.FunctionMaker) -> None:
    """Replaces an op without nested control flow regions."""
    is_loop = op.name == "tf.WhileRegion"
    called = _called(op)
    if called is not None:
        names, captured = called
    else:
        captured = _capture(op)
        names = [
            _function(op, region, role, captured if is_loop else (), functions)
            for region, role in zip(op.regions, _roles(op), strict=True)
        ]
    operands = [*op.operands, *captured] if not (is_loop and called) else op.operands[:]
    results = [*op.result_types, *(value.type for value in captured)] if is_loop and not called else op.result_types
    new = tf.build(
        REGION_FORMS[op.name].removeprefix("tf."),
        operands=operands,
        result_types=results,
        properties=_properties(op, names),
        attributes={name: value for name, value in op.attributes.items() if name not in _NAMES},
        location=op.location,
    )
    replace_op(op, OpBuilder(op).insert(new).results[: len(op.results)])


def _roles(op: Operation) -> list[str]:
    if op.name == "tf.CaseRegion":
        return [f"branch{number}" for number in range(len(op.regions))]
    return ["cond", "body"] if op.name == "tf.WhileRegion" else ["then", "else"]


def _properties(op: Operation, names: Sequence[str]) -> dict[str, Attribute]:
    properties = {name: value for name, value in op.properties.items() if name not in _NAMES}
    functions = [attrs.symbol(name) for name in names]
    if op.name == "tf.CaseRegion":
        return {**properties, "branches": attrs.of(functions)}
    keys = ("cond", "body") if op.name == "tf.WhileRegion" else ("then_branch", "else_branch")
    return {**properties, **dict(zip(keys, functions, strict=True))}


def _called(op: Operation) -> tuple[list[str], Sequence[Value]] | None:
    """Returns the functions that an op's regions call, if they do nothing else, and the operands of these calls."""
    names: list[str] = []
    operands: list[Sequence[Value]] = []
    for region in op.regions:
        first, last = region.block.first_op, region.block.last_op
        if first is None or last is None or first.next_op is not last or first.name not in CALLS:
            return None
        name = symbol_table.named(first, "callee" if first.name == "func.call" else "f")
        if not name or list(last.operands) != list(first.results):
            return None
        names.append(name)
        operands.append(region.block.args if op.name == "tf.WhileRegion" else first.operands)
        if list(first.operands) != list(operands[-1]):
            return None
    same = op.name == "tf.WhileRegion" or all(list(each) == list(operands[0]) for each in operands)
    return (names, [] if op.name == "tf.WhileRegion" else operands[0]) if same else None


def _capture(op: Operation) -> list[Value]:
    """Turns the values that an op's regions capture into arguments of each region; returns these values.

    Constants are copied into the regions.
    """
    taken = [_taken(region) for region in op.regions]
    captured: dict[Value, None] = {}
    for values in taken:
        captured.update(dict.fromkeys(value for value in values if not _is_constant(value)))
    for region, values in zip(op.regions, taken, strict=True):
        block = region.block
        inside = {value: block.insert_arg(value.type, len(block.args)) for value in captured}
        for value, uses in values.items():
            own: Value | None = inside.get(value)
            if own is None:
                assert isinstance(value.owner, Operation)
                own = OpBuilder.at_block_begin(block).insert(value.owner.clone()).results[0]
            for user, index in uses:
                user.set_operand(index, own)
    return list(captured)


def _is_constant(value: Value) -> bool:
    return isinstance(value.owner, Operation) and value.owner.name == "tf.Const"


def _taken(region: Region) -> dict[Value, list[tuple[Operation, int]]]:
    """Returns the captured values of a region, with the operands that use them."""
    inside: set[Block] = set(region.blocks)
    found: dict[Value, list[tuple[Operation, int]]] = {}
    for op in region.walk():
        inside.update(block for inner in op.regions for block in inner.blocks)
        for index, value in enumerate(op.operands):
            block = value.owner.parent if isinstance(value.owner, Operation) else value.owner
            if block not in inside:
                found.setdefault(value, []).append((op, index))
    return found


def _function(
    op: Operation, region: Region, role: str, carried: Sequence[Value], functions: symbol_table.FunctionMaker
) -> str:
    """Creates a function from a region, whose arguments `_capture` has added; returns its name.

    Args:
        op: The op.
        region: One of its regions.
        role: The region's role in the op.
        carried: The captured values, which become loop variables.
        functions: Adds functions.
    """
    block = region.block
    last = block.last_op
    assert last is not None
    returned = list(last.operands)
    if role == "cond":
        returned = returned[:1]
    elif carried:
        returned += block.args[len(block.args) - len(carried) :]
    erase(last)
    block.add_op(ReturnOp.of(returned))
    region.detach_block(block)
    key = f"_{role}_func_name"
    noted = op.properties.get(key, op.attributes.get(key))
    kind = REGION_FORMS[op.name].removeprefix("tf.").lower()
    name = noted.data if isinstance(noted, StringAttr) and noted.data else f"{node_of(op.location) or kind}_{role}"
    return functions.add(name, block, op.location)
