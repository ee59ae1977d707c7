"""The shape of a sharded tensor, padding between elements, and what the verifier refuses of XLA's ops."""

from __future__ import annotations

import numpy as np
import pytest

from tfconvert.converter.passes.shape_inference import ShapeInference
from tfconvert.ops.call import Call
from tfconvert.ops.registry import evaluate
from tfconvert.ops.verification import verify
from tfconvert.schema.dialects import types
from tfconvert.schema.dialects.func import functions_of
from tfconvert.schema.dialects.parsing import IRParser
from tfconvert.schema.ir.errors import VerifyError


def test_sharding_keeps_the_shape() -> None:
    # TensorFlow's Python doesn't offer the op.
    module = IRParser("""func.func @main(%x: tensor<?x3xf32>) -> tensor<*xf32> {
      %0 = "tf.XlaSharding"(%x) : (tensor<?x3xf32>) -> tensor<*xf32>
      return %0 : tensor<*xf32>
    }""").parse_module()
    ShapeInference().apply(module)
    (result,) = functions_of(module)["main"].function_type.results
    assert types.shape_of(result) == (-1, 3)


def _padded(x: np.ndarray, value: float, low: list[int], high: list[int], interior: list[int]) -> np.ndarray:
    """Pads one dimension after the other, as StableHLO defines it."""
    for axis, (before, behind, gap) in enumerate(zip(low, high, interior, strict=True)):
        rows = [row for each in np.moveaxis(x, axis, 0) for row in (each, *[np.full_like(each, value)] * gap)]
        rows = rows[: len(rows) - gap]
        filled = np.full_like(rows[0], value)
        rows = [filled] * max(before, 0) + rows[max(-before, 0) :]
        rows = (rows + [filled] * max(behind, 0))[: len(rows) + behind]
        x = np.moveaxis(np.stack(rows), 0, axis)
    return x


@pytest.mark.parametrize(
    ("low", "high", "interior"),
    [([0, 0], [0, 0], [1, 2]), ([1, 0], [2, 3], [0, 1]), ([-1, 2], [2, -1], [1, 2]), ([-2, -3], [0, -1], [2, 1])],
)
def test_padding_between_elements(low: list[int], high: list[int], interior: list[int]) -> None:
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    amounts = [np.array(each, np.int32) for each in (low, high, interior)]
    (found,) = evaluate(Call("XlaPad", (x, np.array(-7, np.float32), *amounts), {}))
    np.testing.assert_array_equal(found, _padded(x, -7, low, high, interior))
    lists = [f"dense<{each}> : tensor<2xi32>" for each in (low, high, interior)]
    module = IRParser(f"""func.func @main(%x: tensor<3x4xf32>, %v: tensor<f32>, %y: tensor<?x4xf32>) -> tensor<*xf32> {{
      %0 = "tf.Const"() {{value = {lists[0]}}} : () -> tensor<2xi32>
      %1 = "tf.Const"() {{value = {lists[1]}}} : () -> tensor<2xi32>
      %2 = "tf.Const"() {{value = {lists[2]}}} : () -> tensor<2xi32>
      %3 = "tf.XlaPad"(%x, %v, %0, %1, %2) : (tensor<3x4xf32>, tensor<f32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>)
          -> tensor<*xf32>
      return %3 : tensor<*xf32>
    }}""").parse_module()
    ShapeInference().apply(module)
    (result,) = functions_of(module)["main"].function_type.results
    assert types.shape_of(result) == found.shape


ARGUMENTS = """
%x: tensor<2x3xf32>, %v: tensor<3xf32>, %s: tensor<f32>, %n: tensor<i32>, %z: tensor<3xi32>,
%q: tensor<2x3x!tf_type.qint8>
"""

CASES = [
    (
        "UniformQuantize",
        '%0 = "tf.UniformQuantize"(%x, %v, %z) {quantization_axis = -1 : i64, quantization_min_val = -128 : i64, '
        "quantization_max_val = 127 : i64} : (tensor<2x3xf32>, tensor<3xf32>, tensor<3xi32>) "
        "-> tensor<2x3x!tf_type.qint8>",
        "'scales' must have rank 0",
    ),
    (
        "UniformDequantize",
        '%0 = "tf.UniformDequantize"(%q, %v, %n) {quantization_axis = 1 : i64, quantization_min_val = -128 : i64, '
        "quantization_max_val = 127 : i64} : (tensor<2x3x!tf_type.qint8>, tensor<3xf32>, tensor<i32>) "
        "-> tensor<2x3xf32>",
        "'zero_points' must have rank 1",
    ),
    (
        "XlaBroadcastHelper",
        '%c = "tf.Const"() {value = dense<[0, 1]> : tensor<2xi32>} : () -> tensor<2xi32>\n'
        '%0:2 = "tf.XlaBroadcastHelper"(%x, %v, %c) : (tensor<2x3xf32>, tensor<3xf32>, tensor<2xi32>) '
        "-> (tensor<2x3xf32>, tensor<1x3xf32>)",
        "as many elements as the smaller rank, 1, found 2",
    ),
    (
        "XlaSetDynamicDimensionSize",
        '%c = "tf.Const"() {value = dense<2> : tensor<i32>} : () -> tensor<i32>\n'
        '%0 = "tf.XlaSetDynamicDimensionSize"(%x, %c, %n) : (tensor<2x3xf32>, tensor<i32>, tensor<i32>) '
        "-> tensor<2x3xf32>",
        "'dim_index' must be from 0 to 1, found 2",
    ),
    (
        "XlaVariadicSort",
        '%c = "tf.Const"() {value = dense<[0]> : tensor<1xi32>} : () -> tensor<1xi32>\n'
        '%0 = "tf.XlaVariadicSort"(%v, %c) {comparator = @less, is_stable = true} : (tensor<3xf32>, tensor<1xi32>) '
        "-> tensor<3xf32>",
        "'dimension' must have rank 0",
    ),
]


@pytest.mark.parametrize(("text", "message"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_operands_that_do_not_fit_are_refused(text: str, message: str) -> None:
    less = """func.func private @less(%a: tensor<f32>, %b: tensor<f32>) -> tensor<i1> {
      %0 = "tf.Less"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<i1>
      return %0 : tensor<i1>
    }"""
    module = IRParser(f"{less} func.func @main({ARGUMENTS}) {{ {text}\n return }}").parse_module()
    with pytest.raises(VerifyError, match=message):
        verify(module)
