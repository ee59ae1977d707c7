"""The primitives of MLIR bytecode: numbers of variable length, and bytes. Every read is checked against the end."""

from __future__ import annotations

from tfconvert.schema.diagnostics import ConversionError, error

MAX_MESSAGE = 1000
"""Maximum length of a message, which may contain names and types of a hostile artifact."""

# The byte that is the number 1.
_ONE = 3

# The low 64 bits.
_MASK = (1 << 64) - 1


def malformed(message: str) -> ConversionError:
    """Returns the error of an artifact that is damaged."""
    return error("malformed-artifact", message[:MAX_MESSAGE], hint="create or copy the artifact again")


class Cursor:
    """A position in bytes.

    Attributes:
        data: The bytes.
        position: The next byte.
        end: The first byte that is out of reach.
    """

    __slots__ = ("data", "end", "position")

    def __init__(self, data: bytes | memoryview, position: int = 0, end: int | None = None) -> None:
        self.data = data
        self.position = position
        self.end = len(data) if end is None else end

    @property
    def left(self) -> int:
        """The number of bytes that are left."""
        return self.end - self.position

    def byte(self) -> int:
        """Returns the next byte."""
        position = self.position
        if position >= self.end:
            raise truncated()
        self.position = position + 1
        return self.data[position]

    def varint(self) -> int:
        """Returns an unsigned number: the zeros at the low end of its first byte count the bytes that follow."""
        position = self.position
        if position >= self.end:
            raise truncated()
        data = self.data
        first = data[position]
        if first & 1:
            self.position = position + 1
            return first >> 1
        if first & 2 and position + 1 < self.end:
            self.position = position + 2
            return (first | data[position + 1] << 8) >> 2
        length = (first & -first).bit_length() if first else 9
        end = position + length
        if end > self.end:
            raise truncated()
        self.position = end
        if first:
            return int.from_bytes(data[position:end], "little") >> length
        return int.from_bytes(data[position + 1 : end], "little")

    def signed(self) -> int:
        """Returns a signed number."""
        value = self.varint()
        return (value >> 1) ^ -(value & 1)

    def flagged(self) -> tuple[int, bool]:
        """Returns a number and the flag in its lowest bit."""
        value = self.varint()
        return value >> 1, bool(value & 1)

    def count(self, smallest: int = 1) -> int:
        """Returns the number of elements that follow, each of which takes a number of bytes at least."""
        value = self.varint()
        if value * smallest > self.left:
            raise truncated()
        return value

    def varints(self) -> list[int]:
        """Returns a list of unsigned numbers, after their count."""
        data, position = self.data, self.position
        if position + 1 >= self.end or not data[position] & 1:
            return self.numbers(self.count())
        if data[position] == _ONE and data[position + 1] & 1:
            # Most lists are one small number.
            self.position = position + 2
            return [data[position + 1] >> 1]
        self.position = position + 1
        count = data[position] >> 1
        if count > self.end - self.position:
            raise truncated()
        return self.numbers(count)

    def head(self) -> tuple[int, int, int]:
        """Returns what an op begins with: a number, a byte and another number."""
        data, position = self.data, self.position
        if position + 3 < self.end and data[position] & 1:
            # Most ops have one of the first names, and locations of one byte or two.
            last = data[position + 2]
            if last & 1:
                self.position = position + 3
                return data[position] >> 1, data[position + 1], last >> 1
            if last & 2:
                self.position = position + 4
                return data[position] >> 1, data[position + 1], (last | data[position + 3] << 8) >> 2
        return self.varint(), self.byte(), self.varint()

    def numbers(self, count: int) -> list[int]:
        """Returns a number of unsigned numbers; most are one byte or two."""
        data, position, end = self.data, self.position, self.end
        found = []
        for _ in range(count):
            first = data[position] if position < end else 0
            if first & 1:
                found.append(first >> 1)
                position += 1
            elif first & 2 and position + 1 < end:
                found.append((first | data[position + 1] << 8) >> 2)
                position += 2
            else:
                self.position = position
                found.append(self.varint())
                position = self.position
        self.position = position
        return found

    def signeds(self) -> list[int]:
        """Returns a list of signed numbers."""
        return [(value >> 1) ^ -(value & 1) for value in self.varints()]

    def skip(self, length: int) -> int:
        """Skips bytes, and returns the position of the first."""
        position = self.position
        if length > self.end - position:
            raise truncated()
        self.position = position + length
        return position

    def part(self, length: int) -> Cursor:
        """Skips bytes, and returns a cursor on them."""
        position = self.skip(length)
        return Cursor(self.data, position, position + length)

    def bits(self, width: int) -> int:
        """Returns the bits of a number of a known width: a byte, a varint, or words if there are more than 64."""
        if width <= 8:
            return self.byte() & ((1 << width) - 1)
        if width <= 64:
            return self.signed() & ((1 << width) - 1)
        value = 0
        for index in range(self.count()):
            value |= (self.signed() & _MASK) << (64 * index)
        return value & ((1 << width) - 1)


def truncated() -> ConversionError:
    """Returns the error of a number or a length that leads beyond the end."""
    return malformed("a part of the artifact is longer than what contains it")
