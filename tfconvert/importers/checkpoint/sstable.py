"""Reads SSTables: sorted maps of byte strings, in the layout of LevelDB that a checkpoint's index has.

A file is a sequence of blocks and a footer. The footer points to the index block, with pointers to the data blocks. A
block is a run of entries, whose keys omit their common prefix with the key before, and then restart points that only a
search needs; after each block are its compression and its checksum. Compressed blocks are snappy's.

The readers of binary formats don't know the file that their bytes come from. They raise `MalformedError`, and the
caller that opened the file converts it to a `ConversionError` that names the file.
"""

from __future__ import annotations

from collections.abc import Iterator

import google_crc32c

# The maximum number of bytes of a 64-bit number.
_MAX_VARINT = 10

_MASK_DELTA = 0xA282EAD8


class MalformedError(Exception):
    """Bytes that don't follow their format.

    Attributes:
        code: The diagnostic code of the kind of damage.
    """

    def __init__(self, message: str, code: str = "bad-index") -> None:
        # The message follows a file's name and a colon.
        super().__init__(message)
        self.code = code


def read_varint(data: bytes | memoryview, position: int) -> tuple[int, int]:
    """Reads a number of seven bits a byte, the lowest first.

    Returns:
        The number and the position after it.

    Raises:
        MalformedError: The data ends within the number, or it has more than 64 bits.
    """
    if position < len(data) and data[position] < 0x80:
        return data[position], position + 1  # most numbers
    value = shift = 0
    for index in range(position, min(position + _MAX_VARINT, len(data))):
        byte = data[index]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value >> 64:
                break
            return value, index + 1
        shift += 7
    raise MalformedError("a number has no end or is too large")


def unmask(stored: int) -> int:
    """Returns the CRC-32C of a stored (masked) one, which is rotated and shifted."""
    rotated = (stored - _MASK_DELTA) & 0xFFFFFFFF
    return (rotated >> 17 | rotated << 15) & 0xFFFFFFFF


def check(data: bytes, stored: int, what: str) -> None:
    """Compares bytes with their stored (masked) checksum.

    Raises:
        MalformedError: They differ (`bad-checksum`).
    """
    if google_crc32c.value(data) != unmask(stored):
        raise MalformedError(f"{what} is damaged: its checksum is wrong", "bad-checksum")


# No element of the format expands to more than 64 bytes, so data that states a larger size is rejected.
_MAX_SNAPPY_RATIO = 64


def decompress(data: bytes) -> bytes:
    """Returns the contents of a snappy block.

    Raises:
        MalformedError: The data is not a snappy block.
    """
    size, position = read_varint(data, 0)
    if size > len(data) * _MAX_SNAPPY_RATIO:
        raise MalformedError("a compressed block states an impossible size")
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
        raise MalformedError("a compressed block does not have the size that it states")
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


_MAGIC = 0xDB4775248B80FB57.to_bytes(8, "little")
_FOOTER_SIZE = 48
_TRAILER_SIZE = 5

# The longest key accepted; it bounds the size that shared prefixes can expand to.
_MAX_KEY = 1 << 16

# The limit of the size of all keys together, in multiples of the file's size.
_MAX_RATIO = 64

_UNCOMPRESSED, _SNAPPY = 0, 1


def read_table(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yields the keys and values of a table, in order.

    Args:
        data: The whole file.

    Raises:
        MalformedError: The data is not an intact table.
    """
    if len(data) < _FOOTER_SIZE:
        raise MalformedError("the file is too short to be a checkpoint's index", "truncated-index")
    if not data.endswith(_MAGIC):
        raise MalformedError("the file doesn't end like a checkpoint's index; it is truncated or of another format")
    footer = data[-_FOOTER_SIZE:]
    _, _, position = _handle(footer, 0)  # the block of meta data, which checkpoints don't use
    last: bytes | None = None
    budget = len(data) * _MAX_RATIO
    for _, pointer in _entries(_block(data, *_handle(footer, position)[:2])):
        for key, value in _entries(_block(data, *_handle(pointer, 0)[:2])):
            if last is not None and key <= last:
                raise MalformedError("the keys are not in order")
            budget -= len(key)
            if budget < 0:
                raise MalformedError("the keys have an impossible size")
            last = key
            yield key, value


def _handle(data: bytes, position: int) -> tuple[int, int, int]:
    """Returns a block's offset and size, and the position after the pointer to it."""
    offset, position = read_varint(data, position)
    size, position = read_varint(data, position)
    return offset, size, position


def _block(data: bytes, offset: int, size: int) -> bytes:
    """Returns a block's contents, checked and uncompressed."""
    end = offset + size
    if end + _TRAILER_SIZE > len(data) - _FOOTER_SIZE:
        raise MalformedError("a block lies beyond the end of the file", "truncated-index")
    check(data[offset : end + 1], int.from_bytes(data[end + 1 : end + _TRAILER_SIZE], "little"), "a block of the index")
    compression = data[end]
    if compression == _UNCOMPRESSED:
        return data[offset:end]
    if compression == _SNAPPY:
        return decompress(data[offset:end])
    raise MalformedError(f"a block has the unknown compression {compression}")


def _entries(block: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yields the entries of a block."""
    restarts = int.from_bytes(block[-4:], "little")
    end = len(block) - 4 - 4 * restarts
    if len(block) < 4 or end < 0:
        raise MalformedError("a block is shorter than its list of restart points")
    position = 0
    key = b""
    while position < end:
        shared, position = read_varint(block, position)
        unshared, position = read_varint(block, position)
        value_size, position = read_varint(block, position)
        value_start = position + unshared
        value_end = value_start + value_size
        if value_end > end or shared > len(key):
            raise MalformedError("an entry reaches beyond its block")
        if shared + unshared > _MAX_KEY:
            raise MalformedError("a key is too long")
        key = key[:shared] + block[position:value_start]
        yield key, block[value_start:value_end]
        position = value_end
