"""The names of values and blocks while a text is parsed: where they are known, and what is used before it is there."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.attributes import DictionaryAttr
from tfconvert.schema.ir.block import Block
from tfconvert.schema.ir.locations import UNKNOWN_LOC, Location
from tfconvert.schema.ir.values import Value

NO_DICTIONARY: Mapping[str, Attribute] = DictionaryAttr.get({}).data

_HINT = re.compile(r"[A-Za-z_$.-][\w$.-]*+")
_COUNT = re.compile(r"_\d+\Z")
_DEFAULT_BLOCK = re.compile(r"bb[0-9]+")


@dataclass(slots=True)
class UnresolvedOperand:
    """An operand as the text names it, whose type is not known yet.

    Attributes:
        name: The name without `%`.
        index: Which value of several that share the name, `%name#1`.
        position: Where it is in the text.
    """

    name: str
    index: int
    position: int


class Argument(NamedTuple):
    """An argument of a region's first block.

    Attributes:
        name: The name without `%`.
        type: Its type.
        position: Where it is in the text.
        attributes: What a function says of it, `%x: i32 {name = value}`.
        location: Where it comes from.
    """

    name: str
    type: Attribute
    position: int
    attributes: Mapping[str, Attribute] = NO_DICTIONARY
    location: Location = UNKNOWN_LOC


class Forward(NamedTuple):
    """A use of a value before its definition.

    Attributes:
        value: What stands for the value until then.
        position: Where the first use is in the text.
    """

    value: Value
    position: int


class NamedBlock(NamedTuple):
    """A block that was used or defined.

    Attributes:
        block: The block.
        position: Where it was met first.
        is_defined: Whether that is not only a use.
    """

    block: Block
    position: int
    is_defined: bool


class Scope:
    """The names that are known in a region.

    Args:
        outer: The scope around it, `None` if it is isolated from above.

    Attributes:
        values: What each name of a value stands for, those of the scopes around it too.
        places: Where these are defined in the text.
        forward: Values that are used before their definition, by name and index.
        blocks: The blocks of the region.
    """

    __slots__ = ("_names", "blocks", "forward", "places", "values")

    def __init__(self, outer: Scope | None) -> None:
        # One dictionary for all regions of an isolated op: a copy for each would take quadratic time.
        self.values: dict[str, Sequence[Value]] = {} if outer is None else outer.values
        self.places: dict[str, int] = {} if outer is None else outer.places
        self.forward: dict[str, dict[int, Forward]] = {} if outer is None else outer.forward
        self.blocks: dict[str, NamedBlock] = {}
        self._names: list[str] = []

    def define(self, name: str, values: Sequence[Value], position: int) -> None:
        """Makes a name known that is not known yet."""
        self.values[name] = values
        self.places[name] = position
        self._names.append(name)

    def leave(self) -> None:
        """Forgets the names that the region defined."""
        for name in self._names:
            del self.values[name]
            del self.places[name]

    def first_undefined(self) -> tuple[int, str] | None:
        """Returns the first use of a value that is not defined, where it is and its name; `None` if there is none."""
        return min(
            ((use.position, name) for name, uses in self.forward.items() for use in uses.values()),
            default=None,
        )

    def first_undefined_block(self) -> tuple[int, str] | None:
        """Returns the first use of a block that is not defined, where it is and its name; `None` if there is none."""
        return min(
            ((block.position, name) for name, block in self.blocks.items() if not block.is_defined),
            default=None,
        )


def value_hint(name: str) -> str | None:
    """Returns what a printer may call a value again: no numbers, and no count that made the name unique."""
    if _HINT.fullmatch(name) is None:
        return None
    return _COUNT.sub("", name) or None


def block_hint(name: str) -> str | None:
    """Returns what a printer may call a block again; `bb1` is what it says by itself."""
    return None if _DEFAULT_BLOCK.fullmatch(name) is not None else value_hint(name)
