"""Writes the tables that checkpoints' indexes are: ones that TensorFlow doesn't happen to write, and hostile ones."""

from __future__ import annotations

from collections.abc import Sequence

import google_crc32c

MAGIC = bytes.fromhex("57fb808b247547db")


def varint(value: int) -> bytes:
    code = bytearray()
    while value >= 0x80:
        code.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*code, value])


def masked(data: bytes) -> int:
    crc: int = google_crc32c.value(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def literal(data: bytes) -> bytes:
    """A snappy element of some bytes."""
    if len(data) <= 60:
        return bytes([len(data) - 1 << 2]) + data
    return bytes([61 << 2]) + (len(data) - 1).to_bytes(2, "little") + data


def compress(data: bytes) -> bytes:
    return varint(len(data)) + b"".join(literal(data[at : at + 60_000]) for at in range(0, len(data), 60_000))


def block(entries: Sequence[tuple[bytes, bytes]]) -> bytes:
    """A block whose keys omit their common prefix with the key before."""
    body = last = b""
    for key, value in entries:
        shared = 0
        while shared < min(len(key), len(last)) and key[shared] == last[shared]:
            shared += 1
        body += varint(shared) + varint(len(key) - shared) + varint(len(value)) + key[shared:] + value
        last = key
    return body + bytes(4) + (1).to_bytes(4, "little")


def table(*blocks: bytes, compressed: bool = False) -> bytes:
    """A file of data blocks."""
    data = b""
    handles = []

    def add(content: bytes) -> bytes:
        nonlocal data
        stored = (compress(content) if compressed else content) + bytes([compressed])
        handle = varint(len(data)) + varint(len(stored) - 1)
        data += stored + masked(stored).to_bytes(4, "little")
        return handle

    for number, content in enumerate(blocks):
        handles.append((b"%08d" % number, add(content)))
    footer = add(block([])) + add(block(handles))
    return data + footer.ljust(40, b"\0") + MAGIC
