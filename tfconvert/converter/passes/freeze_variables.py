"""Pass `freeze-variables`: replaces reads of variables that nothing changes by constants.

A variable to which only its own value is assigned doesn't change: Keras models on JAX return all that training could
change, and assign it.

Before:

    "tf_saved_model.global_tensor"() <{
      sym_name = "w", type = tensor<2xf32>, value = dense<1.0> : tensor<2xf32>
    }> : () -> ()
    func.func @main() -> tensor<2xf32> {
      %0 = "tf.VarHandleOp"() <{container = "", shared_name = "w"}> : () -> tensor<!tf_type.resource<tensor<2xf32>>>
      %1 = "tf.ReadVariableOp"(%0) : (tensor<!tf_type.resource<tensor<2xf32>>>) -> tensor<2xf32>
      func.return %1 : tensor<2xf32>
    }

After:

    func.func @main() -> tensor<2xf32> {
      %0 = "tf.Const"() <{value = dense<1.0> : tensor<2xf32>}> : () -> tensor<2xf32>
      func.return %0 : tensor<2xf32>
    }
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

import numpy as np

from tfconvert.converter.control_flow.constructs import origin
from tfconvert.converter.ir.edit import erase, update_function_type
from tfconvert.converter.ir.tf_builder import TFBuilder
from tfconvert.converter.pipeline.pass_result import PassResult
from tfconvert.schema.dialects import tensor_data, tf, types
from tfconvert.schema.dialects.func import FuncOp, functions_of
from tfconvert.schema.dialects.locations import error_at
from tfconvert.schema.dialects.tensor_data import Constant
from tfconvert.schema.dialects.tf_saved_model import BOUND_INPUT, GlobalTensorOp
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.attributes import DictionaryAttr, StringAttr, SymbolRefAttr
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import OpResult, Value

_READ = "tf.ReadVariableOp"
_ASSIGN = "tf.AssignVariableOp"
_ASKED = frozenset({"tf.VarIsInitializedOp", "tf.VariableShape"})
_WITHOUT_RESULT = frozenset({"tf.DisableCopyOnRead"})
_HARMLESS = frozenset({_READ}) | _ASKED | _WITHOUT_RESULT


class FreezeVariables:
    """Freezes variables to which nothing new is assigned, and that only handles refer to.

    The types of other handles without a declared static shape get that of their first value.
    """

    __slots__ = ()

    name: ClassVar[str] = "freeze-variables"

    def apply(self, module: ModuleOp) -> PassResult:
        tensors = {
            op.sym_name: op for op in module.ops if isinstance(op, GlobalTensorOp) and "sym_name" in op.properties
        }
        functions = list(functions_of(module).values())
        handles = _handles(functions) if tensors else {}
        bound = _bound(functions)
        frozen = 0
        for symbol, tensor in tensors.items():
            mine = handles.get(symbol, [])
            value = tensor.properties.get("value")
            if value is None or not tensor_data.is_constant(value) or symbol in bound:
                continue
            if all(_is_unchanged(handle, symbol) for handle in mine):
                for handle in mine:
                    _freeze(handle, value)
                erase(tensor)
                frozen += 1
            else:
                _assume_shape(mine, tensor, value)
        if frozen:
            for function in functions:
                update_function_type(function)
        return PassResult.of({"frozen": frozen}, frozen_variables=frozen)


def _handles(functions: Iterable[FuncOp]) -> dict[str, list[Operation]]:
    """Returns the ops that create handles of variables, by the variable's name."""
    handles: dict[str, list[Operation]] = {}
    for function in functions:
        for op in list(function.walk()):
            if op.name == "tf.VarHandleOp" and isinstance(name := op.properties.get("shared_name"), StringAttr):
                handles.setdefault(name.data, []).append(op)
    return handles


def _bound(functions: Iterable[FuncOp]) -> set[str]:
    """Returns the variables that are functions' arguments; their uses there are not analysed."""
    return {
        symbol.root
        for function in functions
        for argument in function.arg_attrs or ()
        if isinstance(argument, DictionaryAttr) and isinstance(symbol := argument.data.get(BOUND_INPUT), SymbolRefAttr)
    }


def _is_unchanged(handle: Operation, symbol: str) -> bool:
    """Returns whether a handle is only used to read a variable, or to assign what was read from it."""
    return all(
        use.operation.name in _HARMLESS
        or (use.operation.name == _ASSIGN and use.index == 0 and _is_read_of(use.operation.operands[1], symbol))
        for use in handle.results[0].uses
    )


def _is_read_of(value: Value, symbol: str) -> bool:
    """Returns whether a value was read from a variable and only passed on."""
    source = origin(value)
    read = source.op if isinstance(source, OpResult) else None
    handle = read.operands[0] if read is not None and read.name == _READ else None
    op = handle.op if isinstance(handle, OpResult) else None
    name = op.properties.get("shared_name") if op is not None and op.name == "tf.VarHandleOp" else None
    return isinstance(name, StringAttr) and name.data == symbol


def _assume_shape(handles: Iterable[Operation], tensor: GlobalTensorOp, value: Constant) -> None:
    """Gives handles without a shape the type of the initial value; `initialize-state` proves that it stays."""
    if not types.is_static(types.shape_of(tensor.properties["type"])):
        shape = tf.ShapeAttr.get(value.shape)
        for handle in handles:
            handle.properties["shape"] = shape


def _freeze(handle: Operation, value: Constant) -> None:
    """Replaces all reads and queries of a handle by constants, one for equal types, and erases it."""
    insert = TFBuilder(handle)
    made: dict[tuple[str, Attribute], Value] = {}
    for use in tuple(handle.results[0].uses):
        user = use.operation
        for result in user.results:
            answer = _answer(user, result.type, value)
            # Reads may have less specific shapes than the variable; they are one constant.
            key = (user.name, value.type if user.name == _READ else result.type)
            constant = made.get(key)
            if constant is None:
                constant = made[key] = insert.constant(answer)
            result.replace_all_uses_with(constant)
        erase(user)
    erase(handle)


def _answer(user: Operation, result_type: Attribute, value: Constant) -> Constant:
    """Returns the result of an op that reads or queries a variable without changing it."""
    element = types.element_of(result_type)
    if user.name == "tf.VarIsInitializedOp":
        return tensor_data.of_array(np.array(True), element)
    if user.name == "tf.VariableShape":
        shape = value.shape
        return tensor_data.of_array(np.array(shape, types.numpy_dtype(element)), element)
    if types.element_of(value.type) != element:
        raise error_at(user, "variable-type", f"it reads {value.type} as {result_type}")
    return value
