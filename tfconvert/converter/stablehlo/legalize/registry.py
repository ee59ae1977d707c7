"""All legalizations to StableHLO, put together from the families."""

from __future__ import annotations

from collections.abc import Mapping

from tfconvert.converter.stablehlo.legalize import (
    activations,
    complex_numbers,
    computed_sizes,
    diagonals,
    elementwise,
    gathering,
    products,
    rearranging,
    reductions,
    scans,
    segments,
    shaping,
    slicing,
    sorting,
    training,
    windows,
)
from tfconvert.converter.stablehlo.legalize.entry import Lowering

FAMILIES: Mapping[str, Mapping[str, Lowering]] = {
    "elementwise": elementwise.LOWERINGS,
    "activations": activations.LOWERINGS,
    "reductions": reductions.LOWERINGS,
    "shapes": shaping.LOWERINGS,
    "slices": slicing.LOWERINGS,
    "products": products.LOWERINGS,
    "windows": windows.LOWERINGS,
    "lookups": gathering.LOWERINGS,
    "scans": scans.LOWERINGS,
    "sorting": sorting.LOWERINGS,
    "segments": segments.LOWERINGS,
    "diagonals": diagonals.LOWERINGS,
    "complex numbers": complex_numbers.LOWERINGS,
    "training": training.LOWERINGS,
    "rearranging": rearranging.LOWERINGS,
    "computed sizes": computed_sizes.LOWERINGS,
}
"""The lowerings of each family, by the op's name in TensorFlow's registry."""

LOWERINGS: Mapping[str, Lowering] = {
    f"tf.{name}": lowering for family in FAMILIES.values() for name, lowering in family.items()
}
"""All of them, by the op's full name."""
