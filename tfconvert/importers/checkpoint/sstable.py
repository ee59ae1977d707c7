"""Reads SSTables: sorted maps of byte strings, in the layout of LevelDB that a checkpoint's index has.

A file is a sequence of blocks and a footer. The footer points to the index block, with pointers to the data blocks. A
block is a run of entries, whose keys omit their common prefix with the key before, and then restart points that only a
search needs; after each block are its compression and its checksum.
"""

from __future__ import annotations

from collections.abc import Iterator

from tfconvert.importers.checkpoint.snappy import decompress
from tfconvert.importers.checkpoint.wire import MalformedError, check, read_varint

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
        raise MalformedError("the file doesn't end as a checkpoint's index does; it is cut off, or something else")
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
                raise MalformedError("the keys claim an impossible size")
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
