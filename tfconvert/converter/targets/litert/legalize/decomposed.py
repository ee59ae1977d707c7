"""The ops that are decomposed for LiteRT, and their replacements."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

from tfconvert.converter.ir.tensors import expand
from tfconvert.converter.rewrite.decompose import emitted_ops, failure_of
from tfconvert.converter.targets.litert.legalize.entry import Lowering
from tfconvert.ops.declaration import Decomposition
from tfconvert.ops.index import MODULES
from tfconvert.ops.registry import family

# Ops that kernels compute, if not with all types.
_OWN = frozenset[str]()

KINDS: Mapping[str, str] = {"float": "f32", "integer": "i32 i64", "number": "f32 i32 i64"}
"""The element types that formulas are computed with."""

# The note for models that test for such numbers. The kernels' results are in their table, as `special`.
_SPECIALS = (
    "before it, LiteRT's kernels may make something else of infinite numbers and NaN than TensorFlow's: convolutions, "
    "matrix products, extremes, pooling, sorting and resizing do"
)
_NOTES: Mapping[str, str] = {
    **dict.fromkeys(("MulNoNan", "IsNan", "IsInf", "IsFinite"), _SPECIALS),
    "StatelessMultinomial": "where the number that is drawn is closer to the bound of a class than floats resolve, the "
    "neighbouring class may be returned; TensorFlow computes with doubles",
    "MaxPoolWithArgmax": "where all of a window is minus infinity or NaN, the place that is reported may be another",
}


def lowerings(module: str) -> list[Lowering]:
    """Returns the entries of a family's decompositions, whose ops are legalized next."""
    return [_lowering(op.name, each) for op in family(module) if op.name not in _OWN for each in op.decompose]


def _lowering(name: str, decomposition: Decomposition) -> Lowering:
    return Lowering(
        name,
        "",
        partial(expand, decomposition.formula),
        decomposition.takes(KINDS),
        partial(failure_of, decomposition, kinds=KINDS),
        decomposition.typed,
        name=f"decompose-{name}-of-{decomposition.types}",
        note=_NOTES.get(name, ""),
    )


def entries() -> Iterator[tuple[Lowering, str]]:
    """Yields all entries with the ops that they become, by family."""
    for module in MODULES:
        for op in family(module):
            for each in op.decompose if op.name not in _OWN else ():
                yield _lowering(op.name, each), " ".join(emitted_ops(op.name, each, KINDS))
