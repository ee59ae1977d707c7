"""How the structures of two .tflite files differ: operators, interfaces, versions, metadata, attributes."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from tfconvert.importers.tflite.outline import Outline
from tfconvert.schema.dialects import tfl
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.dialects.locations import node_of
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation

# Longer entries of the metadata are shown as their length and checksum.
_SHORT = 40


class Change(NamedTuple):
    """One difference.

    Attributes:
        section: What it is about: `operators`, `versions`, `signatures`, `metadata`, `attributes`.
        what: What differs.
        first: What the first file has; empty if it lacks it.
        second: What the second file has.
    """

    section: str
    what: str
    first: str
    second: str


def changes(first: Outline, second: Outline) -> Iterator[Change]:
    """Yields how the outline of a file differs from another's."""
    yield from _changes("operators", first.operators, second.operators)
    both = set(first.versions) & set(second.versions)
    versions = [{name: each.versions[name] for name in both} for each in (first, second)]
    yield from _changes("versions", *versions)
    yield from _changes("signatures", _interfaces(first), _interfaces(second))
    yield from _changes("metadata", _metadata(first), _metadata(second))


def changed_attributes(first: ModuleOp, second: ModuleOp) -> Iterator[Change]:
    """Yields how the attributes of operators differ, if both files have the same operators in the same order."""
    pairs = [_operators(first), _operators(second)]
    if [op.name for op in pairs[0]] != [op.name for op in pairs[1]]:
        return
    for one, other in zip(*pairs, strict=True):
        where = f"{one.name.removeprefix('tfl.').upper()} {node_of(one.location)}"
        for change in _changes("attributes", one.properties, other.properties):
            yield change._replace(what=f"{change.what} of {where}")


def _operators(module: ModuleOp) -> list[Operation]:
    return [
        op
        for function in module.ops
        if isinstance(function, FuncOp)
        for op in function.body.block.ops
        if isinstance(op, tfl.TFLOp) and not op.op_name.startswith("pseudo_")
    ]


def _changes(section: str, first: Mapping[str, Any], second: Mapping[str, Any]) -> Iterator[Change]:
    for name in sorted(first.keys() | second.keys()):
        one, other = first.get(name), second.get(name)
        if one != other:
            yield Change(section, name, "" if one is None else str(one), "" if other is None else str(other))


def _interfaces(outline: Outline) -> dict[str, str]:
    return {
        each.key or "main": f"{', '.join(map(str, each.inputs)) or '()'} -> {', '.join(map(str, each.outputs))}"
        for each in outline.signatures
    }


def _metadata(outline: Outline) -> dict[str, str]:
    shown = {name: _shown(content) for name, content in outline.metadata.items()}
    return {**shown, "description": outline.description}


def _shown(content: bytes) -> str:
    text = content.rstrip(b"\0")
    if len(text) <= _SHORT and text.isascii() and text.decode().isprintable():
        return text.decode()
    return f"{len(content)} bytes of CRC {zlib.crc32(content):08x}"
