"""The locations of an artifact's ops, which are decoded when somebody asks for their parts.

JAX names an op after the function and the primitive, `jit(f)/jit(relu)/max`, and adds the lines of the calls that led
to it. The result is that name with the innermost line of the user's code. Locations don't fail: damaged parts are
left out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tfconvert.importers.stablehlo.bytecode import Bytecode
from tfconvert.importers.stablehlo.cursor import Cursor
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.ir.locations import UNKNOWN_LOC, FileLineColLoc, Location, NameLoc

# The codes of the builtin dialect.
_STRING, _CALL_SITE, _FILE, _FUSED, _FUSED_WITH_METADATA, _NAME, _UNKNOWN, _RANGE = 2, 10, 11, 12, 13, 14, 15, 22

# How many locations are followed to find a line.
_MAX_STEPS = 100

# The folders of packages that users have not written.
_INSTALLED = ("site-packages", "dist-packages")

# The largest line or column that is believed.
_MAX_LINE = (1 << 31) - 1


class ArtifactLoc(NameLoc):
    """The location of an op, decoded when its name or its line is read."""

    __slots__ = ("_file", "_index", "_parts")

    def __init__(self, file: Bytecode, index: int) -> None:
        self._file: Bytecode | None = file
        self._index = index
        self._parts: tuple[str, Location] = "", UNKNOWN_LOC

    def decode(self) -> tuple[str, Location]:
        """Returns the parts; the file isn't used again."""
        if self._file is not None:
            self._parts = _name_and_line(self._file, self._index)
            self._file = None
        return self._parts

    @property
    def name(self) -> str:  # type: ignore[override]
        """The name, empty if it is unknown."""
        return self.decode()[0]

    @property
    def child(self) -> Location:  # type: ignore[override]
        """The innermost line."""
        return self.decode()[1]

    def print_inside(self, printer: Any) -> None:
        if self.name:
            super().print_inside(printer)
        else:
            self.child.print_inside(printer)

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return NameLoc.get, self.decode()


class Locations:
    """The locations of a file.

    Args:
        file: The file.
    """

    def __init__(self, file: Bytecode) -> None:
        self._file = file
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
        return ArtifactLoc(file, index)


def _name_and_line(file: Bytecode, index: int) -> tuple[str, Location]:
    """Returns the outermost name of a location, and its innermost line outside of installed packages."""
    name, innermost = "", None
    pending = [index]
    try:
        for _ in range(_MAX_STEPS):
            if not pending:
                break
            code, cursor = _opened(file, pending.pop())
            if code == _NAME:
                text = cursor.varint()
                name = name or _text(file, text)
                pending.append(cursor.varint())
            elif code == _CALL_SITE:
                callee, caller = cursor.varint(), cursor.varint()
                pending += [caller, callee]
            elif code in (_FUSED, _FUSED_WITH_METADATA):
                pending += cursor.varints()[:1]
            elif code in (_FILE, _RANGE):
                line = _line(file, code, cursor)
                if not any(folder in line.filename for folder in _INSTALLED):
                    return name, line
                innermost = innermost or line
    except ConversionError:
        return name, innermost or UNKNOWN_LOC
    return name, innermost or UNKNOWN_LOC


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


def _line(file: Bytecode, code: int, cursor: Cursor) -> FileLineColLoc:
    """Returns the line of a file."""
    filename = _text(file, cursor.varint())
    numbers = cursor.varints() if code == _RANGE else [cursor.varint(), cursor.varint()]
    line, column = [*numbers, 0, 0][:2]
    return FileLineColLoc.get(filename, min(line, _MAX_LINE), min(column, _MAX_LINE))
