"""Requirements of decompositions on an op besides its element type."""

from __future__ import annotations

from collections.abc import Callable

from tfconvert.schema.dialects import types
from tfconvert.schema.ir.operation import Operation

Requirement = Callable[[Operation], str | None]
"""Returns why an op can't be decomposed, `None` if it can."""


def rank_is_known(op: Operation) -> str | None:
    """The requirement that the first operand's rank is known."""
    return "the operand's rank is not known" if types.shape_of(op.operands[0].type) is None else None
