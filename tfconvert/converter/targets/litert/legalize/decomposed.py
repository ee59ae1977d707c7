"""Which ops are decomposed for LiteRT, and what they become."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from tfconvert.converter.ir.tensors import expand
from tfconvert.converter.rewrite.decompose import failure_of
from tfconvert.converter.targets.litert.legalize.entry import Lowering
from tfconvert.ops.decomposition import Decomposition

KINDS: Mapping[str, str] = {"float": "f32", "integer": "i32 i64", "number": "f32 i32 i64"}
"""The element types that formulas are computed with."""

# The note for models that look for such numbers; what the kernels make of them is in their table, as `special`.
_SPECIALS = (
    "before it, LiteRT's kernels may make something else of infinite numbers and NaN than TensorFlow's: convolutions, "
    "matrix products, extremes, pooling, sorting and resizing do"
)
_NOTES: Mapping[str, str] = dict.fromkeys(("MulNoNan", "IsNan", "IsInf", "IsFinite"), _SPECIALS)


def lowering_of(decomposition: Decomposition) -> Lowering:
    """Returns the entry of a decomposition, which emits ops that are legalized next."""
    return Lowering(
        decomposition.op,
        "",
        partial(expand, decomposition.formula),
        decomposition.takes(KINDS),
        partial(failure_of, decomposition, kinds=KINDS),
        decomposition.typed,
        name=f"decompose-{decomposition.op}-of-{decomposition.types}",
        note=_NOTES.get(decomposition.op, ""),
    )
