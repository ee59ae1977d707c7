"""Writes checkpoints of any size without TensorFlow: tensors come in pieces and none is held."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import google_crc32c
import numpy as np

from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb

_MAGIC = bytes.fromhex("57fb808b247547db")

# Shape of a tensor of `float32`, and its elements.
Pieces = tuple[tuple[int, ...], Iterable[np.ndarray]]


def write_checkpoint(prefix: Path, tensors: Mapping[str, Pieces]) -> None:
    """Writes a checkpoint of one shard.

    Args:
        prefix: Path of its files without their endings.
        tensors: The tensors by their keys.
    """
    header = pb.BundleHeaderProto(num_shards=1)
    header.version.producer = 1
    rows = [(b"", header.SerializeToString())]
    with Path(f"{prefix}.data-00000-of-00001").open("wb") as shard:
        for key, (shape, pieces) in sorted(tensors.items()):
            start, crc32c = shard.tell(), 0
            for piece in pieces:
                data = piece.astype("<f4", copy=False).tobytes()
                crc32c = google_crc32c.extend(crc32c, data)
                shard.write(data)
            entry = pb.BundleEntryProto(dtype=pb.DT_FLOAT, offset=start, size=shard.tell() - start)
            entry.crc32c = _masked(crc32c)
            for size in shape:
                entry.shape.dim.add(size=size)
            rows.append((key.encode(), entry.SerializeToString()))
    Path(f"{prefix}.index").write_bytes(_table(rows))


def _table(rows: Sequence[tuple[bytes, bytes]]) -> bytes:
    """Returns an SSTable of one block, whose keys share no beginnings."""
    data = _stored(_block(rows))
    handle = _varint(0) + _varint(len(data) - 5)
    footer = b""
    for content in (_block([]), _block([(rows[-1][0], handle)])):
        footer += _varint(len(data)) + _varint(len(content))
        data += _stored(content)
    return data + footer.ljust(40, b"\0") + _MAGIC


def _block(rows: Sequence[tuple[bytes, bytes]]) -> bytes:
    body = b"".join(b"\0" + _varint(len(key)) + _varint(len(value)) + key + value for key, value in rows)
    return body + bytes(4) + (1).to_bytes(4, "little")


def _stored(content: bytes) -> bytes:
    content += b"\0"
    return content + _masked(google_crc32c.value(content)).to_bytes(4, "little")


def _varint(value: int) -> bytes:
    code = bytearray()
    while value >= 0x80:
        code.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*code, value])


def _masked(crc32c: int) -> int:
    return ((crc32c >> 15 | crc32c << 17) + 0xA282EAD8) & 0xFFFFFFFF
