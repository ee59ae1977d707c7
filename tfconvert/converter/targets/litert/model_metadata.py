"""The user's metadata of a model's inputs and outputs (labels, normalization, tokenizer), read and checked."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tfconvert.exporters.tflite.model import Describe, ModelDescription, Port, Ports
from tfconvert.exporters.tflite.model_metadata import Card, File, TensorCard, Tokenizer, archive, is_class_number
from tfconvert.exporters.tflite.model_metadata import model_metadata as encoded
from tfconvert.schema.diagnostics import ConversionError, error
from tfconvert.schema.files import read_input
from tfconvert.settings.data import metadata_paths

ONLY = ""
"""Stands for the name of the only input or output."""

_TEXTS = ("name", "description", "version", "author", "license")
_NUMBERS = {"mean": "mean", "std": "std", "min": "minimum", "max": "maximum"}
_CONTENTS = ("image", "feature")
_TENSOR_KEYS = {"name", "description", "labels", "content", *_NUMBERS}
_CALIBRATION = {"transformation", "default_score"}
_KEYS = {"inputs": _TENSOR_KEYS, "outputs": {*_TENSOR_KEYS, "calibration", "threshold", *_CALIBRATION}}
_TRANSFORMATIONS = ("identity", "log", "inverse_logistic")
# The numbers of a line: scale, slope, offset; and the least score that is calibrated.
_CALIBRATION_NUMBERS = (3, 4)

# By the type of a tokenizer: the table of its options, its keys besides the type, and those that it can't do without.
_TOKENIZERS: Mapping[str, tuple[str, set[str], set[str]]] = {
    "bert": ("BertTokenizerOptions", {"vocabulary"}, {"vocabulary"}),
    "sentencepiece": ("SentencePieceTokenizerOptions", {"model", "vocabulary"}, {"model"}),
    "regex": ("RegexTokenizerOptions", {"delimiters", "vocabulary"}, {"delimiters", "vocabulary"}),
}
# Tokens that a program looks for in a vocabulary.
_TOKENS = {"bert": ("[CLS]", "[SEP]", "[UNK]"), "regex": ("<PAD>", "<UNKNOWN>")}

# The inputs that BERT's and SentencePiece's tokenizers make, as programs know them, by the names that models give them.
_TEXT_INPUTS = {
    "ids": ("ids", "input_ids", "input_word_ids", "token_ids"),
    "mask": ("mask", "input_mask", "attention_mask", "padding_mask"),
    "segment_ids": ("segment_ids", "input_type_ids", "token_type_ids"),
}


def read_metadata(metadata: object) -> Card:
    """Returns the description of a model.

    Args:
        metadata: A mapping; the path of a JSON file of the same form, whose label files are in the same directory; or
            the path of a text file with the labels of the only output, one per line.

    Raises:
        ConversionError: It is invalid, or a file can't be read (`bad-metadata`).
    """
    content, directory = _loaded(metadata)
    _known(content, {*_TEXTS, "inputs", "outputs", "tokenizer"}, "metadata")
    texts = {key: _text(content[key], key) for key in _TEXTS if key in content}
    cards = []
    for which in ("inputs", "outputs"):
        tensors = content.get(which, {})
        if not isinstance(tensors, Mapping):
            raise _metadata_error(f"{which} must be a table by name, not {tensors!r}")
        cards.append({str(name): _tensor(value, which, str(name), directory) for name, value in tensors.items()})
    inputs, outputs = cards
    return Card(texts, inputs, outputs, _tokenizer(content["tokenizer"], directory) if "tokenizer" in content else None)


def metadata_files(metadata: object) -> list[Path]:
    """Returns the files with a model's description."""
    content, directory = _loaded(metadata)
    files = [] if isinstance(metadata, Mapping) else [Path(os.fspath(metadata))]  # type: ignore[call-overload]
    return list(dict.fromkeys([*files, *(directory / path for path in metadata_paths(content))]))


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


def _choice(value: object, where: str, choices: Collection[str]) -> str:
    if not isinstance(value, str) or value not in choices:
        raise _metadata_error(f"{where} can't be {value!r}", f"choose one of {', '.join(choices)}")
    return value


def _tensor(value: object, which: str, name: str, directory: Path) -> TensorCard:
    where = f"{which}.{name}"
    if not isinstance(value, Mapping):
        raise _metadata_error(f"{where} must be a table, not {value!r}")
    _known(value, _KEYS[which], where)
    fields: dict[str, Any] = {
        key: _text(value[key], f"{where}.{key}") for key in ("name", "description") if key in value
    }
    fields |= {field: _numbers(value[key], f"{where}.{key}") for key, field in _NUMBERS.items() if key in value}
    if "content" in value:
        fields["content"] = _choice(value["content"], f"{where}.content", _CONTENTS)
    for key in ("labels", "calibration"):
        if key in value:
            file = f"{name.replace('/', '_')}_{key}.txt" if name else f"{key}.txt"
            fields[key] = _text_file(value[key], f"{where}.{key}", directory, file)
    if "threshold" in value:
        fields["threshold"] = _number(value["threshold"], f"{where}.threshold")
    card = TensorCard(**fields)
    if bool(card.mean) != bool(card.std) or 0 in card.std:
        raise _metadata_error(f"{where} must have both mean and std or neither, and std must not be 0")
    return card if card.calibration is None and not _CALIBRATION & value.keys() else _calibrated(card, value, where)


