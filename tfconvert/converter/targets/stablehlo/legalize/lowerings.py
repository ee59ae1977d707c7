"""All legalizations to StableHLO, put together from the families."""

from __future__ import annotations

from collections.abc import Mapping

from tfconvert.converter.targets.stablehlo.legalize import (
    activations,
    complex_numbers,
    computed_sizes,
    crops,
    diagonals,
    elementwise,
    gathering,
    linear_algebra,
    normalization,
    quantizing,
    random,
    rearranging,
    reductions,
    resampling,
    resize,
    scans,
    shaping,
    slicing,
    sorting,
    sparse,
    suppression,
    training,
    windows,
)
from tfconvert.converter.targets.stablehlo.legalize.entry import Rewrite

FAMILIES: Mapping[str, Mapping[str, Rewrite]] = {
    "elementwise": elementwise.LOWERINGS,
    "activations": activations.LOWERINGS,
    "reductions": reductions.REDUCTIONS,
    "shapes": shaping.LOWERINGS,
    "slices": slicing.SLICES,
    "splits": slicing.SPLITS,
    "products": linear_algebra.PRODUCTS,
    "convolutions": windows.CONVOLUTIONS,
    "poolings": windows.POOLINGS,
    "normalizations": normalization.LOWERINGS,
    "blocks": rearranging.BLOCKS,
    "padding": windows.PADDINGS,
    "resizing": resize.LOWERINGS,
    "resampling": resampling.LOWERINGS,
    "crops": crops.LOWERINGS,
    "suppression": suppression.LOWERINGS,
    "fake quantization": quantizing.LOWERINGS,
    "lookups": gathering.LOWERINGS,
    "scans": scans.LOWERINGS,
    "sorting": sorting.LOWERINGS,
    "segments": reductions.SEGMENTS,
    "diagonals": diagonals.LOWERINGS,
    "complex numbers": complex_numbers.LOWERINGS,
    "training": training.LOWERINGS,
    "rearranging": rearranging.REARRANGEMENTS,
    "computed sizes": computed_sizes.LOWERINGS,
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
