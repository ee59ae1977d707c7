"""A fusion: an interface, a check of the functions that claim to implement it, and a rewrite of their bodies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal

from tfconvert.converter.composites.body import Body
from tfconvert.converter.composites.composite import Composite
from tfconvert.converter.composites.marks import IMPLEMENTS, plain_name
from tfconvert.schema.ir.values import Value

Check = Callable[[Composite], str | None]
"""Returns why a function can't be fused, as the end of a sentence; `None` if it can."""

Rewrite = Callable[[Composite, Body], Sequence[Value]]
"""Appends the new body to a function whose old one is erased; returns the function's results."""


@dataclass(frozen=True, slots=True)
class Fusion:
    """An entry of the table of fusions.

    Attributes:
        name: The fusion's own name, with dashes; the report counts by it.
        interface: The name that functions say they implement; one that ends in `*` matches all with that prefix.
        summary: The arguments in order and what becomes of them, in a line.
        check: Returns why a function that has the name doesn't fit.
        rewrite: Builds the new body.
        mark: The function attribute that holds the name.
        flag: An attribute that must be true for the entry to apply; empty if there is none.
        is_custom: Whether the new operator is not a builtin one; such a fusion requires `allow_custom_ops`, and leaves
            the body, which computes the same, without it.
        on_misfit: What to do with a function that doesn't fit: `keep` its body and say so in the report, or `error`.
        note: Returns a note for the user on a function that was fused; empty if there is none.
        is_recurrent: Whether the operator computes what is a loop in the body. Users may want to keep such loops. One
            that is kept is analysed once more, without the mark; the reason found then is reported.
        function: A name of functions, or a pattern of names (`attention_*`), as their author wrote them: the entry is
            for functions of these names, marked or not, in place of the interface; empty if only marks count.
    """

    name: str
    interface: str
    summary: str
    check: Check
    rewrite: Rewrite
    mark: str = IMPLEMENTS
    flag: str = ""
    is_custom: bool = False
    on_misfit: Literal["keep", "error"] = "keep"
    note: Callable[[Composite], str] = lambda composite: ""
    is_recurrent: bool = False
    function: str = ""

    def names(self, function_name: str) -> bool:
        """Returns whether this entry is for functions of a name, whatever their mark."""
        return bool(self.function) and fnmatchcase(plain_name(function_name), self.function)

    def applies(self, composite: Composite, mark: str) -> bool:
        """Returns whether this entry applies to a function."""
        if self.function:
            return self.names(composite.function_name)
        if mark != self.mark or (self.flag and composite.get(self.flag) is not True):
            return False
        if self.interface.endswith("*"):
            return composite.name.startswith(self.interface[:-1])
        return composite.name == self.interface


def first_of(*reasons: str | None) -> str | None:
    """Returns the first reason, if there is any."""
    return next((reason for reason in reasons if reason), None)
