"""Notes on operators whose kernels may differ from TensorFlow for some numbers or sizes.

Differences that depend on numbers at run time are no errors: most models never have such numbers. There is one note for
all operators of a kind, unless constants or shapes show that the difference can't occur.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import numpy as np

from tfconvert.schema.diagnostics import NOTE, Diagnostic
from tfconvert.schema.dialects import tensor_data, tfl, types
from tfconvert.schema.dialects.locations import node_of
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

CODE = "runtime-difference"


class KernelDifference(NamedTuple):
    """A difference between a kernel of the runtime and TensorFlow's."""

    may_occur: Callable[[Operation], bool]  # Returns whether it may occur for an operator.
    message: str  # Its description.
    hint: str = ""  # How to avoid it, or an empty string.


def _may_divide_by_zero(op: Operation) -> bool:
    divisor = _known(op.operands[1])
    return _is_float(op.operands[0]) and (divisor is None or not divisor.all())


def _may_overflow(op: Operation) -> bool:
    return op.operands[0].element == types.I32


def _may_have_larger_window(op: Operation) -> bool:
    """Returns whether an image may be smaller than the window; XNNPACK assumes that one window fits."""
    shape = op.operands[0].shape
    return tfl.attribute(op, "padding") == "VALID" and any(
        dim < 0 and tfl.attribute(op, f"filter_{name}") > 1
        for dim, name in zip((shape or (-1,) * 4)[1:3], ("height", "width"), strict=True)
    )


def _has_unknown_rank(op: Operation) -> bool:
    return any(operand.shape is None for operand in op.operands)


def _is_float(value: Value) -> bool:
    row = types.from_mlir(value.element)
    return row is not None and row.dtype.kind in "fV"


def _known(value: Value) -> np.ndarray[tuple[int, ...], np.dtype[np.generic]] | None:
    """Returns the elements of a small constant, or `None`."""
    constant = tensor_data.constant_of(value)
    return None if constant is None or not tensor_data.is_small(constant) else tensor_data.to_array(constant)


DIFFERENCES: Mapping[str, KernelDifference] = {
    "tfl.floor_div": KernelDifference(
        _may_divide_by_zero,
        "LiteRT stops with an error where a divisor is zero; TensorFlow's result is infinite there, or no number",
        "make sure that divisors are not zero, or take the floor of a true division",
    ),
    "tfl.pow": KernelDifference(
        _may_overflow, "powers that don't fit 32 bits are cut off; TensorFlow takes their low bits"
    ),
    **dict.fromkeys(
        ("tfl.average_pool_2d", "tfl.max_pool_2d"),
        KernelDifference(
            _may_have_larger_window,
            "an image smaller than the window gives a result all the same; TensorFlow's has no elements",
        ),
    ),
    **dict.fromkeys(
        ("tfl.non_max_suppression_v4", "tfl.non_max_suppression_v5"),
        KernelDifference(
            lambda op: True,
            "boxes with equal scores are chosen in another order than TensorFlow's, so that others of them may be left",
        ),
    ),
    "tfl.select_v2": KernelDifference(
        _has_unknown_rank,
        "the ranks of its operands are not known, so LiteRT may drop dimensions of one element",
        "declare the shapes of the inputs",
    ),
    "tfl.where": KernelDifference(
        lambda op: True, "its result has no elements if no condition holds, which some of LiteRT's kernels refuse"
    ),
    "tfl.pseudo_const": KernelDifference(
        lambda op: True,  # The pass has checked the condition.
        "the model computes with infinite numbers or NaNs; some of LiteRT's kernels, such as those that "
        "choose the largest number or convolve, treat them otherwise than TensorFlow's",
    ),
}
"""Differences by operator."""


def notes(ops: Iterable[Operation]) -> list[Diagnostic]:
    """Returns a note for each kind of op that may differ; it names the first node.

    Args:
        ops: Ops of `NOTED`; of the constants those that are not finite.
    """
    found: dict[str, Operation] = {}
    for op in ops:
        if op.name not in found and DIFFERENCES[op.name].may_occur(op):
            found[op.name] = op
    return [
        Diagnostic(
            CODE, DIFFERENCES[name].message, name, node_of(op.location), hint=DIFFERENCES[name].hint, severity=NOTE
        )
        for name, op in found.items()
    ]
