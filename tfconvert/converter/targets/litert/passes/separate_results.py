"""Pass `separate-results`: inserts copies where LiteRT would alias results of `IF` and `WHILE` subgraphs.

`WHILE` writes the body's results one by one to the body's inputs. An input that the body returns at another position
may be overwritten before it is read, and strings get lost even at the same position. `IF` moves the results out of a
branch, so that the second of two equal results is empty. A copy is a reshape to the same shape. Optimizations remove
copies: the pass runs before the model is run for calibration, and again at the end of the pipeline.

Before the first run, `WHILE` compares sizes of variables before and after the body, to decide whether they change. It
sees no change from 0 rows to 1, nor from 1 to 0, and fails then, unless a size in the body is only known at run time.
So a variable that may change so gets its shape at run time, by a maximum that the runtime can't compute before.

Where a result of `WHILE` or `IF` has no elements, the runtime fails to read it as an output of the model: it becomes a
copy, too.

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

    func.func @main(%x: tensor<0xf32>) -> tensor<?xf32> {
      %0 = "tfl.while"(%x) <{cond = @cond, body = @body}> : (tensor<0xf32>) -> tensor<?xf32>
      func.return %0 : tensor<?xf32>
    }
    func.func private @cond(%x: tensor<?xf32>) -> tensor<i1> {
      %0 = "tfl.pseudo_const"() <{value = dense<5> : tensor<i32>}> : () -> tensor<i32>
      %1 = "tfl.shape"(%x) <{out_type = "INT32"}> : (tensor<?xf32>) -> tensor<1xi32>
      %2 = "tfl.less"(%1, %0) : (tensor<1xi32>, tensor<i32>) -> tensor<1xi1>
      %3 = "tfl.pseudo_const"() <{value = dense<0> : tensor<1xi32>}> : () -> tensor<1xi32>
      %4 = "tfl.reduce_any"(%2, %3) : (tensor<1xi1>, tensor<1xi32>) -> tensor<i1>
      func.return %4 : tensor<i1>
    }
    func.func private @body(%x: tensor<?xf32>) -> tensor<?xf32> {
      %0 = "tfl.pseudo_const"() <{value = dense<1.0> : tensor<1xf32>}> : () -> tensor<1xf32>
      %1 = "tfl.concatenation"(%x, %0) <{axis = 0 : i32, fused_activation_function = "NONE"}>
          : (tensor<?xf32>, tensor<1xf32>) -> tensor<?xf32>
      func.return %1 : tensor<?xf32>
    }

After:

    func.func @main(%x: tensor<0xf32>) -> tensor<?xf32> {
      %0 = "tfl.while"(%x) <{cond = @cond, body = @body}> : (tensor<0xf32>) -> tensor<?xf32>
      %1 = "tfl.pseudo_const"() <{value = dense<-1> : tensor<1xi32>}> : () -> tensor<1xi32>
      %2 = "tfl.reshape"(%0, %1) <{new_shape = [-1 : i32]}> : (tensor<?xf32>, tensor<1xi32>) -> tensor<?xf32>
      func.return %2 : tensor<?xf32>
    }
    func.func private @cond(%x: tensor<?xf32>) -> tensor<i1> {
      %0 = "tfl.pseudo_const"() <{value = dense<5> : tensor<i32>}> : () -> tensor<i32>
      %1 = "tfl.shape"(%x) <{out_type = "INT32"}> : (tensor<?xf32>) -> tensor<1xi32>
      %2 = "tfl.less"(%1, %0) : (tensor<1xi32>, tensor<i32>) -> tensor<1xi1>
      %3 = "tfl.pseudo_const"() <{value = dense<0> : tensor<1xi32>}> : () -> tensor<1xi32>
      %4 = "tfl.reduce_any"(%2, %3) : (tensor<1xi1>, tensor<1xi32>) -> tensor<i1>
      func.return %4 : tensor<i1>
    }
    func.func private @body(%x: tensor<?xf32>) -> tensor<?xf32> {
      %0 = "tfl.pseudo_const"() <{value = dense<1.0> : tensor<1xf32>}> : () -> tensor<1xf32>
      %1 = "tfl.concatenation"(%x, %0) <{axis = 0 : i32, fused_activation_function = "NONE"}>
          : (tensor<?xf32>, tensor<1xf32>) -> tensor<?xf32>
      %2 = "tfl.shape"(%1) <{out_type = "INT32"}> : (tensor<?xf32>) -> tensor<1xi32>
      %3 = "tfl.pseudo_const"() <{value = dense<-2147483648> : tensor<i32>}> : () -> tensor<i32>
      %4 = "tfl.maximum"(%2, %3) : (tensor<1xi32>, tensor<i32>) -> tensor<1xi32>
      %5 = "tfl.reshape"(%1, %4) : (tensor<?xf32>, tensor<1xi32>) -> tensor<?xf32>
      func.return %5 : tensor<?xf32>
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

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from tfconvert.converter.ir import symbol_table
from tfconvert.converter.ir.interface import entry_functions
from tfconvert.converter.ir.tf_builder import TFLBuilder
from tfconvert.converter.pipeline.pass_result import NOTHING_DONE, PassResult
from tfconvert.converter.targets.litert.resized_variables import is_sized_at_run, resized_variables
from tfconvert.schema.dialects import tensor_data, tfl, types
from tfconvert.schema.dialects.func import FuncOp, defined_functions
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import BlockArgument, OpResult, Value

_APPLIED = "copied"
_SIZED = "sized at run time"
_ASKING = ("tfl.rank", "tfl.shape")
_BARRIER = f"tfl.{tfl.BARRIER}"


class SeparateResults:
    """Gives the functions of `tfl.if` and `tfl.while` results that don't alias."""

    __slots__ = ()

    name: ClassVar[str] = "separate-results"

    def apply(self, module: ModuleOp) -> PassResult:
        """Rewrites the functions; returns the numbers of copied values and of loops that allocate at run time."""
        functions = defined_functions(module)
        if len(functions) < 2:
            return NOTHING_DONE  # there are no calls
        bodies: set[str] = set()
        resized: dict[str, list[int]] = {}
        branches: set[str] = set()
        for function in functions.values():
            for op in function.body.walk():
                if op.name == "tfl.while":
                    body = symbol_table.named(op, "body")
                    bodies.add(body)
                    resized[body] = [
                        index for index in resized_variables(op, functions[body]) if _may_be_one(op, index)
                    ]
                elif op.name == "tfl.if":
                    branches.update(symbol_table.names(op))
        copied = sum(_separate_arguments(functions[name]) for name in functions if name in bodies)
        sized = sum(_size_at_run(functions[name], resized[name]) for name in functions if name in bodies)
        copied += sum(_separate_moved(functions[name]) for name in functions if name in branches)
        entries = [function for function in entry_functions(module) if not function.is_declaration]
        copied += sum(_separate_outputs(function, functions) for function in entries)
        return PassResult.of({_APPLIED: copied, _SIZED: sized})


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


