"""The pass `fit-accelerators`: what is rewritten, what stays, and that the numbers stay the same."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.litert import RunTFLite
from tfconvert.converter.targets.litert.accelerator_check import check
from tfconvert.converter.targets.litert.passes.fit_accelerators import FitAccelerators
from tfconvert.exporters.tflite.model import export
from tfconvert.ops.verification import verify
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.dialects.parsing import IRParser
from tfconvert.schema.ir.builtin import ModuleOp

# A function with one op between reshapes, and whether it is whole on the GPU afterwards.
_CASES = {
    "window-partition": """
    func.func @main(%x: tensor<1x8x8x3xf32>) -> tensor<4x16x3xf32> {
      %s = "tfl.pseudo_const"() <{value = dense<[1, 2, 4, 2, 4, 3]> : tensor<6xi32>}> : () -> tensor<6xi32>
      %0 = "tfl.reshape"(%x, %s) : (tensor<1x8x8x3xf32>, tensor<6xi32>) -> tensor<1x2x4x2x4x3xf32>
      %p = "tfl.pseudo_const"() <{value = dense<[0, 1, 3, 2, 4, 5]> : tensor<6xi32>}> : () -> tensor<6xi32>
      %1 = "tfl.transpose"(%0, %p) : (tensor<1x2x4x2x4x3xf32>, tensor<6xi32>) -> tensor<1x2x2x4x4x3xf32>
      %t = "tfl.pseudo_const"() <{value = dense<[4, 16, 3]> : tensor<3xi32>}> : () -> tensor<3xi32>
      %2 = "tfl.reshape"(%1, %t) : (tensor<1x2x2x4x4x3xf32>, tensor<3xi32>) -> tensor<4x16x3xf32>
      func.return %2 : tensor<4x16x3xf32>
    }""",
    "two-transposes": """
    func.func @main(%x: tensor<1x8x8x3xf32>) -> tensor<4x16x3xf32> {
      %s = "tfl.pseudo_const"() <{value = dense<[1, 4, 2, 4, 2, 3]> : tensor<6xi32>}> : () -> tensor<6xi32>
      %0 = "tfl.reshape"(%x, %s) : (tensor<1x8x8x3xf32>, tensor<6xi32>) -> tensor<1x4x2x4x2x3xf32>
      %p = "tfl.pseudo_const"() <{value = dense<[0, 2, 4, 1, 3, 5]> : tensor<6xi32>}> : () -> tensor<6xi32>
      %1 = "tfl.transpose"(%0, %p) : (tensor<1x4x2x4x2x3xf32>, tensor<6xi32>) -> tensor<1x2x2x4x4x3xf32>
      %t = "tfl.pseudo_const"() <{value = dense<[4, 16, 3]> : tensor<3xi32>}> : () -> tensor<3xi32>
      %2 = "tfl.reshape"(%1, %t) : (tensor<1x2x2x4x4x3xf32>, tensor<3xi32>) -> tensor<4x16x3xf32>
      func.return %2 : tensor<4x16x3xf32>
    }""",
    "product-with-itself": """
    func.func @main(%x: tensor<1x4x8xf32>) -> tensor<1x4x4xf32> {
      %0 = "tfl.batch_matmul"(%x, %x) <{adj_y = true}> : (tensor<1x4x8xf32>, tensor<1x4x8xf32>) -> tensor<1x4x4xf32>
      func.return %0 : tensor<1x4x4xf32>
    }""",
    "steep-slope": """
    func.func @main(%x: tensor<1x4x4x8xf32>) -> tensor<1x4x4x8xf32> {
      %0 = "tfl.leaky_relu"(%x) <{alpha = 2.0 : f32}> : (tensor<1x4x4x8xf32>) -> tensor<1x4x4x8xf32>
      func.return %0 : tensor<1x4x4x8xf32>
    }""",
    "classes": """
    func.func @main(%x: tensor<1x4x4x6xf32>) -> tensor<1x4x4xi32> {
      %a = "tfl.pseudo_const"() <{value = dense<-1> : tensor<i32>}> : () -> tensor<i32>
      %0 = "tfl.arg_max"(%x, %a) <{output_type = "INT32"}> : (tensor<1x4x4x6xf32>, tensor<i32>) -> tensor<1x4x4xi32>
      func.return %0 : tensor<1x4x4xi32>
    }""",
    "masks": """
    func.func @main(%x: tensor<1x4x4x8xf32>) -> tensor<1x8xf32> {
      %b = "tfl.pseudo_const"() <{value = dense<[0, 1, -1, 0]> : tensor<4xi32>}> : () -> tensor<4xi32>
      %e = "tfl.pseudo_const"() <{value = dense<[1, 2, 0, 8]> : tensor<4xi32>}> : () -> tensor<4xi32>
      %s = "tfl.pseudo_const"() <{value = dense<1> : tensor<4xi32>}> : () -> tensor<4xi32>
      %0 = "tfl.strided_slice"(%x, %b, %e, %s) <{begin_mask = 9 : i32, end_mask = 9 : i32, shrink_axis_mask = 6 : i32}>
          : (tensor<1x4x4x8xf32>, tensor<4xi32>, tensor<4xi32>, tensor<4xi32>) -> tensor<1x8xf32>
      func.return %0 : tensor<1x8xf32>
    }""",
}


def _parsed(text: str) -> ModuleOp:
    return IRParser(text).parse_module()


@pytest.mark.parametrize("name", _CASES)
def test_whole_on_the_gpu(name: str) -> None:
    module = _parsed(_CASES[name])
    assert not check(module, "gpu").is_whole
    assert FitAccelerators(["gpu"]).apply(module).counts
    verify(module)
    assert check(module, "gpu").is_whole


def test_integers_of_64_bits_at_the_border_only() -> None:
    text = """
    func.func @main(%x: tensor<1x4xi64>, %y: tensor<1x4xf32>) -> tensor<1x4xf32> {
      %n = "tfl.pseudo_const"() <{value = dense<3> : tensor<i64>}> : () -> tensor<i64>
      %0 = "tfl.less"(%x, %n) : (tensor<1x4xi64>, tensor<i64>) -> tensor<1x4xi1>
      %1 = "tfl.add"(%x, %n) : (tensor<1x4xi64>, tensor<i64>) -> tensor<1x4xi64>
      %2 = "tfl.select_v2"(%0, %x, %1) : (tensor<1x4xi1>, tensor<1x4xi64>, tensor<1x4xi64>) -> tensor<1x4xi64>
      %3 = "tfl.cast"(%2) : (tensor<1x4xi64>) -> tensor<1x4xf32>
      %4 = "tfl.mul"(%3, %y) : (tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<1x4xf32>
      func.return %4 : tensor<1x4xf32>
    }"""
    module = _parsed(text)
    FitAccelerators(["gpu"]).apply(module)
    verify(module)
    (obstacle,) = check(module, "gpu").obstacles
    assert obstacle.operator == "CAST"


def test_a_size_that_only_running_tells_keeps_the_file_from_loading() -> None:
    text = """
    func.func @main(%x: tensor<4xf32>) -> tensor<?x1xi64> {
      %z = "tfl.pseudo_const"() <{value = dense<0.0> : tensor<f32>}> : () -> tensor<f32>
      %0 = "tfl.greater"(%x, %z) : (tensor<4xf32>, tensor<f32>) -> tensor<4xi1>
      %1 = "tfl.where"(%0) : (tensor<4xi1>) -> tensor<?x1xi64>
      func.return %1 : tensor<?x1xi64>
    }"""
    assert check(_parsed(text), "gpu").headline == "does not load on the GPU"


def test_stays_where_nothing_helps() -> None:
    text = """
    func.func @main(%x: tensor<2x3x2x3x2x3x2x3xf32>) -> tensor<3x2x3x2x3x2x3x2xf32> {
      %p = "tfl.pseudo_const"() <{value = dense<[7, 6, 5, 4, 3, 2, 1, 0]> : tensor<8xi32>}> : () -> tensor<8xi32>
      %0 = "tfl.transpose"(%x, %p) : (tensor<2x3x2x3x2x3x2x3xf32>, tensor<8xi32>) -> tensor<3x2x3x2x3x2x3x2xf32>
      func.return %0 : tensor<3x2x3x2x3x2x3x2xf32>
    }"""
    module = _parsed(text)
    before = str(module)
    assert not FitAccelerators(["gpu"]).apply(module).counts
    assert str(module) == before


# `!q` stands for the type of integers.
_INTEGERS = {
    "padv2": """
    func.func @main(%x: tensor<1x4x4x2x!q>) -> tensor<1x6x6x2x!q> {
      %p = "tfl.pseudo_const"() <{value = dense<[[0, 0], [1, 1], [1, 1], [0, 0]]> : tensor<4x2xi32>}>
          : () -> tensor<4x2xi32>
      %v = "tfl.pseudo_qconst"() <{qtype = tensor<!q>, value = dense<7> : tensor<i8>}>
          : () -> tensor<!q>
      %0 = "tfl.padv2"(%x, %p, %v) : (tensor<1x4x4x2x!q>, tensor<4x2xi32>,
          tensor<!q>) -> tensor<1x6x6x2x!q>
      func.return %0 : tensor<1x6x6x2x!q>
    }""",
    "a vector": """
    func.func @main(%x: tensor<4x!q>) -> tensor<6x!q> {
      %p = "tfl.pseudo_const"() <{value = dense<1> : tensor<1x2xi32>}> : () -> tensor<1x2xi32>
      %v = "tfl.pseudo_qconst"() <{qtype = tensor<!q>, value = dense<7> : tensor<i8>}>
          : () -> tensor<!q>
      %0 = "tfl.padv2"(%x, %p, %v) : (tensor<4x!q>, tensor<1x2xi32>,
          tensor<!q>) -> tensor<6x!q>
      func.return %0 : tensor<6x!q>
    }""",
    "broadcast": """
    func.func @main(%x: tensor<1x4x4x2x!q>) -> tensor<3x4x4x2x!q> {
      %s = "tfl.pseudo_const"() <{value = dense<[3, 4, 4, 2]> : tensor<4xi32>}> : () -> tensor<4xi32>
      %0 = "tfl.broadcast_to"(%x, %s) : (tensor<1x4x4x2x!q>, tensor<4xi32>)
          -> tensor<3x4x4x2x!q>
      func.return %0 : tensor<3x4x4x2x!q>
    }""",
}


@pytest.mark.parametrize("accelerator", ["gpu", "npu", "micro"])
@pytest.mark.parametrize("name", _INTEGERS)
def test_integers_with_scales_are_joined_with_their_own_constants(
    run_tflite: RunTFLite, name: str, accelerator: str
) -> None:
    module = _parsed(_INTEGERS[name].replace("!q", "!quant.uniform<i8:f32, 0.5:-4>"))
    shape = next(op for op in module.walk() if isinstance(op, FuncOp)).body.block.args[0].shape
    x = np.random.default_rng(0).integers(-128, 128, shape, np.int8)
    (expected,) = run_tflite(export(module).to_bytes(), [x])
    FitAccelerators((accelerator,)).apply(module)
    (got,) = run_tflite(export(module).to_bytes(), [x])
    np.testing.assert_array_equal(got, expected)
