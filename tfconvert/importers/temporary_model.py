"""A temporary SavedModel of a model in memory, which lives as long as it is used."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import weakref
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from types import ModuleType
from typing import Any

from tfconvert.schema.diagnostics import ConversionError, error

SIGNATURE = "serving_default"
"""Key of the signature of a model that is called in one way only, as the official converter has it."""

_TROUBLE: tuple[type[Exception], ...] = (
    ArithmeticError,
    AssertionError,  # of tf.saved_model.save: a table or variable that no object owns
    AttributeError,
    ImportError,
    LookupError,
    NotImplementedError,
    OSError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
)


class TemporaryModel(os.PathLike[str]):
    """A private folder with a SavedModel, which is removed when this object is dropped, or at the end of Python.

    Attributes:
        name: The original model, for the report.
        kind: What it is, an enumerator of `ModelType` in the metadata of LiteRT's files.
        results: Names of outputs by signature, in the order of the function's results, where that is a dictionary:
            SavedModels have its keys sorted.
        signatures: The signatures to convert, every one by default.
        tensors: What a function's own graph calls its outputs, by signature and name, in the graph's order.
    """

    def __init__(self, name: str, kind: str = "") -> None:
        self.name = name
        self.kind = kind
        self.results: dict[str, list[str]] = {}
        self.signatures: list[str] | None = None
        self.tensors: dict[str, dict[str, str]] = {}
        self._folder = tempfile.mkdtemp(prefix="tfconvert-")
        self._finalizer = weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)

    def __fspath__(self) -> str:
        return self._folder

    def remove(self) -> None:
        """Removes the folder now; weights that were not read yet are lost."""
        self._finalizer()


@contextmanager
def temporary_model(name: str, kind: str) -> Iterator[TemporaryModel]:
    """Makes a folder to save a model to; it stays after the block, unless the block fails.

    Args:
        name: The original model, for the report.
        kind: What it is, as `TemporaryModel` has it.
    """
    made = TemporaryModel(name, kind)
    with ExitStack() as undo:
        undo.callback(made.remove)
        yield made
        undo.pop_all()


@contextmanager
def explained(code: str, what: str, hint: str) -> Iterator[None]:
    """Turns the errors that TensorFlow and Keras raise in a block into a `ConversionError`.

    Args:
        code: The error's code.
        what: What failed.
        hint: What the user can do about it.

    Raises:
        ConversionError: The block failed.
    """
    try:
        yield
    except ConversionError:
        raise
    except _trouble() as problem:
        text = " ".join(str(problem).split()) or type(problem).__name__
        raise error(code, f"{what}: {text}", hint=hint) from problem


def user_module(name: str) -> ModuleType:
    """Returns a module of the user's process: whoever has a model of a framework has imported that.

    Raises:
        ConversionError: It is not there.
    """
    module = sys.modules.get(name)
    if module is None:
        raise error(
            "no-tensorflow",
            f"the model needs {name}, which this process has not imported",
            hint="pip install 'tfconvert[tensorflow]'",
        )
    return module


def save_options(tf: ModuleType) -> Any:
    """Returns TensorFlow's settings to save the source lines of nodes beside the model."""
    return tf.saved_model.SaveOptions(save_debug_info=True)


def result_names(function: Any) -> list[str]:
    """Returns the keys of a concrete function's results as they were written; empty if they aren't a dictionary."""
    results = function.structured_outputs
    # A function that was loaded has its keys in any order.
    is_loaded = any(cls.__name__ == "_WrapperFunction" for cls in type(function).__mro__)
    return list(results) if isinstance(results, Mapping) and not is_loaded else []


def tensor_names(function: Any) -> dict[str, str]:
    """Returns what a concrete function's graph calls the outputs of its signature, in the graph's order."""
    results = function.structured_outputs
    keys = sorted(results) if isinstance(results, Mapping) else [f"output_{at}" for at in range(len(function.outputs))]
    return {key: each.name.removesuffix(":0") for key, each in zip(keys, function.outputs, strict=False)}


def _trouble() -> tuple[type[Exception], ...]:
    """Returns what Keras and TensorFlow raise: Python's own errors, and the root of TensorFlow's if it is there."""
    tf = sys.modules.get("tensorflow")
    return _TROUBLE if tf is None else (*_TROUBLE, tf.errors.OpError)
