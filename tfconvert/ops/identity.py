"""Constants, handles, and ops that pass values through."""

from __future__ import annotations

import numpy as np

from tfconvert.ops.call import Call, Results
from tfconvert.ops.declaration import op, ops_like
from tfconvert.ops.operands import Operands, Partials
from tfconvert.ops.shape_functions import Shapes, same, same_each, same_elements, scalars
from tfconvert.schema.dialects import types
from tfconvert.schema.dialects.dims import merge
from tfconvert.schema.dialects.relations.rules import holds_one
from tfconvert.schema.dialects.relations.view import View


def _declared_shape(operands: Operands) -> Shapes:
    """`PlaceholderWithDefault`: the default has to fit what is declared, but may be more specific."""
    declared = operands.declared_shape("shape")
    merge(declared, operands.shape(0))
    return (declared,)


def _read_variable_shape(operands: Operands) -> Shapes:
    producer = operands.producer(0)
    if producer is None or producer.name != "tf.VarHandleOp":
        return (None,)
    return (operands.declared_shape("shape", producer),)


def _same_each_elements(operands: Operands) -> Partials:
    return [operands.partial(index) for index in range(operands.count)]


def _same(call: Call) -> Results:
    return call.inputs


def _nothing(call: Call) -> Results:
    return ()


def _const(call: Call) -> Results:
    value = call.attributes.get("value")
    if not isinstance(value, np.ndarray):
        raise call.bad("the constant has no value")
    return (value,)


def _assert(call: Call) -> Results:
    if not call.inputs[0].all():
        raise call.bad("the assertion doesn't hold")
    return ()


def _variable_shape(operands: Operands) -> Shapes:
    """The shape of the value that a handle's type holds."""
    held = types.held_by(operands.values[0].type)
    shape = None if held is None else types.shape_of(held)
    return ((-1 if shape is None else len(shape),),)


def _one_handle(view: View) -> None:
    shape = view.shape("input")
    if shape is not None and -1 not in shape and any(dim != 1 for dim in shape):
        view.fail(f"'input' must be one resource, found {view.type('input')}")


OPS = (
    op("Assert", compute=_assert),
    op("Const", compute=_const),
    op("DeepCopy", shape=same, compute=_same),
    op("DebugIdentity", shape=same, verified=True),
    op("MergeSummary", shape=scalars, verified=True),
    *ops_like("HashTableV2 Timestamp VarIsInitializedOp", shape=scalars),
    *ops_like(
        "Identity PreventGradient Snapshot StopGradient", shape=same, values=same_elements, compute=_same, verified=True
    ),
    op("IdentityN", shape=same_each, values=_same_each_elements, compute=_same),
    op("NoOp", compute=_nothing),
    op("PlaceholderWithDefault", shape=_declared_shape, compute=_same),
    op("ReadVariableOp", shape=_read_variable_shape),
    op("VarHandleOp", shape=scalars, relations=(holds_one("resource"),)),
    op("VariableShape", shape=_variable_shape, relations=(_one_handle,), verified=True),
    op("_UnaryOpsComposition", shape=same, verified=True),
)
