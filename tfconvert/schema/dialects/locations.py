"""Locations for diagnostics: the node an op came from, its source line, the calls around it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tfconvert.schema.diagnostics import ConversionError, Diagnostic
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.locations import CallSiteLoc, FileLineColLoc, FusedLoc, NameLoc
from tfconvert.schema.ir.operation import Operation


class LocationParts(NamedTuple):
    """The parts of a location."""

    node: str  # The graph node's name, without its function.
    source: str  # `file:line`, empty if unknown.
    calls: tuple[str, ...]  # Names of the nodes that call the function that the node is in, innermost first.

    @property
    def layer(self) -> str:
        """The path of the layer that the node is in: the name scopes around it and around the calls."""
        scopes = [name.rpartition("/")[0] for name in (*reversed(self.calls), self.node)]
        return "/".join(scope for scope in scopes if scope)

    def __str__(self) -> str:
        parts = [self.source] if self.source else []
        if self.calls:
            parts.append(f"called from {' <- '.join(self.calls)}")
        return ", ".join(parts)


def node_of(location: Attribute) -> str:
    """Returns the name of a location's graph node, empty if it has none."""
    # Most locations are plain names, or fusions of these.
    while isinstance(location, FusedLoc) and location.locations:
        location = location.locations[-1]
    return location.name.partition("@")[0] if isinstance(location, NameLoc) else place_of(location).node


def nodes_of(location: Attribute) -> Iterator[str]:
    """Yields the names of a location's graph nodes, the one that named the result first: of a fusion those of all."""
    pending = [location]
    while pending:
        part = pending.pop()
        if isinstance(part, FusedLoc):
            pending += part.locations
        elif isinstance(part, CallSiteLoc):
            pending.append(part.callee)
        elif name := node_of(part):
            yield name


def told_at(location: Attribute, what: str) -> str:
    """Returns a message that begins with a location's node and source line, if they are known."""
    place = place_of(location)
    where = f"{place.node} ({place.source})" if place.node and place.source else place.node or place.source
    return f"{where}: {what}" if where else what


def place_of(location: Attribute) -> LocationParts:
    """Returns the parts of a location; of a fusion those of the last one, which named the result."""
    calls: list[str] = []
    while True:
        if isinstance(location, FusedLoc) and location.locations:
            location = location.locations[-1]
        elif isinstance(location, CallSiteLoc):
            calls.insert(0, place_of(location.caller).node)
            location = location.callee
        else:
            break
    name, source = "", location
    if isinstance(location, NameLoc):
        name, source = location.name, location.child
        while isinstance(source, CallSiteLoc | NameLoc):  # JAX names an op at the calls that led to it.
            source = source.callee if isinstance(source, CallSiteLoc) else source.child
    text = f"{source.filename}:{source.line}" if isinstance(source, FileLineColLoc) else ""
    return LocationParts(name.partition("@")[0], text, tuple(calls))


def found_at(op: Operation, code: str, message: str, hint: str = "") -> Diagnostic:
    """Returns a finding about an op, with its name, node and source line."""
    place = place_of(op.location)
    return Diagnostic(code, message, op.name, place.node, str(place), hint, layer=place.layer)


def error_at(op: Operation, code: str, message: str, hint: str = "") -> ConversionError:
    """Returns an error about one op."""
    return ConversionError([found_at(op, code, message, hint)])
