"""Fake quantization in floats: every op with all of its attributes."""

from __future__ import annotations

import itertools
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tfconvert
from tests.converter.targets.litert.legalize.cases import Case, Check, converted
from tests.support.litert import RunTFLite
from tests.support.sample_models import traced
from tfconvert.schema.diagnostics import ConversionError

BITS = (2, 3, 4, 5, 6, 7, 8, 16)
RANGES = ((-1.0, 1.0), (-0.5, 6.0), (0.0, 6.0), (-6.0, 0.0), (0.3, 2.0), (-3.0, -0.2))
BOTH = (False, True)
AND_BACK = ("QuantizeAndDequantizeV2", "QuantizeAndDequantizeV4")


def _per_tensor(bits: int, narrow: bool, ends: tuple[float, float], *, constant: bool) -> list[Case]:
    options: dict[str, Any] = {"num_bits": bits, "narrow_range": narrow}
    spec = "=f32[2,50]" if constant else "f32[?2,50]"
    return [
        Case("FakeQuantWithMinMaxArgs", [spec], {"min": ends[0], "max": ends[1], **options}),
        Case("FakeQuantWithMinMaxVars", [spec, *ends], options),
    ]


def _per_channel(bits: int, narrow: bool, *, constant: bool) -> Case:
    ranges = [list(part) for part in zip(*RANGES, (0.0, 0.0), strict=True)]
    spec = "=f32[20,7]" if constant else "f32[?20,7]"
    return Case("FakeQuantWithMinMaxVarsPerChannel", [spec, *ranges], {"num_bits": bits, "narrow_range": narrow})


def _near(bits: int) -> float:
    """Returns the tolerance: 32-bit floats don't tell exactly which of two numbers of 16 bits is nearer."""
    return 1e-4 if bits == 16 else 2e-6


def _and_back(signed: bool, bits: int, narrow: bool, mode: str, *, constant: bool) -> list[Case]:
    spec = "=f32[2,5,3]" if constant else "f32[?2,5,3]"
    options = {"signed_input": signed, "narrow_range": narrow}
    given = {**options, "range_given": True}
    free = {**options, "range_given": False}
    more = {"num_bits": bits, "round_mode": mode}
    ranges = [[-1.0, 0.0, -2.0], [0.5, 2.0, 0.1]]
    cases = [
        *(Case(op, [spec, *ends], {**given, **more}) for op in AND_BACK for ends in RANGES),
        *(Case(op, [spec, 0.0, 0.0], {**free, **more, "axis": -1}) for op in AND_BACK),
        Case("QuantizeAndDequantizeV2", [spec, [0.0] * 3, [0.0] * 3], {**free, **more, "axis": 2}),
        Case("QuantizeAndDequantizeV2", [f"{spec}@1:3", 0.0, 0.0], {**free, **more}),
        Case("QuantizeAndDequantizeV3", [spec, -1.0, 2.0, bits], given),
        Case("QuantizeAndDequantizeV3", [spec, *ranges, bits], {**given, "axis": 2}),
        Case("QuantizeAndDequantizeV3", [spec, [0.0] * 5, [0.0] * 5, bits], {**free, "axis": 1}),
    ]
    return [replace(case, tolerance=_near(bits)) for case in cases]


CASES = [
    *(
        case
        for bits, narrow, constant in itertools.product(BITS, BOTH, BOTH)
        for case in (
            *_per_tensor(bits, narrow, RANGES[bits % len(RANGES)], constant=constant),
            _per_channel(bits, narrow, constant=constant),
        )
    ),
    *(case for ends in RANGES for case in _per_tensor(8, False, ends, constant=False)),
    *(
        case
        for signed, bits, narrow, constant in itertools.product(BOTH, (2, 5, 8, 16), BOTH, BOTH)
        for case in _and_back(signed, bits, narrow, "HALF_UP" if bits == 5 else "HALF_TO_EVEN", constant=constant)
    ),
]
"""`QuantizeAndDequantize` isn't among them: TensorFlow runs it in graphs of its first years only."""


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fake_quant(check: Check, case: Case) -> None:
    check(case)


def test_one_range_is_one_operator(check: Check) -> None:
    assert check(_per_tensor(8, False, (-1, 1), constant=False)[0]) == ["FAKE_QUANT"]
    assert check(_and_back(True, 8, True, "HALF_UP", constant=False)[0]) == ["FAKE_QUANT", "MAXIMUM"]


