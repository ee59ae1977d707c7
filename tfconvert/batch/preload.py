"""Loads all modules that a conversion may need, and converts a small network, before the first task is forked.

Python runs code faster once it has run a few times, and tables that are built when they are first needed are then there
for all processes that are forked. The network has what image models have, several times, and needs no data files.
"""

from __future__ import annotations

import importlib
import math
import os
import pkgutil
from collections.abc import Sequence
from pathlib import Path

from tfconvert.batch.run_task import run_task
from tfconvert.batch.task import Task
from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb

_BLOCKS = 6
_CHANNELS = 8
_FORMAT = {"data_format": b"NHWC"}
_STRIDES = {"strides": [1, 1, 1, 1], "padding": b"SAME", "dilations": [1, 1, 1, 1], "explicit_paddings": []}

_Value = int | float | bool | bytes | str | Sequence[int] | Sequence[bytes]


class _Body:
    """The nodes of a function, added one after the other.

    Args:
        function: The function.
    """

    def __init__(self, function: pb.FunctionDef) -> None:
        self._function = function

    def add(self, op: str, *inputs: str, result: str = "", **attributes: _Value) -> str:
        """Adds a node, and returns the name of its first result.

        Args:
            op: Its op.
            inputs: What it reads.
            result: What its op calls that result.
            attributes: Its attributes; `T` is that of floats unless it is told.
        """
        node = self._function.node_def.add()
        node.name, node.op = f"net/{op}_{len(self._function.node_def)}", op
        node.input.extend(inputs)
        for key, value in {"T": pb.DT_FLOAT, **attributes}.items():
            _set(node.attr[key], value)
        return f"{node.name}:{result}:0"

    def floats(self, *shape: int) -> str:
        """Adds a constant of different numbers."""
        count = math.prod(shape)
        return self._constant(pb.DT_FLOAT, shape, floats=[0.5 + number / count for number in range(count)])

    def whole(self, *values: int, shape: Sequence[int] = (-1,)) -> str:
        """Adds a constant of a list of integers, or of another shape."""
        sizes = [len(values) if size < 0 else size for size in shape]
        return self._constant(pb.DT_INT32, sizes, wholes=values)

    def _constant(
        self, dtype: int, shape: Sequence[int], floats: Sequence[float] = (), wholes: Sequence[int] = ()
    ) -> str:
        node = self._function.node_def.add()
        node.name, node.op = f"net/Const_{len(self._function.node_def)}", "Const"
        node.attr["dtype"].type = dtype  # type: ignore[assignment]
        tensor = node.attr["value"].tensor
        tensor.dtype = dtype  # type: ignore[assignment]
        tensor.tensor_shape.SetInParent()
        for size in shape:
            tensor.tensor_shape.dim.add(size=size)
        tensor.float_val.extend(floats)
        tensor.int_val.extend(wholes)
        return f"{node.name}:output:0"


def _set(attribute: pb.AttrValue, value: _Value) -> None:
    if isinstance(value, bool):
        attribute.b = value
    elif isinstance(value, int):
        attribute.type = value  # type: ignore[assignment]
    elif isinstance(value, float):
        attribute.f = value
    elif isinstance(value, bytes):
        attribute.s = value
    elif isinstance(value, str):
        attribute.func.name = value
    else:
        attribute.list.SetInParent()
        for each in value:
            attribute.list.s.append(each) if isinstance(each, bytes) else attribute.list.i.append(each)


def warm_up_model() -> pb.SavedModel:
    """Returns the network: a signature that calls a function, as Keras and TensorFlow export them."""
    model = pb.SavedModel(saved_model_schema_version=1)
    meta_graph = model.meta_graphs.add()
    meta_graph.meta_info_def.tags.append("serve")
    graph = meta_graph.graph_def
    function = graph.library.function.add()
    function.signature.name = "net"
    function.signature.input_arg.add(name="x", type=pb.DT_FLOAT)
    function.signature.output_arg.add(name="y", type=pb.DT_FLOAT)
    function.ret["y"] = _network(_Body(function), "x")
    x = graph.node.add(name="x", op="Placeholder")
    x.attr["dtype"].type = pb.DT_FLOAT
    y = graph.node.add(name="y", op="StatefulPartitionedCall", input=["x"])
    for key in ("Tin", "Tout"):
        y.attr[key].list.type.append(pb.DT_FLOAT)
    y.attr["f"].func.name = "net"
    signature = meta_graph.signature_def["serving_default"]
    for infos, name in ((signature.inputs, "x"), (signature.outputs, "y")):
        infos[name].name = f"{name}:0"
        infos[name].dtype = pb.DT_FLOAT
        for size in (-1, 16, 16, _CHANNELS) if name == "x" else (-1, _CHANNELS):
            infos[name].tensor_shape.dim.add(size=size)
    return model


