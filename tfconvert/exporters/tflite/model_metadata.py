"""Metadata of inputs and outputs: an entry of the file, and an archive of label files after it."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tfconvert.exporters.tflite.model import Port, Ports
from tfconvert.schema.tflite.generated import model_metadata_tables
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
    """The metadata of an input or output.

    Attributes:
        name: A readable name; empty for the port's.
        description: Its description.
        labels: Name and content of the file of labels; `None` without labels.
        mean: The value to subtract from each channel before the model is fed.
        std: The value to divide each channel by after that.
        minimum: The smallest value, by channel.
        maximum: The largest one.
        content: `image` or `feature`; if empty, the shape and the other fields decide.
    """

    name: str = ""
    description: str = ""
    labels: tuple[str, bytes] | None = None
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()
    minimum: tuple[float, ...] = ()
    maximum: tuple[float, ...] = ()
    content: str = ""

    @property
    def is_image(self) -> bool:
        """Whether it is said to be an image."""
        return self.content == "image"


class Card(NamedTuple):
    """The metadata of a model.

    Attributes:
        texts: Name, description, version, author and license, those that are known.
        inputs: Metadata of inputs, by name.
        outputs: Metadata of outputs, by name.
    """

    texts: Mapping[str, str]
    inputs: Mapping[str, TensorCard]
    outputs: Mapping[str, TensorCard]


def model_metadata(card: Card, subgraphs: Sequence[Ports]) -> bytes:
    """Returns the metadata entry.

    Args:
        card: The model's metadata.
        subgraphs: The subgraphs that are called from outside, the file's first ones.
    """
    trees = [
        {
            "input_tensor_metadata": [_tensor(port, card.inputs.get(port.name)) for port in each.inputs],
            "output_tensor_metadata": [_tensor(port, card.outputs.get(port.name)) for port in each.outputs],
        }
        for each in subgraphs
    ]
    root = {**card.texts, "subgraph_metadata": trees, "min_parser_version": _MIN_PARSER_VERSION}
    return bytes(encode(MODEL_METADATA, root, _IDENTIFIER).data)


def is_class_number(port: Port) -> bool:
    """Returns whether a port's values are class numbers, rather than a score for each class."""
    return port.type in ("INT32", "INT64")


def _tensor(port: Port, card: TensorCard | None) -> dict[str, Any]:
    """Returns the `TensorMetadata` table of an input or output."""
    card = card or TensorCard()
    tree: dict[str, Any] = {"name": card.name or port.name, "content": _content(port, card)}
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


class _Behind(io.BytesIO):
    """A file in memory that counts positions from the start of the file that it will be appended to."""

    def __init__(self, start: int) -> None:
        super().__init__()
        self._start = start

    def tell(self) -> int:
        return self._start + super().tell()

    def seek(self, offset: int, whence: int = 0, /) -> int:
        return self._start + super().seek(offset - self._start if whence == 0 else offset, whence)


def archive(files: Mapping[str, bytes], start: int) -> bytes:
    """Returns files as an archive to append to other bytes: readers locate it from its end.

    Args:
        files: The contents by name.
        start: The number of preceding bytes.
    """
    stream = _Behind(start)
    # Readers on devices map the files into memory, so nothing is compressed.
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as target:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, _NO_DATE)
            entry.external_attr = 0o644 << 16
            target.writestr(entry, content)
    return stream.getvalue()
