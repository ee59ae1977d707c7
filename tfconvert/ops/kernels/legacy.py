"""Ops that newer ones have replaced, where a function's body still has them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tfconvert.ops.call import Call, Kernel, Results, typed, wide
from tfconvert.ops.kernels import layout


def _sparse_product(call: Call) -> Results:
    """The operands may be halves; the result is not."""
    a, b = map(wide, call.inputs)
    left = a.T if call.flag("transpose_a") else a
    right = b.T if call.flag("transpose_b") else b
    return (typed(np.matmul(left, right), np.dtype(np.float32)),)


def _reverse(call: Call) -> Results:
    x, flags = call.inputs
    return (np.flip(x, tuple(int(axis) for axis in flags.nonzero()[0])),)


KERNELS: Mapping[str, Kernel] = {
    **{
        f"Batch{name}": layout.KERNELS[name]
        for name in ("MatrixBandPart", "MatrixDiag", "MatrixDiagPart", "MatrixSetDiag")
    },
    "Reverse": _reverse,
    "SparseMatMul": _sparse_product,
}
"""Op name -> kernel."""
