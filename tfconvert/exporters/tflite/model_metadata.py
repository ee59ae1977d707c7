"""Metadata of inputs and outputs: an entry of the file, and an archive of label files after it."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tfconvert.exporters.tflite.model import Port, Ports
from tfconvert.schema.tflite.generated import model_metadata_tables
from tfconvert.schema.tflite.reader import Allowance, read
from tfconvert.schema.tflite.tables import Schema
from tfconvert.schema.tflite.writer import encode

MODEL_METADATA = Schema(model_metadata_tables)

_IDENTIFIER = b"M001"
# The first version of the format has every field that is written here.
_MIN_PARSER_VERSION = "1.0.0"

# The archive's entries have no date, so that equal contents are equal bytes.
_NO_DATE = (1980, 1, 1, 0, 0, 0)

# Colour spaces by the number of channels.
_COLOURS = {1: "GRAYSCALE", 3: "RGB"}


class TensorCard(NamedTuple):
    """The metadata of an input or output."""

    name: str = ""  # A readable name; empty for the port's.
    description: str = ""  # Its description.
    labels: tuple[str, bytes] | None = None  # Name and content of the file of labels; `None` without labels.
    mean: tuple[float, ...] = ()  # The value to subtract from each channel before the model is fed.
    std: tuple[float, ...] = ()  # The value to divide each channel by after that.
    minimum: tuple[float, ...] = ()  # The smallest value, by channel.
    maximum: tuple[float, ...] = ()  # The largest one.
    content: str = ""  # `image` or `feature`; if empty, the shape and the other fields decide.

    @property
    def is_image(self) -> bool:
        """Whether it is said to be an image."""
        return self.content == "image"


class Card(NamedTuple):
    """The metadata of a model."""

    texts: Mapping[str, str]  # Name, description, version, author and license, those that are known.
    inputs: Mapping[str, TensorCard]  # Metadata of inputs, by name.
    outputs: Mapping[str, TensorCard]  # Metadata of outputs, by name.


def model_metadata(card: Card, subgraphs: Sequence[Ports], previous: bytes = b"") -> bytes:
    """Returns the metadata entry.

    Args:
        card: The model's metadata.
        subgraphs: The subgraphs that are called from outside, the file's first ones.
        previous: The entry that the file has so far: what the new one doesn't mention stays.
    """
    known: dict[str, Any] = (
        read(MODEL_METADATA, previous, _IDENTIFIER, Allowance(len(previous))).tree() if previous else {}
    )
    before: Sequence[dict[str, Any]] = known.get("subgraph_metadata", ())
    trees = []
    for number, each in enumerate(subgraphs):
        tree = before[number] if number < len(before) else {}
        sides = (
            ("input_tensor_metadata", each.inputs, card.inputs),
            ("output_tensor_metadata", each.outputs, card.outputs),
        )
        trees.append({**tree, **{name: _tensors(ports, cards, tree.get(name, ())) for name, ports, cards in sides}})
    root = {"min_parser_version": _MIN_PARSER_VERSION, **known, **card.texts, "subgraph_metadata": trees}
    return bytes(encode(MODEL_METADATA, root, _IDENTIFIER).data)


def _tensors(
    ports: Sequence[Port], cards: Mapping[str, TensorCard], known: Sequence[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Returns the tables of inputs or outputs; those of a file apply by position, if there are as many."""
    before = known if len(known) == len(ports) else [{}] * len(ports)
    return [
        own if own and port.name not in cards else _tensor(port, cards.get(port.name), own)
        for port, own in zip(ports, before, strict=True)
    ]


def is_class_number(port: Port) -> bool:
    """Returns whether a port's values are class numbers, rather than a score for each class."""
    return port.type in ("INT32", "INT64")


def _tensor(port: Port, card: TensorCard | None, known: dict[str, Any]) -> dict[str, Any]:
    """Returns the `TensorMetadata` table of an input or output; what the user doesn't mention stays as it is known."""
    card = card or TensorCard()
    tree: dict[str, Any] = {"name": port.name, "content": _content(port, card), **known}
    if card.name:
        tree["name"] = card.name
    if card.content or card.mean:
        tree["content"] = _content(port, card)
    if card.description:
        tree["description"] = card.description
    if card.mean:
        tree["process_units"] = [{"options": ("NormalizationOptions", {"mean": card.mean, "std": card.std})}]
    bounds = {"max": card.maximum, "min": card.minimum}
    if any(bounds.values()):
        tree["stats"] = {name: values for name, values in bounds.items() if values}
    if card.labels is not None:
        kind = "TENSOR_VALUE_LABELS" if is_class_number(port) else "TENSOR_AXIS_LABELS"
        tree["associated_files"] = [{"name": card.labels[0], "type": kind}]
    return tree


def _content(port: Port, card: TensorCard) -> dict[str, Any]:
    channels = port.shape[-1] if len(port.shape) == 4 else 0
    if card.is_image or (card.mean and not card.content and channels in _COLOURS):
        fields: dict[str, Any] = {"color_space": _COLOURS.get(channels, "UNKNOWN")}
        if len(port.shape) == 4 and min(port.shape[1:3]) > 0:
            fields["default_size"] = {"height": port.shape[1], "width": port.shape[2]}
        return {"content_properties": ("ImageProperties", fields)}
    return {"content_properties": ("FeatureProperties", {})}


def archive(files: Mapping[str, bytes], previous: bytes = b"") -> bytes:
    """Returns files as an archive; offsets are from its start.

    Args:
        files: The contents by name.
        previous: An archive with further files; those of the same names are replaced.
    """
    if not files:
        return previous
    stream = io.BytesIO(previous)
    # Readers on devices map the files into memory, so nothing is compressed.
    with zipfile.ZipFile(stream, "a" if previous else "w", zipfile.ZIP_STORED) as target:
        target.filelist[:] = [entry for entry in target.filelist if entry.filename not in files]
        target.NameToInfo = {entry.filename: entry for entry in target.filelist}
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, _NO_DATE)
            entry.external_attr = 0o644 << 16
            target.writestr(entry, content)
    return stream.getvalue()
