"""Shared by the readers of binary formats: varints, masked checksums, and the error.

The readers don't know the file that their bytes come from; they raise `MalformedError`, and the caller that opened the
file converts it to a `ConversionError` that names the file.
"""

from __future__ import annotations

import google_crc32c

# Bytes that a 64-bit number takes at most.
_LONGEST = 10

_MASK_DELTA = 0xA282EAD8


class MalformedError(Exception):
    """Bytes that don't follow their format.

    Attributes:
        code: The diagnostic code of the kind of damage.
    """

    def __init__(self, message: str, code: str = "bad-index") -> None:
        """Creates the error; the message follows a file's name and a colon."""
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
    for index in range(position, min(position + _LONGEST, len(data))):
        byte = data[index]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value >> 64:
                break
            return value, index + 1
        shift += 7
    raise MalformedError("a number has no end or is too large")


def unmask(stored: int) -> int:
    """Returns the CRC-32C of a stored one, which is rotated and shifted since it is itself under a checksum."""
    rotated = (stored - _MASK_DELTA) & 0xFFFFFFFF
    return (rotated >> 17 | rotated << 15) & 0xFFFFFFFF


def check(data: bytes, stored: int, what: str) -> None:
    """Compares bytes with their stored (masked) checksum.

    Raises:
        MalformedError: They differ (`bad-checksum`).
    """
    if google_crc32c.value(data) != unmask(stored):
        raise MalformedError(f"{what} is damaged: its checksum is wrong", "bad-checksum")
