"""All legalizations: the topics, put together (design §9); what few networks need stands in `uncommon.py`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from types import ModuleType

from tfconvert.converter.litert.legalize import (
    activation,
    bitwise,
    channels_first,
    convolution,
    einsum,
    elementwise,
    gelu,
    image,
    indexing,
    math,
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
from tfconvert.converter.litert.legalize.entry import Entry, Row
from tfconvert.converter.rewrite.pattern_set import PatternSet

_COMMON: Mapping[str, tuple[Entry, ...]] = {
    "elementwise": elementwise.ENTRIES,
    "bitwise": bitwise.ENTRIES,
    "activation": activation.ENTRIES,
    "composed": math.ENTRIES,
    "convolution": convolution.ENTRIES,
    "pooling": pooling.ENTRIES,
    "matmul": matmul.ENTRIES,
    "normalization": normalization.ENTRIES,
    "reduction": reduction.ENTRIES,
    "shape": shape.ENTRIES,
    "rearrange": rearrange.ENTRIES,
    "indexing": indexing.ENTRIES,
    "strided slice": strided_slice.ENTRIES,
    "image": image.ENTRIES,
    "einsum": einsum.ENTRIES,
    "state": variables.ENTRIES,
    "strings": strings.ENTRIES,
    "channels first": channels_first.ENTRIES,
    "narrow types": narrow_types.ENTRIES,
}

Phases = tuple[PatternSet, PatternSet]
"""Patterns that recognise what one op can do, and those that legalize what is left after them."""


@cache
def common() -> Phases:
    """Returns the patterns of the ops that most networks are made of."""
    return PatternSet(gelu.PATTERNS), PatternSet(entry.pattern() for entries in _COMMON.values() for entry in entries)


@cache
def everything() -> Phases:
    """Returns all patterns."""
    entries = (entry for entries in _topics().values() for entry in entries)
    return PatternSet((*gelu.PATTERNS, *_rare().FUSIONS)), PatternSet(entry.pattern() for entry in entries)


def phases_for(names: Iterable[str]) -> Phases:
    """Returns the patterns that a module with ops of some names needs; the rare ones are loaded if it needs any."""
    _, patterns = common()
    return common() if all(not name.startswith("tf.") or patterns.for_root(name) for name in names) else everything()


def _rare() -> ModuleType:
    from tfconvert.converter.litert.legalize import uncommon

    return uncommon


def _topics() -> Mapping[str, tuple[Entry, ...]]:
    return {**_COMMON, **_rare().TOPICS}


def supported_ops() -> Iterator[tuple[str, str, str, str]]:
    """Yields topic, TensorFlow's op, what it becomes and the element types it takes, for the table of support."""
    for topic, entries in _topics().items():
        for entry in entries:
            yield topic, entry.op, entry.target if isinstance(entry, Row) else entry.becomes, entry.types
