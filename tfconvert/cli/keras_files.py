"""Keras files on the command line: files with the user's own layers, and no log of TensorFlow."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import click

from tfconvert.cli.help_page import Flag
from tfconvert.converter.process.guard import Guard
from tfconvert.importers.open_model import is_keras_file
from tfconvert.schema.diagnostics import error
from tfconvert.schema.files import is_file

imports_option = click.option(
    "--import",
    "imports",
    cls=Flag,
    section="Inputs, outputs and shapes",
    metavar="FILE.py",
    type=click.Path(),
    multiple=True,
    help="Keras files: run FILE.py, and use the layers and functions that it defines. Repeatable.",
)


def prepare_for_keras(model: str, imports: Sequence[str], *, shows_log: bool = False) -> None:
    """Makes the user's own layers known to Keras, and hides the log of TensorFlow until the current command ends.

    Does nothing for models that are not Keras files.

    Args:
        model: The model.
        imports: The files that define layers.
        shows_log: Whether the log is not hidden.

    Raises:
        UsageError: There are such files, and the model is not a Keras file.
        ConversionError: One of them can't be read (`wrong-option`) or run (`bad-plugin`).
    """
    if not is_keras_file(Path(model)):
        if imports:
            raise click.UsageError("--import is for Keras files (.keras, .h5)")
        return
    if not shows_log:
        click.get_current_context().with_resource(_hidden_log())
    for path in imports:
        _import(path)


def _import(path: str) -> None:
    """Runs a file as the module of its name, and registers what it defines in each Keras that is loaded."""
    name = Path(path).stem
    spec = importlib.util.spec_from_file_location(name, path) if is_file(path) else None
    if spec is None or spec.loader is None:
        raise error("wrong-option", f"there is no Python file {path}", hint="--import takes the path of a .py file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # Keras looks for classes by the name of their module, too.
    with Guard(lambda problem: error("bad-plugin", f"{path} {problem}", hint="correct it, or leave it out")):
        spec.loader.exec_module(module)
    defined = {
        name: value
        for name, value in vars(module).items()
        if callable(value) and getattr(value, "__module__", "") == module.__name__
    }
    for keras in (sys.modules.get("keras"), sys.modules.get("tf_keras")):
        if keras is not None:
            keras.saving.get_custom_objects().update(defined)


@contextmanager
def _hidden_log() -> Iterator[None]:
    """Hides what libraries write to the error stream's descriptor; what Python writes to `sys.stderr` is shown."""
    import tempfile

    stream = sys.stderr
    try:
        is_own = stream is not None and stream.fileno() == 2
        kept = os.dup(2)
    except (OSError, ValueError):  # There is no such descriptor, or no stream that has one.
        is_own, kept = False, -1
    if kept < 0:
        yield
        return
    with tempfile.TemporaryFile() as hidden, os.fdopen(kept, "w", encoding="utf-8", errors="backslashreplace") as shown:
        os.dup2(hidden.fileno(), 2)
        sys.stderr = shown if is_own else stream
        try:
            yield
        finally:
            shown.flush()
            sys.stderr = stream
            os.dup2(kept, 2)
