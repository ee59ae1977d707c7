"""The user's metadata of a model's inputs and outputs (labels, normalization), read and checked."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tfconvert.exporters.tflite.model import Describe, ModelDescription, Port, Ports
from tfconvert.exporters.tflite.model_metadata import Card, TensorCard, archive, is_class_number
from tfconvert.exporters.tflite.model_metadata import model_metadata as encoded
from tfconvert.schema.diagnostics import ConversionError, error
from tfconvert.schema.files import read_input

ONLY = ""
"""Stands for the name of the only input or output."""

_TEXTS = ("name", "description", "version", "author", "license")
_NUMBERS = {"mean": "mean", "std": "std", "min": "minimum", "max": "maximum"}
_TENSOR_KEYS = {"name", "description", "labels", "content", *_NUMBERS}
_CONTENTS = ("image", "feature")


def read_metadata(metadata: object) -> Card:
    """Returns the description of a model.

    Args:
        metadata: A mapping; the path of a JSON file of the same form, whose label files are in the same directory; or
            the path of a text file with the labels of the only output, one per line.

    Raises:
        ConversionError: It is invalid, or a file can't be read (`bad-metadata`).
    """
    content, directory = _loaded(metadata)
    _known(content, {*_TEXTS, "inputs", "outputs"}, "metadata")
    texts = {key: _text(content[key], key) for key in _TEXTS if key in content}
    cards = []
    for which in ("inputs", "outputs"):
        tensors = content.get(which, {})
        if not isinstance(tensors, Mapping):
            raise _metadata_error(f"{which} must be a table by name, not {tensors!r}")
        cards.append({str(name): _tensor(value, f"{which}.{name}", directory) for name, value in tensors.items()})
    return Card(texts, *cards)


def metadata_files(metadata: object) -> list[Path]:
    """Returns the files with a model's description."""
    content, directory = _loaded(metadata)
    files = [] if isinstance(metadata, Mapping) else [Path(os.fspath(metadata))]  # type: ignore[call-overload]
    for which in ("inputs", "outputs"):
        tensors = content.get(which)
        for value in tensors.values() if isinstance(tensors, Mapping) else ():
            labels = value.get("labels") if isinstance(value, Mapping) else None
            if isinstance(labels, str | os.PathLike):
                files.append(directory / labels)
    return list(dict.fromkeys(files))


def _loaded(metadata: object) -> tuple[Mapping[str, Any], Path]:
    """Returns metadata as a mapping, and the directory of its files."""
    if isinstance(metadata, Mapping):
        return metadata, Path()
    if not isinstance(metadata, str | os.PathLike):
        raise _metadata_error(f"it can't be {metadata!r}", "pass a mapping, or the path of a .json or .txt file")
    path = Path(metadata)
    if path.suffix.lower() != ".json":
        return {"outputs": {ONLY: {"labels": path}}}, Path()
    try:
        content = json.loads(read_input(path))
    except (ValueError, RecursionError) as problem:
        raise _metadata_error(f"{path} is not JSON: {problem}") from None
    if not isinstance(content, dict):
        raise _metadata_error(f"{path} is not a table")
    return content, path.parent


def _known(table: Mapping[str, Any], keys: Iterable[str], where: str) -> None:
    for key in table:
        if key not in keys:
            raise _metadata_error(f"{where} has no key {key!r}", f"the keys are {', '.join(sorted(keys))}")


def _text(value: object, where: str) -> str:
    if not isinstance(value, str):
        raise _metadata_error(f"{where} must be a string, not {value!r}")
    return value


def _tensor(value: object, where: str, directory: Path) -> TensorCard:
    if not isinstance(value, Mapping):
        raise _metadata_error(f"{where} must be a table, not {value!r}")
    _known(value, _TENSOR_KEYS, where)
    fields: dict[str, Any] = {
        key: _text(value[key], f"{where}.{key}") for key in ("name", "description", "content") if key in value
    }
    fields |= {field: _numbers(value[key], f"{where}.{key}") for key, field in _NUMBERS.items() if key in value}
    if "labels" in value:
        fields["labels"] = _labels(value["labels"], where, directory)
    card = TensorCard(**fields)
    if bool(card.mean) != bool(card.std) or 0 in card.std:
        raise _metadata_error(f"{where} must have both mean and std or neither, and std must not be 0")
    if card.content and card.content not in _CONTENTS:
        raise _metadata_error(f"{where}.content can't be {card.content!r}", f"choose one of {', '.join(_CONTENTS)}")
    return card


