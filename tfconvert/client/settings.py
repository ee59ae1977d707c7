"""The settings of a conversion as they are sent: plain data, with the samples beside them as files."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tfconvert.client.packing import Packed, is_array, pack_arrays
from tfconvert.schema.diagnostics import error
from tfconvert.schema.files import read_input
from tfconvert.settings.data import check_data, plain, quantize_of, target_data
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
    """Returns metadata with the labels themselves where a file of them is named."""
    if not isinstance(metadata, Mapping):
        raise error(
            "wrong-option", "metadata: a file of it can't be sent to a server", hint="pass what is in it as a mapping"
        )
    outputs = metadata.get("outputs")
    if not isinstance(outputs, Mapping):
        return metadata
    return {**metadata, "outputs": {name: _with_labels(value) for name, value in outputs.items()}}


def _with_labels(value: Any) -> Any:
    labels = value.get("labels") if isinstance(value, Mapping) else None
    if not isinstance(labels, str | os.PathLike):
        return value
    try:
        return {**value, "labels": read_input(labels).decode("utf-8").splitlines()}
    except UnicodeDecodeError:
        raise error("bad-metadata", f"metadata: the labels in {os.fspath(labels)} are not UTF-8 text") from None
