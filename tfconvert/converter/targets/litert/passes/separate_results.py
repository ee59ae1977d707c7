"""Pass `separate-results`: inserts copies where LiteRT would alias results of `IF` and `WHILE` subgraphs.

`WHILE` writes the body's results one by one to the body's inputs. An input that the body returns at another position
may be overwritten before it is read, and strings get lost even at the same position. `IF` moves the results out of a
branch, so that the second of two equal results is empty. A copy is a reshape to the same shape. The pass is at the end
of the pipeline, because optimizations would remove copies.

The runtime may compute values that only depend on shapes before the first run. `IF` also moves these out of the branch:
the second run finds no value, and frees it again. Such results go through a maximum, which is always computed.

Before:

    func.func @main(%a: tensor<2xf32>, %b: tensor<2xf32>) -> tensor<2xf32> {
      %0:2 = "tfl.while"(%a, %b) <{cond = @cond, body = @body}>
          : (tensor<2xf32>, tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>)
      func.return %0#0 : tensor<2xf32>
    }
    func.func private @cond(%a: tensor<2xf32>, %b: tensor<2xf32>) -> tensor<i1> {
      %0 = "tfl.pseudo_const"() <{value = dense<0> : tensor<1xi32>}> : () -> tensor<1xi32>
      %1 = "tfl.less"(%a, %b) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xi1>
      %2 = "tfl.reduce_any"(%1, %0) : (tensor<2xi1>, tensor<1xi32>) -> tensor<i1>
      func.return %2 : tensor<i1>
    }
    func.func private @body(%a: tensor<2xf32>, %b: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
      %0 = "tfl.exp"(%b) : (tensor<2xf32>) -> tensor<2xf32>
      func.return %0, %a : tensor<2xf32>, tensor<2xf32>
    }

After:

    func.func @main(%a: tensor<2xf32>, %b: tensor<2xf32>) -> tensor<2xf32> {
      %0:2 = "tfl.while"(%a, %b) <{cond = @cond, body = @body}>
          : (tensor<2xf32>, tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>)
      func.return %0#0 : tensor<2xf32>
    }
    func.func private @cond(%a: tensor<2xf32>, %b: tensor<2xf32>) -> tensor<i1> {
      %0 = "tfl.pseudo_const"() <{value = dense<0> : tensor<1xi32>}> : () -> tensor<1xi32>
      %1 = "tfl.less"(%a, %b) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xi1>
      %2 = "tfl.reduce_any"(%1, %0) : (tensor<2xi1>, tensor<1xi32>) -> tensor<i1>
      func.return %2 : tensor<i1>
    }
    func.func private @body(%a: tensor<2xf32>, %b: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
      %0 = "tfl.exp"(%b) : (tensor<2xf32>) -> tensor<2xf32>
      %1 = "tfl.pseudo_const"() <{value = dense<2> : tensor<1xi32>}> : () -> tensor<1xi32>
      %2 = "tfl.reshape"(%a, %1) <{new_shape = [2 : i32]}> : (tensor<2xf32>, tensor<1xi32>) -> tensor<2xf32>
      func.return %0, %2 : tensor<2xf32>, tensor<2xf32>
    }

Before:

    func.func @main(%p: tensor<i1>, %x: tensor<?x2xf32>) -> tensor<2xi32> {
      %0 = "tfl.if"(%p, %x) <{then_branch = @then, else_branch = @else}>
          : (tensor<i1>, tensor<?x2xf32>) -> tensor<2xi32>
      func.return %0 : tensor<2xi32>
    }
    func.func private @then(%x: tensor<?x2xf32>) -> tensor<2xi32> {
      %0 = "tfl.shape"(%x) <{out_type = "INT32"}> : (tensor<?x2xf32>) -> tensor<2xi32>
      func.return %0 : tensor<2xi32>
    }
    func.func private @else(%x: tensor<?x2xf32>) -> tensor<2xi32> {
      %0 = "tfl.pseudo_const"() <{value = dense<1> : tensor<2xi32>}> : () -> tensor<2xi32>
      func.return %0 : tensor<2xi32>
    }

After:

    func.func @main(%p: tensor<i1>, %x: tensor<?x2xf32>) -> tensor<2xi32> {
      %0 = "tfl.if"(%p, %x) <{then_branch = @then, else_branch = @else}>
          : (tensor<i1>, tensor<?x2xf32>) -> tensor<2xi32>
      func.return %0 : tensor<2xi32>
    }
    func.func private @then(%x: tensor<?x2xf32>) -> tensor<2xi32> {
      %0 = "tfl.shape"(%x) <{out_type = "INT32"}> : (tensor<?x2xf32>) -> tensor<2xi32>
      %1 = "tfl.pseudo_const"() <{value = dense<-2147483648> : tensor<i32>}> : () -> tensor<i32>
      %2 = "tfl.maximum"(%0, %1) : (tensor<2xi32>, tensor<i32>) -> tensor<2xi32>
      func.return %2 : tensor<2xi32>
    }
    func.func private @else(%x: tensor<?x2xf32>) -> tensor<2xi32> {
      %0 = "tfl.pseudo_const"() <{value = dense<1> : tensor<2xi32>}> : () -> tensor<2xi32>
      func.return %0 : tensor<2xi32>
    }
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from tfconvert.converter.ir import symbol_table
from tfconvert.converter.ir.tf_builder import TFLBuilder
from tfconvert.converter.pipeline.pass_result import NOTHING_DONE, PassResult
from tfconvert.schema.dialects import tensor_data, tfl, types
from tfconvert.schema.dialects.func import FuncOp, defined_functions
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import BlockArgument, Value

_APPLIED = "copied"
_ASKING = ("tfl.rank", "tfl.shape")


class SeparateResults:
    """Gives the functions of `tfl.if` and `tfl.while` results that don't alias."""

    __slots__ = ()

    name: ClassVar[str] = "separate-results"

    def apply(self, module: ModuleOp) -> PassResult:
        """Rewrites the functions; returns the number of copied values."""
        functions = defined_functions(module)
        if len(functions) < 2:
            return NOTHING_DONE  # there are no calls
        bodies: set[str] = set()
        branches: set[str] = set()
        for function in functions.values():
            for op in function.body.walk():
                if op.name == "tfl.while":
                    bodies.add(symbol_table.named(op, "body"))
                elif op.name == "tfl.if":
                    branches.update(symbol_table.names(op))
        copied = sum(_separate_arguments(functions[name]) for name in functions if name in bodies)
        copied += sum(_separate_moved(functions[name]) for name in functions if name in branches)
        return PassResult.of({_APPLIED: copied})


