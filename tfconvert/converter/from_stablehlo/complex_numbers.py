"""Complex numbers as their real and imaginary parts, with which LiteRT computes."""

from __future__ import annotations

from typing import Any

import numpy as np

from tfconvert.converter.ir.tensors import EmittedTensor
from tfconvert.schema.ir.operation import Operation


def parts(x: EmittedTensor) -> tuple[EmittedTensor, EmittedTensor]:
    """Returns the real and the imaginary part of complex numbers: what they were made of, if that is seen."""
    owner = x.value.owner
    if isinstance(owner, Operation) and owner.name == "tf.Complex":
        real, imaginary = (EmittedTensor(x.builder, operand, x.known) for operand in owner.operands)
        return real, imaginary
    return x.op("Real", x, Tout=real_dtype(x)), x.op("Imag", x, Tout=real_dtype(x))


def complex_of(real: EmittedTensor, imaginary: EmittedTensor) -> EmittedTensor:
    """Returns complex numbers of their parts."""
    dtype = np.dtype(np.complex128 if real.dtype == np.float64 else np.complex64)
    return real.op("Complex", real, imaginary, Tout=dtype)  # type: ignore[no-any-return]


def real_dtype(x: EmittedTensor) -> np.dtype[Any]:
    """Returns the type of the parts of complex numbers."""
    return np.dtype(np.float64 if x.dtype == np.complex128 else np.float32)
