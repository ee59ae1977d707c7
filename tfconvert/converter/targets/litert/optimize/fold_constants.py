"""Folds ops whose operands are all small constants, with the reference kernels of LiteRT's operators.

    gather([1, 2, 3], [2, 0])  ->  [3, 1]

TensorFlow's ops were folded before their lowering; these ops come from `.tflite` files and from other patterns.
Products, convolutions and large results are not folded.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tfconvert.converter.rewrite.pattern import Failure, Pattern
from tfconvert.converter.rewrite.rewriter import Rewriter
from tfconvert.converter.targets.litert.optimize import matching
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.dialects import tensor_data, tfl, types
from tfconvert.schema.dialects.tensor_data import Array
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.limits import budget
from tfconvert.schema.tflite import operators

FOLDED = sorted(operators.elementwise(1, 2, 3) | operators.having("linear").keys())
"""Ops that cost no more than their operands' and results' sizes."""


def _match(op: Operation) -> Sequence[Array] | Failure:
    total, arrays = 0, []
    for operand in op.operands:
        constant = tensor_data.constant_of(operand)
        if constant is None:
            return Failure("an operand is computed")
        total += _size(operand.type)
        arrays.append(constant)
    results = [_size(result.type) for result in op.results]
    if max(total, sum(results)) > tensor_data.MAX_FOLDED_BYTES or min(results) < 0:
        return Failure("it is too large, or its size is unknown")
    elements = total + sum(results)
    if not budget().can_fold(op.name, sum(results), total, elements):
        return Failure("the conversion may not compute so much")
    return _evaluated(op, [tensor_data.to_array(constant) for constant in arrays])


def _size(kind: Any) -> int:
    """Returns a tensor's size in bytes; minus infinity if it is unknown, or the elements aren't numbers."""
    dims, row = types.shape_of(kind), types.from_mlir(types.element_of(kind))
    if dims is None or not types.is_static(dims) or row is None or row.dtype.kind == "O":
        return -1 << 62
    return math.prod(dims) * row.dtype.itemsize


def _evaluated(op: Operation, operands: Sequence[Array]) -> Sequence[Array] | Failure:
    from tfconvert.converter.executor import litert_ops  # few models have anything to compute

    try:
        results: Sequence[Array] = litert_ops.evaluate(op, tuple(operands))
    except ConversionError as problem:
        return Failure(f"it can't be computed: {problem.diagnostics[0].message}")
    if len(results) != len(op.results):
        return Failure("its number of results doesn't match its options")
    for value, array in zip(op.results, results, strict=True):
        row = types.from_mlir(value.element)
        if array.shape != value.shape or row is None or array.dtype != row.dtype:
            return Failure("its result has another type than is declared")
    return results


def _rewrite(op: Operation, match: Sequence[Array], rewriter: Rewriter) -> None:
    rewriter.replace([matching.insert_constant(rewriter, array, *op.operands) for array in match])


def _data(name: str) -> int:
    return 1 if name in ("split", "scatter_nd") else 0


PATTERNS: tuple[Pattern[Any], ...] = tuple(
    Pattern(
        f"computed-{name.replace('_', '-')}",
        f"{tfl.PREFIX}{name}",
        _match,
        _rewrite,
        benefit=28,
        producers={_data(name): ("tfl.pseudo_const",)},
    )
    for name in FOLDED
)
