"""What a fusion is: an interface, a check of who claims to implement it, and what takes the body's place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from tfconvert.converter.composites.body import Body
from tfconvert.converter.composites.composite import Composite
from tfconvert.converter.composites.marks import IMPLEMENTS
from tfconvert.schema.ir.values import Value

Check = Callable[[Composite], str | None]
"""Returns why a function can't be fused, as the end of a sentence; `None` if it can."""

Rewrite = Callable[[Composite, Body], Sequence[Value]]
"""Appends the new body to a function whose old one is gone; returns what the function returns."""


@dataclass(frozen=True, slots=True)
class Fusion:
    """A row of the table of fusions.

    Attributes:
        name: The fusion's own name, with dashes; the report counts by it.
        interface: The name that functions say they implement; one that ends in `*` stands for all that begin so.
        summary: The arguments in order and what becomes of them, in a line.
        check: Tells why a function that has the name doesn't fit.
        rewrite: Makes the new body.
        mark: The function attribute that holds the name.
        flag: An attribute that has to be true for the row to apply; empty if none has.
        is_custom: Whether what is put in is no builtin operator; such a fusion asks for `allow_custom_ops`, and leaves
            the body, which computes the same, without it.
        on_misfit: What to do with a function that doesn't fit: `keep` its body and say so in the report, or `error`.
        note: Tells what the user has to know of a function that was fused; empty if there is nothing.
        is_recurrent: Whether the operator computes what is a loop in the body. Users may want to keep such loops. One
            that is kept is looked at once more, without the mark, and what it is told then is the reason.
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

    def applies(self, composite: Composite, mark: str) -> bool:
        """Tells whether this row is the one for a function."""
        if mark != self.mark or (self.flag and composite.get(self.flag) is not True):
            return False
        if self.interface.endswith("*"):
            return composite.name.startswith(self.interface[:-1])
        return composite.name == self.interface


def first_of(*reasons: str | None) -> str | None:
    """Returns the first reason that there is."""
    return next((reason for reason in reasons if reason), None)
