"""The table of kernels, and the one way to call them; those that few networks need are in `uncommon.py`."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import numpy as np

from tfconvert.ops.kernels import (
    convolution,
    elementwise,
    indexing,
    layout,
    matmul,
    normalization,
    pooling,
    ragged,
    reduction,
    shape,
)
from tfconvert.ops.kernels.call import Array, Call, Kernel, Results
from tfconvert.ops.kernels.uncommon import BY_OP
from tfconvert.schema.diagnostics import error

COMMON: Mapping[str, Kernel] = {
    **convolution.KERNELS,
    **elementwise.KERNELS,
    **indexing.KERNELS,
    **layout.KERNELS,
    **matmul.KERNELS,
    **normalization.KERNELS,
    **pooling.KERNELS,
    **ragged.KERNELS,
    **reduction.KERNELS,
    **shape.KERNELS,
}
"""Op name -> kernel, of the ops that most networks are made of."""

WITHOUT: Mapping[str, str] = dict.fromkeys(
    ("Multinomial", "RandomStandardNormal", "RandomUniform"),
    "its numbers come from a generator whose state is TensorFlow's own; no others are right",
)
"""Ops that are converted but can't be computed here -> why."""


def kernel(op_name: str) -> Kernel | None:
    """Returns the kernel of an op by its name in TensorFlow's registry, `None` if there is none."""
    found = COMMON.get(op_name)
    return _uncommon(op_name) if found is None and op_name in BY_OP else found


def _uncommon(op_name: str) -> Kernel:
    kernels: Mapping[str, Kernel] = import_module(f"tfconvert.ops.kernels.{BY_OP[op_name]}").KERNELS
    return kernels[op_name]


def evaluate(call: Call) -> Results:
    """Computes an op.

    Args:
        call: The op with its operands' values, which are not written to. Results may be views of them.

    Returns:
        The results, a new or shared array each; never to be written to either.

    Raises:
        ConversionError: The op has no kernel (`no-reference-kernel`), its operands don't fit it or each other
            (`bad-operand`), or an integer is divided by zero (`integer-division-by-zero`).
    """
    function = kernel(call.op)
    if function is None:
        why = f": {WITHOUT[call.op]}" if call.op in WITHOUT else ""
        raise error("no-reference-kernel", f"the op has no reference kernel{why}", op=f"tf.{call.op}")
    return apply(function, call)


def apply(function: Kernel, call: Call) -> Results:
    """Computes an op by a kernel; as `evaluate`."""
    try:
        with np.errstate(all="ignore"):
            return tuple(map(_boxed, function(call)))
    except (ValueError, IndexError, TypeError, MemoryError, ArithmeticError) as problem:
        # numpy's own checks of shapes, axes and dtypes, and shapes that no machine has the memory for.
        raise call.bad(f"the operands don't fit: {problem}") from problem


def _boxed(value: Any) -> Array:
    """Returns a value as an array, where numpy has made a scalar of an array without dimensions."""
    if isinstance(value, np.ndarray):
        return value
    array = np.empty((), object if isinstance(value, bytes) else value.dtype)
    array[()] = value
    return array
