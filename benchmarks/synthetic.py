"""Frozen graphs of any number of nodes, written without TensorFlow.

`deep` is one chain of small residual blocks; `wide` is as many branches off one input as fit, all joined
by one concatenation, whose operands then number in the thousands.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb

CHANNELS = 4
SIDE = 8
INPUT, OUTPUT = "input", "output"
PRODUCER = 2000


class Builder:
    """Adds nodes to a GraphDef.

    Attributes:
        graph: The nodes added so far.
        count: How many nodes that is.
    """

    def __init__(self, seed: int = 0) -> None:
        self.graph = pb.GraphDef()
        self.graph.versions.producer = PRODUCER
        self.count = 0
        self._random = np.random.default_rng(seed)

    def node(self, op: str, *inputs: str, name: str = "", dtype: str = "T") -> pb.NodeDef:
        """Adds a node of float32 and returns it; `dtype` names the attribute for that."""
        node = self.graph.node.add(op=op, name=name or f"n{self.count}", input=inputs)
        node.attr[dtype].type = pb.DT_FLOAT
        self.count += 1
        return node

    def constant(self, *shape: int) -> str:
        """Adds random weights."""
        values = self._random.normal(0, 0.2, shape).astype("<f4")
        node = self.node("Const", dtype="dtype")
        tensor = node.attr["value"].tensor
        tensor.dtype = pb.DT_FLOAT
        for size in shape:
            tensor.tensor_shape.dim.add(size=size)
        tensor.tensor_content = values.tobytes()
        return node.name

    def placeholder(self) -> str:
        """Adds the input."""
        node = self.node("Placeholder", name=INPUT, dtype="dtype")
        for size in (1, SIDE, SIDE, CHANNELS):
            node.attr["shape"].shape.dim.add(size=size)
        return node.name

    def convolution(self, features: str) -> str:
        """Adds a 3x3 convolution with a bias: four nodes."""
        node = self.node("Conv2D", features, self.constant(3, 3, CHANNELS, CHANNELS))
        node.attr["strides"].list.i.extend([1, 1, 1, 1])
        node.attr["padding"].s = b"SAME"
        return self.node("BiasAdd", node.name, self.constant(CHANNELS)).name

    def block(self, features: str) -> str:
        """Adds a residual block that ends in a scale: eight nodes."""
        active = self.node("Relu", self.convolution(features)).name
        scaled = self.node("Mul", active, self.constant(CHANNELS)).name
        return self.node("AddV2", scaled, features).name

    def joined(self, branches: list[str]) -> str:
        """Adds a concatenation of the channels of all branches."""
        axis = self.node("Const", dtype="dtype")
        axis.attr["dtype"].type = pb.DT_INT32
        axis.attr["value"].tensor.dtype = pb.DT_INT32
        axis.attr["value"].tensor.tensor_shape.SetInParent()
        axis.attr["value"].tensor.int_val.append(3)
        node = self.node("ConcatV2", *branches, axis.name)
        node.attr["N"].i = len(branches)
        node.attr["Tidx"].type = pb.DT_INT32
        return node.name


def deep(nodes: int) -> pb.GraphDef:
    """Returns a chain of about so many nodes."""
    builder = Builder()
    features = builder.placeholder()
    while builder.count < nodes - 1:
        features = builder.block(features)
    builder.node("Identity", features, name=OUTPUT)
    return builder.graph


def wide(nodes: int) -> pb.GraphDef:
    """Returns branches side by side, of about so many nodes in all."""
    builder = Builder()
    features = builder.placeholder()
    branches: list[str] = []
    while builder.count < nodes - 3:
        branches.append(builder.block(features))
    builder.node("Identity", builder.joined(branches), name=OUTPUT)
    return builder.graph


SHAPES: dict[str, Callable[[int], pb.GraphDef]] = {"deep": deep, "wide": wide}


def write(shape: str, nodes: int, path: Path) -> int:
    """Writes a graph and returns how many nodes it has."""
    graph = SHAPES[shape](nodes)
    path.write_bytes(graph.SerializeToString(deterministic=True))
    return len(graph.node)
