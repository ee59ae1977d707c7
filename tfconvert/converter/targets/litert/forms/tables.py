"""All forms: a module is imported with the first operator that `rewrite_index.py` has for it.

A module has its rewrites in `REWRITES`. Each starts at one operator. Those that say so are made by default, whatever a
file is for: they add no operator, and the CPU is at least as fast. The others are tried for the accelerators that are
named, if one of these does not take the operator. `FAST` and the like are patterns of forms that are faster on a
processor in the sizes for which they don't decline.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache

from tfconvert.converter.rewrite.lazy_table import LazyModule, LazyTable
from tfconvert.converter.rewrite.pattern_set import PatternSet
from tfconvert.converter.targets.litert.forms.form import Rewrite
from tfconvert.converter.targets.litert.optimize import reshapes
from tfconvert.converter.targets.litert.rewrite_index import BY_DEFAULT, FAST, REWRITES
from tfconvert.schema.dialects import tfl

_PACKAGE = "tfconvert.converter.targets.litert.forms"

# In the order in which rewrites of one operator and one benefit are tried.
_MODULES = (
    "operands",
    "slices",
    "repetition",
    "products",
    "convolution",
    "elementwise",
    "ranks",
    "indexing",
    "borders",
    "ranking",
    "formulas",
)

# A module, and the name of the patterns: of those for all numbers, for floats and 8-bit integers, for floats, for
# weights that stay floats, for those that become 8-bit integers, for those whose channels get scales of their own then,
# and for what becomes integers.
_FAST_MODULES = (
    ("narrowing", "FAST"),
    ("slices", "FAST"),
    ("repetition", "FAST"),
    ("borders", "FAST"),
    ("groups", "FAST"),
    ("means", "FAST"),
    ("convolution", "FAST_BYTES"),
    ("convolution_groups", "FAST_BYTES"),
    ("patches", "FAST_BYTES"),
    ("patches", "FAST_PRODUCTS"),
    ("branches", "FAST_WEIGHTS"),
    ("branches", "FAST_CHANNELS"),
    ("broadcasts", "FAST_FLOATS"),
    ("masks", "FAST_FLOATS"),
    ("scatters", "FAST_FLOATS"),
    ("segments", "FAST_FLOATS"),
    ("formulas", "FAST_FLOATS"),
    ("formulas", "FAST_INTEGERS"),
)

_FAST = LazyTable(
    _PACKAGE, tfl.PREFIX, (LazyModule(name, FAST[f"{name}.{title}"], title) for name, title in _FAST_MODULES)
)
_FLOATS = frozenset(("FAST", "FAST_BYTES", "FAST_FLOATS"))
_WEIGHTS = _FLOATS | {"FAST_WEIGHTS"}
_DYNAMIC = _FLOATS | {"FAST_PRODUCTS"}
_INT8 = frozenset(("FAST", "FAST_BYTES", "FAST_INTEGERS", "FAST_PRODUCTS"))
_INT16 = frozenset(("FAST", "FAST_INTEGERS"))

_DEFAULT = LazyTable(
    _PACKAGE, tfl.PREFIX, [LazyModule(name, BY_DEFAULT[name]) for name in _MODULES if BY_DEFAULT[name]]
)
_ALL = LazyTable(_PACKAGE, tfl.PREFIX, [LazyModule(name, REWRITES[name]) for name in _MODULES])

SCATTER_RELEASE = (2, 16)
"""The first release of the runtime whose `STABLEHLO_SCATTER` combines elements with updates."""

# The start of the names of the patterns that insert it.
_SCATTER = "scatter-"


def fast_forms(
    names: Iterable[str],
    *,
    only_floats: bool,
    has_int16: bool = False,
    keeps_weights: bool = True,
    per_channel: bool = True,
    has_scatter: bool = True,
) -> PatternSet:
    """Returns the patterns of faster forms that a module with ops of some names needs, and those that merge reshapes.

    `speed.tsv` has what each of them gains: the microseconds of the usual form and of the fast one for tensors of some
    sizes, measured by `python -m benchmarks.form_speed` on an x86-64 processor with one thread.

    Args:
        names: The names.
        only_floats: Whether no activations will become integers.
        has_int16: Whether they may become 16-bit integers.
        keeps_weights: Whether weights stay floats, where activations do.
        per_channel: Whether the channels of filters of 8-bit integers have scales of their own.
        has_scatter: Whether the runtime has `STABLEHLO_SCATTER`.
    """
    floats = _WEIGHTS if keeps_weights else _DYNAMIC
    kinds = floats if only_floats else _INT16 if has_int16 else _INT8
    if per_channel and "FAST_PRODUCTS" in kinds:
        kinds |= {"FAST_CHANNELS"}
    return _fast_forms(frozenset(row for row in _FAST.needed(names) if row.title in kinds), has_scatter)


@cache
def _fast_forms(needed: frozenset[LazyModule], has_scatter: bool) -> PatternSet:
    rows = [row for row in _FAST.modules if row in needed]
    found = [getattr(file, row.title) for row, file in zip(rows, _FAST.load(needed), strict=True)]
    patterns = [each for part in (*found, reshapes.PATTERNS if found else ()) for each in part]
    return PatternSet(each for each in patterns if has_scatter or not each.name.startswith(_SCATTER))


@cache
def rewrites_of(name: str) -> Sequence[Rewrite]:
    """Returns the rewrites that may start at an op, those with the highest benefit first.

    Args:
        name: The op's full name.
    """
    rows = [row for file in _ALL.load(_ALL.by_op.get(name, frozenset())) for row in file.REWRITES]
    return _by_benefit([row for row in rows if tfl.PREFIX + row.root == name])


def made_by_default(names: Iterable[str], *, is_for_gpu: bool = False) -> Mapping[str, Sequence[Rewrite]]:
    """Returns the rewrites that are made by default, by the op's full name.

    Args:
        names: The names of the ops that there are.
        is_for_gpu: Whether those only for GPUs are needed.
    """
    rows = _ALL if is_for_gpu else _DEFAULT
    return _made_by_default(rows, rows.needed(names))


@cache
def _made_by_default(rows: LazyTable, modules: frozenset[LazyModule]) -> Mapping[str, Sequence[Rewrite]]:
    found: dict[str, list[Rewrite]] = {}
    for file in rows.load(modules):
        for row in file.REWRITES:
            if row.default:
                found.setdefault(tfl.PREFIX + row.root, []).append(row)
    return {name: _by_benefit(rows) for name, rows in found.items()}


def _by_benefit(rows: Iterable[Rewrite]) -> Sequence[Rewrite]:
    return sorted(rows, key=lambda row: -row.benefit)
