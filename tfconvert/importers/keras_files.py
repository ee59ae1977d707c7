"""Contents that a Keras file may not have, since loading them would do more: code, and names of other files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tfconvert.schema.diagnostics import ConversionError, error

# Layers whose vocabulary may be given as the path of a file, which is then read.
_LOOKUPS = frozenset({"Hashing", "IndexLookup", "IntegerLookup", "StringLookup", "TextVectorization"})

_TRUST = "if you trust the file, load it yourself and pass the model to tfconvert.convert"


def check_config(path: Path, config: object, *, runs_code: bool) -> None:
    """Checks the configuration of a model, as its JSON holds it.

    Args:
        path: The file, for messages.
        config: The configuration.
        runs_code: Whether the Keras that loads it would run code in it.

    Raises:
        ConversionError: It holds code that would be run, or names a file that would be read (`unsafe-model`).
    """
    for each in _tables(config):
        if runs_code and _holds_code(each):
            raise _unsafe(path, "has a Lambda layer whose code would be run to load it")
        vocabulary = _settings(each).get("vocabulary")
        if each.get("class_name") in _LOOKUPS and isinstance(vocabulary, str):
            raise _unsafe(path, f"names the file {vocabulary!r}, which would be read to load it")


def check_hdf5(path: Path, root: Any) -> None:
    """Checks that all that an HDF5 file seems to hold is in it.

    Args:
        path: The file, for messages.
        root: The open file.

    Raises:
        ConversionError: A part of it lies in another file (`unsafe-model`).
    """
    import h5py

    pending, seen = [root], set()
    while pending:
        group = pending.pop()
        for name in group:
            link = group.get(name, getlink=True)
            if isinstance(link, h5py.ExternalLink):
                raise _unsafe(path, f"holds a link to the file {link.filename!r}, which would be read to load it")
            found = group.get(name) if isinstance(link, h5py.HardLink) else None
            if isinstance(found, h5py.Dataset) and (found.external or found.is_virtual):
                raise _unsafe(path, f"has the numbers of {found.name!r} in another file, which would be read")
            if isinstance(found, h5py.Group) and (place := h5py.h5o.get_info(found.id).addr) not in seen:
                seen.add(place)
                pending.append(found)


def _tables(config: object) -> Iterator[dict[str, Any]]:
    """Yields all tables of a configuration, however deep."""
    pending = [config]
    while pending:
        each = pending.pop()
        if isinstance(each, dict):
            yield each
            pending += each.values()
        elif isinstance(each, list):
            pending += each


def _holds_code(table: dict[str, Any]) -> bool:
    """Returns whether a table is, or has, a compiled function."""
    if table.get("class_name") == "__lambda__" or "lambda" in (
        table.get("function_type"),
        table.get("output_shape_type"),
        table.get("mask_type"),
    ):
        return True
    return table.get("class_name") == "Lambda" and isinstance(_settings(table).get("function"), list)


def _settings(layer: dict[str, Any]) -> dict[str, Any]:
    settings = layer.get("config")
    return settings if isinstance(settings, dict) else {}


def _unsafe(path: Path, what: str) -> ConversionError:
    return error("unsafe-model", f"{path} {what}", hint=_TRUST)
