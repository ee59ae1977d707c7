"""Complex numbers as their real and imaginary parts, with which LiteRT computes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tfconvert.converter.from_stablehlo.raised_op import RaisedOp
from tfconvert.converter.ir.tensors import EmittedTensor
from tfconvert.ops.complex_numbers import complex_of, is_made, parts

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
    if not given or len(raised.op.results) != 1 or (name in _BY_KNOWN_PARTS and not all(map(is_made, given))):
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
