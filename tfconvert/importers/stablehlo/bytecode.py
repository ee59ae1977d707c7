"""The container of MLIR bytecode: strings, dialects, and where attributes, types and properties are, not decoded.

All versions are read, 0 to `NEWEST`, and later ones as far as they are the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

from tfconvert.importers.stablehlo.cursor import Cursor, malformed, truncated

MAGIC = b"ML\xefR"
"""The first bytes of MLIR bytecode."""

NEWEST = 6
"""The newest known version of the container."""

# Versions of the container that introduce something.
_FLAGGED_DIALECTS = 1
_LAZY_REGIONS = 2
_USE_LISTS = 3
_ARGUMENTS_MAY_LACK_LOCATIONS = 4
_PROPERTIES = 5

# The sections.
_STRINGS, _DIALECTS, _ENTRIES, _OFFSETS, _IR, _VERSION, _PROPERTY_BLOBS = 0, 1, 2, 3, 4, 7, 8
_LAST_SECTION = 8

# The largest alignment of a section.
_PAGE = 4096


class OpName(NamedTuple):
    """An op's name.

    Attributes:
        dialect: The dialect.
        name: The name without the dialect's.
        has_blobs: Whether properties are blobs, as those of ops that the writer knew.
    """

    dialect: str
    name: str
    has_blobs: bool


class BytecodeEntry(NamedTuple):
    """An attribute or a type.

    Attributes:
        dialect: Its dialect.
        start: Its first byte.
        end: The first byte after it.
        is_custom: Whether the dialect encodes it; otherwise it is text.
    """

    dialect: str
    start: int
    end: int
    is_custom: bool


class Entries:
    """The places of attributes or types: most are looked up never or once."""

    __slots__ = ("_dialects", "_ends", "_flags")

    def __init__(self, start: int, sizes: Sequence[int], dialects: Sequence[str]) -> None:
        """Keeps the places of entries that follow each other.

        Args:
            start: The first byte of the first.
            sizes: The size of each, and in the lowest bit whether its dialect encodes it.
            dialects: The dialect of each.
        """
        self._dialects = dialects
        self._flags = sizes
        self._ends = list(accumulate([size >> 1 for size in sizes], initial=start))

    def __len__(self) -> int:
        return len(self._dialects)

    @property
    def end(self) -> int:
        """The first byte after the last."""
        return self._ends[-1]

    def place(self, index: int) -> tuple[int, int]:
        """Returns the first byte of an entry, and the first after it.

        Raises:
            ConversionError: The index is too large (`malformed-artifact`).
        """
        if index >= len(self._dialects):
            raise malformed(f"there is no attribute or type {index}")
        return self._ends[index], self._ends[index + 1]

    def at(self, index: int) -> BytecodeEntry:
        """Returns an entry."""
        start, end = self.place(index)
        return BytecodeEntry(self._dialects[index], start, end, bool(self._flags[index] & 1))


class Bytecode:
    """A file of MLIR bytecode.

    Attributes:
        data: The bytes.
        version: The version of the container.
        producer: The program that wrote it.
        attributes: The attributes, locations included.
        types: The types.
        op_names: The names of ops.

    Args:
        data: The bytes.

    Raises:
        ConversionError: They are damaged (`malformed-artifact`).
    """

    def __init__(self, data: memoryview) -> None:
        self.data = data
        cursor = Cursor(data)
        if bytes(data[: len(MAGIC)]) != MAGIC:
            raise malformed("the file is not MLIR bytecode")
        cursor.position = len(MAGIC)
        self.version = cursor.varint()
        self.producer = _producer(cursor)
        sections = _sections(cursor)
        for needed in (_STRINGS, _DIALECTS, _ENTRIES, _OFFSETS, _IR):
            if needed not in sections:
                raise malformed("the artifact ends too early, a section is missing")
        self._strings = _string_places(sections[_STRINGS])
        self._texts: list[str | None] = [None] * len(self._strings)
        blobs = sections.get(_PROPERTY_BLOBS)
        self._properties = [] if blobs is None else _property_blobs(blobs)
        self._dialects: list[str] = []
        self.op_names: list[OpName] = []
        self._read_dialects(sections[_DIALECTS])
        offsets, contents = sections[_OFFSETS], sections[_ENTRIES]
        attributes, types = offsets.count(), offsets.count()
        self.attributes = self._entries(offsets, attributes, contents.position)
        self.types = self._entries(offsets, types, self.attributes.end)
        if self.types.end > contents.end:
            raise truncated()
        self._ir = sections[_IR]

    def bytes_of_string(self, index: int) -> bytes:
        """Returns a string's bytes."""
        if index >= len(self._strings):
            raise malformed(f"there is no string {index}")
        start, end = self._strings[index]
        return bytes(self.data[start : end - 1])

    def string(self, index: int) -> str:
        """Returns a string, which must be a name or text."""
        known = self._texts[index] if index < len(self._texts) else None
        if known is None:
            try:
                known = self.bytes_of_string(index).decode()
            except UnicodeDecodeError:
                raise malformed("a name is not UTF-8 text") from None
            self._texts[index] = known
        return known

    def properties(self, index: int) -> Cursor:
        """Returns an op's properties."""
        if index >= len(self._properties):
            raise malformed(f"there are no properties {index}")
        start, end = self._properties[index]
        return Cursor(self.data, start, end)

    def ir(self) -> Cursor:
        """Returns the ops, as a copy that is fast to read."""
        part = self._ir
        # Alignments inside count from the start of the file.
        base = part.position & -_PAGE
        return Cursor(bytes(self.data[base : part.end]), part.position - base)

    def region(self, cursor: Cursor) -> Cursor:
        """Returns the contents of a region that is a section of its own."""
        identifier, section = _section(cursor)
        if identifier != _IR:
            raise malformed("a region is expected in a section of ops")
        return section

    @property
    def has_lazy_regions(self) -> bool:
        """Whether isolated regions are sections of their own."""
        return self.version >= _LAZY_REGIONS

    @property
    def has_use_lists(self) -> bool:
        """Whether the order of uses may be stored."""
        return self.version >= _USE_LISTS

    @property
    def arguments_may_lack_locations(self) -> bool:
        """Whether a flag tells if an argument has a location."""
        return self.version >= _ARGUMENTS_MAY_LACK_LOCATIONS

    def _read_dialects(self, cursor: Cursor) -> None:
        for _ in range(cursor.count()):
            if self.version < _FLAGGED_DIALECTS:
                name, has_version = cursor.varint(), False
            else:
                name, has_version = cursor.flagged()
            self._dialects.append(self.string(name))
            if has_version and _section(cursor)[0] != _VERSION:
                raise malformed("a dialect's version is expected")
        if self.version >= _ARGUMENTS_MAY_LACK_LOCATIONS:
            cursor.varint()  # the number of names, which follows from the groups
        while cursor.left:
            dialect = self._dialect(cursor.varint())
            for _ in range(cursor.count()):
                if self.version < _PROPERTIES:
                    name, is_registered = cursor.varint(), False
                else:
                    name, is_registered = cursor.flagged()
                self.op_names.append(OpName(dialect, self.string(name), is_registered))

    def _dialect(self, index: int) -> str:
        if index >= len(self._dialects):
            raise malformed(f"there is no dialect {index}")
        return self._dialects[index]

    def _entries(self, cursor: Cursor, total: int, start: int) -> Entries:
        sizes: list[int] = []
        dialects: list[str] = []
        while len(sizes) < total:
            dialect = self._dialect(cursor.varint())
            count = cursor.count()
            if not 0 < count <= total - len(sizes):
                raise malformed("a group of attributes or types has a wrong number")
            sizes += cursor.numbers(count)
            dialects += [dialect] * count
        return Entries(start, sizes, dialects)


