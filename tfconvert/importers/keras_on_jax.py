"""Keras models on JAX in memory, exported by `jax.export`: neither TensorFlow nor a file is needed.

The inference of the model is a function of its variables and its inputs. Variables become constants, views of their
memory, which JAX never changes: a variable that is assigned to gets other memory.
"""

from __future__ import annotations

import string
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, product
from typing import Any

import numpy as np

from tfconvert.importers.jax_functions import NamedExport, export_function
from tfconvert.importers.temporary_model import SIGNATURE, Original, OwnRun, PreparedModel, user_module
from tfconvert.schema.dialects import types
from tfconvert.schema.dialects.boxes import Array
from tfconvert.schema.dialects.sources import MemorySource
from tfconvert.schema.dialects.tensor_data import Constant, TensorData
from tfconvert.schema.ir.types import TensorType

KEYS = ("serve", SIGNATURE)
"""The keys of the signatures that a model has when Keras exports it."""


class KerasOnJax(PreparedModel):
    """A Keras model on JAX as the importer takes it.

    Attributes:
        function: Its inference.
    """

    def __init__(self, name: str, kind: str, function: NamedExport, original: Original) -> None:
        super().__init__(name, kind)
        self.function = function
        self.original = original


def export_keras(model: Any, signature: Sequence[Any]) -> NamedExport:
    """Returns the inference of a model. Variables that it changes, such as seeds, are its states.

    Args:
        model: A built model of Keras 3 on JAX.
        signature: The specifications of its positional arguments, which may be nested.
    """
    jax, keras = user_module("jax"), user_module("keras")
    names: list[str] = []
    states: dict[int, str] = {}
    variables = [*model.trainable_variables, *model.non_trainable_variables, *_recurrent_states(keras, model)]
    paths = list(_distinct(variable.path for variable in variables))

    # Operators and functions are named after it, as after the one that Keras exports.
    def stateless_fn(values: Sequence[Any], *inputs: Any) -> Any:
        state = list(zip(variables, values, strict=True))
        with keras.StatelessScope(state_mapping=state) as scope:
            result = model(*inputs, training=False)
        found = [scope.get_current_value(variable) for variable in variables]
        states.update((index, paths[index]) for index, new in enumerate(found) if new is not values[index])
        names.extend(_names_of_results(jax, result))
        return result, [found[index] for index in states]

    arrays = [np.asarray(variable.value) for variable in variables]
    kinds = [jax.ShapeDtypeStruct(array.shape, array.dtype) for array in arrays]
    batches = [each.shape[0] if each.shape else None for each in getattr(model, "inputs", None) or ()]
    exported = export_function(stateless_fn, [kinds, *_Examples(jax, batches).of(list(signature))])
    constants = list(map(_constant, arrays))
    return NamedExport(exported, _names_of_inputs(jax, signature), names, constants, states, KEYS)


def original_of_keras(model: Any, signature: Sequence[Any], name: str) -> Original:
    """Returns what runs a model itself; it leaves variables, such as states, as they are.

    Args:
        model: As for `export_keras`.
        signature: As there.
        name: What computes the results, for the report.
    """
    jax, keras = user_module("jax"), user_module("keras")
    names = _names_of_inputs(jax, signature)
    tree = jax.tree.structure(list(signature))

    def bind(key: str, inputs: Sequence[str], outputs: Sequence[str]) -> OwnRun | None:
        if key not in KEYS or set(inputs) != set(names):
            return None

        def once(values: Sequence[Array]) -> list[Array]:
            by_name = dict(zip(inputs, values, strict=True))
            result = model(*tree.unflatten([by_name[name] for name in names]), training=False)
            found = dict(zip(_names_of_results(jax, result), jax.tree.leaves(result), strict=True))
            return [np.asarray(found[name]) for name in outputs]

        def run(calls: Sequence[Sequence[Array]]) -> list[list[Array]]:
            with keras.StatelessScope():
                return list(map(once, calls))

        return run

    return Original(name, bind)


def _recurrent_states(keras: Any, model: Any) -> Iterable[Any]:
    """Returns the states of the model's stateful recurrent layers, which Keras doesn't count among its variables."""
    layers = [layer for layer in model._flatten_layers() if getattr(layer, "stateful", False)]  # noqa: SLF001  # Keras has no public name for all of them
    states = [state for layer in layers for state in keras.tree.flatten(getattr(layer, "states", None))]
    # A layer for both directions has the states of its two layers, too.
    return {id(state): state for state in states if state is not None}.values()


def _constant(array: np.ndarray[Any, np.dtype[Any]]) -> Constant:
    kind = types.tensor(types.from_dtype(array.dtype).mlir, array.shape)
    assert isinstance(kind, TensorType)
    return TensorData.get(kind, MemorySource(array))


class _Examples:
    """Makes examples of arguments, with the names that Keras gives to sizes in what it exports.

    Args:
        jax: JAX.
        batches: The batch of each of the model's inputs, which Keras drops from signatures; `None` for any.
    """

    def __init__(self, jax: Any, batches: Sequence[int | None]) -> None:
        self._jax = jax
        self._batches = iter(batches)
        self._scope = jax.export.SymbolicScope()
        letters = string.ascii_lowercase
        self._names = chain(letters, map("".join, product(letters, repeat=2)))

    def of(self, specs: Any) -> Any:
        return self._jax.tree.map(self._example, specs)

    def _example(self, spec: Any) -> Any:
        shape = list(spec.shape)
        batch = next(self._batches, None)
        if shape and shape[0] is None:
            shape[0] = batch
        sizes = [self._size(axis) if size is None else str(size) for axis, size in enumerate(shape)]
        symbols = self._jax.export.symbolic_shape(", ".join(sizes), scope=self._scope) if sizes else ()
        return self._jax.ShapeDtypeStruct(symbols, spec.dtype)

    def _size(self, axis: int) -> str:
        return next(self._names) if axis else "batch"


def _names_of_inputs(jax: Any, signature: Sequence[Any]) -> list[str]:
    """Returns the names of all inputs, in the order of JAX: their own, or those of the arguments."""
    leaves, _ = jax.tree.flatten_with_path(list(signature))
    return list(_distinct(spec.name or _name_of_key(path) for path, spec in leaves))


def _name_of_key(path: Sequence[Any]) -> str:
    keys = [each.key for each in path if hasattr(each, "key")]
    return str(keys[-1]) if keys else f"args_{path[0].idx}"


def _names_of_results(jax: Any, result: Any) -> Iterator[str]:
    """Yields the names that results have in models that Keras exports: their keys, or numbers."""
    leaves, _ = jax.tree.flatten_with_path(result)
    if isinstance(result, Mapping):
        paths = [[str(getattr(key, "key", getattr(key, "idx", ""))) for key in path] for path, _ in leaves]
        yield from _distinct(map("_".join, paths))
    else:
        yield from (f"output_{position}" for position in range(len(leaves)))


def _distinct(names: Iterable[str]) -> Iterator[str]:
    taken: set[str] = set()
    for name in names:
        found, number = name, 0
        while found in taken:
            number += 1
            found = f"{name}_{number}"
        taken.add(found)
        yield found
