"""Sets: the different elements of a vector."""

from __future__ import annotations

from tfconvert.converter.targets.litert.legalize.entry import BuiltinRow, Entry, ResultType

ENTRIES: tuple[Entry, ...] = (
    BuiltinRow("Unique", "unique", "f32 i32 i64 ui8 i8 i16", options={"idx_out_type": ResultType(1)}),
)
