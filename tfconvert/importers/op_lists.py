"""Definitions of custom ops that the user has in a file: an OpList, as text or binary."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from google.protobuf.message import DecodeError, Message

from tfconvert.importers.graph.protos import parse_proto
from tfconvert.schema.diagnostics import error
from tfconvert.schema.files import read_file
from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb

_HINT = 'give an OpList: `op { name: "MyOp" input_arg { name: "x" type: DT_FLOAT } ... }` as text, or binary'


def read_op_defs(source: object) -> Sequence[pb.OpDef]:
    """Returns the op definitions of a file, or of a message in memory.

    Args:
        source: A path, or an OpList, TensorFlow's own or this package's; `None` holds none.

    Raises:
        ConversionError: The file can't be read (`unreadable-file`) or isn't an OpList (`bad-op-list`).
    """
    if source is None:
        return ()
    if isinstance(source, Message) and source.DESCRIPTOR.name == pb.OpList.DESCRIPTOR.name:
        return pb.OpList.FromString(source.SerializeToString()).op
    if not isinstance(source, str | os.PathLike):
        raise error("bad-op-list", f"a {type(source).__name__} is neither a path nor an OpList", hint=_HINT)
    path = Path(source)
    try:
        data = read_file(path)
    except OSError as problem:
        raise error("unreadable-file", f"can't read {path}: {problem.strerror or problem}") from None
    try:
        ops = parse_proto(data, pb.OpList, is_text=path.suffix in (".pbtxt", ".prototxt", ".txt")).op
    except DecodeError as problem:
        raise error("bad-op-list", f"{path} is not an OpList: {problem}", hint=_HINT) from None
    nameless = any(not op_def.name for op_def in ops)
    if not ops or nameless:
        raise error("bad-op-list", f"{path} {'has an op without a name' if nameless else 'holds no ops'}", hint=_HINT)
    return ops
