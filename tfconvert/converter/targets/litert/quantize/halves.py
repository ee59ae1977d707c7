"""Constants as 16-bit floats, from which operators get 32-bit floats by a `DEQUANTIZE`."""

from __future__ import annotations

from tfconvert.converter.targets.litert.quantize.exclusion import Exclusion
from tfconvert.converter.targets.litert.quantize.hybrid import is_float_constant, size_of
from tfconvert.converter.targets.litert.quantize.stored import HALF, StoredConstants
from tfconvert.schema.dialects import tfl
from tfconvert.schema.ir.block import Block
from tfconvert.schema.ir.values import Use

MIN_ELEMENTS = 64
"""Constants of fewer elements stay 32-bit floats: they would save less than the operator and its tensor take."""


def store_halves(block: Block, exclusion: Exclusion, stored: StoredConstants) -> None:
    """Makes the constants of a block 16-bit floats where operators use them.

    Args:
        block: The block.
        exclusion: The operators whose constants stay as they are.
        stored: Makes the constants.
    """
    for op in tuple(block.ops):
        if op.name != f"{tfl.PREFIX}{tfl.PSEUDO_CONST}":
            continue
        value = op.results[0]
        if not is_float_constant(value) or size_of(value) < MIN_ELEMENTS:
            continue
        uses = [use for use in value.uses if _can_take_floats(use) and not exclusion.excludes(use.operation)]
        if uses and stored.can_be(value, HALF, uses[-1].operation):
            new = stored.get(value, HALF)
            for use in uses:
                use.operation.set_operand(use.index, new)


def _can_take_floats(use: Use) -> bool:
    """Returns whether an operand may be computed: a state's initial value, and what a custom kernel takes, may not."""
    user = use.operation
    operator = user.operator if isinstance(user, tfl.TFLOp) and user.op_name != tfl.CUSTOM else None
    return operator is not None and use.index not in operator.variables
