"""Models whose files are wrong, and requests that don't fit a model, each made from a folder that TensorFlow wrote."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb

# From a SavedModel of `y = relu(x @ w + b)` to what is converted, and with which options.
Damage = Callable[[Path], tuple[Path, Mapping[str, Any]]]

_FLOAT = pb.AttrValue(type=pb.DT_FLOAT)


def _nothing(model: Path) -> tuple[Path, Mapping[str, Any]]:
    return model / "nowhere", {}


def _empty(model: Path) -> tuple[Path, Mapping[str, Any]]:
    (model / "saved_model.pb").unlink()
    return model, {}


def _truncated(model: Path) -> tuple[Path, Mapping[str, Any]]:
    file = model / "saved_model.pb"
    file.write_bytes(file.read_bytes()[:-100])
    return model, {}


def _no_shard(model: Path) -> tuple[Path, Mapping[str, Any]]:
    (model / "variables" / "variables.data-00000-of-00001").unlink()
    return model, {}


def _no_index(model: Path) -> tuple[Path, Mapping[str, Any]]:
    (model / "variables" / "variables.index").unlink()
    return model, {}


def _short_shard(model: Path) -> tuple[Path, Mapping[str, Any]]:
    file = model / "variables" / "variables.data-00000-of-00001"
    file.write_bytes(file.read_bytes()[:20])
    return model, {}


def _short_index(model: Path) -> tuple[Path, Mapping[str, Any]]:
    file = model / "variables" / "variables.index"
    file.write_bytes(file.read_bytes()[:40])
    return model, {}


def _asking(**options: Any) -> Damage:
    return lambda model: (model, options)


def _text(name: str, text: str) -> Damage:
    def write(model: Path) -> tuple[Path, Mapping[str, Any]]:
        (model / name).write_text(text, "utf-8")
        return model / name, {}

    return write


def _graph(*nodes: tuple[str, str, list[str]], **options: Any) -> Damage:
    def write(model: Path) -> tuple[Path, Mapping[str, Any]]:
        graph = pb.GraphDef()
        for name, op, inputs in nodes:
            node = graph.node.add(name=name, op=op, input=inputs)
            node.attr["dtype" if op == "Placeholder" else "T"].CopyFrom(_FLOAT)
        (model / "graph.pb").write_bytes(graph.SerializeToString())
        return model / "graph.pb", options

    return write


_RELU: tuple[tuple[str, str, list[str]], ...] = (
    ("x", "Placeholder", []),
    ("hidden", "Relu", ["x"]),
    ("scores", "Softmax", ["hidden"]),
)

# By the name of the file that holds the text of the error.
DAMAGED: Mapping[str, Damage] = {
    "no-such-path": _nothing,
    "empty-folder": _empty,
    "truncated-model": _truncated,
    "no-shard": _no_shard,
    "no-index": _no_index,
    "short-shard": _short_shard,
    "short-index": _short_index,
    "wrong-signature": _asking(signatures=["predict"]),
    "wrong-tags": _asking(tags=["train"]),
    "wrong-shape": _asking(input_shapes={"x": [2, 5]}),
    "wrong-input-shape-name": _asking(input_shapes={"image": [2, 4]}),
    "text-as-graph": _text("graph.pb", "this is not a graph\n"),
    "unknown-ending": _text("model.onnx", "onnx"),
    "damaged-keras-file": _text("model.keras", "not a zip file"),
    "damaged-mlir": _text("model.mlir", "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n  return %y\n}\n"),
    "wrong-output": _graph(*_RELU, outputs=["score"]),
    "unfed": _graph(*_RELU, inputs=["hidden"], outputs=["hidden", "scores", "x"]),
    "missing-node": _graph(*_RELU[:2], ("scores", "Softmax", ["logits"])),
    "unknown-op": _graph(*_RELU[:2], ("scores", "MyCompanysSoftmax", ["hidden"])),
    "cycle": _graph(("x", "Placeholder", []), ("a", "Add", ["x", "b"]), ("b", "Relu", ["a"]), outputs=["b"]),
}
