"""Partitioned tensors of a checkpoint: how their slices are named, and the whole put together from them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from math import prod
from typing import Any

import numpy as np

from tfconvert.importers.checkpoint.wire import MalformedError
from tfconvert.schema.dialects import boxes
from tfconvert.schema.dialects.boxes import Array, Box
from tfconvert.schema.dialects.sources import Source
from tfconvert.schema.dialects.types import Shape

Extent = tuple[int, int]
"""Start and length of a slice in one dimension; the length -1 is the whole dimension."""

WHOLE = -1

_FIRST_SIGNED_BYTES = (0x80, 0xC0, 0xE0, 0xF0, 0xF8, 0xFC, 0xFE, 0xFF, 0xFF, 0xFF)
_SECOND_SIGNED_BYTES = (0, 0, 0, 0, 0, 0, 0, 0, 0x80, 0xC0)


def slice_key(name: str, extents: Sequence[Extent]) -> bytes:
    """Returns the key that a slice has in the index.

    Args:
        name: Key of the whole tensor.
        extents: The slice's place.
    """
    text = name.encode().replace(b"\x00", b"\x00\xff")  # the encoding escapes byte 255 too, but no name has it
    key = _unsigned(0) + text + b"\x00\x01" + _unsigned(len(extents))
    return key + b"".join(_signed(start) + _signed(length) for start, length in extents)


def _unsigned(value: int) -> bytes:
    """Encodes a number so that encodings sort as numbers do: the count of its bytes, then its bytes."""
    size = (value.bit_length() + 7) // 8
    return bytes([size]) + value.to_bytes(size, "big")


def _signed(value: int) -> bytes:
    """Encodes a number so that encodings sort as numbers do: a unary count of bytes is mixed into the leading bits."""
    size = (value if value >= 0 else ~value).bit_length() // 7 + 1
    code = bytearray(value.to_bytes(size, "big", signed=True))
    code[0] ^= _FIRST_SIGNED_BYTES[size - 1]
    if size > 1:
        code[1] ^= _SECOND_SIGNED_BYTES[size - 1]
    return bytes(code)


class PartitionedSource(Source):
    """A tensor whose slices are tensors of their own; it is put together as it is read, nothing is kept.

    Attributes:
        parts: For each slice its place in the whole, its shape and its own source.
    """

    __slots__ = ("parts",)

    def __init__(self, parts: tuple[tuple[tuple[slice, ...], Shape, Source], ...]) -> None:
        self.parts = parts

    @classmethod
    def checked(cls, shape: Shape, slices: Sequence[tuple[Sequence[Extent], Shape, Source]]) -> PartitionedSource:
        """Returns the source of a tensor after a check that its slices cover it exactly.

        Args:
            shape: The whole's shape.
            slices: Place, shape and source of each slice.

        Raises:
            MalformedError: A slice isn't where it claims to be, two overlap, or something is missing.
        """
        if sum(prod(part_shape) for _, part_shape, _ in slices) != prod(shape):
            raise MalformedError("they don't have as many elements as the tensor")
        parts = [(_place(shape, extents, part_shape), part_shape, source) for extents, part_shape, source in slices]
        if len(parts) > 1:
            _check_disjoint(shape, [place for place, _, _ in parts])
        return cls(tuple(parts))

    def part(self, dtype: np.dtype[Any], shape: Shape, box: Box) -> Array:
        result = np.empty(boxes.extent(box), dtype)
        for place, part_shape, source in self.parts:
            overlap = boxes.common(place, box)
            if overlap is not None:
                own = source.part(dtype, part_shape, boxes.relative(overlap, place))
                result[boxes.relative(overlap, box)] = own
        return result

    def release(self) -> None:
        for _, _, source in self.parts:
            source.release()

    def fingerprint(self) -> Hashable:
        places = (tuple((part.start, part.stop) for part in place) for place, _, _ in self.parts)
        return ("parts", *zip(places, (source.fingerprint() for _, _, source in self.parts), strict=True))


class PartOfSource(Source):
    """A slice of a tensor.

    Attributes:
        whole: The tensor's source.
        shape: The tensor's shape.
        place: Where in it the slice is.
    """

    __slots__ = ("place", "shape", "whole")

    def __init__(self, whole: Source, shape: Shape, place: tuple[slice, ...]) -> None:
        self.whole = whole
        self.shape = shape
        self.place = place

    @classmethod
    def checked(cls, whole: Source, shape: Shape, extents: Sequence[Extent]) -> PartOfSource:
        """Returns the source of a slice after a check that it lies within the tensor."""
        lengths = tuple(dim if length == WHOLE else length for dim, (_, length) in zip(shape, extents, strict=False))
        return cls(whole, shape, _place(shape, extents, lengths))

    @property
    def part_shape(self) -> Shape:
        """The slice's shape."""
        return tuple(part.stop - part.start for part in self.place)

    def part(self, dtype: np.dtype[Any], shape: Shape, box: Box) -> Array:
        moved = zip(box, self.place, strict=True)
        inside = tuple(slice(part.start + by.start, part.stop + by.start) for part, by in moved)
        return self.whole.part(dtype, self.shape, inside)

    def release(self) -> None:
        self.whole.release()

    def fingerprint(self) -> Hashable:
        return ("part", self.shape, tuple((part.start, part.stop) for part in self.place), self.whole.fingerprint())


def _place(shape: Shape, extents: Sequence[Extent], part_shape: Shape) -> tuple[slice, ...]:
    """Returns the index expression of a slice that lies within the whole and has the shape that it should."""
    if not len(shape) == len(extents) == len(part_shape):
        raise MalformedError("one has another rank than the tensor")
    place = []
    for dim, (start, length), part_dim in zip(shape, extents, part_shape, strict=True):
        start, length = (0, dim) if length == WHOLE else (start, length)
        if start < 0 or length != part_dim or start + length > dim:
            raise MalformedError("one lies outside of the tensor, or isn't as long as it should be")
        place.append(slice(start, start + length))
    return tuple(place)


def _check_disjoint(shape: Shape, places: Sequence[tuple[slice, ...]]) -> None:
    """Checks that no two slices overlap; since they have as many elements as the whole, they then cover it."""
    taken = np.zeros(shape, np.bool_)
    for place in places:
        if taken[place].any():
            raise MalformedError("two of them overlap")
        taken[place] = True
