"""Functions of LiteRT's operators that no single op of TensorFlow computes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tfconvert.converter.executor import litert_layout
from tfconvert.ops import registry
from tfconvert.ops.call import Call, Function, Kernel, Results, typed
from tfconvert.ops.recurrent import ACTIVATIONS

# The least norm that LiteRT divides by.
_MIN_NORM = np.float32(1e-6)


def _l2_normalization(call: Call) -> Results:
    (x,) = call.inputs
    norm = np.sqrt(np.sum(np.square(x), -1, keepdims=True))
    return (x / np.maximum(norm, _MIN_NORM),)


def _l2_pool(call: Call) -> Results:
    """Runs `tfl.l2_pool_2d`: the root of the mean of squares."""
    squares = call._replace(op="AvgPool", inputs=(np.square(call.inputs[0]),))
    return (np.sqrt(registry.evaluate(litert_layout.pool(squares))[0]),)


def _prelu(call: Call) -> Results:
    x, alpha = call.inputs
    return (np.where(x >= 0, x, x * alpha),)


def _unary(function: Function) -> Kernel:
    def kernel(call: Call) -> Results:
        (x,) = call.inputs
        return (typed(function(x), x.dtype),)

    return kernel


KERNELS: Mapping[str, Kernel] = {
    "hard_swish": _unary(lambda x: x * np.clip(x + 3, 0, 6) / 6),
    "l2_normalization": _l2_normalization,
    "l2_pool_2d": _l2_pool,
    "prelu": _prelu,
    "relu_0_to_1": _unary(lambda x: np.clip(x, 0, 1)),
    "relu_n1_to_1": _unary(ACTIVATIONS["RELU_N1_TO_1"]),
}
"""Operator -> kernel."""
