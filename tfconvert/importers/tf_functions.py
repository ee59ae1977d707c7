"""TensorFlow's functions and modules in memory, prepared for the importer by the TensorFlow that made them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tfconvert.importers.temporary_model import (
    SIGNATURE,
    TABLES,
    PreparedModel,
    TemporaryModel,
    explained,
    save_options,
    temporary_model,
    user_module,
)
from tfconvert.importers.tf_originals import original_of
from tfconvert.importers.traced_model import TracedModel, can_be_traced
from tfconvert.schema.diagnostics import ConversionError, error

_INPUTS = "give it an input_signature, or pass function.get_concrete_function(...)"
_SAVE = "save it with tf.saved_model.save(module, folder, signatures=...), and convert the directory"
_PLAIN_NAME = re.compile(r"(?:__inference_)?(.+?)(?:_\d+)?")


class OwnedFunctions(list[Any]):
    """Concrete functions, and the object that owns the tables that they use.

    Attributes:
        owner: The object.
    """

    def __init__(self, functions: Sequence[Any], owner: Any) -> None:
        super().__init__(functions)
        self.owner = owner


def prepare_functions(model: Any) -> PreparedModel:
    """Returns functions of TensorFlow, a signature each, for the importer; a single one is `serving_default`.

    What they use decides whether a message can have them, or a SavedModel in a temporary directory must.

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
        name, kind = f"{name} in memory", "TF_CONCRETE_FUNCTIONS"
        if can_be_traced(list(functions.values())):
            made: PreparedModel = TracedModel(name, kind, functions)
        else:
            with temporary_model(name, kind, TABLES) as made:
                _save(tf, _owner(tf, model, list(functions.values())), functions, made)
                made.add_results(functions)
        made.original = original_of(functions)
        return made


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
    if isinstance(model, OwnedFunctions):
        return model.owner
    if not isinstance(model, list | tuple) and not is_function(tf, model):
        return model
    owner = tf.Module()
    owner.variables_of_functions = [variable for function in functions for variable in function.variables]
    return owner
