"""A cache of parsed text: most ops of a file have one of a few types.

The meaning of a text does not depend on its context if it ends with a token that ends the construct.
"""

from __future__ import annotations

import re
from typing import Generic, TypeVar

from tfconvert.schema.ir.token_parser import TokenParser

T = TypeVar("T")

# Characters of the longest text that is remembered.
_MAX_KEPT = 200

_TENSOR_FORM = r"tensor<(?:[^<>]++|<(?:[^<>]++|<[^<>]*+>)*+>)*+>"
_LIST_FORM = rf"\([^()]{{0,{_MAX_KEPT}}}+\)"

TENSOR = re.compile(_TENSOR_FORM)
"""A tensor type, unless it is nested deeply; or other text, which is never found."""
SIGNATURE = re.compile(f"{_LIST_FORM} -> (?:{_LIST_FORM}|{_TENSOR_FORM})")
"""A function type without others in it, with results that end with a token of their own."""
DICTIONARY = re.compile(rf"\{{[^{{}}]{{0,{_MAX_KEPT}}}+\}}")
"""A dictionary without others in it."""


class TextMemory(Generic[T]):
    """Parsed objects by their text.

    Args:
        pattern: The form of texts that are cached.
    """

    __slots__ = ("_known", "_match")

    def __init__(self, pattern: re.Pattern[str]) -> None:
        self._match = pattern.match
        self._known: dict[str, T] = {}

    def recall(self, parser: TokenParser) -> T | None:
        """Returns the object of the text at the parser's position and skips it, if it was parsed before."""
        match = self._match(parser.text, parser.token[1])
        known = self._known.get(match[0]) if match is not None else None
        if match is not None and known is not None:
            parser.resume_at(match.end())
        return known

    def keep(self, parser: TokenParser, start: int, read: T) -> None:
        """Caches the object that a parser read last, from a position on."""
        end = parser.token[3]
        if end - start <= _MAX_KEPT:
            self._known[parser.text[start:end]] = read
