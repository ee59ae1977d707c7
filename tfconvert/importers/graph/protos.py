"""Protobuf messages from untrusted files, in binary or as text, and from other packages."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from google.protobuf import text_format
from google.protobuf.message import DecodeError, EncodeError, Message

from tfconvert.schema.diagnostics import error
from tfconvert.schema.files import read_input
from tfconvert.schema.limits import check_size
from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb
from tfconvert.schema.tflite.reader import TFLITE_IDENTIFIER

AnyMessage = TypeVar("AnyMessage", bound=Message)


def parse_proto(data: bytes, kind: type[AnyMessage], *, is_text: bool) -> AnyMessage:
    """Returns the message in a file; binary contents may have a text file's name, and vice versa.

    Args:
        data: The contents of the file.
        kind: The message's class.
        is_text: Whether it should be text.

    Raises:
        DecodeError: It is neither; the error is that of the format of its name.
        ConversionError: It is larger than the conversion's limits allow (`too-large-text`, `too-large-file`).
    """
    check_size(len(data), "text_bytes" if is_text else "proto_bytes")
    parsers = (_text, _binary) if is_text else (_binary, _text)
    problem: DecodeError | None = None
    for parse in parsers:
        try:
            message = parse(data, kind)
        except DecodeError as own:
            problem = problem or own
            continue
        if message.ListFields():
            return message
    if problem is not None:
        raise problem
    return kind()


def own_message(message: object) -> pb.SavedModel | pb.GraphDef:
    """Returns a SavedModel or GraphDef as a message of ours, which TensorFlow's own classes are not.

    Raises:
        ConversionError: It is another object (`unknown-format`), or too large to be copied (`too-large`).
    """
    for kind in (pb.SavedModel, pb.GraphDef):
        if isinstance(message, kind):
            return message
        if isinstance(message, Message) and message.DESCRIPTOR.name == kind.DESCRIPTOR.name:
            try:
                return kind.FromString(message.SerializeToString())
            except (EncodeError, DecodeError) as problem:
                raise error(
                    "too-large",
                    f"the {kind.DESCRIPTOR.name} can't be copied: {problem}",
                    hint="save the model to a directory, and convert that",
                ) from None
    if isinstance(message, bytes) and message[4:8] == TFLITE_IDENTIFIER:
        raise error(
            "unknown-format",
            "these bytes are a .tflite file, and a path is needed",
            hint="write them to a file; tfconvert.load(path) runs it, tfconvert.convert(path) converts it again",
        )
    raise error(
        "unknown-format",
        f"an object of type {type(message).__name__} is neither a path nor a model in memory",
        hint="give a path, a Keras model, TensorFlow's functions or tf.Module, a SavedModel or GraphDef message, or a "
        "function of JAX and its args",
    )


def _binary(data: bytes, kind: type[AnyMessage]) -> AnyMessage:
    return kind.FromString(data)


def _text(data: bytes, kind: type[AnyMessage]) -> AnyMessage:
    try:
        return text_format.Parse(data.decode(), kind())
    except RecursionError:
        raise DecodeError("its messages are nested too deep") from None
    except (UnicodeDecodeError, text_format.ParseError) as problem:
        raise DecodeError(str(problem)) from None


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
        raise error(
            "bad-op-list", f"an object of type {type(source).__name__} is neither a path nor an OpList", hint=_HINT
        )
    path = Path(source)
    data = read_input(path)
    try:
        ops = parse_proto(data, pb.OpList, is_text=path.suffix in (".pbtxt", ".prototxt", ".txt")).op
    except DecodeError as problem:
        raise error("bad-op-list", f"{path} is not an OpList: {problem}", hint=_HINT) from None
    nameless = any(not op_def.name for op_def in ops)
    if not ops or nameless:
        raise error("bad-op-list", f"{path} {'has an op without a name' if nameless else 'holds no ops'}", hint=_HINT)
    return ops
