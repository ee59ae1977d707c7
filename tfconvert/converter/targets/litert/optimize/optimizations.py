"""All patterns of the optimizer. A module is imported with the first op that one of its patterns needs."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from tfconvert.converter.rewrite.lazy_table import LazyModule, LazyTable
from tfconvert.converter.rewrite.pattern_set import PatternSet
from tfconvert.converter.targets.litert.rewrite_index import OPTIMIZATIONS

# In the order in which patterns of one root and one benefit are tried.
_MODULES = (
    "fold_into_weights",
    "activations",
    "arithmetic",
    "broadcasts",
    "pads",
    "products",
    "dilation",
    "reshapes",
    "fake_quantized",
    "transposes",
    "normalization",
    "reductions",
    "reshape_motion",
    "bidirectional",
    "slices",
    "fold_constants",
    "booleans",
    "one_hot",
    "rows",
    "simplifications",
)

_TABLE = LazyTable(
    "tfconvert.converter.targets.litert.optimize", "tfl.", (LazyModule(name, OPTIMIZATIONS[name]) for name in _MODULES)
)


def patterns() -> PatternSet:
    """Returns all patterns, ready for the driver."""
    return _patterns(frozenset(_TABLE.modules))


def patterns_for(names: Iterable[str]) -> PatternSet:
    """Returns the patterns that a module with ops of some names needs."""
    return _patterns(_TABLE.needed(names))


@cache
def _patterns(modules: frozenset[LazyModule]) -> PatternSet:
    return PatternSet(pattern for file in _TABLE.load(modules) for pattern in file.PATTERNS)
