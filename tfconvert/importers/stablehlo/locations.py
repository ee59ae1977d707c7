"""The locations of an artifact's ops, which are decoded when somebody asks for their parts.

JAX names an op after the function and the primitive, `jit(f)/jit(relu)/max`, and adds the lines of the calls that led
to it. The result is that name with the innermost line of the user's code. Locations don't fail: damaged parts are
left out.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from tfconvert.importers.stablehlo.bytecode import Bytecode
from tfconvert.importers.stablehlo.cursor import Cursor
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.ir.locations import UNKNOWN_LOC, FileLineColLoc, Location, NameLoc

# The codes of the builtin dialect.
_STRING, _CALL_SITE, _FILE, _FUSED, _FUSED_WITH_METADATA, _NAME, _UNKNOWN, _RANGE = 2, 10, 11, 12, 13, 14, 15, 22

# How many locations are followed to find a name, and how deep they may be nested to find a line.
_MAX_STEPS = 100

# The folders of packages that users have not written.
_INSTALLED = ("site-packages", "dist-packages")

# The largest line or column that is believed.
_MAX_LINE = (1 << 31) - 1


class _Decoder:
    """Decodes locations of a file. They share most of the calls that led to them, each of which is decoded once."""

    __slots__ = ("_file", "_lines")

    def __init__(self, file: Bytecode) -> None:
        self._file = file
        self._lines: dict[int, tuple[FileLineColLoc | None, bool]] = {}

    def name(self, index: int) -> str:
        """Returns the outermost name of a location, empty if it has none."""
        pending = [index]
        try:
            for _ in range(_MAX_STEPS):
                if not pending:
                    break
                code, cursor = _opened(self._file, pending.pop())
                if code == _NAME:
                    name = _text(self._file, cursor.varint())
                    if name:
                        return name
                    pending.append(cursor.varint())
                else:
                    pending += _parts(code, cursor)[::-1]
        except ConversionError:
            return ""
        return ""

    def line(self, index: int) -> Location:
        """Returns the innermost line of a location outside of installed packages."""
        return self._line(index, _MAX_STEPS)[0] or UNKNOWN_LOC

    def _line(self, index: int, depth: int) -> tuple[FileLineColLoc | None, bool]:
        """Returns a line if there is one, and whether a user has written it."""
        found = self._lines.get(index)
        if found is None and depth:
            # A location that contains itself has no line.
            self._lines[index] = None, False
            with suppress(ConversionError):
                found = self._lines[index] = self._decoded(index, depth - 1)
        return found or (None, False)

    def _decoded(self, index: int, depth: int) -> tuple[FileLineColLoc | None, bool]:
        code, cursor = _opened(self._file, index)
        if code in (_FILE, _RANGE):
            line = _file_line(self._file, code, cursor)
            return line, not any(folder in line.filename for folder in _INSTALLED)
        if code == _NAME:
            cursor.varint()
            return self._line(cursor.varint(), depth)
        innermost = None
        for part in _parts(code, cursor):
            found, is_own = self._line(part, depth)
            if is_own:
                return found, True
            innermost = innermost or found
        return innermost, False


class ArtifactLoc(NameLoc):
    """The location of an op, decoded when its name or its line is read."""

    __slots__ = ("_decoder", "_index", "_line", "_name")

    def __init__(self, decoder: _Decoder, index: int) -> None:
        self._decoder: _Decoder | None = decoder
        self._index = index
        self._name = ""
        self._line: Location = UNKNOWN_LOC

    def decode(self) -> None:
        """Decodes the name and the line; the file isn't used again."""
        if self._decoder is not None:
            self._name = self.name
            self._line = self._decoder.line(self._index)
            self._decoder = None

    @property
    def name(self) -> str:  # type: ignore[override]
        """The name, empty if it is unknown."""
        if not self._name and self._decoder is not None:
            self._name = self._decoder.name(self._index)
        return self._name

    @property
    def child(self) -> Location:  # type: ignore[override]
        """The innermost line."""
        self.decode()
        return self._line

    def print_inside(self, printer: Any) -> None:
        if self.name:
            super().print_inside(printer)
        else:
            self.child.print_inside(printer)

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return NameLoc.get, (self.name, self.child)


class Locations:
    """The locations of a file.

    Args:
        file: The file.
    """

    def __init__(self, file: Bytecode) -> None:
        self._file = file
        self._decoder = _Decoder(file)
        self._known: dict[int, Location] = {}

    def at(self, index: int) -> Location:
        """Returns the location of an index."""
        found = self._known.get(index)
        if found is None:
            found = self._known[index] = self._new(index)
        return found

    def decode(self) -> None:
        """Decodes all, so that none of them keeps the file."""
        for location in self._known.values():
            if isinstance(location, ArtifactLoc):
                location.decode()

    def _new(self, index: int) -> Location:
        file = self._file
        start, end = file.attributes.place(index)
        # The code of the unknown location is one byte, and all of it.
        if end - start == 1 and file.data[start] == 2 * _UNKNOWN + 1:
            return UNKNOWN_LOC
        return ArtifactLoc(self._decoder, index)


def _parts(code: int, cursor: Cursor) -> list[int]:
    """Returns the locations that one consists of, the innermost first."""
    if code == _CALL_SITE:
        return [cursor.varint(), cursor.varint()]
    return cursor.varints()[:1] if code in (_FUSED, _FUSED_WITH_METADATA) else []


def _opened(file: Bytecode, index: int) -> tuple[int, Cursor]:
    """Returns the code and the contents of a builtin attribute; the code of the unknown location for others."""
    entry = file.attributes.at(index)
    if entry.dialect != "builtin" or not entry.is_custom:
        return _UNKNOWN, Cursor(b"")
    cursor = Cursor(file.data, entry.start, entry.end)
    return cursor.varint(), cursor


def _text(file: Bytecode, index: int) -> str:
    """Returns the text of a string attribute."""
    code, cursor = _opened(file, index)
    return file.string(cursor.varint()) if code == _STRING else ""


def _file_line(file: Bytecode, code: int, cursor: Cursor) -> FileLineColLoc:
    """Returns the line of a file."""
    filename = _text(file, cursor.varint())
    numbers = cursor.varints() if code == _RANGE else [cursor.varint(), cursor.varint()]
    line, column = [*numbers, 0, 0][:2]
    return FileLineColLoc.get(filename, min(line, _MAX_LINE), min(column, _MAX_LINE))
