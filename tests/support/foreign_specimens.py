"""Specimens of files and directories that are no models of ours."""

from __future__ import annotations

import json
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a2146\nsize 12345\n"


def _zip(path: Path, *names: str) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for name in names:
            archive.writestr(name, "x")


def _tar(path: Path) -> None:
    path.with_name("inside").write_text("x")
    with tarfile.open(path, "w") as archive:
        archive.add(path.with_name("inside"))


def _folder(path: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text(text)


def _safetensors(path: Path) -> None:
    header = json.dumps({"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
    path.write_bytes(len(header).to_bytes(8, "little") + header + bytes(4))


_WEB_MODEL = json.dumps({"format": "layers-model", "modelTopology": {}, "weightsManifest": []})

# The start of what a row says; the name of the specimen; what writes it; what the hint contains.
SPECIMENS: list[tuple[str, str, Callable[[Path], object], str]] = [
    ("a URL", "https://tfhub.dev/google/x/1", lambda path: None, "download"),
    ("a pointer of Git LFS", "frozen.pb", lambda path: path.write_text(POINTER), "git lfs pull"),
    ("a pointer of Git LFS", "lfs.keras", lambda path: path.write_text(POINTER), "git lfs pull"),
    ("a pointer of Git LFS", "lfs", lambda path: _folder(path, {"saved_model.pb": POINTER}), "saved_model.pb"),
    ("a web page", "page.pb", lambda path: path.write_text("\n<!DOCTYPE html><html></html>"), "raw"),
    ("empty", "empty.pb", lambda path: path.write_bytes(b""), "again"),
    ("a directory above a SavedModel", "served", lambda path: _folder(path, {"1/saved_model.pb": "x"}), "served/1"),
    (
        "an unpacked Keras file",
        "unpacked",
        lambda path: _folder(path, {"config.json": "{}", "metadata.json": "{}", "model.weights.h5": "x"}),
        "zip -0 -r",
    ),
    (
        "a model of TensorFlow.js (layers-model)",
        "web",
        lambda path: _folder(path, {"model.json": _WEB_MODEL}),
        "tfjs_graph_converter",
    ),
    ("a model of TensorFlow.js", "model.json", lambda path: path.write_text(_WEB_MODEL), "tfjs_graph_converter"),
    (
        "a model of Hugging Face's transformers",
        "bert",
        lambda path: _folder(path, {"config.json": '{"model_type": "bert"}', "model.safetensors": "x"}),
        "from_pretrained",
    ),
    ("a model of PyTorch", "model.pth", lambda path: _zip(path, "model/data.pkl"), "litert-torch"),
    (
        "a model of PyTorch",
        "old.bin",
        lambda path: path.write_bytes(b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j"),
        "litert-torch",
    ),
    ("an ONNX model", "model.onnx", lambda path: path.write_bytes(b"\x08\x07"), "onnx2tf -i"),
    (
        "the main file of a SavedModel under another name",
        "graph.pb",
        lambda path: path.write_bytes(b"\x08\x01\x12\x04"),
        "name it saved_model.pb",
    ),
    ("an ONNX model", "model.pb", lambda path: path.write_bytes(b"\x08\x07\x12\x04onnx"), "onnx2tf -i"),
    ("a file of safetensors", "model.safetensors", _safetensors, "weights"),
    (
        "a checkpoint without a graph",
        "checkpoints",
        lambda path: _folder(path, {"ckpt-1.index": "x", "ckpt-1.data-00000-of-00001": "x"}),
        "load_weights",
    ),
    (
        "a checkpoint without a graph",
        "ckpt-1",
        lambda path: path.with_name("ckpt-1.index").write_text("x"),
        "load_weights",
    ),
    ("a model of LiteRT-LM", "model.litertlm", lambda path: path.write_bytes(b"LITERTLM"), "LiteRT-LM"),
    ("a model of llama.cpp", "model.gguf", lambda path: path.write_bytes(b"GGUF\x03"), "made of"),
    ("a MediaPipe task bundle", "hand.task", lambda path: _zip(path, "hand.tflite"), "unzip"),
    ("an archive of a SavedModel", "model.zip", lambda path: _zip(path, "model/saved_model.pb"), "unzip"),
    ("a compressed archive", "model.tar", _tar, "tar -xf"),
    ("a zip that holds no model", "other.zip", lambda path: _zip(path, "readme"), "unpack"),
    ("a model of Core ML", "model.mlmodel", lambda path: path.write_bytes(b"\x08"), "made of"),
    (
        "a model of OpenVINO",
        "model.xml",
        lambda path: path.write_text('<?xml version="1.0"?><net name="x">'),
        "made of",
    ),
    ("a model of PaddlePaddle", "model.pdmodel", lambda path: path.write_bytes(b"\x0a"), "paddle2onnx"),
    ("a model of Caffe", "net.caffemodel", lambda path: path.write_bytes(b"\x0a"), "onnx2tf"),
    ("an engine of TensorRT", "net.engine", lambda path: path.write_bytes(b"ftrt"), "made of"),
    ("a pickle of Python", "model.pkl", lambda path: path.write_bytes(b"\x80\x04."), "Python"),
    ("a directory that holds a model", "models", lambda path: _folder(path, {"a.tflite": "x"}), "models/a.tflite"),
]