def test_a_range_of_nothing_but_zero_gives_zeros(check: Check) -> None:
    assert "FAKE_QUANT" not in check(Case("FakeQuantWithMinMaxVars", ["f32[?3]", 0.0, 0.0]))
    check(Case("QuantizeAndDequantizeV2", ["f32[?3]", 0.0, 0.0], {"range_given": True}))
    zeros = np.zeros((4, 2), np.float32)
    check(Case("FakeQuantWithMinMaxVarsPerChannel", [zeros, [0.0, -1.0], [0.0, 1.0]]))


def test_the_oldest_op_isconverted(tmp_path: Path) -> None:
    case = Case("QuantizeAndDequantize", ["f32[2,3]"], {"range_given": True, "input_min": -1.0, "input_max": 2.0})
    assert converted(case, tmp_path).report.operators == {"FAKE_QUANT": 1}


REFUSED = [
    (Case("FakeQuantWithMinMaxVars", ["f32[3]", 1.0, 1.0]), "its range is empty or not finite"),
    (Case("FakeQuantWithMinMaxVars", ["f32[3]", -1.0, float("inf")]), "its range is empty or not finite"),
    (Case("FakeQuantWithMinMaxVars", ["f32[3]", -1.0, 1.0], {"num_bits": 17}), "num_bits is 17, not 2 to 16"),
    (Case("QuantizeAndDequantizeV3", ["f32[3]", -1.0, 1.0, "i32[]"]), "the number of bits is not a constant"),
    (Case("QuantizeAndDequantizeV2", ["f32[3]", -1.0, 1.0], {"num_bits": 1}), "num_bits is 1, not 2 to 16"),
    (Case("QuantizeAndDequantizeV2", ["f32[3]", -1.0, np.float32("inf")], {"range_given": True}), "is not finite"),
]


@pytest.mark.parametrize(("case", "reason"), REFUSED, ids=str)
def test_what_is_refused(case: Case, reason: str, tmp_path: Path) -> None:
    with pytest.raises(ConversionError, match=reason) as caught:
        converted(case, tmp_path)
    assert "after training" in caught.value.diagnostics[0].hint


@pytest.mark.parametrize(("bits", "narrow"), list(itertools.product((4, 8), BOTH)))
@pytest.mark.parametrize("ends", [("@-3:-1", "@1:4"), ("@0.5:1", "@2:4"), ("@-4:-3", "@-2:-1")])
def test_computed_ranges(bits: int, narrow: bool, ends: tuple[str, str], check: Check) -> None:
    options = {"num_bits": bits, "narrow_range": narrow}
    check(Case("FakeQuantWithMinMaxVars", ["f32[?2,50]", *(f"f32[]{end}" for end in ends)], options))
    operands = ["f32[?20,7]", *(f"f32[7]{end}" for end in ends)]
    check(Case("FakeQuantWithMinMaxVarsPerChannel", operands, options))


_GREATEST = np.abs(np.random.default_rng(3).normal(size=24)).astype(np.float32)
_LEAST = np.concatenate([-_GREATEST[:16], -2 * _GREATEST[16:20], np.zeros(2, np.float32), _GREATEST[22:] / 4])


