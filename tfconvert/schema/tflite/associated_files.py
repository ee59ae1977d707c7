"""Files that follow a .tflite file's tables, such as labels: a ZIP archive, which readers locate from its end."""

from __future__ import annotations

import struct
from collections.abc import Callable

_END = struct.Struct("<4s4H2LH")
_END_MARK = b"PK\5\6"
_ENTRY = struct.Struct("<4s6H3L5H2L")
_ENTRY_MARK = b"PK\1\2"
_LOCAL_MARK = b"PK\3\4"

# An archive may end in a comment of this length.
_MAX_COMMENT = 1 << 16

# Offsets and sizes from here on are in fields of another version of the format.
_LIMIT = (1 << 32) - 1


def find(read: Callable[[int, int], bytes], size: int) -> bytes:
    """Returns the archive at the end of a file, with offsets from its own start; empty without one.

    Args:
        read: Returns a range of the file: its position and its length.
        size: The number of bytes of the file.
    """
    start = max(0, size - _MAX_COMMENT - _END.size)
    tail = read(start, size - start)
    at = tail.rfind(_END_MARK)
    if at < 0 or len(tail) < at + _END.size:
        return b""
    *_, length, offset, comment = _END.unpack_from(tail, at)
    directory = start + at - length
    if at + _END.size + comment != len(tail) or directory < 0 or offset == _LIMIT:
        return b""
    entries = _entries(read(directory, length))
    # Offsets count from the start of the file, or from that of the archive.
    base = directory - offset
    first = base + min((_offset(entry) for entry in entries), default=offset)
    if base < 0 or not 0 < first <= directory or (entries and read(first, 4) != _LOCAL_MARK):
        return b""
    return moved(read(first, size - first), base - first)


def moved(archive: bytes, by: int) -> bytes:
    """Returns an archive whose offsets are larger by a number of bytes, as those that will precede it.

    Readers also accept offsets from the archive's start, which are left where larger ones can't be written.
    """
    at = archive.rfind(_END_MARK)
    if not 0 <= at <= len(archive) - _END.size:
        return archive
    *head, length, offset, comment = _END.unpack_from(archive, at)
    directory = at - length
    entries = _entries(archive[directory:at]) if directory >= 0 else []
    if max(offset, *map(_offset, entries), 0) + by > _LIMIT:
        return archive
    result = bytearray(archive)
    for entry in entries:
        struct.pack_into("<L", result, directory + entry[0] + _ENTRY.size - 4, _offset(entry) + by)
    _END.pack_into(result, at, *head, length, offset + by, comment)
    return bytes(result)


def _entries(directory: bytes) -> list[tuple[int, tuple[int, ...]]]:
    """Returns the position and the fields of each entry of a directory; what is damaged ends it."""
    found, at = [], 0
    while at + _ENTRY.size <= len(directory):
        mark, *fields = _ENTRY.unpack_from(directory, at)
        if mark != _ENTRY_MARK:
            break
        found.append((at, tuple(fields)))
        at += _ENTRY.size + sum(fields[9:12])
    return found


def _offset(entry: tuple[int, tuple[int, ...]]) -> int:
    return entry[1][-1]


def contents(archive: bytes) -> dict[str, str]:
    """Returns a description of the content of each file of an archive by name."""
    if not archive:
        return {}
    end = archive.rfind(_END_MARK)
    directory = archive[end - _END.unpack_from(archive, end)[5] : end]
    found = {}
    for at, fields in _entries(directory):
        name = directory[at + _ENTRY.size : at + _ENTRY.size + fields[9]].decode("utf-8", "replace")
        found[name] = f"a file of {fields[8]} bytes of CRC {fields[6]:08x}"
    return found
