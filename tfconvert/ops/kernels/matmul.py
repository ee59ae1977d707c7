"""Products of matrices and tensors, and adding a bias."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tfconvert.ops.call import Array, Call, Kernel, Results, typed, wide


def _adjoint(x: Array) -> Array:
    return np.asarray(np.conj(np.swapaxes(x, -1, -2)) if x.dtype.kind == "c" else np.swapaxes(x, -1, -2))


def _mat_mul(call: Call) -> Results:
    a, b = call.inputs
    left = wide(a).T if call.flag("transpose_a") else wide(a)
    right = wide(b).T if call.flag("transpose_b") else wide(b)
    return (typed(np.matmul(left, right), a.dtype),)


def _batch_mat_mul(call: Call) -> Results:
    x, y = call.inputs
    left = _adjoint(wide(x)) if call.flag("adj_x") else wide(x)
    right = _adjoint(wide(y)) if call.flag("adj_y") else wide(y)
    dtype = call.dtype("Tout", x.dtype) if call.op == "BatchMatMulV3" else x.dtype
    if dtype.itemsize > left.dtype.itemsize:
        left, right = left.astype(dtype), right.astype(dtype)
    return (typed(np.matmul(left, right), dtype),)


def _einsum(call: Call) -> Results:
    dtype = call.inputs[0].dtype
    # Contracting pairwise goes through BLAS; a sum over three or more operands at once would not.
    result = np.einsum(call.text("equation"), *map(wide, call.inputs), optimize=True)
    return (np.ascontiguousarray(typed(result, dtype)).reshape(result.shape),)


def _bias_add(call: Call) -> Results:
    value, bias = call.inputs
    if call.text("data_format", "NHWC").startswith("NC") and value.ndim > 2:
        bias = bias.reshape(-1, *[1] * (value.ndim - 2))
    return (typed(value + bias, value.dtype),)


def _cross(call: Call) -> Results:
    a, b = call.inputs
    return (typed(np.cross(a, b), a.dtype),)


KERNELS: Mapping[str, Kernel] = {
    "BatchMatMul": _batch_mat_mul,
    "BatchMatMulV2": _batch_mat_mul,
    "BatchMatMulV3": _batch_mat_mul,
    "BiasAdd": _bias_add,
    "BiasAddV1": _bias_add,
    "Cross": _cross,
    "Einsum": _einsum,
    "MatMul": _mat_mul,
}
"""Op name -> kernel."""
