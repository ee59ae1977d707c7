"""Where LiteRT is not installed, samples run in the reference executor, and show the same ranges."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import tfconvert
from tests.support.run_text import Array, parse
from tfconvert import Quantize
from tfconvert.converter.targets.litert import runtime
from tfconvert.converter.targets.litert.passes.calibrate import Calibrate
from tfconvert.converter.targets.litert.quantize.observers import Range
from tfconvert.converter.targets.litert.quantize.parameters import range_of
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.values import Value
from tfconvert.settings.quantization import Ranges

ENTRY = 'attributes {tf.entry_function = {control_outputs = "", inputs = "x", outputs = "y"}}'


@pytest.fixture
def without_litert(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "Interpreter", None)


def values_of(module: ModuleOp) -> list[Value]:
    blocks = [op.body.block for op in module.ops if isinstance(op, FuncOp)]
    return [value for block in blocks for value in (*block.args, *(each for op in block.ops for each in op.results))]


def calibrated(text: str, samples: Sequence[Array], ranges: Ranges = "minmax") -> ModuleOp:
    module = parse(text)
    Calibrate(Quantize("int8", samples=[[each] for each in samples], ranges=ranges, io="int8")).apply(module)
    return module


LAYERS = f"""
func.func @main(%x: tensor<?x4x4x2xf32>) -> tensor<?x3xf32> {ENTRY} {{
  %w = "tfl.pseudo_const"() <{{value = dense<[[[[1.0, -0.5]]], [[[0.25, 2.0]]], [[[-1.0, 0.75]]]]>
      : tensor<3x1x1x2xf32>}}> : () -> tensor<3x1x1x2xf32>
  %b = "tfl.pseudo_const"() <{{value = dense<[0.5, -0.25, 0.0]> : tensor<3xf32>}}> : () -> tensor<3xf32>
  %axes = "tfl.pseudo_const"() <{{value = dense<[1, 2]> : tensor<2xi32>}}> : () -> tensor<2xi32>
  %0 = "tfl.conv_2d"(%x, %w, %b) <{{dilation_h_factor = 1 : i32, dilation_w_factor = 1 : i32,
      fused_activation_function = "RELU", padding = "SAME", stride_h = 1 : i32, stride_w = 1 : i32}}>
      : (tensor<?x4x4x2xf32>, tensor<3x1x1x2xf32>, tensor<3xf32>) -> tensor<?x4x4x3xf32>
  %1 = "tfl.mean"(%0, %axes) <{{keep_dims = false}}> : (tensor<?x4x4x3xf32>, tensor<2xi32>) -> tensor<?x3xf32>
  %2 = "tfl.tanh"(%1) : (tensor<?x3xf32>) -> tensor<?x3xf32>
  func.return %2 : tensor<?x3xf32>
}}
"""


@pytest.mark.parametrize("method", ["minmax", "mse", "percentile"])
def test_ranges_are_those_that_litert_shows(method: Ranges, monkeypatch: pytest.MonkeyPatch) -> None:
    samples = list(np.random.default_rng(3).normal(0, 2, (6, 1, 4, 4, 2)).astype(np.float32))
    expected = [range_of(value) for value in values_of(calibrated(LAYERS, samples, method))]
    monkeypatch.setattr(runtime, "Interpreter", None)
    found = [range_of(value) for value in values_of(calibrated(LAYERS, samples, method))]
    assert sum(each is not None for each in expected) >= 3
    for got, wanted in zip(found, expected, strict=True):
        assert (got is None) == (wanted is None)
        if got is not None and wanted is not None:
            np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)


def test_a_trained_model(digits_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pixels = np.load(digits_model.parent / "held_out.npz")["pixels"][:12, None, :, :, None]
    samples = [[each] for each in (pixels / 16).astype(np.float32)]

    def converted() -> tuple[Array, list[str]]:
        model = tfconvert.convert(digits_model, quantize=Quantize("int8", samples=samples))
        return np.frombuffer(bytes(model), np.uint8), [note.code for note in model.report.notes]

    expected, codes = converted()
    assert "calibrated-in-numpy" not in codes
    monkeypatch.setattr(runtime, "Interpreter", None)
    content, codes = converted()
    assert "calibrated-in-numpy" in codes
    assert len(content) == len(expected)
    # Ranges differ in the last bits, and with them scales.
    assert np.mean(content != expected) < 0.02


LOOP = f"""
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {ENTRY} {{
  %n = "tfl.pseudo_const"() <{{value = dense<3> : tensor<i32>}}> : () -> tensor<i32>
  %0:2 = "tfl.while"(%n, %x) <{{cond = @cond, body = @body}}>
      : (tensor<i32>, tensor<2xf32>) -> (tensor<i32>, tensor<2xf32>)
  func.return %0#1 : tensor<2xf32>
}}
func.func private @cond(%n: tensor<i32>, %x: tensor<2xf32>) -> tensor<i1> {{
  %c = "tfl.pseudo_const"() <{{value = dense<0> : tensor<i32>}}> : () -> tensor<i32>
  %0 = "tfl.greater"(%n, %c) : (tensor<i32>, tensor<i32>) -> tensor<i1>
  func.return %0 : tensor<i1>
}}
func.func private @body(%n: tensor<i32>, %x: tensor<2xf32>) -> (tensor<i32>, tensor<2xf32>) {{
  %one = "tfl.pseudo_const"() <{{value = dense<1> : tensor<i32>}}> : () -> tensor<i32>
  %0 = "tfl.sub"(%n, %one) <{{fused_activation_function = "NONE"}}> : (tensor<i32>, tensor<i32>) -> tensor<i32>
  %1 = "tfl.add"(%x, %x) <{{fused_activation_function = "NONE"}}> : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  func.return %0, %1 : tensor<i32>, tensor<2xf32>
}}
"""


def test_each_iteration_of_a_loop_is_seen(without_litert: None) -> None:
    module = calibrated(LOOP, [np.array([1, -2], np.float32)])
    ranges = {op.name: range_of(op.results[0]) for function in module.ops for op in function.walk() if op.results}
    assert ranges["tfl.add"] == Range(-16, 8)
    body = next(op for op in module.ops if isinstance(op, FuncOp) and op.sym_name == "body")
    assert range_of(body.body.block.args[1]) == Range(-8, 4)


def test_what_only_litert_computes_is_said_with_what_to_install(without_litert: None) -> None:
    text = f"""
    func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {ENTRY} {{
      %0 = "tfl.custom"(%x) <{{custom_code = "Mine"}}> : (tensor<2xf32>) -> tensor<2xf32>
      func.return %0 : tensor<2xf32>
    }}"""
    with pytest.raises(ConversionError) as caught:
        calibrated(text, [np.zeros(2, np.float32)])
    (problem,) = caught.value.diagnostics
    assert (problem.code, problem.op) == ("no-reference-kernel", "tfl.custom")
    assert "tfconvert[verify]" in problem.hint


def test_a_sample_that_the_model_can_t_be_run_on_is_named(without_litert: None) -> None:
    text = f"""
    func.func @main(%x: tensor<?xf32>) -> tensor<2xf32> {ENTRY} {{
      %c = "tfl.pseudo_const"() <{{value = dense<[1.0, 2.0]> : tensor<2xf32>}}> : () -> tensor<2xf32>
      %0 = "tfl.mul"(%x, %c) <{{fused_activation_function = "NONE"}}>
          : (tensor<?xf32>, tensor<2xf32>) -> tensor<2xf32>
      func.return %0 : tensor<2xf32>
    }}"""
    samples = [np.zeros(2, np.float32), np.zeros(3, np.float32)]
    with pytest.raises(ConversionError, match="can't be run on sample 1") as caught:
        calibrated(text, samples)
    assert caught.value.code == "calibration-failed"


def test_state_starts_anew_with_each_sample(without_litert: None) -> None:
    gates = ", ".join(["%w"] * 8 + ["%no"] * 3 + ["%b"] * 4 + ["%no"] * 2 + ["%s"] * 2 + ["%no"] * 4)
    kinds = ", ".join(
        ["tensor<1x1xf32>"] * 9
        + ["none"] * 3
        + ["tensor<1xf32>"] * 4
        + ["none"] * 2
        + ["tensor<1x1xf32>"] * 2
        + ["none"] * 4
    )
    text = f"""
    func.func @main(%x: tensor<1x1xf32>) -> tensor<1x1xf32> {ENTRY} {{
      %w = "tfl.pseudo_const"() <{{value = dense<1.0> : tensor<1x1xf32>}}> : () -> tensor<1x1xf32>
      %b = "tfl.pseudo_const"() <{{value = dense<0.0> : tensor<1xf32>}}> : () -> tensor<1xf32>
      %s = "tfl.pseudo_const"() <{{value = dense<0.0> : tensor<1x1xf32>}}> : () -> tensor<1x1xf32>
      %no = "tfl.no_value"() <{{value}}> : () -> none
      %0 = "tfl.lstm"(%x, {gates}) <{{cell_clip = 0.0 : f32, fused_activation_function = "TANH",
          kernel_type = "FULL", proj_clip = 0.0 : f32}}> : ({kinds}) -> tensor<1x1xf32>
      %1 = "tfl.add"(%0, %0) <{{fused_activation_function = "NONE"}}>
          : (tensor<1x1xf32>, tensor<1x1xf32>) -> tensor<1x1xf32>
      func.return %1 : tensor<1x1xf32>
    }}"""
    sample = np.ones((1, 1), np.float32)
    once, thrice = (calibrated(text, [sample] * count) for count in (1, 3))
    ranges = [[range_of(op.results[0]) for op in module.walk() if op.name == "tfl.add"] for module in (once, thrice)]
    assert ranges[0] == ranges[1] != [None]