def _calibrated(card: TensorCard, value: Mapping[str, Any], where: str) -> TensorCard:
    """Returns a card with the rest of its calibration, whose file is checked."""
    if card.calibration is None or card.labels is None:
        raise _metadata_error(
            f"{where} describes a calibration, but its {'labels' if card.calibration else 'calibration'} are missing",
            "give labels, and a calibration with a line for each of them",
        )
    # Programs take a newline at the end for another line, an empty one.
    lines, count = card.calibration[1].decode().replace("\r\n", "\n").split("\n"), len(_lines(card.labels))
    lines = lines[:-1] if len(lines) == count + 1 and not lines[-1] else lines
    if len(lines) != count:
        raise _metadata_error(
            f"{where}.calibration has {len(_lines(card.calibration))} lines, and there are {count} labels",
            "write a line for each label",
        )
    for number, line in enumerate(lines, 1):
        if line and not _is_calibration(line):
            raise _metadata_error(
                f"{where}.calibration: line {number} is {line!r}",
                "write SCALE,SLOPE,OFFSET or SCALE,SLOPE,OFFSET,MINIMUM_SCORE, where SCALE is not negative, or nothing",
            )
    transformation = _choice(value.get("transformation", "identity"), f"{where}.transformation", _TRANSFORMATIONS)
    default = _number(value.get("default_score", 0.0), f"{where}.default_score")
    file = (card.calibration[0], "\n".join(lines).encode())
    return card._replace(calibration=file, transformation=transformation.upper(), default_score=default)


def _is_calibration(line: str) -> bool:
    try:
        numbers = [float(each) for each in line.split(",")]
    except ValueError:
        return False
    return len(numbers) in _CALIBRATION_NUMBERS and all(map(math.isfinite, numbers)) and numbers[0] >= 0


def _tokenizer(value: object, directory: Path) -> Tokenizer:
    if not isinstance(value, Mapping):
        raise _metadata_error(f"tokenizer must be a table, not {value!r}")
    kind = _choice(value.get("type"), "tokenizer.type", _TOKENIZERS)
    options, keys, needed = _TOKENIZERS[kind]
    _known(value, {"type", *keys}, f"the {kind} tokenizer")
    if missing := sorted(needed - value.keys()):
        raise _metadata_error(f"the {kind} tokenizer has no {missing[0]!r}", f"it needs {', '.join(sorted(needed))}")
    fields: dict[str, Any] = {}
    if "vocabulary" in value:
        fields["vocabulary"] = _text_file(value["vocabulary"], "tokenizer.vocabulary", directory, "vocabulary.txt")
        _check_vocabulary(fields["vocabulary"], kind)
    if "delimiters" in value:
        fields["delimiters"] = _text(value["delimiters"], "tokenizer.delimiters")
        _check_delimiters(fields["delimiters"])
    if "model" in value:
        path = value["model"]
        if not isinstance(path, str | os.PathLike):
            raise _metadata_error(f"tokenizer.model must be SentencePiece's .model file, not {path!r}")
        fields["model"] = (Path(path).name, read_input(directory / path))
        # A message that starts with its pieces.
        if not fields["model"][1].startswith(b"\n"):
            raise _metadata_error(f"{path} is not a model of SentencePiece", "pass its .model file, not its .vocab")
    return Tokenizer(options, **fields)


def _check_delimiters(pattern: str) -> None:
    """Checks a regular expression: with an invalid one, programs report nothing and find no words."""
    try:
        # Classes of characters that only RE2 knows.
        re.compile(re.sub(r"\\[pP](\{\^?\w+\}|\w)", r"\\w", pattern))
        problem = "it matches nothing" if not pattern else ""
    except (re.error, RecursionError, OverflowError) as failure:
        problem = str(failure)
    if re.search(r"\(\?(<?[=!]|P=|\()|\\[1-9]", pattern.replace("\\\\", "")):
        problem = "it looks around or back"
    if problem:
        raise _metadata_error(
            f"tokenizer.delimiters can't be {pattern!r}: {problem}", "write a regular expression in the syntax of RE2"
        )


def _check_vocabulary(file: File, kind: str) -> None:
    """Checks that a vocabulary has the tokens that programs look for, and, for words, their numbers."""
    name, lines = file[0], _lines(file)
    if kind == "regex":
        for number, line in enumerate(lines, 1):
            if not re.fullmatch(r"[^ ]+ \d+", line, re.ASCII):
                raise _metadata_error(f"{name}: line {number} is {line!r}", "write a word and its number on each line")
        lines = [line.partition(" ")[0] for line in lines]
    if missing := [token for token in _TOKENS.get(kind, ()) if token not in lines]:
        raise _metadata_error(
            f"{name} lacks {', '.join(missing)}, which programs search for in the vocabulary of a {kind} tokenizer",
            "pass the vocabulary that the model was trained with",
        )


