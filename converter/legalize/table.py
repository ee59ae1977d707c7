"""All legalizations: the topics, put together (design §9)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache

from converter.legalize import (
    activation,
    bitwise,
    composed,
    control_flow,
    convolution,
    einsum,
    elementwise,
    gelu,
    image,
    indexing,
    layout,
    matmul,
    normalization,
    pooling,
    random,
    rearrange,
    reduction,
    resource,
    shape,
    signal,
    strided_slice,
    widen,
)
from converter.legalize.row import Entry, Lowering, Row
from converter.rewrite.pattern_set import PatternSet

_TOPICS: Mapping[str, tuple[Entry, ...]] = {
    "elementwise": elementwise.ENTRIES,
    "bitwise": bitwise.ENTRIES,
    "activation": activation.ENTRIES,
    "composed": composed.ENTRIES,
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
    "signal": signal.ENTRIES,
    "random": random.ENTRIES,
    "control flow": control_flow.ENTRIES,
    "state": resource.ENTRIES,
    "channels first": layout.ENTRIES,
    "narrow types": widen.ENTRIES,
}


@cache
def fusions() -> PatternSet:
    """Returns the patterns that recognise what one op can do, before its parts are legalized."""
    return PatternSet(gelu.PATTERNS)


@cache
def patterns() -> PatternSet:
    """Returns the patterns that legalize."""
    return PatternSet(entry.pattern() for entries in _TOPICS.values() for entry in entries)


@cache
def notes() -> Mapping[str, str]:
    """Returns what the user has to know where certain patterns were applied, by their names."""
    lowerings = (entry for entries in _TOPICS.values() for entry in entries if isinstance(entry, Lowering))
    return {entry.pattern_name: f"{entry.op}: {entry.note}" for entry in lowerings if entry.note}


def supported_ops() -> Iterator[tuple[str, str, str, str]]:
    """Yields topic, TensorFlow's op, what it becomes and the element types it takes, for the table of support."""
    for topic, entries in _TOPICS.items():
        for entry in entries:
            yield topic, entry.op, entry.target if isinstance(entry, Row) else entry.becomes, entry.types
