"""Dialects, and the registry in which a text's names are looked up."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.operation import Operation

# Functions of an `AttributeParser` and of a `Parser`, which stand above this module.
Syntax = Callable[[Any], Attribute]
Assembly = Callable[[Any], Operation]


class Dialect(NamedTuple):
    """The attributes and types of one namespace, the name before the point.

    Attributes:
        name: The name.
        ops: The classes of its ops.
        open_ops: Returns the class of an op by its full name, or `None`; for dialects with too many ops
            to list.
        attributes: The parsers of the parameters of attributes, by name without the dialect's; `None` if they are kept
            as those of unknown dialects.
        types: The parsers of the parameters of types, by name without the dialect's.
        assembly: Parses what follows the name of an op whose class has no text of its own; such ops are read in that
            form, and printed in the generic one.
    """

    name: str
    ops: tuple[type[Operation], ...] = ()
    open_ops: Callable[[str], type[Operation] | None] | None = None
    attributes: Mapping[str, Syntax] | None = {}
    types: Mapping[str, Syntax] = {}
    assembly: Assembly | None = None


class DialectRegistry:
    """All dialects that a text may use.

    Args:
        dialects: The dialects.
        keywords: The parsers of builtin attributes that begin with a keyword (`dense`), after that keyword.
        unknown: Returns the parser of the attribute of a full name, whose dialect is not one of these.
    """

    def __init__(
        self,
        dialects: Iterable[Dialect],
        keywords: Mapping[str, Syntax] | None = None,
        unknown: Callable[[str], Syntax | None] = lambda name: None,
    ) -> None:
        self.dialects = {dialect.name: dialect for dialect in dialects}
        self.keywords: Mapping[str, Syntax] = keywords or {}
        self._unknown = unknown
        self._ops = {op.NAME: op for dialect in self.dialects.values() for op in dialect.ops}

    def op(self, name: str) -> type[Operation] | None:
        """Returns the class of an op by its full name, `None` if no dialect has it."""
        found = self._ops.get(name)
        if found is not None:
            return found
        dialect = self.dialects.get(name.partition(".")[0])
        return dialect.open_ops(name) if dialect is not None and dialect.open_ops is not None else None

    def assembly(self, name: str) -> Assembly | None:
        """Returns the parser of what follows an op's name in its own text, `None` if it has no such text.

        Args:
            name: The op's full name, which a dialect has.
        """
        found = self.op(name)
        if found is not None and found.HAS_ASSEMBLY:
            return found.parse  # type: ignore[attr-defined, no-any-return]  # as HAS_ASSEMBLY promises
        dialect = self.dialects.get(name.partition(".")[0]) if found is not None else None
        return dialect.assembly if dialect is not None else None

    def attribute(self, name: str) -> Syntax | None:
        """Returns the parser of an attribute's parameters by its full name, `None` if there is no such attribute."""
        dialect, _, rest = name.partition(".")
        known = self.dialects.get(dialect)
        if known is None or known.attributes is None:
            return self._unknown(name)
        return known.attributes.get(rest)

    def type(self, name: str) -> Syntax | None:
        """Returns the parser of a type's parameters by its full name, `None` if no dialect has it."""
        dialect, _, rest = name.partition(".")
        known = self.dialects.get(dialect)
        return known.types.get(rest) if known is not None else None
