"""Fixtures that every ring of tests shares: TensorFlow, LiteRT, and the sources as syntax trees."""

from __future__ import annotations

import ast
import importlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Protocol

import numpy as np
import pytest
from hypothesis import settings

# Other work on the machine must not make a test fail.
settings.register_profile("without a deadline", deadline=None)
settings.load_profile("without a deadline")

# These must be set before any test imports TensorFlow.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
os.environ.setdefault("TF_NUM_INTEROP_THREADS", "1")
os.environ.setdefault("TF_NUM_INTRAOP_THREADS", "2")

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("schema", "importers", "exporters", "converter")
"""The packages inside `tfconvert`; the files beside them are the front door."""

Arrays = Sequence[np.ndarray] | Mapping[str, np.ndarray]


class RunTFLite(Protocol):
    """The type of the `run_tflite` fixture."""

    def __call__(self, content: bytes, inputs: Arrays, *, signature: str | None = None) -> list[np.ndarray]:
        """Runs a model; see the fixture."""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One of our hand-written files.

    Attributes:
        path: Where it is, relative to the repository's root.
        text: Its contents.
        tree: The same, parsed.
    """

    path: Path
    text: str
    tree: ast.Module

    @property
    def package(self) -> str:
        """Which of `PACKAGES` it is in, `tfconvert` for the front door."""
        return self.path.parts[1] if self.path.parts[1] in PACKAGES else "tfconvert"

    @property
    def module(self) -> str:
        """Its dotted module name."""
        parts = self.path.with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def _source_files() -> tuple[SourceFile, ...]:
    files = []
    for path in sorted((ROOT / "tfconvert").rglob("*.py")):
        if "generated" not in path.parts:
            text = path.read_text(encoding="utf-8")
            files.append(SourceFile(path.relative_to(ROOT), text, ast.parse(text)))
    return tuple(files)


@pytest.fixture(scope="session")
def root() -> Path:
    """Returns the repository's root."""
    return ROOT


@pytest.fixture(scope="session")
def source_files() -> tuple[SourceFile, ...]:
    """Returns the hand-written files of all our packages."""
    return _source_files()


@pytest.fixture(scope="session")
def tf() -> ModuleType:
    """Returns TensorFlow, on two threads and without its log."""
    tensorflow = importlib.import_module("tensorflow")
    tensorflow.get_logger().setLevel("ERROR")
    return tensorflow


@pytest.fixture(scope="session")
def digits_model() -> Path:
    """Returns the folder of the example's SavedModel."""
    return ROOT / "examples" / "digits" / "saved_model"


@pytest.fixture(scope="session")
def run_tflite() -> RunTFLite:
    """Returns a function that runs a .tflite file's bytes in LiteRT.

    Inputs are given in the model's order, or by name: a signature's input names when `signature` is given, tensor
    names otherwise. Inputs of another shape than the model's are resized to. Outputs come in the model's order, a
    signature's in the order of their names.
    """
    return _run_tflite


def _run_tflite(content: bytes, inputs: Arrays, *, signature: str | None = None) -> list[np.ndarray]:
    interpreter = importlib.import_module("ai_edge_litert.interpreter").Interpreter(
        model_content=content, num_threads=1
    )
    if signature is not None:
        if not isinstance(inputs, Mapping):
            raise TypeError("a signature's inputs are given by name")
        return _run_signature(interpreter.get_signature_runner(signature), inputs)
    details = interpreter.get_input_details()
    arrays = [inputs[detail["name"]] for detail in details] if isinstance(inputs, Mapping) else list(inputs)
    assert len(arrays) == len(details), f"the model takes {len(details)} inputs, {len(arrays)} were given"
    for detail, array in zip(details, arrays, strict=True):
        if tuple(detail["shape"]) != array.shape:
            interpreter.resize_tensor_input(detail["index"], list(array.shape))
    interpreter.allocate_tensors()
    for detail, array in zip(details, arrays, strict=True):
        interpreter.set_tensor(detail["index"], array)
    interpreter.invoke()
    return [interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()]


def _run_signature(runner: object, inputs: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    assert callable(runner)
    results = runner(**inputs)
    return [results[name] for name in sorted(results)]
