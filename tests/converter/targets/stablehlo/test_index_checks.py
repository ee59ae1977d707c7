"""Indices that are out of range end in an error, as they do in TensorFlow."""

from __future__ import annotations

import numpy as np
import pytest

from tests.converter.targets.stablehlo.cases_indices import CASES
from tfconvert.converter.executor import executor
from tfconvert.converter.pipeline.runner import run_stages
from tfconvert.converter.targets.iree.stages import STAGES
from tfconvert.ops.verification import verify
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.dialects.parsing import IRParser
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.settings.options import Options
from tfconvert.settings.targets import Iree

BEFORE_IREE = [stage for stage in STAGES if stage.run not in ("stablehlo-to-iree-input", "weights-to-parameters")]
"""The module at the end of the StableHLO pipeline."""


def _lowered(text: str, *, checks: bool = True) -> ModuleOp:
    module = IRParser(text).parse_module()
    for _ in run_stages(module, BEFORE_IREE, Options(target=Iree(check_indices=checks))):
        pass
    verify(module)
    return module


@pytest.mark.parametrize("name", CASES)
def test_indices_out_of_range_are_told(name: str) -> None:
    case = CASES[name]
    module = _lowered(case.text)
    good = case.operands(case.good)
    (found,) = executor.run(module, "main", good)
    (expected,) = executor.run(IRParser(case.text).parse_module(), "main", good)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    with pytest.raises(ConversionError, match=case.message):
        executor.run(module, "main", case.operands(case.bad))


@pytest.mark.parametrize("name", ["gather", "in a loop"])
def test_they_can_be_let_through(name: str) -> None:
    module = _lowered(CASES[name].text, checks=False)
    assert "out of range" not in str(module)


def test_constants_are_checked_before() -> None:
    case = CASES["gather"]
    known = (
        case.text.replace("%i: tensor<?xi32>", "%unused: tensor<?xi32>")
        .replace("{\n", '{\n  %i = "tf.Const"() <{value = dense<[0, 3]> : tensor<2xi32>}> : () -> tensor<2xi32>\n', 1)
        .replace("(tensor<?x3xf32>, tensor<?xi32>, tensor<i32>)", "(tensor<4x3xf32>, tensor<2xi32>, tensor<i32>)")
    )
    known = known.replace("%x: tensor<?x3xf32>", "%x: tensor<4x3xf32>")
    assert "out of range" not in str(_lowered(known))


def test_indices_that_are_all_one_number_are_compared_once() -> None:
    text = """
    func.func @main(%x: tensor<?x3xf32>, %n: tensor<1xi32>) -> tensor<?x3xf32> {
      %z = "tf.Const"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
      %i = "tf.Fill"(%n, %z) : (tensor<1xi32>, tensor<i32>) -> tensor<?xi32>
      %y = "tf.GatherV2"(%x, %i, %z) <{batch_dims = 0 : i64}> : (tensor<?x3xf32>, tensor<?xi32>, tensor<i32>)
        -> tensor<?x3xf32>
      func.return %y : tensor<?x3xf32>
    }"""
    module = _lowered(text)
    assert "stablehlo.reduce" not in str(module)
    for rows, count in ((1, 2), (1, 0)):
        (found,) = executor.run(module, "main", [np.ones((rows, 3), np.float32), np.array([count], np.int32)])
        assert found.shape == (count, 3)
    with pytest.raises(ConversionError, match="out of range"):
        executor.run(module, "main", [np.ones((0, 3), np.float32), np.array([2], np.int32)])