def _separate_outputs(function: FuncOp, functions: Mapping[str, FuncOp]) -> int:
    """Copies outputs of the model that a subgraph may leave without elements."""
    last = function.body.block.last_op
    found = [] if last is None else [each for each in enumerate(last.operands) if _may_come_empty(each[1], functions)]
    for position, value in found:
        assert last is not None
        last.set_operand(position, TFLBuilder(last).copy(value))
    return len(found)


def _may_come_empty(value: Value, functions: Mapping[str, FuncOp]) -> bool:
    if not isinstance(value, OpResult) or types.is_static(value.shape):
        return False
    if value.op.name != "tfl.while":
        return value.op.name == "tfl.if"
    if types.is_static(value.op.operands[value.index].shape):
        return True
    return value.index in resized_variables(value.op, functions[symbol_table.named(value.op, "body")])


def _may_be_one(loop: Operation, index: int) -> bool:
    shape = loop.operands[index].shape
    return not shape or shape[0] < 2


def _size_at_run(body: FuncOp, variables: Sequence[int]) -> int:
    """Has LiteRT allocate a loop's variables at each run if one of them may change from 0 rows to 1, or back."""
    last = body.body.block.last_op
    if last is None or not variables or is_sized_at_run(value := last.operands[variables[0]]):
        return 0
    insert = TFLBuilder(last)
    shape = _at_run(insert.shape(value), last)
    last.set_operand(variables[0], insert.tfl("reshape", (value, shape), value.type))
    return 1


def _is_text(value: Value) -> bool:
    return value.element == types.STRING


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
        elif op.name == _BARRIER:
            continue
        elif op.name in _ASKING or all(value in early or value in constants for value in op.operands):
            early.update(op.results)
    return {value for value in early if value.element in (types.I32, types.I64)}


def _at_run(value: Value, before: Operation) -> Value:
    """Inserts a value with the same integers that is only known at run time."""
    least = np.iinfo(np.int64 if value.element == types.I64 else np.int32)
    insert = TFLBuilder(before)
    bound = insert.constant(np.array(least.min, least.dtype))
    return insert.tfl(tfl.BARRIER, (value, bound), value.type)
