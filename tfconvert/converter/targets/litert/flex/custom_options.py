"""The options of a flex op: a flexbuffer vector of two strings, the op's name and its NodeDef.

The vector is written here, and not by the flatbuffers package, whose strings can only be texts.
"""

from __future__ import annotations

from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb

_STRING, _VECTOR = 5 << 2, 10 << 2
"""Types of flexbuffers, above two bits for the width of what is written."""

_WIDTHS = (1, 2, 4, 8)


def encode(node: pb.NodeDef) -> bytes:
    """Returns the custom options of the flex op that runs a node."""
    return vector_of_strings(node.op.encode(), node.SerializeToString(deterministic=True))


def vector_of_strings(*texts: bytes) -> bytes:
    """Returns a flexbuffer whose root is a vector of strings."""
    buffer = bytearray()
    places, packed = [], []
    for text in texts:
        width = _width_of(len(text))
        buffer += _padding(len(buffer), _WIDTHS[width]) + len(text).to_bytes(_WIDTHS[width], "little")
        places.append(len(buffer))
        packed.append(_STRING | width)
        buffer += text + b"\0"
    width = max(_width_of(len(texts)), *(_offset_width(len(buffer), at, index) for index, at in enumerate(places, 1)))
    size = _WIDTHS[width]
    buffer += _padding(len(buffer), size) + len(texts).to_bytes(size, "little")
    start = len(buffer)
    for place in places:
        buffer += (len(buffer) - place).to_bytes(size, "little")
    buffer += bytes(packed)
    root = len(buffer) - start
    root_width = _width_of(root)
    padding = _padding(len(buffer), _WIDTHS[root_width])
    root_size = _WIDTHS[root_width]
    return bytes(
        buffer + padding + (root + len(padding)).to_bytes(root_size, "little") + bytes([_VECTOR | width, root_size])
    )


def _width_of(number: int) -> int:
    """Returns which of the widths a number that is not negative needs."""
    return next(index for index, width in enumerate(_WIDTHS) if number < 1 << 8 * width)


def _offset_width(end: int, place: int, index: int) -> int:
    """Returns which width the distance from an item of a vector at the buffer's end to a place needs."""
    for width, size in enumerate(_WIDTHS):
        item = end + -end % size + index * size
        if _width_of(item - place) <= width:
            return width
    raise AssertionError(place)


def _padding(end: int, size: int) -> bytes:
    return bytes(-end % size)
