"""Temporary SavedModels of models in memory, which exist as long as they are used.

TensorFlow's functions and modules in memory are saved by the TensorFlow that made them.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from types import ModuleType
from typing import Any

from tfconvert.schema.diagnostics import ConversionError, error

SIGNATURE = "serving_default"
"""Key of a model's only signature, as in the official converter."""

_TROUBLE: tuple[type[Exception], ...] = (
    ArithmeticError,
    AssertionError,  # from tf.saved_model.save: a table or variable without an owner
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
    """A private directory with a SavedModel, which is removed when this object is dropped, or at the end of Python.

    Attributes:
        name: The original model, for the report.
        kind: An enumerator of `ModelType` in the metadata of LiteRT's files.
        results: Names of outputs by signature, in the order of the function's results, for a dictionary, whose keys
            SavedModels sort.
        signatures: The signatures to convert, every one by default.
        tensors: The names of outputs in a function's own graph, by signature and name, in the graph's order.
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
        """Removes the directory now; weights that have not been read are lost."""
        self._finalizer()


@contextmanager
def temporary_model(name: str, kind: str) -> Iterator[TemporaryModel]:
    """Creates a directory to save a model to; it is removed if the block fails.

    Args:
        name: The original model, for the report.
        kind: The kind, as in `TemporaryModel`.
    """
    made = TemporaryModel(name, kind)
    with ExitStack() as undo:
        undo.callback(made.remove)
        yield made
        undo.pop_all()


@contextmanager
def explained(code: str, what: str, hint: str) -> Iterator[None]:
    """Converts errors that TensorFlow and Keras raise in a block to a `ConversionError`.

    Args:
        code: The error's code.
        what: The action that failed.
        hint: What the user can do.

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
    """Returns a module that the process has imported already, since the model in memory needs it.

    Raises:
        ConversionError: It is not imported.
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
    """Returns the keys of a concrete function's dictionary of results in their original order; else empty."""
    results = function.structured_outputs
    # A loaded function has its keys in any order.
    is_loaded = any(cls.__name__ == "_WrapperFunction" for cls in type(function).__mro__)
    return list(results) if isinstance(results, Mapping) and not is_loaded else []


def tensor_names(function: Any) -> dict[str, str]:
    """Returns the names of a signature's outputs in a concrete function's graph, in the graph's order."""
    results = function.structured_outputs
    keys = sorted(results) if isinstance(results, Mapping) else [f"output_{at}" for at in range(len(function.outputs))]
    return {key: each.name.removesuffix(":0") for key, each in zip(keys, function.outputs, strict=False)}


def _trouble() -> tuple[type[Exception], ...]:
    """Returns the errors that Keras and TensorFlow raise: Python's own, and the base class of TensorFlow's."""
    tf = sys.modules.get("tensorflow")
    return _TROUBLE if tf is None else (*_TROUBLE, tf.errors.OpError)


_INPUTS = "give it an input_signature, or pass function.get_concrete_function(...)"
_SAVE = "save it with tf.saved_model.save(module, folder, signatures=...), and convert the directory"
_PLAIN_NAME = re.compile(r"(?:__inference_)?(.+?)(?:_\d+)?")


def save_functions(model: Any) -> TemporaryModel:
    """Returns a SavedModel of functions, a signature each; a single one is `serving_default`.

    Args:
        model: A `tf.function` with an input signature, a concrete function, a sequence of these, or an object with
            some: a `tf.Module`, or the result of `tf.saved_model.load`.

    Raises:
        ConversionError: There is no function, or one without input signature (`no-signature`), or TensorFlow can't save
            it (`export-failed`).
    """
    tf = user_module("tensorflow")
    several = isinstance(model, list | tuple)
    what, name = ("functions",) * 2 if several else (f"a {type(model).__name__}", f"the {type(model).__name__}")
    if not (several or is_function(tf, model) or _is_trackable(model)):
        raise error("unknown-format", f"{what} of TensorFlow is neither a function nor a module", hint=_SAVE)
    with explained("export-failed", f"TensorFlow can't save {what}", _SAVE):
        functions = {key: _flat(tf, function) for key, function in _functions(tf, model)}
        if not functions:
            raise error(
                "no-signature",
                f"{what} has no function with an input signature",
                hint="decorate a method with tf.function(input_signature=[...])",
            )
        with temporary_model(f"{name} in memory", "TF_CONCRETE_FUNCTIONS") as folder:
            _save(tf, _owner(tf, model, list(functions.values())), functions, folder)
            folder.results |= {key: names for key, each in functions.items() if (names := result_names(each))}
            folder.tensors |= {key: tensor_names(each) for key, each in functions.items()}
            return folder


def has_flat_results(tf: Any, function: Any) -> bool:
    """Returns whether a signature can have a concrete function's results: a tensor, or tensors in one container."""
    results = getattr(function, "structured_outputs", None)
    if isinstance(results, Mapping):
        values, names = list(results.values()), list(results)
    else:
        values, names = list(results) if isinstance(results, list | tuple) else [results], []
    return all(isinstance(each, str) for each in names) and all(
        isinstance(each, tf.Tensor | tf.TensorSpec) for each in values
    )


def _flat(tf: Any, function: Any) -> Any:
    """Returns a concrete function whose results a signature can have: nested ones are flattened to a list."""
    if not function.outputs or has_flat_results(tf, function):
        return function

    def call(*arguments: Any, **keywords: Any) -> Any:
        results = tf.nest.flatten(function(*arguments, **keywords), expand_composites=True)
        return [each for each in results if each is not None]

    arguments, keywords = function.structured_input_signature
    plain = tf.function(tf.autograph.experimental.do_not_convert(call))
    return plain.get_concrete_function(*arguments, **keywords)


def _save(tf: Any, owner: Any, functions: Mapping[str, Any], folder: TemporaryModel) -> None:
    try:
        tf.saved_model.save(owner, folder.__fspath__(), functions, save_options(tf))
    except AssertionError as problem:
        if "untracked" not in str(problem):
            raise
        raise error(
            "untracked-resource",
            f"{', '.join(functions)}: a function uses a table or variable of an object that was not passed",
            hint="pass the tf.Module that has both the function and the table, or save it with tf.saved_model.save",
        ) from problem


def _is_trackable(model: Any) -> bool:
    """Returns whether an object can own parts of a SavedModel."""
    return any(cls.__name__ == "AutoTrackable" for cls in type(model).__mro__)


def _functions(tf: Any, model: Any) -> Iterator[tuple[str, Any]]:
    """Yields the concrete functions of an object, with the keys of their signatures."""
    if isinstance(model, list | tuple):
        yield from _several(tf, model)
    elif is_function(tf, model):
        yield SIGNATURE, _concrete(tf, model)
    elif isinstance(signatures := getattr(model, "signatures", None), Mapping) and signatures:
        for key, function in signatures.items():
            yield key, _concrete(tf, function)
    else:
        own = list(_methods(tf, model))
        for name, function in own:
            yield SIGNATURE if len(own) == 1 else name, _concrete(tf, function)


def _several(tf: Any, functions: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    taken: set[str] = set()
    for function in functions:
        if not is_function(tf, function):
            raise error("unknown-format", f"expected a concrete function, got {type(function).__name__}", hint=_INPUTS)
        concrete = _concrete(tf, function)
        found = _PLAIN_NAME.fullmatch(concrete.name.decode() if isinstance(concrete.name, bytes) else concrete.name)
        name = SIGNATURE if len(functions) == 1 or found is None else found[1]
        if name in taken:
            raise error("no-signature", f"two functions are called {name!r}", hint=_SAVE)
        taken.add(name)
        yield name, concrete


def _methods(tf: Any, model: Any) -> Iterator[tuple[str, Any]]:
    """Yields the functions with a known signature in an object or its class."""
    names = dict.fromkeys(
        [*vars(model), *(name for cls in type(model).__mro__ for name in vars(cls) if not _is_internal(cls))]
    )
    for name in names:
        value = getattr(model, name, None)
        if _is_concrete(tf, value) or (_is_generic(tf, value) and _is_complete(value)):
            yield name, value


def _is_internal(cls: type) -> bool:
    return cls.__module__.partition(".")[0] in ("tensorflow", "builtins")


def _is_concrete(tf: Any, value: Any) -> bool:
    return isinstance(value, tf.types.experimental.ConcreteFunction)


def _is_generic(tf: Any, value: Any) -> bool:
    return isinstance(value, tf.types.experimental.PolymorphicFunction) or hasattr(value, "concrete_functions")


def is_function(tf: Any, value: Any) -> bool:
    """Returns whether a value is a function of TensorFlow, of one signature or of any."""
    return _is_concrete(tf, value) or _is_generic(tf, value)


def _traces(function: Any) -> list[Any]:
    """Returns the concrete functions of a loaded function; others are traced when they are called."""
    return list(getattr(function, "concrete_functions", ()))


def _is_complete(function: Any) -> bool:
    return getattr(function, "input_signature", None) is not None or len(_traces(function)) == 1


def _concrete(tf: Any, function: Any) -> Any:
    if _is_concrete(tf, function):
        return function
    if getattr(function, "input_signature", None) is not None:
        return function.get_concrete_function()
    traces = _traces(function)
    if len(traces) == 1:
        return traces[0]
    raise _no_signature(function)


def _no_signature(function: Any) -> ConversionError:
    name = getattr(function, "__name__", type(function).__name__)
    return error("no-signature", f"the function {name} has no input signature", hint=_INPUTS)


def _owner(tf: Any, model: Any, functions: Sequence[Any]) -> Any:
    """Returns an object that owns the functions' variables; the owners of their tables are unknown."""
    if not isinstance(model, list | tuple) and not is_function(tf, model):
        return model
    owner = tf.Module()
    owner.variables_of_functions = [variable for function in functions for variable in function.variables]
    return owner
