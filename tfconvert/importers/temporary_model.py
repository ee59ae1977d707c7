"""Models in memory in a form that can be imported, among them SavedModels in temporary directories."""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from types import ModuleType
from typing import Any, NamedTuple

from tfconvert.schema.diagnostics import ConversionError, error
from tfconvert.schema.dialects.boxes import Array

SIGNATURE = "serving_default"
"""Key of a model's only signature, as in the official converter."""

_TROUBLE: tuple[type[Exception], ...] = (
    ArithmeticError,
    AssertionError,  # from tf.saved_model.save: a table or variable without an owner
    AttributeError,
    ImportError,
    LookupError,
    MemoryError,
    NotImplementedError,
    OSError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
)


OwnRun = Callable[[Sequence[Sequence[Array]]], Sequence[Sequence[Array]]]
"""Calls a function of a model in memory several times in turn, first in the state that the model is in, and leaves that
as it is; takes the inputs of each call, and returns the outputs of each."""


class Original(NamedTuple):
    """A model in memory that computes its results itself, in its own framework.

    Attributes:
        name: What computes them, for the report.
        bind: Returns what runs a function by the key of its signature and the names of its inputs and outputs; `None`
            if the model has no such function.
    """

    name: str
    bind: Callable[[str, Sequence[str], Sequence[str]], OwnRun | None]


class PreparedModel:
    """A model in memory in a form that can be imported.

    Attributes:
        name: The original model, for the report.
        kind: An enumerator of `ModelType` in the metadata of LiteRT's files.
        results: Names of outputs by signature, in the order of the function's results, for a dictionary, whose keys
            SavedModels sort.
        signatures: The signatures to convert, every one by default.
        tensors: The names of outputs in a function's own graph, by signature and name, in the graph's order.
        saved_for: Why it had to be saved to a temporary directory; empty if it was not.
        original: The model itself, which can run; `None` if it can't.
    """

    def __init__(self, name: str, kind: str, saved_for: str = "") -> None:
        self.name = name
        self.kind = kind
        self.saved_for = saved_for
        self.results: dict[str, list[str]] = {}
        self.signatures: list[str] | None = None
        self.tensors: dict[str, dict[str, str]] = {}
        self.original: Original | None = None

    def add_results(self, functions: Mapping[str, Any]) -> None:
        """Adds the names of the results of concrete functions, by the keys of their signatures."""
        self.results |= {key: names for key, each in functions.items() if (names := _ordered_keys(each))}
        self.tensors |= {
            key: {
                name: tensor.name.removesuffix(":0")
                for name, tensor in zip(result_keys(each), each.outputs, strict=False)
            }
            for key, each in functions.items()
        }

    def remove(self) -> None:
        """Removes what was written for the conversion now; weights that have not been read are lost."""


class TemporaryModel(PreparedModel, os.PathLike[str]):
    """A private directory with a SavedModel, which is removed when this object is dropped, or at the end of Python."""

    def __init__(self, name: str, kind: str = "", saved_for: str = "") -> None:
        super().__init__(name, kind, saved_for)
        self._folder = tempfile.mkdtemp(prefix="tfconvert-")
        self._finalizer = weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)

    def __fspath__(self) -> str:
        return self._folder

    def remove(self) -> None:
        self._finalizer()


@contextmanager
def temporary_model(name: str, kind: str, saved_for: str = "") -> Iterator[TemporaryModel]:
    """Creates a directory to save a model to; it is removed if the block fails.

    Args:
        name: The original model, for the report.
        kind: The kind, as in `PreparedModel`.
        saved_for: Why it is saved, as in `PreparedModel`.
    """
    made = TemporaryModel(name, kind, saved_for)
    with ExitStack() as undo:
        undo.callback(made.remove)
        yield made
        undo.pop_all()


@contextmanager
def explained(code: str, what: str, hint: str, reason: Callable[[str], str] = str) -> Iterator[None]:
    """Converts errors that TensorFlow and Keras raise in a block to a `ConversionError`.

    Args:
        code: The error's code.
        what: The action that failed.
        hint: What the user can do.
        reason: Returns the part of a message that users need.

    Raises:
        ConversionError: The block failed, or there is not enough memory for it (`out-of-memory`).
    """
    try:
        yield
    except ConversionError:
        raise
    except _trouble() as problem:
        if is_out_of_memory(problem):
            because = "there is not enough memory"
            raise error("out-of-memory", f"{what}: {because}", hint="convert it on a larger machine") from problem
        text = " ".join(str(problem).split()) or type(problem).__name__
        raise error(code, f"{what}: {reason(text)}", hint=hint) from problem


# How TensorFlow, XLA, numpy and the system say that memory is exhausted, also in messages that others quote; libraries
# can't be loaded then, and threads, which need stacks, not be started.
_OUT_OF_MEMORY = re.compile(
    r"RESOURCE_EXHAUSTED|OOM when allocating|Unable to allocate|bad_alloc|(?:[Oo]ut of|[Cc]annot allocate) memory|"
    r"cannot map zero-fill pages|failed to map segment from shared object(?!:)|can't start new thread|pthread_create"
)


def says_out_of_memory(text: str) -> bool:
    """Returns whether a message says that memory is exhausted."""
    return _OUT_OF_MEMORY.search(text) is not None


def is_out_of_memory(problem: BaseException | None) -> bool:
    """Returns whether an exception is about exhausted memory, or was raised because of one that is."""
    seen: list[BaseException] = []
    while problem is not None and problem not in seen:
        is_named = type(problem).__name__ == "ResourceExhaustedError"
        if is_named or isinstance(problem, MemoryError) or says_out_of_memory(str(problem)):
            return True
        seen.append(problem)
        problem = problem.__cause__ or problem.__context__
    return False


TABLES = "it uses tables or files"
"""Why a model with resources other than variables is saved."""


def user_module(name: str) -> ModuleType:
    """Returns a module that the process has imported already, since the model in memory needs it.

    Raises:
        ConversionError: It is not imported.
    """
    module = sys.modules.get(name)
    if module is None:
        raise error(
            "no-tensorflow",
            f"the model needs {name}, which this process has not imported",
            hint=f"import {name} first" if find_spec(name) else "pip install 'tfconvert[tensorflow]'",
        )
    return module


def save_options(tf: ModuleType) -> Any:
    """Returns TensorFlow's settings to save the source lines of nodes beside the model."""
    return tf.saved_model.SaveOptions(save_debug_info=True)


def _ordered_keys(function: Any) -> list[str]:
    """Returns the keys of a concrete function's dictionary of results in their original order; else empty."""
    results = function.structured_outputs
    # A loaded function has its keys in any order.
    is_loaded = any(cls.__name__ == "_WrapperFunction" for cls in type(function).__mro__)
    return list(results) if isinstance(results, Mapping) and not is_loaded else []


def result_keys(function: Any) -> list[str]:
    """Returns the names of a concrete function's results in a signature, in the order of its outputs."""
    results = function.structured_outputs
    if isinstance(results, Mapping):
        return sorted(results)
    return [f"output_{position}" for position in range(len(function.outputs))]


def _trouble() -> tuple[type[Exception], ...]:
    """Returns the errors that Keras and TensorFlow raise: Python's own, and the base class of TensorFlow's."""
    tf = sys.modules.get("tensorflow")
    return _TROUBLE if tf is None else (*_TROUBLE, tf.errors.OpError)
