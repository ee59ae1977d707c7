"""The settings of a conversion as they are sent: plain data, with the samples beside them as files."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from tfconvert.batch.settings import check_settings
from tfconvert.schema.diagnostics import ConversionError, error
from tfconvert.schema.limits import Limits
from tfconvert.settings.iree_options import IreeOptions
from tfconvert.settings.quantization import Quantize
from tfconvert.settings.verify_options import Verify

# Fields of `Quantize` that aren't data: samples are sent as files, and progress is shown by the server's stages.
_BESIDE = ("samples", "progress")


def to_data(settings: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str | os.PathLike[str], ...]]:
    """Returns keywords of `tfconvert.convert` as data, and the files of samples."""
    given = {name: value for name, value in settings.items() if value is not None}
    samples: tuple[str | os.PathLike[str], ...] = ()
    quantize = given.get("quantize")
    if isinstance(quantize, Quantize):
        samples = _samples(quantize.samples)
        given["quantize"] = {"mode": quantize.mode, **_record(quantize, Quantize(quantize.mode), _BESIDE)}
    elif isinstance(quantize, Mapping) and "samples" in quantize:
        samples = _samples(quantize["samples"])
        given["quantize"] = {name: value for name, value in quantize.items() if name != "samples"}
    if isinstance(given.get("verify"), Verify):
        given["verify"] = _record(given["verify"], Verify(), ()) or True
    if isinstance(given.get("limits"), Limits):
        given["limits"] = given["limits"]._asdict()
    if isinstance(given.get("iree"), IreeOptions):
        iree: IreeOptions = given["iree"]
        given["iree"] = {name: value for name, value in iree._asdict().items() if value != iree._field_defaults[name]}
    if isinstance(given.get("signatures"), str):
        given["signatures"] = [given["signatures"]]
    if "metadata" in given:
        given["metadata"] = _metadata(given["metadata"])
    data = {name: _plain(value, name) for name, value in given.items()}
    check_settings(data, allow_paths=False)
    return data, samples


def _record(value: Quantize | Verify, default: Quantize | Verify, beside: Sequence[str]) -> dict[str, Any]:
    """Returns the fields that don't have their defaults."""
    names = [field.name for field in fields(value) if field.name not in beside]
    return {name: getattr(value, name) for name in names if getattr(value, name) != getattr(default, name)}


def _samples(samples: Any) -> tuple[str | os.PathLike[str], ...]:
    if samples is None:
        return ()
    paths = [samples] if isinstance(samples, str | os.PathLike) else samples
    if isinstance(paths, Sequence) and all(isinstance(each, str | os.PathLike) for each in paths):
        return tuple(paths)
    raise error(
        "wrong-option",
        "quantize: only samples in files can be sent to a server",
        hint="save them with numpy.savez, by input name, and pass the file's path",
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
        return {**value, "labels": Path(labels).read_text("utf-8").splitlines()}
    except (OSError, UnicodeDecodeError) as problem:
        raise error("bad-metadata", f"can't read the labels in {os.fspath(labels)}: {problem}") from None


def _plain(value: Any, name: str) -> Any:
    """Returns a value as JSON has it."""
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(each, name) for key, each in value.items()}
    if isinstance(value, Sequence):
        return [_plain(each, name) for each in value]
    raise _not_data(value, name)


def _not_data(value: object, name: str) -> ConversionError:
    return error(
        "wrong-option",
        f"{name}: a {type(value).__name__} can't be sent to a server",
        hint="convert on this machine, without a server",
    )
