"""Decodes a string tensor of a checkpoint: all lengths, a checksum of the lengths, and then the strings' bytes."""

from __future__ import annotations

from typing import Any

import google_crc32c
import numpy as np

from tfconvert.importers.checkpoint.wire import MalformedError, read_varint, unmask

_CHECKSUM_SIZE = 4


def decode_strings(data: memoryview, count: int, crc32c: int) -> np.ndarray[Any, np.dtype[Any]]:
    """Returns the strings of a tensor as a flat array of `bytes`.

    Args:
        data: The tensor's bytes in the shard.
        count: Number of strings.
        crc32c: The checksum that the index has, unmasked.

    Raises:
        MalformedError: The data is damaged.
    """
    lengths, position = _lengths(data, count)
    # The checksums are not of the lengths as they are stored, but of the lengths at their fixed width.
    fixed = b"".join(length.to_bytes(4 if length < 1 << 32 else 8, "little") for length in lengths)
    running = google_crc32c.value(fixed)
    stored = bytes(data[position : position + _CHECKSUM_SIZE])
    position += _CHECKSUM_SIZE
    if running != unmask(int.from_bytes(stored, "little")):
        raise MalformedError("the lengths of its strings are damaged: their checksum is wrong", "bad-checksum")
    if position + sum(lengths) != len(data):
        raise MalformedError("its strings don't fill the place that they have")
    text = bytes(data[position:])
    if google_crc32c.extend(google_crc32c.extend(running, stored), text) != crc32c:
        raise MalformedError("its strings are damaged: their checksum is wrong", "bad-checksum")
    result = np.empty(count, object)
    position = 0
    for index, length in enumerate(lengths):
        result[index] = text[position : position + length]
        position += length
    return result


def _lengths(data: memoryview, count: int) -> tuple[list[int], int]:
    """Returns the strings' lengths and the position after them."""
    lengths = []
    position = 0
    for _ in range(count):
        length, position = read_varint(data, position)
        lengths.append(length)
    return lengths, position
