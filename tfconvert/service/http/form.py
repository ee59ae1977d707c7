"""Reads forms with files (multipart/form-data) from a stream, and writes the files to disk in parts."""

from __future__ import annotations

import asyncio
import posixpath
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack
from typing import NamedTuple

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from tfconvert.schema.diagnostics import ConversionError, error
from tfconvert.service.storage import Incoming

_FILES = ("model", "calibration")
# Text fields and their maximum bytes.
_TEXTS = {"options": 1 << 18, "place": 1 << 12, "job": 32}

_MAX_HEADER = 1 << 13
# Minimum number of bytes for a write.
_BATCH = 1 << 20

_MAX_NAME = 200


class ReceivedFile(NamedTuple):
    """A file of a form, which is on disk but not stored yet.

    Attributes:
        name: Its name at the client: a single line without directories.
        incoming: Its location.
    """

    name: str
    incoming: Incoming


class Form(NamedTuple):
    """A form.

    Attributes:
        files: The files by field.
        texts: The texts by field.
    """

    files: dict[str, ReceivedFile]
    texts: dict[str, str]


class _Part:
    """A part of a form that is being received.

    Attributes:
        field: The name of its field.
        name: The file's name.
        data: The data that is not written yet; all data of a text.
        size: The number of received bytes.
        waiting: The number of bytes that are not written yet.
    """

    __slots__ = ("data", "field", "name", "size", "waiting")

    def __init__(self, field: str, name: str) -> None:
        self.field = field
        self.name = name
        self.data: list[bytes | memoryview] = []
        self.size = 0
        self.waiting = 0


class FormReader:
    """Reads a form.

    Args:
        content_type: The request's header.
        new_file: Creates the file for a field.
        stack: Deletes files that are not kept when it closes.

    Raises:
        ConversionError: It isn't a form (`wrong-content-type`, `bad-request`).
    """

    def __init__(self, content_type: str, new_file: Callable[[str], Incoming], stack: ExitStack) -> None:
        kind, options = parse_options_header(content_type)
        if kind != b"multipart/form-data":
            raise error(
                "wrong-content-type",
                "a job is submitted as multipart/form-data",
                hint="with curl: -F model=@saved_model.tar.gz -F 'options={}'",
            )
        boundary = options.get(b"boundary", b"")
        if not 0 < len(boundary) <= 200:
            raise _bad_request("its header names no boundary")
        self._new_file = new_file
        self._stack = stack
        self._form = Form({}, {})
        self._part: _Part | None = None
        self._header = [b"", b""]
        self._header_size = 0
        self._disposition = b""
        self._pending: list[tuple[_Part, bool]] = []
        self._is_ended = False
        self._parser = MultipartParser(
            boundary,
            {
                "on_part_begin": self._on_begin,
                "on_header_field": lambda data, start, end: self._on_header(0, data[start:end]),
                "on_header_value": lambda data, start, end: self._on_header(1, data[start:end]),
                "on_header_end": self._on_header_end,
                "on_headers_finished": self._on_headers,
                "on_part_data": self._on_data,
                "on_part_end": self._on_part_end,
                "on_end": self._on_end,
            },
        )

    async def read(self, stream: AsyncIterator[bytes]) -> Form:
        """Reads a form to its end.

        Raises:
            ConversionError: It is invalid (`bad-request`), too large (`upload-too-large`), or can't be written.
        """
        async for data in stream:
            try:
                self._parser.write(data)
            except FormParserError as problem:
                raise _bad_request(str(problem)) from None
            await self._settle()
        if not self._is_ended:
            raise _bad_request("it ends in the middle")
        return self._form

    async def _settle(self) -> None:
        """Writes received data once there is enough, and finishes complete parts."""
        pending, self._pending = self._pending, []
        for part, is_complete in pending:
            if part.field in _FILES:
                file = self._form.files[part.field]
                data, part.data = part.data, []
                part.waiting = 0
                await asyncio.to_thread(file.incoming.write, data)
            elif is_complete:
                self._form.texts[part.field] = _decoded(part)

    def _on_begin(self) -> None:
        self._disposition = b""
        self._header_size = 0

    def _on_header(self, index: int, data: bytes) -> None:
        self._header_size += len(data)
        if self._header_size > _MAX_HEADER:
            raise _bad_request("a part's headers are too long")
        self._header[index] += data

    def _on_header_end(self) -> None:
        name, value = self._header
        if name.lower() == b"content-disposition":
            self._disposition = value
        self._header = [b"", b""]

    def _on_headers(self) -> None:
        _, options = parse_options_header(self._disposition)
        field = options.get(b"name", b"").decode("utf-8", "replace")
        if field not in _FILES and field not in _TEXTS:
            raise _bad_request(f"the field {field[:100]!r} is not known", f"known are: {', '.join((*_FILES, *_TEXTS))}")
        if field in self._form.files or field in self._form.texts:
            raise _bad_request(f"the field {field!r} is there twice")
        self._part = _Part(field, _clean(options.get(b"filename", b"")) or field)
        if field in _FILES:
            incoming = self._stack.enter_context(self._new_file(field))
            self._form.files[field] = ReceivedFile(self._part.name, incoming)

    def _on_data(self, data: bytes, start: int, end: int) -> None:
        part = self._part
        assert part is not None
        part.size += end - start
        part.waiting += end - start
        if part.field in _TEXTS and part.size > _TEXTS[part.field]:
            raise error("upload-too-large", f"the field {part.field!r} has more than {_TEXTS[part.field]} bytes")
        # Not copied, since most received chunks belong to a single file.
        part.data.append(memoryview(data)[start:end])
        if part.field in _FILES and part.waiting >= _BATCH:
            self._pending.append((part, False))

    def _on_part_end(self) -> None:
        assert self._part is not None
        self._pending.append((self._part, True))
        if self._part.field in _TEXTS:
            self._form.texts[self._part.field] = ""  # Reserved now, so that a duplicate is noticed.

    def _on_end(self) -> None:
        self._is_ended = True


def _clean(name: bytes) -> str:
    """Returns a file's name as one line without directories and non-printable characters."""
    text = name.decode("utf-8", "replace").replace("\\", "/").rstrip("/")
    return "".join(each for each in posixpath.basename(text) if each.isprintable())[:_MAX_NAME].strip()


def _decoded(part: _Part) -> str:
    try:
        return b"".join(part.data).decode("utf-8")
    except UnicodeDecodeError:
        raise _bad_request(f"the field {part.field!r} is not UTF-8") from None


def _bad_request(message: str, hint: str = "") -> ConversionError:
    return error("bad-request", f"the form can't be used: {message}", hint=hint)
