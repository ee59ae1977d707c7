"""`affine_map<(d0, d1) -> (d0 * 2 + d1)>`: which element of an operand each step of a loop nest reads or writes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tfconvert.schema.ir.attribute import Attribute, AttributePrinter

if TYPE_CHECKING:
    from tfconvert.schema.ir.attribute_parser import AttributeParser

_MAP = re.compile(r"\([^()]*\)(\[[^\[\]]*\])? -> \([^<>]*\)")


class AffineMapAttr(Attribute):
    """An affine map, kept as its text: nothing here computes with it.

    Attributes:
        text: What stands between the angle brackets, with single spaces.
    """

    __slots__ = ("text",)

    text: str

    @classmethod
    def get(cls, text: str) -> AffineMapAttr:
        """Returns the map of a text, `(d0, d1) -> (d0)`."""
        return cls.intern(" ".join(text.split()))

    @classmethod
    def of(cls, count: int, results: Sequence[int | str]) -> AffineMapAttr:
        """Returns the map of a number of loops to numbers of loops, or to expressions of them: `d0 * 2`."""
        dims = ", ".join([f"d{number}" for number in range(count)])
        found = ", ".join([f"d{each}" if isinstance(each, int) else each for each in results])
        return cls.intern(f"({dims}) -> ({found})")

    def print(self, printer: AttributePrinter) -> None:
        printer.write(f"affine_map<{self.text}>")


def parse_affine_map(parser: AttributeParser) -> Attribute:
    """Parses what follows `affine_map`: `<(d0) -> (d0)>`."""
    if parser.token[0] != "<":
        parser.raise_error("'<' expected after 'affine_map'")
    start = parser.pos + 1
    text = parser.text
    end = text.find(">", start)
    while end > 0 and text[end - 1] == "-":
        end = text.find(">", end + 1)
    found = " ".join(text[start:end].split())
    if end < 0 or _MAP.fullmatch(found) is None:
        parser.raise_error("expected an affine map, `(d0) -> (d0)`")
    parser.resume_at(end + 1)
    return AffineMapAttr.get(found)
