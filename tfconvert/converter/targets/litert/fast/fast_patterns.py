"""All fast forms. A module is imported with the first op that one of its patterns needs.

`speed.tsv` has what each of them gains: the microseconds of the usual form and of the fast one for tensors of some
sizes, measured by `python -m benchmarks.form_speed` on an x86-64 processor with one thread.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from tfconvert.converter.rewrite.lazy_table import LazyModule, LazyTable
from tfconvert.converter.rewrite.pattern_set import PatternSet

# Those for all numbers, those for floats and 8-bit integers, those for floats, and those for what becomes integers.
_COMMON = (
    LazyModule("fast.narrowing", "slice strided_slice"),
    LazyModule("fast.slices", "pack split_v strided_slice"),
    LazyModule("fast.borders", "mirror_pad resize_nearest_neighbor tile"),
    LazyModule("fast.groups", "mean sum"),
)
_BYTES = LazyModule("fast.deconvolution", "transpose_conv")
_SCATTERS = (
    LazyModule("fast.scatters", "equal gather unsorted_segment_max"),
    LazyModule(
        "fast.segments",
        "scatter_nd unsorted_segment_max unsorted_segment_min unsorted_segment_prod unsorted_segment_sum",
    ),
)
_FLOATS = (
    _BYTES,
    LazyModule("fast.broadcasts", "broadcast_to"),
    LazyModule("fast.masks", "select_v2"),
    *_SCATTERS,
    LazyModule("fast.softmax", "log_softmax softmax"),
)
_INTEGERS = LazyModule("fast.integers", "squared_difference")
_ROOTS = " ".join(module.ops for module in (*_COMMON, *_FLOATS, _INTEGERS))
_RESHAPES = LazyModule("optimize.reshapes", _ROOTS)

_PACKAGE = "tfconvert.converter.targets.litert"
_FOR_INT16 = LazyTable(_PACKAGE, "tfl.", (*_COMMON, _INTEGERS, _RESHAPES))
_FOR_INT8 = LazyTable(_PACKAGE, "tfl.", (*_COMMON, _BYTES, _INTEGERS, _RESHAPES))
_FOR_FLOATS = LazyTable(_PACKAGE, "tfl.", (*_COMMON, *_FLOATS, _RESHAPES))

ROOTS = tuple(dict.fromkeys(f"tfl.{name}" for name in _ROOTS.split()))
"""The ops without which a module has nothing to rewrite."""


SCATTER_RELEASE = (2, 16)
"""The first release of the runtime whose `STABLEHLO_SCATTER` combines elements with updates."""

# The start of the names of the patterns that insert it.
_SCATTER = "scatter-"


def patterns_for(
    names: Iterable[str], *, only_floats: bool, has_int16: bool = False, has_scatter: bool = True
) -> PatternSet:
    """Returns the patterns that a module with ops of some names needs.

    Args:
        names: The names.
        only_floats: Whether no activations will become integers.
        has_int16: Whether they may become 16-bit integers.
        has_scatter: Whether the runtime has `STABLEHLO_SCATTER`.
    """
    table = _FOR_FLOATS if only_floats else _FOR_INT16 if has_int16 else _FOR_INT8
    return _patterns(table, table.needed(names), has_scatter)


@cache
def _patterns(table: LazyTable, modules: frozenset[LazyModule], has_scatter: bool) -> PatternSet:
    found = [pattern for file in table.load(modules) for pattern in file.PATTERNS]
    return PatternSet(each for each in found if has_scatter or not each.name.startswith(_SCATTER))
