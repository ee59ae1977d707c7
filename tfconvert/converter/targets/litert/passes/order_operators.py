"""Pass `order-operators`: puts operators into an order in which the runtime needs less memory for their results.

The runtime executes operators in the order of the file, and plans its arena for it. Of a few orders the one with the
smallest arena is kept, or the program's if none is smaller. Open sizes count as 1. Operators with effects keep their
order. Functions that use variables, the images of files, and the bodies of loops and branches stay as they are: the
runtime passes tensors from one body to the next, and in another order it may read one that it has overwritten.

Before:

    func.func @main(%x: tensor<64xf32>) -> tensor<1xf32> {
      %times = "tfl.pseudo_const"() <{value = dense<16> : tensor<1xi32>}> : () -> tensor<1xi32>
      %axis = "tfl.pseudo_const"() <{value = dense<0> : tensor<1xi32>}> : () -> tensor<1xi32>
      %0 = "tfl.sin"(%x) : (tensor<64xf32>) -> tensor<64xf32>
      %1 = "tfl.tile"(%x, %times) : (tensor<64xf32>, tensor<1xi32>) -> tensor<1024xf32>
      %2 = "tfl.tile"(%0, %times) : (tensor<64xf32>, tensor<1xi32>) -> tensor<1024xf32>
      %3 = "tfl.sum"(%1, %axis) <{keep_dims = true}> : (tensor<1024xf32>, tensor<1xi32>) -> tensor<1xf32>
      %4 = "tfl.sum"(%2, %axis) <{keep_dims = true}> : (tensor<1024xf32>, tensor<1xi32>) -> tensor<1xf32>
      %5 = "tfl.mul"(%3, %4) <{fused_activation_function = "NONE"}> : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
      func.return %5 : tensor<1xf32>
    }

After:

    func.func @main(%x: tensor<64xf32>) -> tensor<1xf32> {
      %0 = "tfl.sin"(%x) : (tensor<64xf32>) -> tensor<64xf32>
      %times = "tfl.pseudo_const"() <{value = dense<16> : tensor<1xi32>}> : () -> tensor<1xi32>
      %1 = "tfl.tile"(%0, %times) : (tensor<64xf32>, tensor<1xi32>) -> tensor<1024xf32>
      %axis = "tfl.pseudo_const"() <{value = dense<0> : tensor<1xi32>}> : () -> tensor<1xi32>
      %2 = "tfl.sum"(%1, %axis) <{keep_dims = true}> : (tensor<1024xf32>, tensor<1xi32>) -> tensor<1xf32>
      %3 = "tfl.tile"(%x, %times) : (tensor<64xf32>, tensor<1xi32>) -> tensor<1024xf32>
      %4 = "tfl.sum"(%3, %axis) <{keep_dims = true}> : (tensor<1024xf32>, tensor<1xi32>) -> tensor<1xf32>
      %5 = "tfl.mul"(%4, %2) <{fused_activation_function = "NONE"}> : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
      func.return %5 : tensor<1xf32>
    }
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import ClassVar

from tfconvert.converter.ir.symbol_table import names
from tfconvert.converter.pipeline.pass_result import NOTHING_DONE, PassResult
from tfconvert.schema.dialects import tfl, tfl_file, types
from tfconvert.schema.dialects.func import FuncOp, functions_of
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation

_ORDERED = "functions"

_BESIDE = tfl.full_names(tfl.BESIDE)

_HANDLES = types.ResourceType | types.VariantType


class OrderOperators:
    """Orders the operators of the functions that users call so that they need less memory."""

    __slots__ = ()

    name: ClassVar[str] = "order-operators"

    def apply(self, module: ModuleOp) -> PassResult:
        """Rewrites the functions that users call; returns how many have another order."""
        if tfl_file.is_image(module):
            return NOTHING_DONE
        functions = [function for function in functions_of(module).values() if not function.is_declaration]
        if len(functions) > 1:
            called = {name for op in module.walk() for name in names(op)}
            functions = [function for function in functions if function.sym_name not in called]
        return PassResult.of({_ORDERED: sum(map(_order, functions))})


def _order(function: FuncOp) -> bool:
    operators = [op for op in function.body.block.ops if op.name not in _BESIDE]
    terminator = operators.pop()
    if not _has_choice(operators) or any(op.regions for op in operators) or _use_handles(operators):
        return False
    # Here, since in most networks only few functions, or none, can have another order.
    from tfconvert.converter.targets.litert.operator_order import best_order, schedule_of

    order = best_order(schedule_of(function.body.block.args, operators, terminator.operands))
    if order is None:
        return False
    is_placed = set()
    for number in order:
        op = operators[number]
        for value in op.operands:
            constant = value.owner
            if isinstance(constant, tfl.TFLOp) and constant.name in _BESIDE and constant not in is_placed:
                is_placed.add(constant)
                _move(constant, terminator)
        _move(op, terminator)
    return True


def _move(op: Operation, terminator: Operation) -> None:
    block = terminator.parent
    assert block is not None
    op.detach()
    block.insert_op_before(op, terminator)


def _has_choice(operators: Sequence[Operation]) -> bool:
    """Returns whether an operator doesn't need the one before it, so that another order may be possible."""
    return any(all(value.owner is not before for value in op.operands) for before, op in pairwise(operators))


def _use_handles(operators: Sequence[Operation]) -> bool:
    kinds = {value.type for op in operators for value in (*op.operands, *op.results)}
    return any(isinstance(types.element_of(kind), _HANDLES) for kind in kinds)
