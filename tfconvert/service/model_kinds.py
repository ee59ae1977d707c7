"""Recognizes the kind of an uploaded file by its first bytes, or by its name if these are ambiguous."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from enum import Enum
from pathlib import Path

from tfconvert.importers.foreign_files import GZIP, TAR, ZIP, archive_format, foreign, is_keras_file
from tfconvert.importers.stablehlo.bytecode import MAGIC
from tfconvert.importers.stablehlo.model_file import is_stablehlo_file
from tfconvert.schema.diagnostics import ConversionError, error
from tfconvert.schema.files import open_file
from tfconvert.schema.tflite.reader import TFLITE_IDENTIFIER

# Bytes at the start of a file that are inspected.
_HEAD_BYTES = 1 << 16


class ModelKind(Enum):
    """A kind of file; the value is its extension for the converter."""

    ZIP = ".zip"
    TAR = ".tar"
    TAR_GZ = ".tar.gz"
    SAVED_MODEL = "saved_model.pb"
    SAVED_MODEL_TEXT = "saved_model.pbtxt"
    GRAPH = ".pb"
    GRAPH_TEXT = ".pbtxt"
    META_GRAPH = ".meta"
    MLIR = ".mlir"
    ARTIFACT = ".mlirbc"
    JAX_EXPORT = ".bin"
    LITERT = ".tflite"
    KERAS = ".keras"
    KERAS_HDF5 = ".h5"

    @property
    def is_archive(self) -> bool:
        """Whether it has to be unpacked."""
        return self in (ModelKind.ZIP, ModelKind.TAR, ModelKind.TAR_GZ)

    @property
    def is_saved_model(self) -> bool:
        """Whether it is the graph of a SavedModel, which is a directory."""
        return self in (ModelKind.SAVED_MODEL, ModelKind.SAVED_MODEL_TEXT)


KERAS_SUFFIXES = (ModelKind.KERAS.value, ModelKind.KERAS_HDF5.value, ".hdf5")
"""The extensions of Keras' own files."""

_ARCHIVES = {ZIP: ModelKind.ZIP, GZIP: ModelKind.TAR_GZ, TAR: ModelKind.TAR}

# Starts of texts, after comments.
_TEXTS = (
    (re.compile(r"(saved_model_schema_version\s*:|meta_graphs\s*:?\s*[{<])"), ModelKind.SAVED_MODEL_TEXT),
    (re.compile(r"(node|versions|library)\s*:?\s*[{<]"), ModelKind.GRAPH_TEXT),
    (re.compile(r"(meta_info_def|graph_def)\s*:?\s*[{<]"), ModelKind.META_GRAPH),
    (re.compile(r'"?(builtin\.)?module\b|"?func\.func\b|[#!][\w$.-]+\s*='), ModelKind.MLIR),
)

_COMMENTS = re.compile(r"(\s+|//[^\n]*\n|#[ \t#][^\n]*\n)*")

_VARINT, _BYTES = 0, 2
_SAVED_MODEL_FIELDS = {(1, _VARINT), (2, _BYTES)}
_GRAPH_FIELDS = {(1, _BYTES), (2, _BYTES), (3, _VARINT), (4, _BYTES), (5, _BYTES)}
_META_GRAPH_FIELDS = {(number, _BYTES) for number in range(1, 8)}

# Messages that may start with the same bytes.
_BY_NAME = {".pb": ModelKind.GRAPH, ".meta": ModelKind.META_GRAPH}


def recognize(path: Path, name: str = "", *, takes_keras: bool = False) -> ModelKind:
    """Returns the kind of a file.

    Args:
        path: The file.
        name: The name of the client's file.
        takes_keras: Whether Keras' own files are accepted.

    Raises:
        ConversionError: Only Keras can read it (`keras-file`), it is an unsupported archive (`bad-archive`), a model of
            another format (`foreign-format`) or none (`unknown-model`), or it can't be read (`unreadable-file`).
    """
    head = _head(path, name)
    if is_keras_file(head) and takes_keras:
        return ModelKind.KERAS if archive_format(head) else ModelKind.KERAS_HDF5
    kind = _by_signature(head, name) or _by_text(head) or _by_message(head, name)
    if kind is None and is_stablehlo_file(path):
        return ModelKind.JAX_EXPORT
    if kind is None:
        raise foreign(path, name or "the file") or unknown(f"{shown(name)} is neither a model nor an archive of one")
    return kind


