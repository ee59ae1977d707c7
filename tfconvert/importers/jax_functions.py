"""Functions of JAX, exported by the JAX that the user has."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tfconvert.importers.temporary_model import explained
from tfconvert.schema.diagnostics import error


@dataclass(frozen=True, slots=True)
class NamedExport:
    """An exported function whose inputs have names of the user's.

    Attributes:
        exported: The `jax.export.Exported`.
        names: The names of all its arguments.
    """

    exported: Any
    names: Sequence[str]


def export_function(function: Any, inputs: Sequence[tuple[str, Any]]) -> NamedExport:
    """Returns a function exported by the JAX that the process has imported.

    Args:
        function: The function, of arrays.
        inputs: Its arguments in order: for each its name, and an example.

    Raises:
        ConversionError: JAX is not installed (`no-jax`), or can't export the function (`export-failed`).
    """
    if "jax" not in sys.modules and importlib.util.find_spec("jax") is None:
        raise error("no-jax", "functions of JAX need JAX, which isn't installed", hint="pip install jax")
    jax, export = importlib.import_module("jax"), importlib.import_module("jax.export")
    with explained("export-failed", "JAX can't export the function", "check whether jax.jit(function) can be called"):
        exported = export.export(jax.jit(function), platforms=("cpu",))(*[example for _, example in inputs])
    return NamedExport(exported, [name for name, _ in inputs])
