"""The rewrites for accelerators: which module has those of an operator. A module is imported with the first such op.

A module has its rewrites in `PATTERNS`: each starts at one operator, and is tried if an accelerator does not take it.
"""

from __future__ import annotations

from functools import cache

from tfconvert.converter.rewrite.lazy_table import LazyModule, LazyTable
from tfconvert.converter.rewrite.pattern_set import PatternSet

# In the order in which rewrites of one operator and one benefit are tried.
_MODULES = (LazyModule("numbers", "cast"), LazyModule("ranks", "broadcast_to reshape squeeze expand_dims transpose"))

_TABLE = LazyTable("tfconvert.converter.targets.litert.accelerators", "tfl.", _MODULES)


def patterns_for(name: str) -> PatternSet:
    """Returns the rewrites that may start at an op.

    Args:
        name: The op's full name.
    """
    return _patterns(_TABLE.by_op.get(name, frozenset()))


@cache
def _patterns(modules: frozenset[LazyModule]) -> PatternSet:
    return PatternSet(pattern for file in _TABLE.load(modules) for pattern in file.PATTERNS)
