"""The cost of folding an op: the multiply-adds beyond going through operands and results once."""

from __future__ import annotations

import math

import pytest

from tests.support.run_text import parse
from tfconvert.ops.cost import cost_of
from tfconvert.schema.dialects import tensor_data, types

A, B, C = "tensor<2x3xf32>", "tensor<3x4xf32>", "tensor<2x4xf32>"
CUBE, IMAGE, SMALLER = "tensor<5x2x3xf32>", "tensor<1x6x6x2xf32>", "tensor<1x3x3x2xf32>"
BOXES, SCORES, LIMIT = "tensor<7x4xf32>", "tensor<7xf32>", "tensor<i32>"
INDICES, VALUES, DENSE_SHAPE = "tensor<6x2xi64>", "tensor<6xf32>", "tensor<2xi64>"
POOL = 'ksize = [1, 2, 2, 1], strides = [1, 2, 2, 1], padding = "VALID"'

WORK = {
    "product": ("MatMul", "", (A, B), C, 2 * 3 * 4),
    "sum over labels": ("Einsum", 'equation = "ij,jk->ik"', (A, B), C, 2 * 3 * 4),
    "sum over labels of several": ("Einsum", 'equation = "bij,jk,ik->b"', (CUBE, B, C), "tensor<5xf32>", 5 * 2 * 3 * 4),
    "sum with an ellipsis": ("Einsum", 'equation = "...ij,jk->...ik"', (CUBE, B), "tensor<5x2x4xf32>", 30 * 12),
    "neighbours": ("LRN", "depth_radius = 3", (IMAGE,), IMAGE, 72 * 7),
    "neighbours by default": ("LRN", "", (IMAGE,), IMAGE, 72 * 11),
    "pool": ("MaxPool", POOL, (IMAGE,), SMALLER, 18 * 4),
    "pairs of boxes": ("NonMaxSuppressionV2", "", (BOXES, SCORES, LIMIT, "tensor<f32>"), "tensor<?xi32>", 64 * 49),
    "sparse product": ("SparseTensorDenseMatMul", "", (INDICES, VALUES, DENSE_SHAPE, B), "tensor<9x4xf32>", 6 * 4),
    "resizing": ("ResizeBilinear", "", (IMAGE, "tensor<2xi32>"), SMALLER, (72 + 18) * 12),
}
"""An op, its attributes, its operands' types, its result's, and the multiply-adds by the textbook, or at most."""


@pytest.mark.parametrize("case", WORK)
def test_work_is_that_of_the_textbook(case: str) -> None:
    name, attributes, operands, result, expected = WORK[case]
    ones = ["1" if kind.endswith(("i32>", "i64>")) else "1.0" for kind in operands]
    lines = [
        f'%{at} = "tf.Const"() <{{value = dense<{ones[at]}> : {kind}}}> : () -> {kind}'
        for at, kind in enumerate(operands)
    ]
    names = ", ".join(f"%{at}" for at in range(len(operands)))
    call = f'%r = "tf.{name}"({names}) <{{{attributes}}}> : ({", ".join(operands)}) -> {result}'
    body = "\n".join([*lines, call, f"func.return %r : {result}"])
    module = parse(f"func.func @main() -> {result} {{\n{body}\n}}", with_relations=False)
    (op,) = (each for each in module.walk() if each.name == f"tf.{name}")
    constants = [constant for each in op.operands if (constant := tensor_data.constant_of(each)) is not None]
    cost = cost_of(name, op, constants, [None])
    shape = op.results[0].shape
    assert shape is not None
    elements = [math.prod(each.shape or ()) for each in op.operands]
    made = cost.made // 8
    assert made == (math.prod(shape) if types.is_static(shape) else made)
    assert cost.work == expected + 4 * (sum(elements) + made)
