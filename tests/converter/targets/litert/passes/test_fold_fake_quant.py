"""The pass `fold-fake-quant`."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.converter.targets.litert.optimize.graph import Graph, f32, random
from tests.support.litert import RunTFLite
from tfconvert.converter.targets.litert.passes.fold_fake_quant import KEPT, FoldFakeQuant
from tfconvert.ops.verification import verify
from tfconvert.schema.dialects import tensor_data
from tfconvert.schema.dialects.quant import Uniform
from tfconvert.schema.ir.types import I8


def _ranges(least: float, greatest: float, bits: int = 8, narrow: bool = False) -> dict[str, Any]:
    return {"min": least, "max": greatest, "num_bits": bits, "narrow_range": narrow}


@pytest.mark.parametrize("bits", [2, 4, 8, 16])
@pytest.mark.parametrize("narrow", [False, True])
def test_constants_have_tensorflows_numbers(tf: ModuleType, bits: int, narrow: bool) -> None:
    value = random(70, 60)
    graph = Graph((70, 60))
    rounded = graph.op("fake_quant", value, **_ranges(-1.25, 2.5, bits, narrow))
    graph.returns(graph.op("add", graph.inputs[0], rounded))
    result = FoldFakeQuant().apply(graph.module)
    verify(graph.module)
    assert result.counts == {"folded": 1}
    assert not result.notes
    (add,) = graph.ops
    constant = tensor_data.constant_of(add.operands[1])
    assert constant is not None
    expected = tf.quantization.fake_quant_with_min_max_args(value, -1.25, 2.5, bits, narrow).numpy()
    np.testing.assert_array_equal(tensor_data.to_array(constant), expected)


def test_a_pair_keeps_within_its_limits() -> None:
    graph = Graph((2, 3))
    value = f32([[0.3, -9, 1], [2.2, -0.26, 9]])
    uniform = Uniform(I8, (0.5, 0.25), (1, 0), 0, (-7, 7))
    graph.returns(graph.op("add", graph.inputs[0], graph.fake_quantized(value, uniform)))
    FoldFakeQuant().apply(graph.module)
    constant = tensor_data.constant_of(graph.ops[0].operands[1])
    assert constant is not None
    np.testing.assert_array_equal(tensor_data.to_array(constant), [[0.5, -4, 1], [1.75, -0.25, 1.75]])


def test_a_constant_that_is_used_elsewhere_stays() -> None:
    graph = Graph((2,))
    constant = graph.constant(f32([0.26, 3]))
    rounded = graph.op("fake_quant", constant, **_ranges(-1, 1, 3, True))
    graph.returns(graph.op("mul", graph.op("add", graph.inputs[0], rounded), constant))
    FoldFakeQuant().apply(graph.module)
    verify(graph.module)
    values = [tensor_data.constant_of(op.operands[1]) for op in graph.ops]
    assert [tensor_data.to_array(value).tolist() for value in values if value] == [
        f32([1 / 3, 1]).tolist(),
        f32([0.26, 3]).tolist(),
    ]


def test_operators_that_remain_are_noted_once(run_tflite: RunTFLite) -> None:
    graph = Graph((2,))
    first = graph.op("fake_quant", graph.inputs[0], **_ranges(0, 1))
    graph.returns(graph.op("fake_quant", graph.op("exp", first), **_ranges(0, 4)))
    (note,) = FoldFakeQuant().apply(graph.module).notes
    assert note.code == KEPT
    assert "2 times" in note.message
    assert "int8" in note.hint


RANGES = [(0, 1), (-1, 1), (-0.5, 6), (0.3, 2), (-3, -0.2), (0, 4)]


@pytest.mark.parametrize("narrow", [False, True])
@pytest.mark.parametrize("bits", [2, 3, 4, 5, 6, 7, 8, 16])
@pytest.mark.parametrize(("least", "greatest"), RANGES)
def test_litert_computes_tensorflows_numbers(
    tf: ModuleType, run_tflite: RunTFLite, least: float, greatest: float, bits: int, narrow: bool
) -> None:
    values = random(200, scale=2)
    if least == 0:
        # Multiples of a sixteenth are halfway between two numbers of some of the ranges.
        values = np.concatenate([values, np.arange(-64, 64, dtype=np.float32) / 16])
    graph = Graph((len(values),))
    graph.returns(graph.op("fake_quant", graph.inputs[0], **_ranges(least, greatest, bits, narrow)))
    FoldFakeQuant().apply(graph.module)
    verify(graph.module)
    expected = tf.quantization.fake_quant_with_min_max_args(values, least, greatest, bits, narrow).numpy()
    (got,) = graph.run(run_tflite, [values])
    np.testing.assert_allclose(got, expected, rtol=0, atol=2e-6)