def _separate_arguments(body: FuncOp) -> int:
    """Copies arguments that a loop's body returns at another position, unless they never change, and all strings."""
    last = body.body.block.last_op
    if last is None:
        return 0
    returned = list(last.operands)
    copies: dict[Value, Value] = {}
    for position, value in enumerate(returned):
        if not isinstance(value, BlockArgument) or (returned[value.index] is value and not _is_text(value)):
            continue
        if value not in copies:
            copies[value] = TFLBuilder(last).copy(value)
        last.set_operand(position, copies[value])
    return len(copies)


def _is_text(value: Value) -> bool:
    return types.element_of(value.type) == types.STRING


def _separate_moved(branch: FuncOp) -> int:
    """Copies values that a branch returns more than once, and those that are known before it runs."""
    last = None if branch.is_declaration else branch.body.block.last_op
    if last is None:
        return 0
    early = _known_early(branch)
    seen: set[Value] = set()
    copied = 0
    for position, value in enumerate(last.operands):
        if value in early:
            last.set_operand(position, _at_run(value, last))
            copied += 1
        elif value in seen:
            last.set_operand(position, TFLBuilder(last).copy(value))
            copied += 1
        elif not isinstance(value, BlockArgument) and tensor_data.constant_of(value) is None:
            seen.add(value)
    return copied


def _known_early(branch: FuncOp) -> set[Value]:
    """Returns the integer values that only depend on shapes."""
    if not any(types.element_of(kind) in (types.I32, types.I64) for kind in branch.function_type.results):
        return set()
    early: set[Value] = set()
    constants: set[Value] = set()
    for op in branch.body.block.ops:
        if not op.operands:
            constants.update(value for value in op.results if tensor_data.constant_of(value) is not None)
        elif op.name in _ASKING or all(value in early or value in constants for value in op.operands):
            early.update(op.results)
    return {value for value in early if types.element_of(value.type) in (types.I32, types.I64)}


def _at_run(value: Value, before: Operation) -> Value:
    """Inserts a value with the same integers that is only known at run time."""
    least = np.iinfo(np.int64 if types.element_of(value.type) == types.I64 else np.int32)
    insert = TFLBuilder(before)
    bound = insert.constant(np.array(least.min, least.dtype))
    return insert.tfl(tfl.BARRIER, (value, bound), value.type)
