"""The settings of a conversion as they are sent: plain data, with the samples beside them as files."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tfconvert.client.packing import Packed, is_array, pack_arrays
from tfconvert.schema.diagnostics import error
from tfconvert.schema.files import read_input
from tfconvert.settings.data import METADATA_FILES, check_data, plain, quantize_of, target_data
from tfconvert.settings.quantization import Quantize, to_quantize
from tfconvert.settings.targets import LiteRT

Samples = tuple[str | os.PathLike[str], ...] | Packed
"""Samples that are sent: paths of files, or arrays as a file."""


def to_request(settings: Mapping[str, Any]) -> tuple[dict[str, Any], Samples]:
    """Returns the data that is sent for settings, and the samples.

    Args:
        settings: Keywords of `tfconvert.convert`, or names that settings have in data.

    Raises:
        ConversionError: One can't be sent to a server, or samples are missing (`no-samples`).
    """
    given = {name: value for name, value in settings.items() if value is not None}
    target = given.pop("target", LiteRT())
    if isinstance(target, LiteRT) and target.quantize is not None:
        given.setdefault("quantize", target.quantize)
        target = replace(target, quantize=None)
    given |= {"target": target} if isinstance(target, str) else target_data(target)
    samples: Samples = ()
    quantize = given.get("quantize")
    if "samples" in given and not isinstance(quantize, Mapping):
        quantize = to_quantize(quantize, given.pop("samples"))
    if isinstance(quantize, Quantize):
        samples = _samples(quantize.samples)
        given["quantize"] = replace(quantize, samples=None)
    elif isinstance(quantize, Mapping) and "samples" in quantize:
        samples = _samples(quantize["samples"])
        given["quantize"] = {name: value for name, value in quantize.items() if name != "samples"}
    elif isinstance(quantize, str):
        given["quantize"] = quantize.lower()
    if isinstance(given.get("signatures"), str):
        given["signatures"] = [given["signatures"]]
    if "metadata" in given:
        given["metadata"] = _metadata(given["metadata"])
    data = {name: plain(value, name) for name, value in given.items()}
    check_data(data, allow_paths=False)
    wanted = quantize_of(data)
    if wanted is not None and wanted.lacks_samples and not samples:
        raise error(
            "no-samples",
            f"the mode {wanted.mode!r} needs samples to find the ranges of values",
            hint="pass typical inputs with `samples` (--samples FILE.npz); or `trained` (--trained) if the model was "
            "trained with fake quantization, which a server doesn't know before it converts",
        )
    return data, samples


def _samples(samples: Any) -> Samples:
    if samples is None:
        return ()
    if is_array(samples) or (isinstance(samples, Mapping) and samples and all(map(is_array, samples.values()))):
        return pack_arrays(samples)
    paths = [samples] if isinstance(samples, str | os.PathLike) else samples
    if isinstance(paths, Sequence) and all(isinstance(each, str | os.PathLike) for each in paths):
        return tuple(paths)
    raise error(
        "wrong-option",
        "quantize: only arrays and files of samples can be sent to a server",
        hint="pass an array, arrays by input name, or the paths of .npz or .npy files",
    )


def _metadata(metadata: Any) -> Any:
    """Returns metadata with the lines themselves where a text file of them is named."""
    if not isinstance(metadata, Mapping):
        raise error(
            "wrong-option", "metadata: a file of it can't be sent to a server", hint="pass what is in it as a mapping"
        )
    sides = {which: metadata[which] for which in ("inputs", "outputs") if isinstance(metadata.get(which), Mapping)}
    tables = {which: {name: _with_lines(value) for name, value in side.items()} for which, side in sides.items()}
    return {**metadata, **tables, **{key: _with_lines(metadata[key]) for key in metadata.keys() & {"tokenizer"}}}


def _with_lines(table: Any) -> Any:
    """Returns a table with the lines of its text files; a tokenizer's model is no text, and refused later."""
    if not isinstance(table, Mapping):
        return table
    paths = {key: table.get(key) for key in METADATA_FILES if key != "model"}
    return {**table, **{key: _lines(path) for key, path in paths.items() if isinstance(path, str | os.PathLike)}}


def _lines(path: str | os.PathLike[str]) -> list[str]:
    try:
        text = read_input(path).decode("utf-8")
    except UnicodeDecodeError:
        raise error("bad-metadata", f"metadata: {os.fspath(path)} is not UTF-8 text") from None
    return text.removesuffix("\n").split("\n") if text else []
