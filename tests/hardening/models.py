"""Small models made by hand, without TensorFlow: graphs, SavedModels, and their folders."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb

# The number of the type of floats.
FLOAT = 1


def node(name: str, op: str, inputs: Sequence[str] = (), **types: int) -> pb.NodeDef:
    """Returns a node whose attributes are types."""
    made = pb.NodeDef(name=name, op=op, input=inputs)
    for key, number in types.items():
        made.attr[key].type = number  # type: ignore[assignment]  # the generated code accepts the number
    return made


def placeholder(name: str = "x", shape: Sequence[int] = (2,)) -> pb.NodeDef:
    """Returns an input of floats."""
    made = node(name, "Placeholder", dtype=FLOAT)
    made.attr["shape"].shape.SetInParent()
    for size in shape:
        made.attr["shape"].shape.dim.add(size=size)
    return made


def constant(name: str, shape: Sequence[int], values: Sequence[float] = (1.0,)) -> pb.NodeDef:
    """Returns a constant of floats, the last of which is repeated."""
    made = node(name, "Const", dtype=FLOAT)
    tensor = made.attr["value"].tensor
    tensor.dtype = FLOAT  # type: ignore[assignment]
    tensor.float_val.extend(values)
    tensor.tensor_shape.SetInParent()
    for size in shape:
        tensor.tensor_shape.dim.add(size=size)
    return made


def graph(*nodes: pb.NodeDef) -> pb.GraphDef:
    """Returns a graph of nodes."""
    made = pb.GraphDef()
    made.node.extend(nodes)
    return made


# A graph that negates two numbers.
NEGATION = graph(placeholder(), node("y", "Neg", ["x"], T=FLOAT))


def saved(given: str = "x", result: str = "y", nodes: pb.GraphDef = NEGATION) -> pb.SavedModel:
    """Returns a SavedModel of a graph from `x` to `y` whose signature gives them other names."""
    model = pb.SavedModel()
    meta = model.meta_graphs.add()
    meta.meta_info_def.tags.append("serve")
    meta.graph_def.CopyFrom(nodes)
    signature = meta.signature_def["serving_default"]
    for ports, name, tensor in ((signature.inputs, given, "x:0"), (signature.outputs, result, "y:0")):
        ports[name].name = tensor
        ports[name].dtype = FLOAT  # type: ignore[assignment]
        ports[name].tensor_shape.dim.add(size=2)
    return model


def save(folder: Path, model: pb.SavedModel | None = None) -> Path:
    """Writes a SavedModel to a folder, which is returned."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "saved_model.pb").write_bytes((model or saved()).SerializeToString())
    return folder
