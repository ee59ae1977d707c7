"""Decompresses snappy blocks, as an SSTable may hold them."""

from __future__ import annotations

from tfconvert.importers.checkpoint.wire import MalformedError, read_varint

# No element of the format expands to more than 64 bytes, so data that claims more per byte is rejected.
_MAX_RATIO = 64


def decompress(data: bytes) -> bytes:
    """Returns the contents of a snappy block.

    Raises:
        MalformedError: The data is not a snappy block.
    """
    size, position = read_varint(data, 0)
    if size > len(data) * _MAX_RATIO:
        raise MalformedError("a compressed block claims an impossible size")
    result = bytearray()
    while position < len(data):
        if data[position] & 3:
            length, offset, position = _copy_element(data, position)
            _append_copy(result, length, offset)
        else:
            length, position = _literal_element(data, position)
            result += data[position : position + length]
            position += length
        if len(result) > size:
            break
    if len(result) != size:
        raise MalformedError("a compressed block has not the size that it claims")
    return bytes(result)


def _literal_element(data: bytes, position: int) -> tuple[int, int]:
    """Returns a literal's length and the position of its bytes."""
    length = data[position] >> 2
    position += 1
    if length >= 60:  # the length doesn't fit the tag: 1 to 4 bytes of it follow
        count = length - 59
        length = int.from_bytes(data[position : position + count], "little")
        position += count
    length += 1
    if position + length > len(data):
        raise MalformedError("a compressed block ends too early")
    return length, position


def _copy_element(data: bytes, position: int) -> tuple[int, int, int]:
    """Returns a back reference's length and offset, and the position after it."""
    tag = data[position]
    count = (0, 1, 2, 4)[tag & 3]
    offset = int.from_bytes(data[position + 1 : position + 1 + count], "little")
    position += 1 + count
    if position > len(data):
        raise MalformedError("a compressed block ends too early")
    if count == 1:
        return 4 + (tag >> 2 & 7), offset | tag >> 5 << 8, position
    return 1 + (tag >> 2), offset, position


def _append_copy(result: bytearray, length: int, offset: int) -> None:
    """Appends `length` bytes from `offset` bytes back; the two ranges may overlap and then repeat."""
    if not 0 < offset <= len(result):
        raise MalformedError("a compressed block refers to before its start")
    start = len(result) - offset
    chunk = result[start : start + length]
    result += (chunk * (length // offset + 1))[:length]
