"""Locations of ops: source lines, names of graph nodes, calls, and fusions of these."""

from __future__ import annotations

from collections.abc import Iterable

from tfconvert.schema.ir.attribute import Attribute, AttributePrinter, keep
from tfconvert.schema.ir.attributes import quoted


class Location(Attribute):
    """Base of locations; the text of an attribute that is one is `loc(...)`."""

    __slots__ = ()

    def print(self, printer: AttributePrinter) -> None:
        printer.write("loc(")
        self.print_inside(printer)
        printer.write(")")

    def print_inside(self, printer: AttributePrinter) -> None:
        """Prints the contents of the parentheses; `unknown` for the unknown location."""
        printer.write("unknown")


class UnknownLoc(Location):
    """`loc(unknown)`."""

    __slots__ = ()


UNKNOWN_LOC = UnknownLoc.intern()


class FileLineColLoc(Location):
    """`loc("file.py":1:2)`; lines and columns count from 1."""

    __slots__ = ("column", "filename", "line")

    filename: str
    line: int
    column: int

    @classmethod
    def get(cls, filename: str, line: int, column: int) -> FileLineColLoc:
        # As of names below, each op has one of its own.
        instance = FileLineColLoc()
        instance.filename = filename
        instance.line = line
        instance.column = column
        return keep((FileLineColLoc, filename, line, column), instance)

    def print_inside(self, printer: AttributePrinter) -> None:
        printer.write(f"{quoted(self.filename)}:{self.line}:{self.column}")


class NameLoc(Location):
    """`loc("name")` or `loc("name"(child))`: something with a name, and where that is."""

    __slots__ = ("child", "name")

    name: str
    child: Location

    @classmethod
    def get(cls, name: str, child: Location = UNKNOWN_LOC) -> NameLoc:
        # Every node has one of its own, and usually it is new: there is no search before it is made. A name alone is
        # the cheapest entry that no other attribute has.
        instance = NameLoc()
        instance.name = name
        instance.child = child
        return keep(name if child is UNKNOWN_LOC else (NameLoc, name, child), instance)

    def print_inside(self, printer: AttributePrinter) -> None:
        printer.write(quoted(self.name))
        if self.child is not UNKNOWN_LOC:
            printer.write("(")
            self.child.print_inside(printer)
            printer.write(")")


class CallSiteLoc(Location):
    """`loc(callsite(callee at caller))`."""

    __slots__ = ("callee", "caller")

    callee: Location
    caller: Location

    @classmethod
    def get(cls, callee: Location, caller: Location) -> CallSiteLoc:
        return cls.intern(callee, caller)

    def print_inside(self, printer: AttributePrinter) -> None:
        printer.write("callsite(")
        self.callee.print_inside(printer)
        printer.write(" at ")
        self.caller.print_inside(printer)
        printer.write(")")


class FusedLoc(Location):
    """`loc(fused<metadata>[a, b])`: something that replaces several others."""

    __slots__ = ("locations", "metadata")

    locations: tuple[Location, ...]
    metadata: Attribute | None

    @classmethod
    def get(cls, locations: Iterable[Location], metadata: Attribute | None = None) -> FusedLoc:
        return cls.intern(tuple(locations), metadata)

    def print_inside(self, printer: AttributePrinter) -> None:
        printer.write("fused")
        if self.metadata is not None:
            printer.write("<")
            printer.attribute(self.metadata)
            printer.write(">")
        separator = "["
        for location in self.locations:
            printer.write(separator)
            location.print_inside(printer)
            separator = ", "
        printer.write("]" if self.locations else "[]")
