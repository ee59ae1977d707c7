"""The rows of all families: what each StableHLO op is among TensorFlow's. Rare ones are loaded for their ops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tfconvert.converter.from_stablehlo import (
    composites,
    convolutions,
    elementwise,
    products,
    reductions,
    shaping,
    windows,
)
from tfconvert.converter.from_stablehlo.raised_op import RaisedOp, Rows
from tfconvert.converter.rewrite.lazy_table import LazyModule, LazyTable

_COMMON: Rows = {
    **composites.ROWS,
    **convolutions.ROWS,
    **elementwise.ROWS,
    **products.ROWS,
    **reductions.ROWS,
    **shaping.ROWS,
    **windows.ROWS,
}

_RARE = LazyTable(
    "tfconvert.converter.from_stablehlo",
    "",
    (
        LazyModule(
            "devices",
            "@SPMDFullToShardShape @SPMDShardToFullShape @Sharding @local_xla.sdy.GlobalToLocalShape "
            "@local_xla.sdy.LocalToGlobalShape @xla.sdy.FuncResultSharding @xla.sdy.GlobalToLocalShape "
            "@xla.sdy.LocalToGlobalShape @xla.sdy.PropagationBarrier @xla.sdy.ShardingGroup all_gather all_reduce "
            "all_to_all collective_broadcast collective_permute collective_reduce partition_id reduce_scatter "
            "replica_id",
        ),
        LazyModule("fourier", "fft"),
        LazyModule("indexing", "dynamic_gather dynamic_slice dynamic_update_slice gather"),
        LazyModule(
            "linear_algebra",
            "@lapack_sgeqrf_ffi @lapack_sgetrf_ffi @lapack_sorgqr_ffi @lapack_spotrf_ffi @lapack_strsm_ffi cholesky "
            "triangular_solve",
        ),
        LazyModule("normalizations", "batch_norm_grad batch_norm_inference batch_norm_training"),
        LazyModule("random_bits", "@stablehlo.dynamic_rng_bit_generator rng_bit_generator"),
        LazyModule("scattering", "scatter"),
        LazyModule("sorting", "@ApproxTopK @stablehlo.dynamic_top_k sort top_k topk"),
    ),
)

NAMES = frozenset(_COMMON) | frozenset(_RARE.by_op)
"""The StableHLO and CHLO ops that have a row, without their prefix."""


def row_of(name: str) -> Callable[[RaisedOp], Any] | None:
    """Returns the row of an op, by its name without the prefix."""
    found = _COMMON.get(name)
    if found is None and name in _RARE.by_op:
        (module,) = _RARE.load(_RARE.by_op[name])
        found = module.ROWS[name]
    return found
