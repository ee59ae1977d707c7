"""Pass `unbind-inputs`: replaces arguments that are bound to variables or files by handles and paths.

In TensorFlow's MLIR text of a SavedModel, an exported function has its variables and assets as arguments, each bound to
a symbol. Callers see only the other arguments.

Before:

    module attributes {tf_saved_model.semantics} {
      "tf_saved_model.global_tensor"() <{
        sym_name = "w", type = tensor<2xf32>, value = dense<1.0> : tensor<2xf32>
      }> : () -> ()
      func.func @main(%x: tensor<2xf32> {tf_saved_model.index_path = ["x"]},
                      %w: tensor<!tf_type.resource<tensor<2xf32>>> {tf_saved_model.bound_input = @w})
          -> (tensor<2xf32> {tf_saved_model.index_path = []}) attributes {tf_saved_model.exported_names = ["main"]} {
        %0 = "tf.ReadVariableOp"(%w) : (tensor<!tf_type.resource<tensor<2xf32>>>) -> tensor<2xf32>
        %1 = "tf.AddV2"(%x, %0) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
        func.return %1 : tensor<2xf32>
      }
    }

After:

    module attributes {tf_saved_model.semantics} {
      "tf_saved_model.global_tensor"() <{
        sym_name = "w", type = tensor<2xf32>, value = dense<1.0> : tensor<2xf32>
      }> : () -> ()
      func.func @main(%x: tensor<2xf32> {tf_saved_model.index_path = ["x"]})
          -> (tensor<2xf32> {tf_saved_model.index_path = []}) attributes {tf_saved_model.exported_names = ["main"]} {
        %w = "tf.VarHandleOp"() <{container = "", shared_name = "w"}> : () -> tensor<!tf_type.resource<tensor<2xf32>>>
        %0 = "tf.ReadVariableOp"(%w) : (tensor<!tf_type.resource<tensor<2xf32>>>) -> tensor<2xf32>
        %1 = "tf.AddV2"(%x, %0) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
        func.return %1 : tensor<2xf32>
      }
    }
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from tfconvert.converter.ir.edit import update_function_type
from tfconvert.converter.pipeline.pass_result import NOTHING_DONE, PassResult
from tfconvert.schema.dialects import tensor_data, tf, types
from tfconvert.schema.dialects.func import FuncOp, defined_functions
from tfconvert.schema.dialects.locations import error_at
from tfconvert.schema.dialects.tf_saved_model import BOUND_INPUT, AssetOp, GlobalTensorOp
from tfconvert.schema.ir.attributes import ArrayAttr, DictionaryAttr, StringAttr, SymbolRefAttr
from tfconvert.schema.ir.builder import OpBuilder
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import BlockArgument


class UnbindInputs:
    """Replaces bound arguments of exported functions."""

    __slots__ = ()

    name: ClassVar[str] = "unbind-inputs"

    def apply(self, module: ModuleOp) -> PassResult:
        held = {
            name.data: op
            for op in module.ops
            if isinstance(op, GlobalTensorOp | AssetOp)
            if isinstance(name := op.properties.get("sym_name"), StringAttr)
        }
        count = sum(
            _unbind(function, held) for function in defined_functions(module).values() if function.arg_attrs is not None
        )
        return PassResult.of({"bound arguments": count}) if count else NOTHING_DONE


def _unbind(function: FuncOp, held: Mapping[str, Operation]) -> int:
    assert function.arg_attrs is not None
    kept = []
    block = function.body.blocks[0]
    builder = OpBuilder.at_block_begin(block)
    for argument, attributes in zip(function.args, function.arg_attrs, strict=True):
        symbol = attributes.data.get(BOUND_INPUT) if isinstance(attributes, DictionaryAttr) else None
        if not isinstance(symbol, SymbolRefAttr):
            kept.append(attributes)
            continue
        bound = held.get(symbol.root)
        if bound is None:
            raise error_at(function, "invalid-ir", f"an argument is bound to {symbol}, which the module doesn't have")
        argument.replace_all_uses_with(builder.insert(_value(argument, bound, symbol.root)).results[0])
        block.erase_arg(argument)
    count = len(function.arg_attrs) - len(kept)
    if count:
        named = any(isinstance(each, DictionaryAttr) and each.data for each in kept)
        function.arg_attrs = ArrayAttr.get(kept) if named else None
        update_function_type(function)
    return count


def _value(argument: BlockArgument, bound: Operation, symbol: str) -> tf.TFOp:
    """Returns the op that has an argument's value: a variable's handle, or a file's path."""
    if isinstance(bound, GlobalTensorOp):
        op = tf.build("VarHandleOp", (), [argument.type], {"container": "", "shared_name": symbol}, bound.location)
    else:
        filename = bound.properties.get("filename")
        path = np.array(filename.data.encode() if isinstance(filename, StringAttr) else b"", object)
        op = tf.constant(tensor_data.of_array(path, types.STRING), bound.location)
    op.results[0].name_hint = argument.name_hint
    return op