def _network(body: _Body, value: str) -> str:
    for number in range(_BLOCKS):
        value = _block(body, value, is_gated=number % 2 == 1)
    value = body.add("Relu", body.add("RealDiv", value, body.floats(1), result="z"), result="activations")
    paddings = body.whole(0, 0, 1, 1, 1, 1, 0, 0, shape=(4, 2))
    value = body.add("Pad", value, paddings, result="output", Tpaddings=pb.DT_INT32)
    value = body.add(
        "ResizeBilinear", value, body.whole(8, 8), result="resized_images", align_corners=False, half_pixel_centers=True
    )
    value = body.add(
        "MaxPool",
        value,
        result="output",
        ksize=[1, 2, 2, 1],
        strides=[1, 2, 2, 1],
        padding=b"VALID",
        explicit_paddings=[],
        **_FORMAT,
    )
    value = body.add("Mean", value, body.whole(1, 2), result="output", Tidx=pb.DT_INT32, keep_dims=False)
    for activation in ("Relu", "Softmax"):
        value = body.add(
            "MatMul", value, body.floats(_CHANNELS, _CHANNELS), result="product", transpose_a=False, transpose_b=False
        )
        value = body.add("BiasAdd", value, body.floats(_CHANNELS), result="output", **_FORMAT)
        value = body.add(activation, value, result="activations" if activation == "Relu" else "softmax")
    value = body.add("Reshape", value, body.whole(-1, _CHANNELS), result="output", Tshape=pb.DT_INT32)
    return body.add("Identity", value, result="output")


def _block(body: _Body, value: str, *, is_gated: bool) -> str:
    """Adds an inverted bottleneck, with hard swishes and a gate by its channels if `is_gated`."""
    begin = value
    value = _activation(body, _normalized(body, _convolution(body, value)), is_gated=is_gated)
    value = body.add(
        "DepthwiseConv2dNative", value, body.floats(3, 3, _CHANNELS, 1), result="output", **_STRIDES, **_FORMAT
    )
    value = _activation(body, _normalized(body, value), is_gated=is_gated)
    if is_gated:
        gate = body.add("Mean", value, body.whole(1, 2), result="output", Tidx=pb.DT_INT32, keep_dims=True)
        gate = body.add("BiasAdd", _convolution(body, gate), body.floats(_CHANNELS), result="output", **_FORMAT)
        value = body.add("Mul", value, body.add("Sigmoid", gate, result="y"), result="z")
    return body.add("AddV2", begin, value, result="z")


def _convolution(body: _Body, value: str) -> str:
    weights = body.floats(1, 1, _CHANNELS, _CHANNELS)
    return body.add("Conv2D", value, weights, result="output", use_cudnn_on_gpu=True, **_STRIDES, **_FORMAT)


def _normalized(body: _Body, value: str) -> str:
    moments = [body.floats(_CHANNELS) for _ in range(4)]
    return body.add(
        "FusedBatchNormV3",
        value,
        *moments,
        result="y",
        U=pb.DT_FLOAT,
        epsilon=1e-3,
        is_training=False,
        exponential_avg_factor=1.0,
        **_FORMAT,
    )


def _activation(body: _Body, value: str, *, is_gated: bool) -> str:
    if not is_gated:
        return body.add("Relu6", value, result="activations")
    # The sum of two constants, which the conversion folds.
    three = body.add("AddV2", body.floats(1), body.floats(1), result="z")
    shifted = body.add("Relu6", body.add("AddV2", value, three, result="z"), result="activations")
    return body.add("Mul", value, body.add("Mul", shifted, body.floats(1), result="z"), result="z")


_PACKAGE = Path(__file__).parents[1]

# Modules that conversions in a worker never need, or that have an effect when loaded.
_LEFT_OUT = (
    "tfconvert.__main__",
    "tfconvert.compat",
    "tfconvert.batch",
    "tfconvert.client",
    "tfconvert.cli",
    "tfconvert.service",
    "tfconvert.experimental",
    "tfconvert.importers.keras",
    "tfconvert.schema.tensorflow.make_op_defs",
)


def preload(folder: str) -> None:
    """Imports the package's modules, and converts a small network, which reads the tables that are read once.

    Args:
        folder: Where the network and its result go.
    """
    for module in pkgutil.walk_packages([os.fspath(_PACKAGE)], "tfconvert."):
        if not module.name.startswith(_LEFT_OUT):
            importlib.import_module(module.name)
    model = Path(folder, "model")
    model.mkdir()
    (model / "saved_model.pb").write_bytes(warm_up_model().SerializeToString())
    names = ("model.tflite", "report.json", "report.html")
    output, report, page = (os.fspath(Path(folder, name)) for name in names)
    run_task(Task(os.fspath(model), output, {}, report, page), lambda stage: None)
