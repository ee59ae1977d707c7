"""Metadata of inputs and outputs: an entry of the file, and an archive of the files that it names after it."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from tfconvert.exporters.tflite.model import Port, Ports
from tfconvert.schema.tflite.generated import model_metadata_tables
from tfconvert.schema.tflite.reader import Allowance, read
from tfconvert.schema.tflite.tables import Schema
from tfconvert.schema.tflite.writer import encode

MODEL_METADATA = Schema(model_metadata_tables)

_FILE_TYPES = MODEL_METADATA.enums["AssociatedFileType"]

_IDENTIFIER = b"M001"
# The versions of the format that first had what is written here.
_FIRST_VERSION = (1, 0, 0)
_VERSIONS = {
    "BertTokenizerOptions": (1, 1, 0),
    "SentencePieceTokenizerOptions": (1, 1, 0),
    "RegexTokenizerOptions": (1, 2, 1),
}

_TOKENIZERS = frozenset(_VERSIONS)

# The archive's entries have no date, so that equal contents are equal bytes.
_NO_DATE = (1980, 1, 1, 0, 0, 0)

# Colour spaces by the number of channels.
_COLOURS = {1: "GRAYSCALE", 3: "RGB"}


File = tuple[str, bytes]
"""Name and content of a file in the archive."""


@dataclass(frozen=True, slots=True)
class Tokenizer:
    """How text becomes a model's inputs.

    Attributes:
        options: The table of its options: a name of `ProcessUnitOptions`.
        vocabulary: The tokens, or words with their numbers; `None` without one.
        model: SentencePiece's model; `None` for other tokenizers.
        delimiters: The regular expression of what separates words, of a `RegexTokenizerOptions`.
    """

    options: str
    vocabulary: File | None = None
    model: File | None = None
    delimiters: str = ""

    @property
    def is_of_tensor(self) -> bool:
        """Whether it makes the only input, which lists it, rather than several, which the subgraph lists it for."""
        return self.options == "RegexTokenizerOptions"

    def unit(self) -> dict[str, Any]:
        """Returns its `ProcessUnit` table."""
        fields: dict[str, Any] = {"delim_regex_pattern": self.delimiters} if self.delimiters else {}
        if self.model is not None:
            fields["sentencepiece_model"] = [{"name": self.model[0]}]
        if self.vocabulary is not None:
            fields["vocab_file"] = [{"name": self.vocabulary[0], "type": "VOCABULARY"}]
        return {"options": (self.options, fields)}


class TensorCard(NamedTuple):
    """The metadata of an input or output."""

    name: str = ""  # A readable name; empty for the port's.
    description: str = ""  # Its description.
    labels: File | None = None  # The file of labels; `None` without labels.
    calibration: File | None = None  # What calibrates the scores, a line for each label; `None` if nothing does.
    transformation: str = "IDENTITY"  # Of `ScoreTransformationType`: what is done to scores before they are calibrated.
    default_score: float = 0.0  # The score of labels with an empty line.
    threshold: float | None = None  # The lowest score that counts; `None` without one.
    mean: tuple[float, ...] = ()  # The value to subtract from each channel before the model is fed.
    std: tuple[float, ...] = ()  # The value to divide each channel by after that.
    minimum: tuple[float, ...] = ()  # The smallest value, by channel.
    maximum: tuple[float, ...] = ()  # The largest one.
    content: str = ""  # `image` or `feature`; if empty, the shape and the other fields decide.

    @property
    def is_image(self) -> bool:
        """Whether it is said to be an image."""
        return self.content == "image"

    def units(self) -> list[dict[str, Any]]:
        """Returns the `ProcessUnit` tables of what is done before or after the model runs."""
        units: list[tuple[str, dict[str, Any]]] = []
        if self.mean:
            units.append(("NormalizationOptions", {"mean": self.mean, "std": self.std}))
        if self.calibration is not None:
            fields = {"score_transformation": self.transformation, "default_score": self.default_score}
            units.append(("ScoreCalibrationOptions", fields))
        if self.threshold is not None:
            units.append(("ScoreThresholdingOptions", {"global_score_threshold": self.threshold}))
        return [{"options": unit} for unit in units]


class Card(NamedTuple):
    """The metadata of a model."""

    texts: Mapping[str, str]  # Name, description, version, author and license, those that are known.
    inputs: Mapping[str, TensorCard]  # Metadata of inputs, by name.
    outputs: Mapping[str, TensorCard]  # Metadata of outputs, by name.
    tokenizer: Tokenizer | None = None  # How text becomes the inputs of the first subgraph; `None` if they aren't text.


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
    version = _version(known)
    if card.tokenizer is not None:
        _tokenize(trees[0], card.tokenizer)
        version = max(version, _VERSIONS[card.tokenizer.options])
    root = {**known, **card.texts, "min_parser_version": ".".join(map(str, version)), "subgraph_metadata": trees}
    return bytes(encode(MODEL_METADATA, root, _IDENTIFIER).data)


def _version(known: Mapping[str, Any]) -> tuple[int, ...]:
    """Returns the version of the format that a reader must know so far."""
    text = known.get("min_parser_version", "")
    return tuple(map(int, text.split("."))) if re.fullmatch(r"\d{1,4}(\.\d{1,4})*", text, re.ASCII) else _FIRST_VERSION


def _tokenize(subgraph: dict[str, Any], tokenizer: Tokenizer) -> None:
    """Adds a tokenizer to the metadata of a subgraph, in place of the one that it has."""
    holder, name = subgraph, "input_process_units"
    if tokenizer.is_of_tensor:
        holder, name = subgraph["input_tensor_metadata"][0], "process_units"
    holder[name] = _joined(holder.get(name, ()), [tokenizer.unit()], _TOKENIZERS)


def _joined(
    known: Iterable[dict[str, Any]], new: Sequence[dict[str, Any]], instead: frozenset[str] = frozenset()
) -> list[dict[str, Any]]:
    """Returns process units with new ones in place of those with the same options, or some others."""
    replaced = instead | {unit["options"][0] for unit in new}
    return [*(unit for unit in known if unit.get("options", ("",))[0] not in replaced), *new]


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
    if units := card.units():
        tree["process_units"] = _joined(tree.get("process_units", ()), units)
    bounds = {"max": card.maximum, "min": card.minimum}
    if any(bounds.values()):
        tree["stats"] = {name: values for name, values in bounds.items() if values}
    kind = "TENSOR_VALUE_LABELS" if is_class_number(port) else "TENSOR_AXIS_LABELS"
    files = {kind: card.labels, "TENSOR_AXIS_SCORE_CALIBRATION": card.calibration}
    new = [{"name": file[0], "type": kind} for kind, file in files.items() if file is not None]
    if new:
        replaced = {_FILE_TYPES[each["type"]] for each in new}
        kept = [each for each in tree.get("associated_files", ()) if each.get("type", 0) not in replaced]
        tree["associated_files"] = [*kept, *new]
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
