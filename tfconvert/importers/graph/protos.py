"""Protobuf messages from files that may hold anything, in binary or as text."""

from __future__ import annotations

from typing import TypeVar

from google.protobuf import text_format
from google.protobuf.message import DecodeError, Message

AnyMessage = TypeVar("AnyMessage", bound=Message)


def parse_proto(data: bytes, kind: type[AnyMessage], *, is_text: bool) -> AnyMessage:
    """Returns the message that a file holds; a file may be called text and be binary, or the other way round.

    Args:
        data: What the file holds.
        kind: The message's class.
        is_text: Whether it should be text.

    Raises:
        DecodeError: It is neither; the error is that of what it should be.
    """
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


def _binary(data: bytes, kind: type[AnyMessage]) -> AnyMessage:
    return kind.FromString(data)


def _text(data: bytes, kind: type[AnyMessage]) -> AnyMessage:
    try:
        return text_format.Parse(data.decode(), kind())
    except RecursionError:
        raise DecodeError("its messages are nested too deep") from None
    except (UnicodeDecodeError, text_format.ParseError) as problem:
        raise DecodeError(str(problem)) from None
