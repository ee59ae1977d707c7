"""Sums of products, however they are spelt."""

from __future__ import annotations

import pytest

from tests.support.run_text import parse
from tfconvert.converter.recurrence.affine import Sum, Sums
from tfconvert.schema.dialects import tensor_data

PRODUCT = """
    %z = "tf.MatMul"(%x, %w) : (tensor<1x3xf32>, tensor<3x6xf32>) -> tensor<1x6xf32>
    %b = "tf.Const"() <{value = dense<0.5> : tensor<6xf32>}> : () -> tensor<6xf32>
"""
CONSTANTS = """
    %w = "tf.Const"() <{value = dense<1.0> : tensor<3x6xf32>}> : () -> tensor<3x6xf32>
    %one = "tf.Const"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
    %two = "tf.Const"() <{value = dense<2> : tensor<i32>}> : () -> tensor<i32>
    %zeros = "tf.Const"() <{value = dense<0.0> : tensor<1x6xf32>}> : () -> tensor<1x6xf32>
    %sizes = "tf.Const"() <{value = dense<[1, 2, 3]> : tensor<3xi32>}> : () -> tensor<3xi32>
    %from = "tf.Const"() <{value = dense<[0, 2]> : tensor<2xi32>}> : () -> tensor<2xi32>
    %to = "tf.Const"() <{value = dense<[0, -1]> : tensor<2xi32>}> : () -> tensor<2xi32>
    %steps = "tf.Const"() <{value = dense<1> : tensor<2xi32>}> : () -> tensor<2xi32>
"""


def _sum(lines: str) -> Sum | None:
    """Returns what the last value of some ops is the sum of."""
    module = parse(
        f"""
      func.func @main(%x: tensor<1x3xf32>) {{
        {CONSTANTS} {PRODUCT} {lines}
        func.return
      }}
    """,
        with_relations=False,
    )
    *_, last, _ = next(iter(module.ops)).regions[0].block.ops
    return Sums(lambda value: tensor_data.constant_of(value) is not None).of(last.results[-1])


SPLIT = "(tensor<1x2xf32>, tensor<1x2xf32>, tensor<1x2xf32>)"
STRIDED = "ellipsis_mask = 0 : i64, new_axis_mask = 0 : i64, shrink_axis_mask = 0 : i64"
ROW = "(tensor<1x6xf32>) -> tensor<6xf32>"


@pytest.mark.parametrize(
    ("lines", "columns", "biases"),
    [
        (f'%s:3 = "tf.Split"(%one, %z) : (tensor<i32>, tensor<1x6xf32>) -> {SPLIT}', (4, 2), 0),
        (
            '%s:3 = "tf.SplitV"(%z, %sizes, %one) : (tensor<1x6xf32>, tensor<3xi32>, tensor<i32>)'
            " -> (tensor<1x1xf32>, tensor<1x2xf32>, tensor<1x3xf32>)",
            (3, 3),
            0,
        ),
        (
            f'%s = "tf.StridedSlice"(%z, %from, %to, %steps) <{{begin_mask = 1 : i64, end_mask = 1 : i64, {STRIDED}}}>'
            " : (tensor<1x6xf32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<1x3xf32>",
            (2, 3),
            0,
        ),
        ('%s = "tf.BiasAdd"(%z, %b) : (tensor<1x6xf32>, tensor<6xf32>) -> tensor<1x6xf32>', (0, 6), 1),
        ('%s = "tf.AddV2"(%b, %z) : (tensor<6xf32>, tensor<1x6xf32>) -> tensor<1x6xf32>', (0, 6), 1),
        ('%s = "tf.AddV2"(%z, %zeros) : (tensor<1x6xf32>, tensor<1x6xf32>) -> tensor<1x6xf32>', (0, 6), 1),
        (
            f'%r = "tf.Squeeze"(%z) : {ROW}\n'
            '%s = "tf.BiasAdd"(%zeros, %r) : (tensor<1x6xf32>, tensor<6xf32>) -> tensor<1x6xf32>',
            (0, 6),
            1,
        ),
    ],
)
def test_what_is_a_sum(lines: str, columns: tuple[int, int], biases: int) -> None:
    found = _sum(lines)
    assert found is not None
    ((leaf, weights),) = found.products
    assert leaf.name_hint == "x"
    assert weights.outputs == columns
    assert weights.inputs == (0, 3)
    assert len(found.biases) == biases


@pytest.mark.parametrize(
    "lines",
    [
        # Of rows, not columns; of every other column; of a matrix that may change; of a square.
        '%s = "tf.StridedSlice"(%z, %from, %to, %steps) <{begin_mask = 2 : i64, end_mask = 2 : i64, '
        f"{STRIDED}}}> : (tensor<1x6xf32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<1x6xf32>",
        f'%s = "tf.StridedSlice"(%z, %from, %to, %from) <{{begin_mask = 1 : i64, end_mask = 1 : i64, {STRIDED}}}>'
        " : (tensor<1x6xf32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<1x2xf32>",
        '%s = "tf.MatMul"(%x, %z) <{transpose_a = true}> : (tensor<1x3xf32>, tensor<1x6xf32>) -> tensor<3x6xf32>',
        '%s = "tf.Mul"(%z, %z) : (tensor<1x6xf32>, tensor<1x6xf32>) -> tensor<1x6xf32>',
        '%s = "tf.Tanh"(%z) : (tensor<1x6xf32>) -> tensor<1x6xf32>',
    ],
)
def test_what_is_none(lines: str) -> None:
    assert _sum(lines) is None


@pytest.mark.parametrize("weights", ["3", "1x3x6", "1x1x3x6", ""])
def test_weights_that_are_not_a_matrix_are_declined(weights: str) -> None:
    """Texts and damaged files have them; TensorFlow's own shape inference would refuse such a product."""
    kind = f"tensor<{weights}xf32>" if weights else "tensor<f32>"
    assert (
        _sum(f"""
        %v = "tf.Const"() <{{value = dense<1.0> : {kind}}}> : () -> {kind}
        %s = "tf.MatMul"(%x, %v) : (tensor<1x3xf32>, {kind}) -> tensor<1x6xf32>
    """)
        is None
    )


def test_deep_sums_are_no_cells() -> None:
    kinds = "(tensor<1x6xf32>, tensor<6xf32>) -> tensor<1x6xf32>"
    lines = [f'%s{index + 1} = "tf.AddV2"(%s{index}, %b) : {kinds}' for index in range(5000)]
    lines[0] = lines[0].replace("%s0", "%z")
    assert _sum("\n".join(lines)) is None
