"""Initial values of variables: values of global tensors, and constants that a model's initializers assign."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tfconvert.converter.ir import symbol_table
from tfconvert.converter.ir.edit import erase
from tfconvert.schema.dialects import tensor_data, types
from tfconvert.schema.dialects.func import FuncOp, functions_of
from tfconvert.schema.dialects.tf_saved_model import AssetOp, GlobalTensorOp, SessionInitializerOp, hide_initializer
from tfconvert.schema.ir.attributes import StringAttr
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation

HANDLE = "tf.VarHandleOp"
ASSIGN = "tf.AssignVariableOp"
_SHAPE_IS_KEPT = frozenset({"tf.ReadVariableOp", "tf.VarIsInitializedOp", "tf.VariableShape"})

UNKNOWN = (
    "unknown-variable",
    "the model's file doesn't hold the variable's initial value",
    "export a SavedModel, which holds variables' values",
)
"""Code, message and hint of a variable without a known value."""


def variable_name(handle: Operation) -> str:
    """Returns the name of a handle's variable."""
    name = handle.properties.get("shared_name")
    return name.data if isinstance(name, StringAttr) else ""


def take_initializers(module: ModuleOp) -> list[str]:
    """Returns the module's initializer functions, made private; erases the ops that refer to them."""
    found = []
    for op in tuple(module.ops):
        if isinstance(op, SessionInitializerOp):
            found += symbol_table.names(op)
        if isinstance(op, SessionInitializerOp | AssetOp):
            erase(op)
    functions = functions_of(module) if found else {}
    for name in found:
        if name in functions:
            hide_initializer(functions[name])
    return found


def take_values(module: ModuleOp, initializers: Iterable[FuncOp], tensors: dict[str, GlobalTensorOp]) -> None:
    """Creates global tensors from constants that initializers assign to variables without one.

    Args:
        module: The module.
        initializers: The functions; the assignments are erased.
        tensors: The global tensors by variable; new ones are added.
    """
    for op in [op for function in initializers for op in function.body.walk() if op.name == ASSIGN]:
        handle, value = op.operands[0].owner, tensor_data.constant_of(op.operands[1])
        if value is None or not isinstance(handle, Operation) or handle.name != HANDLE:
            continue
        name = variable_name(handle)
        if name not in tensors and handle.results[0].has_one_use():
            tensors[name] = GlobalTensorOp.build(name, value.type, value, is_mutable=True, location=handle.location)
            module.body.block.add_op(tensors[name])
            erase(op)
            erase(handle)


def assignments_of_other_shapes(handles: Sequence[Operation], shape: types.Shape) -> Iterator[Operation]:
    """Yields the ops that may change the shape of a variable."""
    for handle in handles:
        for use in handle.results[0].uses:
            op = use.operation
            if op.name not in _SHAPE_IS_KEPT and (op.name != ASSIGN or op.operands[1].shape != shape):
                yield op
