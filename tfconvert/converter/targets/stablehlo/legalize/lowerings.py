"""All legalizations to StableHLO, put together from the families."""

from __future__ import annotations

from collections.abc import Mapping

from tfconvert.converter.targets.stablehlo.legalize import (
    computed_sizes,
    elementwise,
    gathering,
    linear_algebra,
    normalization,
    random,
    rearranging,
    reductions,
    resizing,
    scans,
    shaping,
    slicing,
    sparse,
    suppression,
    windows,
)
from tfconvert.converter.targets.stablehlo.legalize.entry import Rewrite

FAMILIES: Mapping[str, Mapping[str, Rewrite]] = {
    "elementwise": elementwise.ELEMENTWISE,
    "activations": elementwise.ACTIVATIONS,
    "reductions": reductions.REDUCTIONS,
    "shapes": shaping.SHAPING,
    "slices": slicing.SLICES,
    "splits": slicing.SPLITS,
    "products": linear_algebra.PRODUCTS,
    "convolutions": windows.CONVOLUTIONS,
    "poolings": windows.POOLINGS,
    "normalizations": normalization.NORMALIZATIONS,
    "blocks": rearranging.BLOCKS,
    "padding": windows.PADDINGS,
    "resizing": resizing.RESIZING,
    "resampling": resizing.RESAMPLING,
    "crops": resizing.CROPS,
    "suppression": suppression.LOWERINGS,
    "lookups": gathering.LOWERINGS,
    "scans": scans.SCANS,
    "sorting": scans.SORTING,
    "segments": reductions.SEGMENTS,
    "diagonals": linear_algebra.DIAGONALS,
    "complex numbers": elementwise.COMPLEX_NUMBERS,
    "training": normalization.LOSSES,
    "rearranging": rearranging.REARRANGEMENTS,
    "computed sizes": computed_sizes.COMPUTED_SIZES,
    "ragged tensors": sparse.RAGGED,
    "sparse tensors": sparse.SPARSE,
    "random numbers": random.RANDOM_NUMBERS,
    "distributions": random.DISTRIBUTIONS,
    "linear algebra": linear_algebra.LINEAR_ALGEBRA,
}
"""The lowerings of each family, by the op's name in TensorFlow's registry."""

LOWERINGS: Mapping[str, Rewrite] = {
    f"tf.{name}": lowering for family in FAMILIES.values() for name, lowering in family.items()
}
"""All of them, by the op's full name."""
