"""Pass `freeze-variables`: reads of variables that nothing writes become constants (design §8).

Before:

    "tf_saved_model.global_tensor"() <{sym_name = "w", type = tensor<2xf32>, value = dense<1.0> : tensor<2xf32>}>
    func.func @main() -> tensor<2xf32> {
      %0 = "tf.VarHandleOp"() <{container = "", shared_name = "w"}> : () -> tensor<!tf_type.resource>
      %1 = "tf.ReadVariableOp"(%0) : (tensor<!tf_type.resource>) -> tensor<2xf32>
      func.return %1 : tensor<2xf32>
    }

After:

    func.func @main() -> tensor<2xf32> {
      %0 = "tf.Const"() <{value = dense<1.0> : tensor<2xf32>}> : () -> tensor<2xf32>
      func.return %0 : tensor<2xf32>
    }
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from converter.rewrite.edit import erase
from schema.dialects import tensor_data, tf
from schema.dialects.tf_saved_model import GlobalTensorOp

_READS = frozenset({"tf.ReadVariableOp"})
_HARMLESS = frozenset({"tf.VarIsInitializedOp", "tf.VariableShape", "tf.DisableCopyOnRead"})


@dataclass(frozen=True, slots=True)
class FreezeVariables:
    """Freezes variables whose every handle is only read."""

    name: ClassVar[str] = "freeze-variables"

    def apply(self, module: ModuleOp) -> Counter[str]:
        """Replaces reads by constants, erases handles without uses and frozen global tensors; returns how many."""
        tensors = {op.sym_name: op for op in module.ops if isinstance(op, GlobalTensorOp)}
        handles: dict[str, list[Operation]] = {}
        for function in module.ops:
            if isinstance(function, FuncOp):
                for op in function.body.walk():
                    if op.name == "tf.VarHandleOp":
                        shared_name = op.properties.get("shared_name")
                        if isinstance(shared_name, StringAttr):
                            handles.setdefault(shared_name.data, []).append(op)
        frozen = 0
        for symbol, tensor in tensors.items():
            mine = handles.get(symbol, [])
            if all(_is_only_read(handle) for handle in mine):
                for handle in mine:
                    _freeze(handle, tensor)
                erase(tensor)
                frozen += 1
        return Counter({"frozen": frozen})


def _is_only_read(handle: Operation) -> bool:
    return all(use.operation.name in _READS or use.operation.name in _HARMLESS for use in handle.results[0].uses)


def _freeze(handle: Operation, tensor: GlobalTensorOp) -> None:
    """Puts a constant in the place of each read of a handle; equal reads share the first one's."""
    value = tensor.properties["value"]
    assert tensor_data.is_constant(value)
    block = handle.parent
    assert block is not None
    constant: Operation | None = None
    for use in tuple(handle.results[0].uses):
        read = use.operation
        if read.name in _READS:
            if constant is None:
                constant = tf.constant(value, handle.location)
                block.insert_op_before(constant, handle)
            read.results[0].replace_all_uses_with(constant.results[0])
        elif read.name == "tf.VariableShape":
            continue
        if read.parent is not None and all(result.first_use is None for result in read.results):
            erase(read)
    if handle.results[0].first_use is None:
        erase(handle)
