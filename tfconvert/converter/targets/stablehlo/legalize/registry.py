"""All legalizations to StableHLO, put together from the families."""

from __future__ import annotations

from collections.abc import Mapping

from tfconvert.converter.targets.stablehlo.legalize import (
    activations,
    blocks,
    complex_numbers,
    computed_sizes,
    convolutions,
    crops,
    diagonals,
    distributions,
    elementwise,
    gathering,
    linear_algebra,
    normalization,
    padding,
    pooling,
    products,
    quantizing,
    ragged,
    random,
    rearranging,
    reductions,
    resampling,
    resize,
    scans,
    segments,
    shaping,
    slicing,
    sorting,
    sparse,
    splitting,
    suppression,
    training,
)
from tfconvert.converter.targets.stablehlo.legalize.entry import Lowering

FAMILIES: Mapping[str, Mapping[str, Lowering]] = {
    "elementwise": elementwise.LOWERINGS,
    "activations": activations.LOWERINGS,
    "reductions": reductions.LOWERINGS,
    "shapes": shaping.LOWERINGS,
    "slices": slicing.LOWERINGS,
    "splits": splitting.LOWERINGS,
    "products": products.LOWERINGS,
    "convolutions": convolutions.LOWERINGS,
    "poolings": pooling.LOWERINGS,
    "normalizations": normalization.LOWERINGS,
    "blocks": blocks.LOWERINGS,
    "padding": padding.LOWERINGS,
    "resizing": resize.LOWERINGS,
    "resampling": resampling.LOWERINGS,
    "crops": crops.LOWERINGS,
    "suppression": suppression.LOWERINGS,
    "fake quantization": quantizing.LOWERINGS,
    "lookups": gathering.LOWERINGS,
    "scans": scans.LOWERINGS,
    "sorting": sorting.LOWERINGS,
    "segments": segments.LOWERINGS,
    "diagonals": diagonals.LOWERINGS,
    "complex numbers": complex_numbers.LOWERINGS,
    "training": training.LOWERINGS,
    "rearranging": rearranging.LOWERINGS,
    "computed sizes": computed_sizes.LOWERINGS,
    "ragged tensors": ragged.LOWERINGS,
    "sparse tensors": sparse.LOWERINGS,
    "random numbers": random.LOWERINGS,
    "distributions": distributions.LOWERINGS,
    "linear algebra": linear_algebra.LOWERINGS,
}
"""The lowerings of each family, by the op's name in TensorFlow's registry."""

LOWERINGS: Mapping[str, Lowering] = {
    f"tf.{name}": lowering for family in FAMILIES.values() for name, lowering in family.items()
}
"""All of them, by the op's full name."""