def _numbers(value: object, where: str) -> tuple[float, ...]:
    numbers = list(value) if isinstance(value, Sequence) and not isinstance(value, str) else [value]
    if not numbers or not all(isinstance(each, int | float) and math.isfinite(each) for each in numbers):
        raise _metadata_error(f"{where} must be a number, or one for each channel, not {value!r}")
    return tuple(float(each) for each in numbers if isinstance(each, int | float))


def _labels(value: object, where: str, directory: Path) -> tuple[str, bytes]:
    """Returns the name and the content of a label file, from a path or a list of strings."""
    if isinstance(value, str | os.PathLike):
        path = directory / value
        content = read_input(path)
        try:
            content.decode("utf-8")
        except UnicodeDecodeError:
            raise _metadata_error(f"the labels in {path} are not UTF-8 text") from None
        return path.name, content
    if not isinstance(value, Sequence) or not all(isinstance(each, str) and "\n" not in each for each in value):
        raise _metadata_error(f"{where}.labels must be a file or a list of one-line strings, not {value!r}")
    name = where.rpartition(".")[2].replace("/", "_")
    return (f"{name}_labels.txt" if name else "labels.txt"), "".join(f"{each}\n" for each in value).encode()


def describer(metadata: object) -> Describe:
    """Returns a function that adds metadata to a file."""
    card = read_metadata(metadata)

    def describe(subgraphs: Sequence[Ports], own: ModelDescription) -> ModelDescription:
        inputs = _assigned(card.inputs, [port for each in subgraphs for port in each.inputs], "input")
        outputs = _assigned(card.outputs, [port for each in subgraphs for port in each.outputs], "output")
        files = _files([*inputs.values(), *outputs.values()])
        return ModelDescription(
            encoded(Card(card.texts, inputs, outputs), subgraphs, own.entry), archive(files, own.archive)
        )

    return describe


def _assigned(cards: Mapping[str, TensorCard], ports: Sequence[Port], what: str) -> dict[str, TensorCard]:
    """Checks and returns the descriptions of ports by name; labels must be as many as scores."""
    names = list(dict.fromkeys(port.name for port in ports))
    found: dict[str, TensorCard] = {}
    for given, card in cards.items():
        name = given
        if given == ONLY:
            if len(names) != 1:
                raise _metadata_error(f"the model has {len(names)} {what}s", f"say which: {', '.join(names)}")
            name = names[0]
        elif given not in names:
            name = next((port.name for port in ports if port.tensor == given), ONLY)
            if not name:
                raise _metadata_error(f"the model has no {what} {given!r}", f"its {what}s are {', '.join(names)}")
        found[name] = card
        for port in ports:
            if port.name == name:
                _check_labels(card, port)
    return found


def _check_labels(card: TensorCard, port: Port) -> None:
    if card.labels is None or is_class_number(port):
        return
    count = len(card.labels[1].decode().splitlines())
    if port.shape and port.shape[-1] >= 0 and port.shape[-1] != count:
        raise _metadata_error(
            f"{card.labels[0]} has {count} labels, and the output {port.name!r} has {port.shape[-1]} scores",
            "give one label a line, in the order of the scores",
        )


def _files(cards: Iterable[TensorCard]) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    for card in cards:
        if card.labels is not None and files.setdefault(*card.labels) != card.labels[1]:
            raise _metadata_error(f"two different files of labels are called {card.labels[0]}", "rename one of them")
    return files


def _metadata_error(message: str, hint: str = "") -> ConversionError:
    return error("bad-metadata", f"metadata: {message}", hint=hint)
