"""All patterns that write such forms. A module is imported with the first op that one of its patterns needs."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from tfconvert.converter.rewrite.lazy_table import LazyModule, LazyTable
from tfconvert.converter.rewrite.pattern_set import PatternSet
from tfconvert.converter.targets.litert.forms.form import LONGER
from tfconvert.converter.targets.litert.optimize import reshapes

_BINARY = (
    "add div equal floor_div floor_mod greater greater_equal less less_equal logical_and logical_or maximum minimum "
    "mul not_equal pow squared_difference sub"
)

# In the order in which patterns of one root and one benefit are tried.
_MODULES = (
    LazyModule("slices", "concatenation fully_connected reverse_v2 strided_slice"),
    LazyModule("choices", "gather prelu select_v2"),
    LazyModule("ranks", "reduce_max reduce_min softmax tile transpose"),
    LazyModule("operands", _BINARY),
    LazyModule("numbers", "add_n broadcast_to cumsum mirror_pad neg pad padv2 transpose_conv"),
)

_TABLE = LazyTable("tfconvert.converter.targets.litert.forms", "tfl.", _MODULES)


def patterns_for(names: Iterable[str], *, only_floats: bool, is_longer: bool) -> PatternSet:
    """Returns the patterns that a module with ops of some names needs.

    Args:
        names: The names.
        only_floats: Whether no activations will become integers.
        is_longer: Whether they may add operators.
    """
    return _patterns(_TABLE.needed(names), only_floats, is_longer)


@cache
def _patterns(modules: frozenset[LazyModule], only_floats: bool, is_longer: bool) -> PatternSet:
    special = "OF_FLOATS" if only_floats else "OF_INTEGERS"
    files = _TABLE.load(modules)
    found = [pattern for file in files for pattern in (*file.PATTERNS, *getattr(file, special, ()))]
    found = [pattern for pattern in found if is_longer or pattern.name not in LONGER]
    return PatternSet([*found, *reshapes.PATTERNS] if found else ())
