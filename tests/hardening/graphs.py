"""Builds GraphDefs of hostile and of long models, node by node, without TensorFlow."""

from __future__ import annotations

from typing import Any

import numpy as np

from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb

# TensorFlow's numbers of element types.
FLOAT, INT, STRING, INT64, BOOL = 1, 3, 7, 9, 10

_TYPES = {np.dtype(np.float32): FLOAT, np.dtype(np.int32): INT, np.dtype(np.int64): INT64}
_VALUES = {FLOAT: "float_val", INT: "int_val", STRING: "string_val", BOOL: "bool_val"}


def graph(shape: tuple[int, ...] = (4,), dtype: int = FLOAT) -> pb.GraphDef:
    """Returns a graph of one placeholder, `x`."""
    made = pb.GraphDef()
    node = add(made, "x", "Placeholder", dtype=dtype)
    node.attr["shape"].shape.SetInParent()
    for dim in shape:
        node.attr["shape"].shape.dim.add().size = dim
    return made


def add(target: Any, name: str, op: str, *inputs: str, **attributes: Any) -> Any:
    """Adds a node to a graph, or to a function, and returns it.

    Args:
        target: The graph or function.
        name: The node's name.
        op: Its op.
        inputs: Its inputs.
        attributes: Its attributes: a type's number, truth, text for functions, bytes, or a list of integers. Those of
            names like `N` are integers in a tuple of one.
    """
    node = (target.node if isinstance(target, pb.GraphDef) else target.node_def).add()
    node.name, node.op = name, op
    node.input.extend(inputs)
    for key, value in attributes.items():
        _set(node.attr[key], value)
    return node


def _set(attribute: Any, value: Any) -> None:
    if isinstance(value, bool):
        attribute.b = value
    elif isinstance(value, int):
        attribute.type = value
    elif isinstance(value, str):
        attribute.func.name = value
    elif isinstance(value, bytes):
        attribute.s = value
    elif isinstance(value, tuple):
        (attribute.i,) = value
    elif value and isinstance(value[0], str):
        attribute.list.type.extend(map(int, value))
    else:
        attribute.list.SetInParent()
        attribute.list.i.extend(value)


def const(target: Any, name: str, value: Any) -> str:
    """Adds a constant; returns its name."""
    array = np.asarray(value)
    dtype = _TYPES[array.dtype]
    tensor = add(target, name, "Const", dtype=dtype).attr["value"].tensor
    tensor.dtype = dtype
    tensor.tensor_shape.SetInParent()
    for dim in array.shape:
        tensor.tensor_shape.dim.add().size = dim
    tensor.tensor_content = array.tobytes()
    return name


def splat(target: Any, name: str, shape: tuple[int, ...], *values: Any, dtype: int = FLOAT) -> str:
    """Adds a constant of a few values, the last of which fills the shape; returns its name."""
    tensor = add(target, name, "Const", dtype=dtype).attr["value"].tensor
    tensor.dtype = dtype
    for dim in shape:
        tensor.tensor_shape.dim.add().size = dim
    getattr(tensor, _VALUES[dtype]).extend(values)
    return name


def function(target: pb.GraphDef, name: str, result: str) -> Any:
    """Adds a function from a float `a` to a float, the result of one of the nodes that it will have."""
    made = target.library.function.add()
    made.signature.name = name
    made.signature.input_arg.add(name="a", type=FLOAT)
    made.signature.output_arg.add(name="r", type=FLOAT)
    made.ret["r"] = result
    return made


def call(target: Any, name: str, callee: str, value: str) -> None:
    """Adds a call of a function from one float to another."""
    add(target, name, "PartitionedCall", value, Tin=[str(FLOAT)], Tout=[str(FLOAT)], f=callee)


def small_model() -> pb.GraphDef:
    """Returns a graph that is converted in no time."""
    made = graph()
    add(made, "y", "AddV2", "x", const(made, "c", np.ones(4, np.float32)), T=FLOAT)
    return made
