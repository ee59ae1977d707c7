"""Shapes of the recurrent operators; `tests/converter/targets/litert/recurrent` compares what they compute."""

from __future__ import annotations

import pytest

from tfconvert.converter.passes.shape_inference import ShapeInference
from tfconvert.schema.dialects import types
from tfconvert.schema.dialects.func import functions_of
from tfconvert.schema.dialects.parsing import IRParser


@pytest.mark.parametrize(("shape", "expected"), [("2x?x3", (2, -1, 4)), ("?x5x3", (-1, 5, 4))])
def test_batch_and_time_are_those_of_the_input(shape: str, expected: tuple[int, ...]) -> None:
    text = f"""func.func @main(
      %x: tensor<{shape}xf32>, %w: tensor<4x3xf32>, %r: tensor<4x4xf32>, %b: tensor<4xf32>, %h: tensor<?x4xf32>
    ) -> tensor<?x?x4xf32> {{
      %0 = "tfl.unidirectional_sequence_rnn"(%x, %w, %r, %b, %h) {{
        time_major = false, fused_activation_function = "TANH"
      }} : (tensor<{shape}xf32>, tensor<4x3xf32>, tensor<4x4xf32>, tensor<4xf32>, tensor<?x4xf32>) -> tensor<?x?x4xf32>
      return %0 : tensor<?x?x4xf32>
    }}"""
    module = IRParser(text).parse_module()
    ShapeInference().apply(module)
    (result,) = functions_of(module)["main"].function_type.results
    assert types.shape_of(result) == expected
