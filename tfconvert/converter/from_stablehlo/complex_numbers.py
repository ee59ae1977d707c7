"""Complex numbers as their real and imaginary parts, with which LiteRT computes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tfconvert.converter.from_stablehlo.raised_op import RaisedOp
from tfconvert.converter.ir.tensors import EmittedTensor
from tfconvert.schema.dialects import tensor_data
from tfconvert.schema.ir.operation import Operation

# Ops that arrange or add up elements, which LiteRT does for real numbers.
_BY_PARTS = frozenset(
    (
        "dynamic_gather",
        "dynamic_pad",
        "dynamic_slice",
        "dynamic_update_slice",
        "gather",
        "pad",
        "reduce_window",
        "scatter",
    )
)

# Those that it also does for complex numbers: by parts where these are known, since making complex numbers is slow.
_BY_KNOWN_PARTS = frozenset(
    (
        "broadcast_in_dim",
        "dynamic_broadcast_in_dim",
        "dynamic_reshape",
        "real_dynamic_slice",
        "reshape",
        "reverse",
        "slice",
        "transpose",
    )
)

# The ops of bodies that combine parts with parts.
_LINEAR = frozenset(("stablehlo.add", "stablehlo.subtract"))


def is_by_parts(name: str, raised: RaisedOp) -> bool:
    """Returns whether an op does the same with the real and the imaginary parts.

    Args:
        name: Its name without the prefix.
        raised: The op.
    """
    if name not in _BY_PARTS and name not in _BY_KNOWN_PARTS:
        return False
    given = [each for each in raised.operands if each.dtype.kind == "c"]
    if not given or len(raised.op.results) != 1 or (name in _BY_KNOWN_PARTS and not all(map(_is_made, given))):
        return False
    return all(op.name in _LINEAR for region in raised.op.regions for op in region.block.ops if op.results)


def by_parts(row: Callable[[RaisedOp], Any]) -> Callable[[RaisedOp], EmittedTensor]:
    """Returns the row that does with the real and with the imaginary parts what another does with numbers."""

    def of_complex(raised: RaisedOp) -> EmittedTensor:
        pairs = [parts(each) if each.dtype.kind == "c" else (each, each) for each in raised.operands]
        found = [row(raised.of_parts([pair[index] for pair in pairs])) for index in (0, 1)]
        real, imaginary = (each if isinstance(each, EmittedTensor) else each[0] for each in found)
        return complex_of(real, imaginary)

    return of_complex


def _is_made(x: EmittedTensor) -> bool:
    owner = x.value.owner
    return isinstance(owner, Operation) and owner.name == "tf.Complex"


def parts(x: EmittedTensor) -> tuple[EmittedTensor, EmittedTensor]:
    """Returns the real and the imaginary part of complex numbers: what they were made of, if that is seen."""
    owner = x.value.owner
    if isinstance(owner, Operation) and owner.name == "tf.Complex":
        real, imaginary = (EmittedTensor(x.builder, operand, x.known) for operand in owner.operands)
        return real, imaginary
    constant = tensor_data.constant_of(x.value)
    if constant is not None and tensor_data.is_small(constant):
        array = tensor_data.to_array(constant)
        first, second = (x.builder.constant(each.copy()) for each in (array.real, array.imag))
        return EmittedTensor(x.builder, first, x.known), EmittedTensor(x.builder, second, x.known)
    return x.op("Real", x, Tout=real_dtype(x)), x.op("Imag", x, Tout=real_dtype(x))


def complex_of(real: EmittedTensor, imaginary: EmittedTensor) -> EmittedTensor:
    """Returns complex numbers of their parts."""
    dtype = np.dtype(np.complex128 if real.dtype == np.float64 else np.complex64)
    return real.op("Complex", real, imaginary, Tout=dtype)  # type: ignore[no-any-return]


def real_dtype(x: EmittedTensor) -> np.dtype[Any]:
    """Returns the type of the parts of complex numbers."""
    return np.dtype(np.float64 if x.dtype == np.complex128 else np.float32)