def _producer(cursor: Cursor) -> str:
    start = cursor.position
    while cursor.byte():
        pass
    try:
        return bytes(cursor.data[start : cursor.position - 1]).decode()
    except UnicodeDecodeError:
        raise malformed("the name of the producer is not UTF-8 text") from None


def _sections(cursor: Cursor) -> dict[int, Cursor]:
    sections: dict[int, Cursor] = {}
    while cursor.left:
        identifier, section = _section(cursor)
        if identifier in sections:
            raise malformed(f"section {identifier} occurs twice")
        sections[identifier] = section
    return sections


def _section(cursor: Cursor) -> tuple[int, Cursor]:
    """Returns a section's number and contents."""
    head = cursor.byte()
    length = cursor.varint()
    if head & 0x80:
        alignment = cursor.varint()
        if not 0 < alignment <= _PAGE or alignment & (alignment - 1):
            raise malformed(f"{alignment} is not an alignment")
        cursor.skip(-cursor.position % alignment)
    if head & 0x7F > _LAST_SECTION:
        raise malformed(f"there is no section {head & 0x7F}")
    return head & 0x7F, cursor.part(length)


def _string_places(cursor: Cursor) -> list[tuple[int, int]]:
    """Returns the places of strings; they are at the end of the section, after their lengths, the last one's first."""
    lengths = cursor.varints()[::-1]
    if 0 in lengths:
        raise malformed("a string has no end")
    ends = list(accumulate(lengths, initial=cursor.end - sum(lengths)))
    if ends[0] < cursor.position:
        raise truncated()
    return list(pairwise(ends))


def _property_blobs(cursor: Cursor) -> list[tuple[int, int]]:
    """Returns the places of the blobs of properties, each after its length."""
    places = []
    for _ in range(cursor.count()):
        size = cursor.varint()
        start = cursor.skip(size)
        places.append((start, start + size))
    return places
