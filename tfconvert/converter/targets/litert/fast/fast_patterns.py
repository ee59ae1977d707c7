"""All fast forms. A module is imported with the first op that one of its patterns needs.

`speed.tsv` has what each of them gains: the microseconds of the usual form and of the fast one for tensors of some
sizes, measured by `python -m benchmarks.form_speed` on an x86-64 processor with one thread.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from tfconvert.converter.rewrite.lazy_table import LazyModule, LazyTable
from tfconvert.converter.rewrite.pattern_set import PatternSet

# Those for all numbers, those for floats and 8-bit integers, those for floats, those for weights that stay floats, and
# those for what becomes integers.
_COMMON = (
    LazyModule("fast.narrowing", "gather gather_nd slice strided_slice"),
    LazyModule("fast.slices", "concatenation pack split_v strided_slice"),
    LazyModule("fast.borders", "mirror_pad resize_nearest_neighbor tile"),
    LazyModule("fast.groups", "mean sum"),
    LazyModule("fast.means", "mean"),
)
_BYTES = (LazyModule("fast.deconvolution", "transpose_conv"), LazyModule("fast.convolution_groups", "concatenation"))
_FLOATS = (
    *_BYTES,
    LazyModule("fast.masks", "select_v2"),
    LazyModule("fast.softmax", "l2_normalization log_softmax softmax squared_difference"),
    # Its patterns start at other ops, but all of them have a logarithm.
    LazyModule("fast.softplus", "log"),
)
# Its pattern starts at a sum, but of convolutions.
_WEIGHTS = LazyModule("fast.branches", "conv_2d depthwise_conv_2d")
_INTEGERS = LazyModule("fast.integers", "squared_difference")
_ROOTS = " ".join(module.ops for module in (*_COMMON, *_FLOATS, _WEIGHTS, _INTEGERS))
_RESHAPES = LazyModule("optimize.reshapes", _ROOTS)

_PACKAGE = "tfconvert.converter.targets.litert"
_FOR_INT16 = LazyTable(_PACKAGE, "tfl.", (*_COMMON, _INTEGERS, _RESHAPES))
_FOR_INT8 = LazyTable(_PACKAGE, "tfl.", (*_COMMON, *_BYTES, _INTEGERS, _RESHAPES))
_FOR_FLOATS = LazyTable(_PACKAGE, "tfl.", (*_COMMON, *_FLOATS, _RESHAPES))
_FOR_FLOAT_WEIGHTS = LazyTable(_PACKAGE, "tfl.", (*_COMMON, *_FLOATS, _WEIGHTS, _RESHAPES))

ROOTS = tuple(dict.fromkeys(f"tfl.{name}" for name in _ROOTS.split()))
"""The ops without which a module has nothing to rewrite."""


def patterns_for(
    names: Iterable[str], *, only_floats: bool, has_int16: bool = False, keeps_weights: bool = True
) -> PatternSet:
    """Returns the patterns that a module with ops of some names needs.

    Args:
        names: The names.
        only_floats: Whether no activations will become integers.
        has_int16: Whether they may become 16-bit integers.
        keeps_weights: Whether weights stay floats, where activations do.
    """
    if only_floats:
        table = _FOR_FLOAT_WEIGHTS if keeps_weights else _FOR_FLOATS
    else:
        table = _FOR_INT16 if has_int16 else _FOR_INT8
    return _patterns(table, table.needed(names))


@cache
def _patterns(table: LazyTable, modules: frozenset[LazyModule]) -> PatternSet:
    return PatternSet(pattern for file in table.load(modules) for pattern in file.PATTERNS)