def unknown(message: str) -> ConversionError:
    """Returns the error for a file that is not a model."""
    return error(
        "unknown-model",
        message,
        hint="send a SavedModel's directory as .zip, .tar or .tar.gz, a GraphDef (.pb, .pbtxt), or a file of StableHLO "
        "(.mlir, .mlirbc) or jax.export",
    )


def keras_file(name: str) -> ConversionError:
    return error(
        "keras-file",
        f"{shown(name)} is a file of Keras, which only Keras can read",
        hint='load it with Keras, call model.export("saved_model"), and send that directory, packed; or ask whoever '
        "runs the server to accept such files",
    )


def shown(name: str) -> str:
    """Returns the name of a file in messages."""
    return repr(name) if name else "the file"


def _head(path: Path, name: str) -> bytes:
    try:
        with os.fdopen(open_file(path), "rb", buffering=0) as file:
            return file.read(_HEAD_BYTES)
    except OSError as problem:
        raise error("unreadable-file", f"can't read {shown(name)}: {problem.strerror}") from None


def _by_signature(head: bytes, name: str) -> ModelKind | None:
    if is_keras_file(head):
        raise keras_file(name)
    packer = archive_format(head)
    if packer and packer not in _ARCHIVES:
        raise error("bad-archive", f"{shown(name)} is packed with {packer}", hint="pack it as .zip or .tar.gz")
    if packer:
        return _ARCHIVES[packer]
    if head.startswith(TFLITE_IDENTIFIER, 4):
        return ModelKind.LITERT
    return ModelKind.ARTIFACT if head.startswith(MAGIC) else None


def _by_text(head: bytes) -> ModelKind | None:
    if b"\0" in head:
        return None
    try:
        # The last character may be truncated.
        text = head.decode() if len(head) < _HEAD_BYTES else head[:-4].decode(errors="ignore")
    except UnicodeDecodeError:
        return None
    comments = _COMMENTS.match(text)
    start = comments.end() if comments is not None else 0
    return next((kind for beginning, kind in _TEXTS if beginning.match(text, start)), None)


def _by_message(head: bytes, name: str) -> ModelKind | None:
    fields = set(_fields(head))
    if (2, _BYTES) in fields and fields <= _SAVED_MODEL_FIELDS and (1, _BYTES) not in fields:
        return ModelKind.SAVED_MODEL
    known = [
        kind
        for kind, own in ((ModelKind.GRAPH, _GRAPH_FIELDS), (ModelKind.META_GRAPH, _META_GRAPH_FIELDS))
        if fields and fields <= own
    ]
    named = _BY_NAME.get(os.path.splitext(name)[1].lower())  # noqa: PTH122  # It is a name, not a path.
    return named if named in known else known[0] if known else None


def _fields(data: bytes) -> Iterator[tuple[int, int]]:
    """Yields the numbers and types of fields of a possibly truncated protobuf message; (0, 0) for other data."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        number, kind = tag >> 3, tag & 7
        value, after = _varint(data, at)
        if not number or kind not in (_VARINT, _BYTES) or (after < 0 and len(data) < _HEAD_BYTES):
            yield 0, 0
            return
        yield number, kind
        if after < 0:
            return  # The head ends here.
        at = after + (value if kind == _BYTES else 0)
    if at > len(data) and len(data) < _HEAD_BYTES:
        yield 0, 0


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Returns a number and its end, or -1 if it is truncated."""
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(data) or at < 0:
            return 0, -1
        value |= (data[at] & 127) << shift
        at += 1
        if data[at - 1] < 128:
            return value, at
    return 0, -1
