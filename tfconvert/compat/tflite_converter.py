"""The class `TFLiteConverter` of TensorFlow 2."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tfconvert.compat.arguments import check_functions, path_of, signatures, texts
from tfconvert.compat.attributes import ROWS
from tfconvert.compat.converter import Converter
from tfconvert.compat.errors import as_of_the_class
from tfconvert.compat.row import set_plainly
from tfconvert.importers.jax_functions import export_named
from tfconvert.importers.tf_functions import OwnedFunctions, has_flat_results, is_function
from tfconvert.importers.traced_model import can_be_traced
from tfconvert.schema.diagnostics import error


class TFLiteConverter(Converter):
    """Converts a model as `tf.lite.TFLiteConverter` does; make one with the methods `from_*`.

    docs/tflite_converter.md says what each attribute does. The attribute `report` has the conversion's report.

    Args:
        funcs: Concrete functions.
        trackable_obj: The object that owns their variables, and keeps them alive.

    Raises:
        ConversionError: There is no function, or one that isn't traced and has no input signature (`wrong-option`).
    """

    @as_of_the_class()
    def __init__(self, funcs: Sequence[Any], trackable_obj: Any = None) -> None:
        check_functions(funcs)
        # Functions refer to variables weakly.
        set_plainly(self, "_owner", trackable_obj)
        is_plain = len(funcs) == 1 and not _owns(trackable_obj, funcs[0])
        arguments = {"order": "flattened"} if is_plain else {}
        super().__init__(ROWS, _with_owner(funcs, trackable_obj), arguments)
        if len(funcs) == 1:
            # Samples without names are in the order of the function's arguments, whatever the signature's is.
            set_plainly(self, "_order", _arguments_of(funcs[0]))

    @classmethod
    def _of(cls, model: Any, arguments: Mapping[str, Any]) -> TFLiteConverter:
        converter = cls.__new__(cls)
        Converter.__init__(converter, ROWS, model, arguments)
        return converter

    @classmethod
    @as_of_the_class()
    def from_saved_model(
        cls,
        saved_model_dir: str | os.PathLike[str],
        signature_keys: Iterable[str] | None = None,
        tags: Iterable[str] | None = None,
    ) -> TFLiteConverter:
        """Returns a converter of a SavedModel.

        Args:
            saved_model_dir: Its directory.
            signature_keys: The signatures to convert, every one by default.
            tags: The tags of the graph to convert, `serve` by default.

        Raises:
            ConversionError: There is no such model, graph or signature; an error about the file is an `OSError`, too.
        """
        folder = path_of("saved_model_dir", saved_model_dir)
        keys, names = texts("signature_keys", signature_keys), texts("tags", tags)
        signatures(folder, keys, names)
        return cls._of(folder, {"signatures": keys, "tags": names})

    @classmethod
    def from_keras_model(cls, model: Any) -> TFLiteConverter:
        """Returns a converter of a Keras model in memory.

        Args:
            model: The model.
        """
        return cls._of(model, {})

    @classmethod
    def from_concrete_functions(cls, funcs: Sequence[Any], trackable_obj: Any = None) -> TFLiteConverter:
        """Returns a converter of concrete functions.

        Args:
            funcs: The functions.
            trackable_obj: The object that owns their variables, and keeps them alive.

        Raises:
            ConversionError: No function is given, or one that isn't traced and has no input signature (`wrong-option`).
        """
        return cls(funcs, trackable_obj)

    @classmethod
    @as_of_the_class()
    def experimental_from_jax(cls, serving_funcs: Sequence[Any], inputs: Sequence[Any]) -> TFLiteConverter:
        """Returns a converter of a function of JAX.

        Args:
            serving_funcs: The function, in a list; its weights are constants in it.
            inputs: For the function, its inputs in order: pairs of a name and an example.

        Raises:
            ConversionError: There is not one function with inputs (`wrong-option`), JAX is not installed (`no-jax`), or
                it can't export the function (`export-failed`).
        """
        if len(serving_funcs) != 1 or len(inputs) != 1 or not inputs[0]:
            raise error(
                "wrong-option",
                f"{len(serving_funcs)} functions and {len(inputs)} lists of inputs were given",
                hint='give one function, [f], and its inputs, [[("x", example)]]',
            )
        return cls._of(export_named(serving_funcs[0], inputs[0]), {})


def _with_owner(functions: Sequence[Any], owner: Any) -> Any:
    """Returns functions as a model, with the owner of their tables if they use some."""
    if hasattr(owner, "_trackable_children") and not all(map(_is_traceable, functions)):
        return OwnedFunctions(functions, owner)
    return functions[0] if len(functions) == 1 else list(functions)


def _is_traceable(function: Any) -> bool:
    return not hasattr(function, "captured_inputs") or can_be_traced([function])


def _owns(owner: Any, function: Any) -> bool:
    """Returns whether an object can save a function as a signature; a function can't, whatever variables it uses.

    The official converter takes other functions as graphs, whose inputs and outputs are in the order of arguments and
    results.
    """
    tf = sys.modules.get("tensorflow")
    if tf is None or owner is None or is_function(tf, owner) or not has_flat_results(tf, function):
        return False
    owned = getattr(owner, "variables", None)
    if owned is None:
        return hasattr(owner, "_trackable_children")
    known = {id(each) for each in owned}
    return all(id(each) in known for each in getattr(function, "variables", ()))


def _arguments_of(function: Any) -> tuple[str, ...]:
    """Returns the names of a concrete function's arguments, in order.

    Only several tensors with a name each have names.
    """
    specs, named = getattr(function, "structured_input_signature", ((), {}))
    names = [getattr(spec, "name", None) for spec in (*specs, *named.values())]
    return tuple(map(str, names)) if all(names) and len(set(names)) == len(names) > 1 else ()
