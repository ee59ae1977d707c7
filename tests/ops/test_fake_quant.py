"""Fake quantization."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

from tests.ops.cases import ShapeCase, by_op, check_contradiction, check_shapes
from tests.ops.comparison import Agree
from tests.ops.tiny_graphs import Inferred
from tfconvert.ops.call import Call
from tfconvert.ops.folding import can_fold
from tfconvert.ops.index import MODULES
from tfconvert.ops.registry import evaluate
from tfconvert.schema.diagnostics import ConversionError

BITS = (2, 3, 4, 5, 6, 7, 8, 16)
RANGES = ((-1.0, 1.0), (-0.5, 6.0), (0.0, 6.0), (-6.0, 0.0), (0.3, 2.0), (-3.0, -0.2), (0.0, 0.0))


@pytest.mark.parametrize(("bits", "narrow", "limits"), [*itertools.product(BITS, (False, True), RANGES)])
def test_fake_quant(agree: Agree, bits: int, narrow: bool, limits: tuple[float, float]) -> None:
    options = {"num_bits": bits, "narrow_range": narrow}
    least, greatest = limits
    if least != greatest:
        agree("FakeQuantWithMinMaxArgs", ["f32[2,50]"], {"min": least, "max": greatest, **options})
    agree("FakeQuantWithMinMaxVars", ["f32[2,50]", least, greatest], options)
    ranges = [[least, 2 * least, 0.0], [greatest, greatest, 0.0]]
    agree("FakeQuantWithMinMaxVarsPerChannel", ["f32[20,3]", *ranges], options)


@pytest.mark.parametrize(("bits", "narrow", "limits"), [*itertools.product((2, 8), (False, True), RANGES)])
def test_gradients(agree: Agree, bits: int, narrow: bool, limits: tuple[float, float]) -> None:
    options = {"num_bits": bits, "narrow_range": narrow}
    least, greatest = limits
    if least != greatest:
        given = {"min": least, "max": greatest, **options}
        agree("FakeQuantWithMinMaxArgsGradient", ["f32[2,50]@-8:8", "f32[2,50]@-8:8"], given)
    agree("FakeQuantWithMinMaxVarsGradient", ["f32[2,50]", "f32[2,50]@-8:8", least, greatest], options, tolerance=1e-5)
    ranges = [[least, 2 * least, 0.0], [greatest, greatest, 0.0]]
    operands = ["f32[20,3]", "f32[20,3]@-8:8", *ranges]
    agree("FakeQuantWithMinMaxVarsPerChannelGradient", operands, options, tolerance=1e-5)


@pytest.mark.parametrize("narrow", [False, True])
@pytest.mark.parametrize("mode", ["HALF_TO_EVEN", "HALF_UP"])
@pytest.mark.parametrize("bits", BITS)
@pytest.mark.parametrize("signed", [False, True])
def test_quantize_and_dequantize(agree: Agree, signed: bool, bits: int, mode: str, narrow: bool) -> None:
    options = {"signed_input": signed, "narrow_range": narrow}
    for least, greatest in RANGES:
        given = {**options, "range_given": True}
        operands = ["f32[2,50]", least, greatest]
        agree("QuantizeAndDequantizeV2", operands, {**given, "num_bits": bits, "round_mode": mode})
        agree("QuantizeAndDequantizeV4", operands, {**given, "num_bits": bits, "round_mode": mode, "axis": -1})
        agree("QuantizeAndDequantizeV3", [*operands, bits], given)
    free = {**options, "range_given": False}
    slices = ["f32[2,3,20]", [0.0] * 3, [0.0] * 3]
    agree("QuantizeAndDequantizeV2", ["f32[2,50]", 0.0, 0.0], {**free, "num_bits": bits, "round_mode": mode})
    agree("QuantizeAndDequantizeV2", slices, {**free, "num_bits": bits, "round_mode": mode, "axis": 1})
    agree("QuantizeAndDequantizeV3", [*slices, bits], {**free, "axis": 1})


def test_each_slice_has_its_range(agree: Agree) -> None:
    ranges = [[-1.0, -3.0, -0.1], [2.0, 1.0, 5.0]]
    agree("QuantizeAndDequantizeV3", ["f32[2,3,20]", *ranges, 8], {"range_given": True, "axis": 1})


def test_the_oldest_op_has_its_range_in_attributes() -> None:
    x = np.linspace(-3, 3, 50, dtype=np.float32)
    ranges = (np.float32(-1), np.float32(2))
    old = Call("QuantizeAndDequantize", (x,), {"range_given": True, "input_min": -1.0, "input_max": 2.0})
    new = Call("QuantizeAndDequantizeV2", (x, *map(np.asarray, ranges)), {"range_given": True})
    np.testing.assert_array_equal(evaluate(old)[0], evaluate(new)[0])


def test_constants_keep_their_ranges() -> None:
    ops = [op for op in MODULES["fake_quant"].split() if not op.endswith("Gradient")]
    assert len(ops) == 7
    assert not any(can_fold(op) for op in ops)


@pytest.mark.parametrize("bits", [1, 17])
def test_numbers_of_bits_are_limited(bits: int) -> None:
    with pytest.raises(ConversionError, match="num_bits is"):
        evaluate(Call("FakeQuantWithMinMaxArgs", (np.zeros(2, np.float32),), {"num_bits": bits}))


SHAPES: list[ShapeCase] = [
    ("FakeQuantWithMinMaxArgsGradient", ["f32[?,3]", "f32[2,?]"], {}),
    ("FakeQuantWithMinMaxVarsPerChannel", ["f32[?,?]", "f32[3]", "f32[?]"], {}),
]


@by_op(SHAPES)
def test_shape_function(inferred: Inferred, case: ShapeCase) -> None:
    check_shapes(case, inferred)


CONTRADICTIONS: list[ShapeCase] = [("FakeQuantWithMinMaxVarsPerChannel", ["f32[2,4]", "f32[3]", "f32[3]"], {})]


@by_op(CONTRADICTIONS)
def test_what_tensorflow_refuses_is_refused(tmp_path: Path, case: ShapeCase) -> None:
    check_contradiction(case, tmp_path)
