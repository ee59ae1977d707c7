"""The ops that are decomposed for StableHLO: those without a lowering."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from tfconvert.converter.rewrite.decompose import failure_of
from tfconvert.converter.targets.stablehlo.legalize.lowerings import LOWERINGS
from tfconvert.ops.index import MODULES
from tfconvert.ops.registry import decompositions, family
from tfconvert.schema.ir.operation import Operation

_INTEGERS = "i8 i16 i32 i64 ui8 ui16 ui32 ui64"
_FLOATS = "f16 bf16 f32 f64 complex<f32> complex<f64>"

KINDS: Mapping[str, str] = {"float": _FLOATS, "integer": _INTEGERS, "number": f"{_FLOATS} {_INTEGERS}"}
"""The element types that formulas are computed with."""


def families() -> Iterator[tuple[str, str]]:
    """Yields the ops that are decomposed, each with its family."""
    for module in MODULES:
        yield from ((op.name, module) for op in family(module) if op.decompose and f"tf.{op.name}" not in LOWERINGS)


def illegal(names: Iterable[str]) -> set[str]:
    """Returns those of some ops that are decomposed, without the dialect's prefix, which the given names have."""
    unknown = {name.removeprefix("tf.") for name in names if name.startswith("tf.") and name not in LOWERINGS}
    return {name for name in unknown if decompositions(name)}


def why_not(op: Operation) -> str | None:
    """Returns why an op was not decomposed, or `None` if its kind has no decomposition."""
    failures = [failure_of(each, op, KINDS) for each in decompositions(op.name.removeprefix("tf."))]
    return next((failure.reason for failure in failures if failure is not None), None)