def _halves(bits: int, narrow: bool) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Returns numbers for each range, many of them halfway between two that integers represent."""
    steps = (_GREATEST - _LEAST) / np.float32(2**bits - 1 - narrow)
    between = (np.arange(-150, 150, dtype=np.float32)[:, None] + np.float32(0.5)) * steps
    return np.concatenate([between, np.random.default_rng(4).normal(size=(200, len(steps))).astype(np.float32)])


_FAKE = ("", "_gradient")
_COMPUTED = {
    **{f"vars{kind}": (f"fake_quant_with_min_max_vars{kind}", False) for kind in _FAKE},
    **{f"per_channel{kind}": (f"fake_quant_with_min_max_vars_per_channel{kind}", True) for kind in _FAKE},
}


@pytest.mark.parametrize(("bits", "narrow"), [(8, False), (3, True), (16, False)])
@pytest.mark.parametrize("name", _COMPUTED)
def test_computed_ranges_round_to_the_same_bit(
    name: str, bits: int, narrow: bool, tf: ModuleType, run_tflite: RunTFLite
) -> None:
    function, is_whole = _COMPUTED[name]
    quantized = partial(getattr(tf.quantization, function), num_bits=bits, narrow_range=narrow)

    @traced(tf, *(tf.TensorSpec([None, 24][-rank:], name=each) for each, rank in (("x", 2), ("a", 1), ("b", 1))))
    def call(x: Any, a: Any, b: Any) -> Any:
        given = [x] if not name.endswith("gradient") else [tf.ones_like(x), x]
        if is_whole:
            return {"y": quantized(*given, a, b)} if len(given) == 1 else {"y": quantized(*given, a, b)[0]}
        parts = [quantized(*(each[:, at] for each in given), a[at], b[at]) for at in range(24)]
        return {"y": tf.stack([part if len(given) == 1 else part[0] for part in parts], 1)}

    x = _halves(bits, narrow)
    inputs = dict(zip("xab", (x, _LEAST, _GREATEST), strict=True))
    (got,) = run_tflite(bytes(tfconvert.convert(call)), inputs, signature="serving_default")
    np.testing.assert_array_equal(got, call(*map(tf.constant, inputs.values()))["y"])


@pytest.mark.parametrize(("bits", "narrow"), [(8, False), (3, True)])
@pytest.mark.parametrize(("axis", "given"), [(-1, False), (-1, True), (1, False)])
@pytest.mark.parametrize("signed", BOTH)
def test_numbers_and_back_round_to_the_same_bit(
    bits: int, narrow: bool, signed: bool, axis: int, given: bool, tf: ModuleType, run_tflite: RunTFLite
) -> None:
    shared = {"signed_input": signed, "narrow_range": narrow, "range_given": given, "num_bits": bits, "axis": axis}

    @traced(tf, *(tf.TensorSpec([None, 24][-rank:], name=each) for each, rank in (("x", 2), ("a", 1), ("b", 1))))
    def call(x: Any, a: Any, b: Any) -> Any:
        def rounded(op: str, x: Any, a: Any, b: Any) -> Any:
            options = {**shared, **({} if op == "V3" else {"round_mode": "HALF_UP"})}
            return getattr(tf.raw_ops, f"QuantizeAndDequantize{op}")(input=x, input_min=a, input_max=b, **options)

        def both(op: str) -> Any:
            if axis >= 0:
                return rounded(op, x, a, b)
            return tf.stack([rounded(op, x[:, at], a[at], b[at]) for at in range(24)], 1)

        return {op: both(op) for op in ("V2", "V3", "V4")}

    inputs = dict(zip("xab", (_halves(bits, narrow), _LEAST, _GREATEST), strict=True))
    results = run_tflite(bytes(tfconvert.convert(call)), inputs, signature="serving_default")
    wanted = call(*map(tf.constant, inputs.values()))
    for got, name in zip(results, sorted(wanted), strict=True):
        np.testing.assert_array_equal(got, wanted[name], name)


def test_constants_are_moved_before_they_are_rounded(tf: ModuleType, run_tflite: RunTFLite) -> None:
    weights = np.random.default_rng(0).normal(size=(4, 3, 2)).astype(np.float32)

    @traced(tf, tf.TensorSpec([2, 3, 4], name="x"))
    def call(x: Any) -> Any:
        whole = tf.quantization.fake_quant_with_min_max_args(weights, -1, 1, 4)
        parts = tf.quantization.fake_quant_with_min_max_vars_per_channel(weights, [-1.0, -2.0], [1.0, 0.5], 5)
        return {
            "a": x * tf.transpose(whole),
            "b": x * tf.transpose(parts, [2, 1, 0]),
            "c": x * tf.reshape(whole, [2, 3, 4]),
            "d": tf.squeeze(tf.expand_dims(tf.transpose(parts, [1, 0, 2]), 0), 0) + x[0, 0, 0],
        }

    x = np.random.default_rng(1).normal(size=(2, 3, 4)).astype(np.float32)
    model = tfconvert.convert(call)
    assert not {"TRANSPOSE", "RESHAPE", "QUANTIZE", "FAKE_QUANT"} & model.report.operators.keys()
    got = run_tflite(bytes(model), {"x": x}, signature="serving_default")
    for each, wanted in zip(got, call(tf.constant(x)).values(), strict=True):
        np.testing.assert_allclose(each, wanted, rtol=1e-6)
