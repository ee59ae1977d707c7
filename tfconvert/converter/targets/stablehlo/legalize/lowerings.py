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
    "elementwise": elementwise.ELEMENTWISE,
    "activations": activations.ACTIVATIONS,
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
    "resizing": resize.RESIZING,
    "resampling": resampling.RESAMPLING,
    "crops": crops.CROPS,
    "suppression": suppression.LOWERINGS,
    "fake quantization": quantizing.LOWERINGS,
    "lookups": gathering.LOWERINGS,
    "scans": scans.SCANS,
    "sorting": sorting.SORTING,
    "segments": reductions.SEGMENTS,
    "diagonals": diagonals.DIAGONALS,
    "complex numbers": complex_numbers.COMPLEX_NUMBERS,
    "training": training.LOSSES,
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
