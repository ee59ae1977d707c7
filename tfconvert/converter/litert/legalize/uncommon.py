"""Legalizations of ops that few networks have: `registry.py` loads them when it meets such an op.

No op may stand here that `registry.py` has too, and none may that something is lowered to which stands there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tfconvert.converter.litert.legalize import (
    argmax_pooling,
    binning,
    colors,
    control_flow,
    cross_entropy,
    cross_product,
    diagonals,
    partition,
    patches,
    ragged,
    random,
    resample,
    roll,
    scatter,
    search,
    segments,
    sharded_tables,
    signal,
    sparse,
    strided_update,
    uniques,
)
from tfconvert.converter.litert.legalize.entry import Entry
from tfconvert.converter.rewrite.pattern import Pattern

TOPICS: Mapping[str, tuple[Entry, ...]] = {
    "losses": cross_entropy.ENTRIES,
    "rolling": roll.ENTRIES,
    "scattering": scatter.ENTRIES,
    "segments": segments.ENTRIES,
    "partitions": partition.ENTRIES,
    "diagonals": diagonals.ENTRIES,
    "sets": uniques.ENTRIES,
    "sparse tensors": sparse.ENTRIES,
    "ragged tensors": ragged.ENTRIES,
    "strided update": strided_update.ENTRIES,
    "colours": colors.ENTRIES,
    "sorted rows": search.ENTRIES,
    "cross product": cross_product.ENTRIES,
    "signal": signal.ENTRIES,
    "random": random.ENTRIES,
    "control flow": control_flow.ENTRIES,
    "counting": binning.ENTRIES,
    "pooling with places": argmax_pooling.ENTRIES,
    "resampling": (*resample.ENTRIES, *patches.ENTRIES),
}

FUSIONS: tuple[Pattern[Any], ...] = (*sharded_tables.PATTERNS, *sparse.PATTERNS)
