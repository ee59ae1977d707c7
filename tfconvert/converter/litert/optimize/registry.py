"""All patterns of the optimizer, family by family."""

from __future__ import annotations

from functools import cache

from tfconvert.converter.litert.optimize import (
    activations,
    arithmetic,
    bidirectional,
    broadcasts,
    depthwise,
    dilation,
    fake_quantized,
    fold_bias,
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
from tfconvert.converter.rewrite.pattern_set import PatternSet


@cache
def patterns() -> PatternSet:
    """Returns the patterns, ready for the driver."""
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
    ])  # fmt: skip
