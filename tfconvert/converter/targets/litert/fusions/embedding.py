"""Embeddings: rows of a table, gathered in any way."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tfconvert.converter.composites.composite import Composite
from tfconvert.converter.composites.fusion import Body, Fusion, first_of
from tfconvert.schema.dialects import types
from tfconvert.schema.ir.values import Value

_KEPT_TYPES = "f32 i8 ui8"


def _check(composite: Composite) -> str | None:
    reason = composite.counts(2, 1)
    if reason:
        return reason
    table = composite.shape(0)
    if table is None or len(table) < 2:
        return "argument 0 is not a table of rows" if table is not None else "the rank of argument 0 is not known"
    return first_of(
        composite.elements({0: _KEPT_TYPES, 1: "i32 i64"}), composite.gives(0, composite.element(0), _rows(composite))
    )


def _rows(composite: Composite) -> types.Shape | None:
    table, ids = composite.shape(0), composite.shape(1)
    return None if table is None or ids is None else (*ids, *table[1:])


def _rewrite(composite: Composite, body: Body) -> Sequence[Value]:
    table, ids = body.arguments
    shape = composite.shape(1)
    result = types.tensor(composite.element(0), _rows(composite))
    if shape is None or len(shape) != 1:
        return body.tf("GatherV2", (table, ids, body.constant(np.zeros((), np.int32))), result, batch_dims=0)
    if composite.element(1) != types.I32:
        ids = body.tf("Cast", (ids,), types.tensor(types.I32, shape))[0]
    return body.tfl("embedding_lookup", (ids, table), result)


def _note(composite: Composite) -> str:
    return "ids outside of the table are an error at run time, where a matmul of one_hot returns rows of zeros"


_SUMMARY = "(table[V, ...], ids) -> rows: EMBEDDING_LOOKUP, or GATHER where the ids are not a vector"

FUSIONS = (
    Fusion("embedding-matmul", "embedding_matmul", _SUMMARY, _check, _rewrite, note=_note),
    Fusion("embedding-lookup", "embedding_lookup", _SUMMARY, _check, _rewrite),
)
