"""Shows that a conversion's memory does not grow with the weights, and what it takes to stream them.

    python -m benchmarks.large_weights
    python -m benchmarks.large_weights --megabytes 64 --runs 5
    python -m benchmarks.large_weights --megabytes 256 --quantize dynamic

The model has a table that is written as it is, a matrix that is transposed, another that is transposed and scaled, and
a filter of a convolution that is both, each of as many bytes. It is written without TensorFlow, into a folder that is
removed in the end. Exit status 1 if a conversion takes more memory than it may.
"""

from __future__ import annotations

import math
import statistics
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.bundle_writer import write_checkpoint
from benchmarks.commands import REPOSITORY, parser_of
from benchmarks.measure import measure
from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb
from tfconvert.settings.quantization import WEIGHT_MODES

# Bytes of memory that a conversion may take, whatever the size of the weights.
LIMIT = 200e6

_PIECE = 1 << 22


def _multiple(value: float) -> int:
    return max(8, int(value) // 8 * 8)


def shapes(megabytes: int) -> dict[str, tuple[int, ...]]:
    """Returns the shapes of the variables, each of about so many megabytes."""
    elements = megabytes * 2**20 // 4
    inner = _multiple(math.sqrt(elements / 2))
    wide = _multiple(elements / inner)
    channels = _multiple(math.sqrt(elements / 9))
    return {
        "filter": (3, 3, channels, channels),
        "matrix": (inner, wide),
        "scaled": (wide, inner),
        "table": (elements // 64, 64),
    }


def _numbers(shape: tuple[int, ...], seed: int) -> Iterator[np.ndarray]:
    random = np.random.default_rng(seed)
    left = math.prod(shape)
    while left:
        yield random.random(min(left, _PIECE), np.float32) - np.float32(0.5)
        left -= min(left, _PIECE)


class _Graph:
    """A graph of TensorFlow 1 whose variables are restored from a checkpoint."""

    def __init__(self) -> None:
        self.meta = pb.MetaGraphDef()
        self.meta.meta_info_def.tags.append("serve")
        self.graph = self.meta.graph_def
        self.graph.versions.producer = 2000

    def node(self, op: str, name: str, *inputs: str, **types: pb.DataType) -> str:
        """Adds a node with its type attributes and returns its name."""
        node = self.graph.node.add(op=op, name=name, input=inputs)
        for attribute, number in types.items():
            node.attr[attribute].type = number
        return name

    def constant(self, name: str, value: np.ndarray, number: pb.DataType) -> str:
        """Adds a constant."""
        self.node("Const", name, dtype=number)
        node = self.graph.node[-1]
        tensor = node.attr["value"].tensor
        tensor.dtype = number
        tensor.tensor_shape.SetInParent()
        for size in value.shape:
            tensor.tensor_shape.dim.add(size=size)
        if number == pb.DT_STRING:
            tensor.string_val.extend(value.ravel().tolist())
        else:
            tensor.tensor_content = value.tobytes()
        return name

    def variable(self, name: str, shape: tuple[int, ...]) -> str:
        """Adds a variable, its restoring, and its value, whose name is returned."""
        self.node("VarHandleOp", name, dtype=pb.DT_FLOAT)
        attributes = self.graph.node[-1].attr
        attributes["shared_name"].s = name.encode()
        for size in shape:
            attributes["shape"].shape.dim.add(size=size)
        names = self.constant(f"{name}/key", np.array([name.encode()], object), pb.DT_STRING)
        slices = self.constant(f"{name}/slice", np.array([b""], object), pb.DT_STRING)
        restored = self.node("RestoreV2", f"{name}/restored", "save/Const", names, slices)
        self.graph.node[-1].attr["dtypes"].list.type.append(pb.DT_FLOAT)
        self.node("AssignVariableOp", f"{name}/assigned", name, restored, dtype=pb.DT_FLOAT)
        return self.node("ReadVariableOp", f"{name}/read", name, dtype=pb.DT_FLOAT)

    def placeholder(self, name: str, number: pb.DataType, *shape: int) -> str:
        """Adds an input of the signature."""
        self.node("Placeholder", name, dtype=number)
        info = self.meta.signature_def["serving_default"].inputs[name]
        info.name, info.dtype = f"{name}:0", number
        for size in shape:
            info.tensor_shape.dim.add(size=size)
            self.graph.node[-1].attr["shape"].shape.dim.add(size=size)
        return name

    def output(self, name: str) -> None:
        """Makes a node's first result an output of the signature."""
        info = self.meta.signature_def["serving_default"].outputs[name]
        info.name, info.dtype = f"{name}:0", pb.DT_FLOAT
        info.tensor_shape.unknown_rank = True


def write_model(folder: Path, sizes: dict[str, tuple[int, ...]]) -> None:
    """Writes the model as a SavedModel of TensorFlow 1.

    Args:
        folder: Where to; it is made.
        sizes: Shapes of the variables, as `shapes` returns them.
    """
    (folder / "variables").mkdir(parents=True)
    tensors = {name: (shape, _numbers(shape, seed)) for seed, (name, shape) in enumerate(sizes.items())}
    write_checkpoint(folder / "variables" / "variables", tensors)
    graph, kind = _Graph(), {"T": pb.DT_FLOAT}
    prefix = graph.constant("save/Const", np.array(b"model", object), pb.DT_STRING)
    values = {name: graph.variable(name, shape) for name, shape in sizes.items()}
    restore = graph.node("NoOp", "save/restore_all", *(f"^{name}/assigned" for name in sizes))
    graph.meta.saver_def.filename_tensor_name = f"{prefix}:0"
    graph.meta.saver_def.restore_op_name = restore
    inner = sizes["matrix"][0]
    channels = sizes["filter"][-1]
    vector = graph.placeholder("vector", pb.DT_FLOAT, 1, inner)
    hidden = graph.node("MatMul", "hidden", vector, values["matrix"], **kind)
    product = graph.node("MatMul", "product", graph.node("Relu", "active", hidden, **kind), values["scaled"], **kind)
    scale = graph.constant("scale", np.linspace(0.5, 2, inner, dtype="<f4"), pb.DT_FLOAT)
    graph.output(graph.node("Mul", "answer", product, scale, **kind))
    image = graph.placeholder("image", pb.DT_FLOAT, 1, 4, 4, channels)
    features = graph.node("Conv2D", "features", image, values["filter"], **kind)
    graph.graph.node[-1].attr["strides"].list.i.extend([1, 1, 1, 1])
    graph.graph.node[-1].attr["padding"].s = b"SAME"
    factors = graph.constant("factors", np.linspace(0.5, 2, channels, dtype="<f4"), pb.DT_FLOAT)
    graph.output(graph.node("Mul", "scaled_features", features, factors, **kind))
    index = graph.placeholder("index", pb.DT_INT32, 3)
    axis = graph.constant("axis", np.array(0, "<i4"), pb.DT_INT32)
    types = {"Tparams": pb.DT_FLOAT, "Tindices": pb.DT_INT32, "Taxis": pb.DT_INT32}
    graph.output(graph.node("GatherV2", "rows", values["table"], index, axis, **types))
    graph.meta.signature_def["serving_default"].method_name = "tensorflow/serving/predict"
    model = pb.SavedModel(saved_model_schema_version=1, meta_graphs=[graph.meta])
    (folder / "saved_model.pb").write_bytes(model.SerializeToString())


def main(arguments: list[str] | None = None) -> int:
    """Prints seconds and memory of conversions; returns the exit status."""
    parser = parser_of("large_weights", __doc__)
    parser.add_argument("--megabytes", type=int, default=512, help="size of each of the four weights")
    parser.add_argument("--runs", type=int, default=3, help="conversions, of which the median is told")
    parser.add_argument("--folder", type=Path, help="where the model is made, and removed in the end")
    parser.add_argument("--quantize", choices=sorted(WEIGHT_MODES), help="store the weights as integers or halves")
    parser.add_argument("--bits", choices=("8", "4"), help="bits of the integers")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        model, output = Path(name, "model"), Path(name, "model.tflite")
        write_model(model, shapes(options.megabytes))
        command = [sys.executable, "-m", "tfconvert", str(model), "-o", str(output)]
        command += ["--quantize", options.quantize] if options.quantize else []
        command += ["--weights", options.bits] if options.bits else []
        runs = [measure(command, REPOSITORY) for _ in range(options.runs)]
        size = output.stat().st_size
    seconds = statistics.median(run.seconds for run in runs)
    peak = max(run.peak for run in runs)
    print(f"{size / 1e6:.0f} MB in {seconds:.2f} s ({size / seconds / 1e6:.0f} MB/s), memory {peak / 1e6:.0f} MB")
    return int(peak > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
