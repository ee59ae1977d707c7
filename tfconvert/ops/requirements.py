"""Requirements of decompositions on an op besides its element type."""

from __future__ import annotations

from collections.abc import Callable

from tfconvert.schema.dialects import tensor_data
from tfconvert.schema.ir.operation import Operation

Requirement = Callable[[Operation], str | None]
"""Returns why an op can't be decomposed, `None` if it can."""


def all_of(*requirements: Requirement) -> Requirement:
    """Returns the conjunction of requirements; the first one that isn't met gives the reason."""
    return lambda op: next((reason for each in requirements if (reason := each(op))), None)


def constant(index: int, what: str) -> Requirement:
    """Returns the requirement that an operand is a constant."""
    return lambda op: None if tensor_data.constant_of(op.operands[index]) is not None else f"{what} not a constant"


def rank_is_known(op: Operation) -> str | None:
    """The requirement that the first operand's rank is known."""
    return "the operand's rank is not known" if op.operands[0].shape is None else None


def only_batch_is_open(*operands: int) -> Requirement:
    """Returns the requirement that nothing but the batch of some operands and of the result is of unknown size."""

    def check(op: Operation) -> str | None:
        values = (*(op.operands[index] for index in operands), op.results[0])
        shapes = [value.shape for value in values]
        is_known = all(shape is not None and min(shape[1:], default=1) >= 0 for shape in shapes)
        return None if is_known else "only the batch may be of unknown size"

    return check
