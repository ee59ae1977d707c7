"""All legalizations: the topics, put together; those that few networks need are in `uncommon.py`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

from tfconvert.converter.rewrite.pattern import Pattern
from tfconvert.converter.rewrite.pattern_set import PatternSet
from tfconvert.converter.targets.litert.legalize import (
    activation,
    bitwise,
    channels_first,
    convolution,
    decomposed,
    elementwise,
    fake_quant_layout,
    gelu,
    indexing,
    matmul,
    narrow_types,
    normalization,
    pooling,
    rearrange,
    reduction,
    shape,
    strided_slice,
    strings,
    variables,
)
from tfconvert.converter.targets.litert.legalize.entry import Entry, Row
from tfconvert.converter.targets.litert.legalize.uncommon import BY_OP, TOPICS, Topic
from tfconvert.ops.index import MODULES
from tfconvert.ops.registry import MODULE_OF, decompositions

_COMMON: Mapping[str, tuple[Entry, ...]] = {
    "elementwise": elementwise.ENTRIES,
    "bitwise": bitwise.ENTRIES,
    "activation": activation.ENTRIES,
    "convolution": convolution.ENTRIES,
    "pooling": pooling.ENTRIES,
    "matmul": matmul.ENTRIES,
    "normalization": normalization.ENTRIES,
    "reduction": reduction.ENTRIES,
    "shape": shape.ENTRIES,
    "rearrange": rearrange.ENTRIES,
    "indexing": indexing.ENTRIES,
    "strided slice": strided_slice.ENTRIES,
    "state": variables.ENTRIES,
    "strings": strings.ENTRIES,
    "channels first": channels_first.ENTRIES,
    "narrow types": narrow_types.ENTRIES,
}

# Families of ops whose decompositions many networks need.
_COMMON_FAMILIES = frozenset({"elementwise", "special_functions"})

Phases = tuple[PatternSet, PatternSet]
"""Patterns that recognise what one op can replace, and those that legalize the remaining ops."""


def common() -> Phases:
    """Returns the patterns of the ops that most networks consist of."""
    return _phases(frozenset(), frozenset())


def everything() -> Phases:
    """Returns all patterns."""
    return _phases(frozenset(TOPICS), frozenset(filter(decomposed.lowerings, MODULES)) - _COMMON_FAMILIES)


def phases_for(names: Iterable[str]) -> Phases:
    """Returns the patterns that a module with ops of some names needs: the common ones and those of some topics."""
    names = tuple(names)
    families = {MODULE_OF[op] for name in names if decompositions(op := name.removeprefix("tf."))}
    topics = frozenset().union(*(BY_OP.get(name, ()) for name in names))
    return _phases(topics, frozenset(families) - _COMMON_FAMILIES)


@cache
def _phases(topics: frozenset[Topic], families: frozenset[str]) -> Phases:
    loaded = [_file(topic) for topic in TOPICS if topic in topics]
    entries = [*_COMMON.values(), *(entries for entries, _ in loaded)]
    entries += map(decomposed.lowerings, sorted(_COMMON_FAMILIES | families))
    fusions = (pattern for _, patterns in loaded for pattern in patterns)
    return PatternSet((*gelu.PATTERNS, *fake_quant_layout.PATTERNS, *fusions)), PatternSet(
        entry.pattern() for group in entries for entry in group
    )


def _file(topic: Topic) -> tuple[Sequence[Entry], Sequence[Pattern[Any]]]:
    """Returns the entries and the patterns in a topic's file, which may be loaded for that."""
    module = import_module(f"tfconvert.converter.targets.litert.legalize.{topic.module}")
    return getattr(module, "ENTRIES", ()), getattr(module, "PATTERNS", ())


class EntryInfo(NamedTuple):
    """An entry, as the table of support has it.

    Attributes:
        topic: The topic's title.
        op: TensorFlow's op.
        becomes: Its replacement: names of `tfl` ops, or of `tf` ops that are legalized next.
        types: The element types that it takes; empty for any.
        note: The note for the user where it is applied; empty if there is none.
    """

    topic: str
    op: str
    becomes: str
    types: str
    note: str


def entries() -> Iterator[EntryInfo]:
    """Yields all entries, topic by topic, for the table of support."""
    for title, group in (*_COMMON.items(), *((topic.title, _file(topic)[0]) for topic in TOPICS)):
        for entry in group:
            if isinstance(entry, Row):
                yield EntryInfo(title, entry.op, entry.target, entry.types, "")
            else:
                yield EntryInfo(title, entry.op, entry.becomes, entry.types, entry.note)
    for entry, becomes in decomposed.entries():
        yield EntryInfo(MODULE_OF[entry.op].replace("_", " "), entry.op, becomes, entry.types, entry.note)