def _numbers(value: object, where: str) -> tuple[float, ...]:
    numbers = list(value) if isinstance(value, Sequence) and not isinstance(value, str) else [value]
    if not numbers or not all(isinstance(each, int | float) and math.isfinite(each) for each in numbers):
        raise _metadata_error(f"{where} must be a number, or one for each channel, not {value!r}")
    return tuple(float(each) for each in numbers if isinstance(each, int | float))


def _number(value: object, where: str) -> float:
    if not isinstance(value, int | float) or not math.isfinite(value):
        raise _metadata_error(f"{where} must be a number, not {value!r}")
    return float(value)


def _text_file(value: object, where: str, directory: Path, name: str) -> File:
    """Returns the name and the content of a file of lines, from a path or a list of strings."""
    if isinstance(value, str | os.PathLike):
        path = directory / value
        content = read_input(path)
        try:
            content.decode("utf-8")
        except UnicodeDecodeError:
            raise _metadata_error(f"{path} is not UTF-8 text") from None
        return path.name, content
    if not isinstance(value, Sequence) or not all(isinstance(each, str) and "\n" not in each for each in value):
        raise _metadata_error(f"{where} must be a file or a list of one-line strings, not {value!r}")
    return name, "".join(f"{each}\n" for each in value).encode()


def _lines(file: File) -> list[str]:
    """Returns the lines of a text file as programs on devices part it, which know no other separators."""
    text = file[1].decode().replace("\r\n", "\n")
    return text.removesuffix("\n").split("\n") if text else []


def describer(metadata: object) -> Describe:
    """Returns a function that adds metadata to a file."""
    card = read_metadata(metadata)

    def describe(subgraphs: Sequence[Ports], own: ModelDescription) -> ModelDescription:
        inputs = _assigned(card.inputs, [port for each in subgraphs for port in each.inputs], "input")
        outputs = _assigned(card.outputs, [port for each in subgraphs for port in each.outputs], "output")
        if card.tokenizer is not None:
            inputs |= _text_inputs(card.tokenizer, subgraphs[0].inputs, inputs)
        described = Card(card.texts, inputs, outputs, card.tokenizer)
        return ModelDescription(encoded(described, subgraphs, own.entry), archive(_files(described), own.archive))

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
    count = len(_lines(card.labels))
    if port.shape and port.shape[-1] >= 0 and port.shape[-1] != count:
        raise _metadata_error(
            f"{card.labels[0]} has {count} labels, and the output {port.name!r} has {port.shape[-1]} scores",
            "give one label a line, in the order of the scores",
        )


def _text_inputs(tokenizer: Tokenizer, ports: Sequence[Port], cards: Mapping[str, TensorCard]) -> dict[str, TensorCard]:
    """Checks the inputs that a tokenizer makes; returns their descriptions, with the names that programs look for."""
    for port in ports:
        if port.type != "INT32":
            raise _metadata_error(
                f"a tokenizer makes int32, and the input {port.name!r} is {port.type.lower()}",
                "give the model int32 inputs, and convert them inside of it",
            )
    if tokenizer.is_of_tensor:
        if len(ports) != 1:
            raise _metadata_error(
                f"a regex tokenizer makes one input, and the model has {len(ports)}",
                "choose the tokenizer that the model was trained with, or convert a function of one input",
            )
        return {}
    named = {port.name: _text_input(port.name, cards.get(port.name, TensorCard())) for port in ports}
    if sorted(card.name for card in named.values()) != sorted(_TEXT_INPUTS):
        listed = ", ".join(f"{name!r}" for name in named)
        raise _metadata_error(
            f"a tokenizer of this type makes the inputs {', '.join(_TEXT_INPUTS)}, and the model has {listed}",
            'say which is which: {"inputs": {INPUT: {"name": "ids"}, ...}}; programs want all three, so give the model '
            "those that it lacks, even if it doesn't use them",
        )
    return named


def _text_input(name: str, card: TensorCard) -> TensorCard:
    known = (text for text, names in _TEXT_INPUTS.items() if name in names)
    return card if card.name else card._replace(name=next(known, name))


def _files(card: Card) -> dict[str, bytes]:
    parts = [*card.inputs.values(), *card.outputs.values()]
    files = [file for part in parts for file in (part.labels, part.calibration)]
    if card.tokenizer is not None:
        files += [card.tokenizer.model, card.tokenizer.vocabulary]
    found: dict[str, bytes] = {}
    for file in files:
        if file is not None and found.setdefault(*file) != file[1]:
            raise _metadata_error(f"two different files are called {file[0]}", "rename one of them")
    return found


def _metadata_error(message: str, hint: str = "") -> ConversionError:
    return error("bad-metadata", f"metadata: {message}", hint=hint)
