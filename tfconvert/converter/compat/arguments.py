"""What the methods that make a converter look at before anything is converted, as the official class does."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tfconvert.converter.compat.row import refusal
from tfconvert.importers.saved_model import SignatureInfo, is_saved_model, signatures_of
from tfconvert.schema.diagnostics import error
from tfconvert.schema.files import is_missing


def texts(name: str, given: Any) -> list[str] | None:
    """Returns what should be texts as a list, `None` if there is none; a single text is one.

    Raises:
        ConverterError: It is something else (`wrong-option`).
    """
    if given is None:
        return None
    found = [given] if isinstance(given, str) else list(given) if isinstance(given, Iterable) else [given]
    for each in found:
        if not isinstance(each, str):
            raise refusal(name, f"it can't have {each!r}", "pass a list of texts")
    return found or None


def path_of(name: str, given: Any) -> str:
    """Returns a path as a text.

    Raises:
        ConverterError: It is something else (`wrong-option`).
    """
    path = os.fspath(given) if isinstance(given, str | os.PathLike) else None
    if not isinstance(path, str):
        raise refusal(name, f"it can't be {given!r}", "pass a path")
    return path


def signatures(
    folder: str, keys: Sequence[str] | None, tags: Sequence[str] | None
) -> Mapping[str, SignatureInfo] | None:
    """Returns the signatures of a SavedModel's graph; `None` for a model of another format.

    Args:
        folder: The model.
        keys: The signatures to convert; all of them if `None`.
        tags: The tags of the graph.

    Raises:
        ConversionError: There is no such model, graph or signature.
    """
    if not is_saved_model(folder) and not is_missing(folder):
        return None
    found = signatures_of(Path(folder), tags)
    if not found:
        raise error("no-signature", "the model has no signature to convert",
                    hint="save it with signatures=module.function.get_concrete_function(...)")  # fmt: skip
    for key in keys or ():
        if key not in found:
            raise error("unknown-signature", f"Invalid signature key {key!r}: the model has no such signature",
                        hint=f"its signatures are: {', '.join(found)}")  # fmt: skip
    return found


def check_functions(funcs: Any) -> None:
    """Checks that there are functions, and that each is traced or can be.

    Raises:
        ConverterError: There is none, or one could be traced in many ways (`wrong-option`).
    """
    if not isinstance(funcs, list | tuple):
        raise refusal("funcs", f"it can't be {funcs!r}", "pass a list of concrete functions")
    if not funcs:
        raise refusal("funcs", "there is no function to convert", "pass a list of concrete functions")
    for each in funcs:
        if hasattr(each, "get_concrete_function") and getattr(each, "input_signature", None) is None:
            name = getattr(each, "__name__", type(each).__name__)
            raise refusal("funcs", f"{name} is not a concrete function, and has no input signature",
                          "call get_concrete_function(...) of it, and pass what it returns")  # fmt: skip
