"""The pass `unroll-layers`: loops over layers with stacked weights, and loops that stay."""

from __future__ import annotations

import numpy as np
import pytest

import tfconvert
from tests.converter.from_stablehlo.programs import convert, operators
from tests.support.litert import run
from tfconvert.converter.targets.litert.passes import unroll_layers
from tfconvert.converter.targets.litert.passes.unroll_layers import UnrollLayers
from tfconvert.schema.dialects.parsing import IRParser

_RANDOM = np.random.default_rng(0)


def _dense(array: np.ndarray) -> str:
    return f'dense<"0x{array.tobytes().hex().upper()}">'


def _layers(weights: np.ndarray, row: str = "%i") -> str:
    """Returns a loop in StableHLO over matrices, of which each step reads one."""
    count, size, _ = weights.shape
    table, one = f"tensor<{count}x{size}x{size}xf32>", f"tensor<1x{size}x{size}xf32>"
    return f"""
      module {{
        func.func public @main(%x: tensor<3x{size}xf32>) -> tensor<3x{size}xf32> {{
          %w = stablehlo.constant {_dense(weights)} : {table}
          %zero = stablehlo.constant dense<0> : tensor<i32>
          %one = stablehlo.constant dense<1> : tensor<i32>
          %n = stablehlo.constant dense<{count}> : tensor<i32>
          %0:3 = "stablehlo.while"(%zero, %zero, %x) ({{
          ^bb0(%i: tensor<i32>, %other: tensor<i32>, %y: tensor<3x{size}xf32>):
            %c = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
            stablehlo.return %c : tensor<i1>
          }}, {{
          ^bb0(%i: tensor<i32>, %other: tensor<i32>, %y: tensor<3x{size}xf32>):
            %s = stablehlo.dynamic_slice %w, {row}, %zero, %zero, sizes = [1, {size}, {size}]
                : ({table}, tensor<i32>, tensor<i32>, tensor<i32>) -> {one}
            %m = stablehlo.reshape %s : ({one}) -> tensor<{size}x{size}xf32>
            %p = stablehlo.dot %y, %m : (tensor<3x{size}xf32>, tensor<{size}x{size}xf32>) -> tensor<3x{size}xf32>
            %t = stablehlo.tanh %p : tensor<3x{size}xf32>
            %next = stablehlo.add %i, %one : tensor<i32>
            %f = stablehlo.constant dense<0.0> : tensor<f32>
            %sum = stablehlo.reduce(%t init: %f) applies stablehlo.add across dimensions = [0, 1]
                : (tensor<3x{size}xf32>, tensor<f32>) -> tensor<f32>
            %found = stablehlo.convert %sum : (tensor<f32>) -> tensor<i32>
            stablehlo.return %next, %found, %t : tensor<i32>, tensor<i32>, tensor<3x{size}xf32>
          }}) : (tensor<i32>, tensor<i32>, tensor<3x{size}xf32>)
              -> (tensor<i32>, tensor<i32>, tensor<3x{size}xf32>)
          return %0#2 : tensor<3x{size}xf32>
        }}
      }}
    """


def _weights(count: int, size: int) -> np.ndarray:
    return np.asarray(_RANDOM.normal(size=(count, size, size)) / np.sqrt(size), np.float32)


def test_layers_have_constant_weights() -> None:
    weights, x = _weights(3, 16), _RANDOM.normal(size=(3, 16)).astype(np.float32)
    content = convert(_layers(weights))
    assert operators(content) == {"FULLY_CONNECTED": 3, "TANH": 3}
    expected = x
    for layer in weights:
        expected = np.tanh(expected @ layer)
    np.testing.assert_allclose(run(content, [x])[0], expected, atol=1e-5)


@pytest.mark.parametrize(
    ("weights", "row"), [(_weights(3, 8), "%i"), (_weights(3, 16), "%other"), (_weights(257, 16), "%i")]
)
def test_other_loops_stay(weights: np.ndarray, row: str) -> None:
    """Their rows are small, or depend on what was computed, or they have many steps."""
    assert "WHILE" in operators(convert(_layers(weights, row)))


def test_loops_stay_if_the_user_wants_loops() -> None:
    target = tfconvert.LiteRT(recurrent="loop")
    assert "WHILE" in operators(convert(_layers(_weights(3, 16)), target=target))


def test_without_such_loops_nothing_happens() -> None:
    text = (unroll_layers.__doc__ or "").rpartition("After:")[2]
    module = IRParser(text).parse_module()
    assert not UnrollLayers().apply(module).counts
