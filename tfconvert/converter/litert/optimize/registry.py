"""All patterns of the optimizer, family by family; those that few networks need are in `uncommon.py`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from importlib import import_module
from typing import Any

from tfconvert.converter.litert.optimize import (
    activations,
    arithmetic,
    bidirectional,
    broadcasts,
    depthwise,
    dilation,
    fake_quantized,
    fold_bias,
    fold_constants,
    fold_input,
    fold_scale,
    fuse_activation,
    hoist_over_reshape,
    identities,
    layer_normalization,
    normalization,
    over_reshapes,
    pads,
    products,
    reductions,
    reshapes,
    slices,
    transpose_motion,
    transposes,
)
from tfconvert.converter.litert.optimize.uncommon import BY_OP, FAMILIES, Family
from tfconvert.converter.rewrite.pattern import Pattern
from tfconvert.converter.rewrite.pattern_set import PatternSet


def patterns() -> PatternSet:
    """Returns all patterns, ready for the driver."""
    return _patterns(frozenset(FAMILIES))


def patterns_for(names: Iterable[str]) -> PatternSet:
    """Returns the patterns that a module with ops of some names needs: the common ones and those of some families."""
    return _patterns(frozenset().union(*(BY_OP[name] for name in names if name in BY_OP)))


def _file(family: Family) -> Sequence[Pattern[Any]]:
    """Returns the patterns in a family's file, which may be loaded for that."""
    found: Sequence[Pattern[Any]] = import_module(f"tfconvert.converter.litert.optimize.{family.module}").PATTERNS
    return found


@cache
def _patterns(families: frozenset[Family]) -> PatternSet:
    return PatternSet([
        *fold_bias.PATTERNS,
        *fold_scale.PATTERNS,
        *fold_input.PATTERNS,
        *fuse_activation.PATTERNS,
        *activations.PATTERNS,
        *arithmetic.PATTERNS,
        *broadcasts.PATTERNS,
        *depthwise.PATTERNS,
        *pads.PATTERNS,
        *products.PATTERNS,
        *dilation.PATTERNS,
        *reshapes.PATTERNS,
        *fake_quantized.PATTERNS,
        *transposes.PATTERNS,
        *transpose_motion.PATTERNS,
        *identities.PATTERNS,
        *layer_normalization.PATTERNS,
        *normalization.PATTERNS,
        *reductions.PATTERNS,
        *hoist_over_reshape.PATTERNS,
        *over_reshapes.PATTERNS,
        *bidirectional.PATTERNS,
        *slices.PATTERNS,
        *fold_constants.PATTERNS,
        *(pattern for family in FAMILIES if family in families for pattern in _file(family)),
    ])  # fmt: skip
