"""The order of a Keras 2 model's outputs, which SavedModels have as a dictionary by the names of layers.

`keras_metadata.pb`, or the object graph before there was such a file, has the model's configuration as JSON.
"""

from __future__ import annotations

from typing import Any

from tfconvert.importers.containment import Folder
from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb

_FILE = "keras_metadata.pb"
_NODES, _METADATA = 1, 5
"""Numbers of fields: the objects of the file, the first of which is the model, and the JSON of an object."""

_VARINT, _BYTES = 0, 2
"""Kinds of fields; the file has no others."""


def output_names(folder: Folder | None, meta_graph: pb.MetaGraphDef) -> list[str]:
    """Returns the names of the layers that give a functional model's outputs, in their order; empty if it is none.

    Args:
        folder: The SavedModel's folder.
        meta_graph: Its MetaGraph.
    """
    try:
        text = _field(_field(folder.read(folder.path / _FILE), _NODES), _METADATA) if folder is not None else b""
    except OSError:
        nodes = meta_graph.object_graph_def.nodes
        text = nodes[0].user_object.metadata.encode() if nodes else b""
    if not text:
        return []
    import json  # few models have several outputs

    try:
        found = json.loads(text)
    except (RecursionError, ValueError):
        return []
    layers = _get(_get(found, "config"), "output_layers")
    if not isinstance(layers, list) or not all(isinstance(each, list) and each for each in layers):
        return []
    return [name for name, *_ in layers if isinstance(name, str)]


def _get(value: Any, key: str) -> Any:
    return value.get(key) if isinstance(value, dict) else None


def _field(message: bytes, wanted: int) -> bytes:
    """Returns the first field of a number in an encoded message; empty if there is none."""
    at = 0
    while at < len(message):
        tag, at = _number(message, at)
        number, at = _number(message, at)
        if tag & 7 == _BYTES:
            if tag >> 3 == wanted:
                return message[at : at + number]
            at += number
        elif tag & 7 != _VARINT:
            break
    return b""


def _number(message: bytes, at: int) -> tuple[int, int]:
    """Returns a number of seven bits a byte, and where it ends."""
    value = shift = 0
    for byte in message[at : at + 10]:
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    return value, at + max(shift // 7, 1)
