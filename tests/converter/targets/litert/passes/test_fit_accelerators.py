"""The pass `fit-accelerators`: what is rewritten, what stays, and that the numbers stay the same."""

from __future__ import annotations

import pytest

from tfconvert.converter.targets.litert.accelerator_check import check
from tfconvert.converter.targets.litert.passes.fit_accelerators import FitAccelerators
from tfconvert.ops.verification import verify
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
    }"""
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
