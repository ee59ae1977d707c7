"""Functions of JAX, exported by the JAX that the user has."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tfconvert.importers.temporary_model import Original, OwnRun, explained
from tfconvert.schema.diagnostics import error
from tfconvert.schema.dialects.boxes import Array

if TYPE_CHECKING:
    from tfconvert.schema.dialects.tensor_data import Constant


@dataclass(frozen=True, slots=True)
class NamedExport:
    """An exported function whose inputs have names of the user's.

    Attributes:
        exported: The `jax.export.Exported`.
        names: The names of its arguments, but for those that have values.
        results: The names of its results, if they are not those of the function's tree.
        values: The values of its first arguments, which are constants rather than inputs.
        states: Those of these arguments that are variables, with their names; the function's last results are their new
            values.
        keys: The keys of its signatures if it has several; by default the last one is converted.
    """

    exported: Any
    names: Sequence[str]
    results: Sequence[str] = ()
    values: Sequence[Constant] = ()
    states: Mapping[int, str] = field(default_factory=dict)
    keys: Sequence[str] = ()


def original_of(function: Any) -> Original | None:
    """Returns what runs a function of JAX itself; `None` if it can't run, or has other values than numbers.

    Args:
        function: A `jax.export.Exported`, or one with names.
    """
    exported = function.exported if isinstance(function, NamedExport) else function
    if not hasattr(exported, "module_kept_var_idx") or (isinstance(function, NamedExport) and function.values):
        return None

    def bind(key: str, inputs: Sequence[str], outputs: Sequence[str]) -> OwnRun | None:
        kept, kinds = list(exported.module_kept_var_idx), exported.in_avals
        left = {place: kind for place, kind in enumerate(kinds) if place not in kept}
        if len(kept) != len(inputs) or len(exported.out_avals) != len(outputs) or not all(map(_is_plain, kinds)):
            return None
        if not all(isinstance(size, int) for kind in left.values() for size in kind.shape):
            return None

        def once(values: Sequence[Array]) -> list[Array]:
            jax = importlib.import_module("jax")
            given = dict(zip(kept, values, strict=True))
            leaves = [given[at] if at in given else np.zeros(each.shape, each.dtype) for at, each in enumerate(kinds)]
            arguments, keywords = exported.in_tree.unflatten(leaves)
            with _wide_numbers(jax):
                return list(map(np.asarray, jax.tree.leaves(exported.call(*arguments, **keywords))))

        return lambda calls: list(map(once, calls))

    return Original("the function itself", bind)


def _wide_numbers(jax: Any) -> Any:
    """Returns the context in which JAX takes numbers of 64 bits as they are."""
    if hasattr(jax, "enable_x64"):
        return jax.enable_x64(True)
    return importlib.import_module("jax.experimental").enable_x64()  # Before JAX 0.8.


def _is_plain(kind: Any) -> bool:
    """Returns whether an argument has a type of numpy's; keys of random numbers have types of their own."""
    return isinstance(kind.dtype, np.dtype)


def export_named(function: Any, inputs: Sequence[tuple[str, Any]]) -> NamedExport:
    """Returns a function exported by `export_function`, whose inputs have names.

    Args:
        function: The function, of arrays.
        inputs: Its arguments in order: for each its name, and an example.
    """
    return NamedExport(export_function(function, [example for _, example in inputs]), [name for name, _ in inputs])


def export_function(function: Any, args: Sequence[Any]) -> Any:
    """Returns the `jax.export.Exported` of a function.

    Args:
        function: The function, of trees of arrays; it may be jitted.
        args: Examples of its arguments: trees of arrays, or of `jax.ShapeDtypeStruct`s, whose dimensions may be
            symbolic.

    Raises:
        ConversionError: JAX is not installed (`no-jax`), or can't export the function (`export-failed`).
    """
    if "jax" not in sys.modules and importlib.util.find_spec("jax") is None:
        raise error("no-jax", "functions of JAX need JAX, which isn't installed", hint="pip install jax")
    jax, export = importlib.import_module("jax"), importlib.import_module("jax.export")
    jitted = function if hasattr(function, "lower") else jax.jit(function)
    with explained("export-failed", "JAX can't export the function", "check whether jax.jit(function) can be called"):
        return export.export(jitted, platforms=("cpu",))(*args)
