"""Embeddings: rows of a table, however the model gathers them."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from converter.composites.body import Body
from converter.composites.composite import Composite
from converter.composites.fusion import Fusion, first_of
from schema.dialects import types

_KEPT_TYPES = "f32 i8 ui8"


def _check(composite: Composite) -> str | None:
    reason = composite.counts(2, 1)
    if reason:
        return reason
    table = composite.shape(0)
    if table is None or len(table) < 2:
        return "argument 0 is no table of rows" if table is not None else "the rank of argument 0 is not known"
    return first_of(composite.ranks({1: 1}), composite.elements({0: _KEPT_TYPES, 1: "i32 i64"}))


def _rewrite(composite: Composite, body: Body) -> Sequence[SSAValue]:
    table, ids = body.arguments
    rows, table_shape = composite.shape(1), composite.shape(0)
    assert rows is not None
    assert table_shape is not None
    if composite.element(1) != types.I32:
        ids = body.tf("Cast", (ids,), types.tensor(types.I32, rows))[0]
    return body.tfl("embedding_lookup", (ids, table), types.tensor(composite.element(0), (*rows, *table_shape[1:])))


def _note(composite: Composite) -> str:
    return "ids outside of the table are refused when the model runs, where a matmul of one_hot gives rows of zeros"


_SUMMARY = "(table[V, ...], ids[N]) -> rows[N, ...]: EMBEDDING_LOOKUP"

FUSIONS = (
    Fusion("embedding-matmul", "embedding_matmul", _SUMMARY, _check, _rewrite, note=_note),
    Fusion("embedding-lookup", "embedding_lookup", _SUMMARY, _check, _rewrite),
)
