"""Random numbers: the runtime's own generators, seeded as in the model."""

from __future__ import annotations

from tfconvert.converter.rewrite.pattern import Failure
from tfconvert.converter.targets.litert.legalize.entry import Attr, BuiltinRow, Entry
from tfconvert.schema.dialects import types
from tfconvert.schema.ir.operation import Operation

_SEEDS = {"seed": Attr("seed", 0), "seed2": Attr("seed2", 0)}


def _gives_floats(op: Operation) -> Failure | None:
    return None if types.element_of(op.results[0].type) == types.F32 else Failure("only 32-bit floats are generated")


def _gives_indices(op: Operation) -> Failure | None:
    known = types.element_of(op.results[0].type) in (types.I32, types.I64)
    return None if known else Failure("only i32 and i64 are generated")


ENTRIES: tuple[Entry, ...] = (
    BuiltinRow("RandomUniform", "random_uniform", narrow=(0,), options=_SEEDS, constraint=_gives_floats),
    BuiltinRow("RandomStandardNormal", "random_standard_normal", narrow=(0,), options=_SEEDS, constraint=_gives_floats),
    BuiltinRow("Multinomial", "multinomial", "f32", narrow=(1,), options=_SEEDS, constraint=_gives_indices),
)
