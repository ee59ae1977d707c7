"""Folds ops whose operands are all small constants, with the reference kernels of LiteRT's operators.

    gather([1, 2, 3], [2, 0])  ->  [3, 1]

TensorFlow's ops were folded before their lowering; these ops come from `.tflite` files and from other patterns.
Products, convolutions and large results are not folded.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tfconvert.converter.rewrite.pattern import Declined, Pattern, need
from tfconvert.converter.targets.litert.forms.form import Emit, planned
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.dialects import tensor_data, types
from tfconvert.schema.dialects.tensor_data import Array
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.limits import budget
from tfconvert.schema.tflite import operators

FOLDED = sorted(operators.elementwise(1, 2, 3) | operators.having("linear").keys())
"""Ops that cost no more than their operands' and results' sizes."""


def _computed(op: Operation) -> Emit:
    constants = [tensor_data.constant_of(operand) for operand in op.operands]
    need(None not in constants, "an operand is computed")
    total, results = sum(_size(operand.type) for operand in op.operands), [_size(result.type) for result in op.results]
    is_small = max(total, sum(results)) <= tensor_data.MAX_FOLDED_BYTES and min(results) >= 0
    need(is_small, "it is too large, or its size is unknown")
    can_fold = budget().can_fold(op.name, sum(results), total, total + sum(results))
    need(can_fold, "the conversion may not compute so much")
    arrays = _evaluated(op, [tensor_data.to_array(constant) for constant in constants if constant is not None])
    return lambda build: [build.derived(array, *op.operands) for array in arrays]


def _size(kind: Any) -> int:
    """Returns a tensor's size in bytes; minus infinity if it is unknown, or the elements aren't numbers."""
    dims, row = types.shape_of(kind), types.from_mlir(types.element_of(kind))
    if dims is None or not types.is_static(dims) or row is None or row.dtype.kind == "O":
        return -1 << 62
    return math.prod(dims) * row.dtype.itemsize


def _evaluated(op: Operation, operands: Sequence[Array]) -> Sequence[Array]:
    from tfconvert.converter.executor import litert_ops  # few models have anything to compute

    try:
        results: Sequence[Array] = litert_ops.evaluate(op, tuple(operands))
    except ConversionError as problem:
        raise Declined(f"it can't be computed: {problem.diagnostics[0].message}") from problem
    need(len(results) == len(op.results), "its number of results doesn't match its options")
    for value, array in zip(op.results, results, strict=True):
        row = types.from_mlir(value.element)
        is_declared = array.shape == value.shape and row is not None and array.dtype == row.dtype
        need(is_declared, "its result has another type than is declared")
    return results


def _data(name: str) -> int:
    return 1 if name in ("split", "scatter_nd") else 0


PATTERNS: tuple[Pattern[Any], ...] = tuple(
    planned(f"computed-{name.replace('_', '-')}", name, _computed, 28, producers={_data(name): ("tfl.pseudo_const",)})
    for name in FOLDED
)
