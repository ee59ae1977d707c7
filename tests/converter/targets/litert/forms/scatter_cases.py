"""Graphs of scatters in any sizes, which `benchmarks.scatter_speed` times, too."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tests.converter.targets.litert.optimize.graph import Graph, f32, i32, random
from tfconvert.converter.targets.litert.forms.scatter_speed import Sizes
from tfconvert.schema.dialects import types
from tfconvert.schema.ir.values import Value

Make = Callable[[Graph, Value], Value]

_NO_ACTIVATION: dict[str, Any] = {"fused_activation_function": "NONE"}


def _ids(sizes: Sizes, *, is_unique: bool = False) -> np.ndarray:
    """Returns random numbers of rows, one of which is -1, or different ones."""
    generator = np.random.default_rng(sizes)
    if is_unique:
        return i32(generator.permutation(sizes.rows)[: sizes.updates])
    ids = generator.integers(0, sizes.rows, sizes.updates)
    ids[-1] = -1
    return i32(ids)


def _segments(g: Graph, name: str, values: np.ndarray, sizes: Sizes) -> Value:
    rest = values.shape[1:]
    given = g.constant(values)
    count = np.array(sizes.rows, np.int32)
    return g.op(f"unsorted_segment_{name}", given, _ids(sizes), count, shape=(sizes.rows, *rest))


def _picked(g: Graph, x: Value, places: Value | np.ndarray, sizes: Sizes) -> Value:
    shape = (sizes.rows + sizes.updates, sizes.width)
    updates = random(sizes.updates, sizes.width)
    joined = g.op("concatenation", x, updates, shape=shape, axis=0, **_NO_ACTIVATION)
    return g.op("gather", joined, places, shape=(sizes.rows, sizes.width), axis=0, batch_dims=0)


def rows_replaced(sizes: Sizes) -> Make:
    """Returns what replaces computed rows."""

    def make(g: Graph, x: Value) -> Value:
        numbers = np.arange(sizes.rows, sizes.rows + sizes.updates, dtype=np.int32)
        last = _segments(g, "max", numbers, sizes)
        return _picked(g, x, g.op("maximum", last, np.arange(sizes.rows, dtype=np.int32)), sizes)

    return make


def known_rows_replaced(sizes: Sizes) -> Make:
    """Returns what replaces rows that are constants."""

    def make(g: Graph, x: Value) -> Value:
        places = np.arange(sizes.rows, dtype=np.int32)
        places[_ids(sizes, is_unique=True)] = np.arange(sizes.rows, sizes.rows + sizes.updates)
        return _picked(g, x, places, sizes)

    return make


def rows_filled(sizes: Sizes) -> Make:
    """Returns what fills rows with a number."""

    def make(g: Graph, x: Value) -> Value:
        hit = _segments(g, "max", np.ones(sizes.updates, np.int32), sizes)
        column = (sizes.rows, 1)
        hit = g.op("reshape", hit, list(column), shape=column, new_shape=column)
        mask = g.op("greater", hit, np.array(0, np.int32), shape=column, element=types.I1)
        return g.op("select_v2", mask, f32(2), x, shape=(sizes.rows, sizes.width), element=types.F32)

    return make


def rows_combined(name: str, segments: str) -> Callable[[Sizes], Make]:
    """Returns what combines rows with what segments have of their updates, by the names of both operators."""

    def of(sizes: Sizes) -> Make:
        def make(g: Graph, x: Value) -> Value:
            found = _segments(g, segments, random(sizes.updates, sizes.width), sizes)
            return g.op(name, x, found, **(_NO_ACTIVATION if name in ("add", "mul") else {}))

        return make

    return of


def segments_combined(name: str) -> Callable[[Sizes], Make]:
    """Returns what combines the updates of each row, which are the input."""

    def of(sizes: Sizes) -> Make:
        def make(g: Graph, x: Value) -> Value:
            count, shape = np.array(sizes.rows, np.int32), (sizes.rows, sizes.width)
            return g.op(f"unsorted_segment_{name}", x, _ids(sizes), count, shape=shape)

        return make

    return of


def extremes(name: str) -> Callable[[Sizes], Make]:
    """Returns what combines rows of floats with their updates, where there are any."""

    def of(sizes: Sizes) -> Make:
        def make(g: Graph, x: Value) -> Value:
            found = _segments(g, name, random(sizes.updates, sizes.width), sizes)
            limit = f32(np.finfo(np.float32).max * (-1 if name == "max" else 1))
            shape = (sizes.rows, sizes.width)
            is_none = g.op("equal", found, limit, shape=shape, element=types.I1)
            both = g.op(f"{name}imum", found, x)
            return g.op("select_v2", is_none, x, both, shape=shape, element=types.F32)

        return make

    return of


def sums_added(name: str) -> Callable[[Sizes], Make]:
    """Returns what adds the sums of the updates of each place, or subtracts them."""

    def of(sizes: Sizes) -> Make:
        def make(g: Graph, x: Value) -> Value:
            shape = (sizes.rows, sizes.width)
            indices = _ids(sizes, is_unique=True).reshape(-1, 1)
            updates = random(sizes.updates, sizes.width)
            found = g.op("scatter_nd", indices, updates, list(shape), shape=shape, element=types.F32)
            return g.op(name, x, found, **_NO_ACTIVATION)

        return make

    return of


def element_replaced(sizes: Sizes) -> Make:
    """Returns what replaces one row of each part of a tensor of `apart`, where the number of the row is an index."""

    def make(g: Graph, x: Value) -> Value:
        parts, rows, width = apart(sizes)
        index = i32(np.random.default_rng(sizes).integers(0, rows, (parts, 1, 1)))
        numbers = i32(np.arange(rows).reshape(1, rows, 1))
        mask = g.op("equal", numbers, index, shape=(parts, rows, 1), element=types.I1)
        update = random(parts, 1, width)
        return g.op("select_v2", mask, update, x, shape=(parts, rows, width), element=types.F32)

    return make


def together(sizes: Sizes) -> Sequence[int]:
    """Returns the shape of the rows as a matrix."""
    return sizes.rows, sizes.width


def apart(sizes: Sizes) -> Sequence[int]:
    """Returns the shape of the rows in as many parts as there are updates."""
    return sizes.updates, sizes.rows // sizes.updates, sizes.width


def updates_alone(sizes: Sizes) -> Sequence[int]:
    """Returns the shape of the updates."""
    return sizes.updates, sizes.width


class Form(NamedTuple):
    """A form of `scatter_speed.tsv`.

    Attributes:
        pattern: The pattern that replaces it.
        make: Returns what makes a graph.
        shape: Returns the shape of the graph's input.
    """

    pattern: str
    make: Callable[[Sizes], Make]
    shape: Callable[[Sizes], Sequence[int]] = together


FORMS: Mapping[str, Form] = {
    "set": Form("scatter-rows", rows_replaced),
    "place": Form("scatter-rows", known_rows_replaced),
    "fill": Form("scatter-value", rows_filled),
    "where": Form("scatter-where", element_replaced, apart),
    "segments": Form("scatter-segments-max", segments_combined("max"), updates_alone),
    "sums": Form("segment-sums", segments_combined("sum"), updates_alone),
    "combine": Form("scatter-by-maximum", rows_combined("maximum", "max")),
    "extreme": Form("scatter-extremes", extremes("max")),
    "add": Form("scatter-sums", sums_added("add")),
}
"""The forms by name."""
