"""Fake-quantized filters: scales and layouts go through the fake quantization."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.converter.targets.litert.optimize.graph import Graph, f32, random
from tests.support.litert import RunTFLite
from tfconvert.converter.targets.litert import fake_quant
from tfconvert.converter.targets.litert.passes.fold_fake_quant import FoldFakeQuant
from tfconvert.ops.verification import verify
from tfconvert.schema.dialects import tensor_data
from tfconvert.schema.dialects.quant import Uniform
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import I8
from tfconvert.schema.ir.values import Value

SAME: dict[str, Any] = {"padding": "SAME", "stride_h": 1, "stride_w": 1}
LIMITS = (-127, 127)
FACTORS = f32([2, -0.5, 0.25, 3])


def _fake_quant(graph: Graph, value: np.ndarray, narrow: bool = True, **ends: float) -> Value:
    top = float(np.abs(value).max())
    options: dict[str, Any] = {"min": -top, "max": top, "num_bits": 8, "narrow_range": narrow, **ends}
    return graph.op("fake_quant", graph.constant(value), **options)


def _pair(
    graph: Graph, value: np.ndarray, axis: int, zeros: tuple[int, ...] = (), limits: tuple[int, int] | None = LIMITS
) -> Value:
    largest = np.abs(value).max(tuple(at for at in range(value.ndim) if at != axis))
    scales = tuple((largest / np.float32(127)).tolist())
    uniform = Uniform(I8, scales, zeros or (0,) * len(scales), axis, limits)
    return graph.fake_quantized(value, uniform)


def _weighted(graph: Graph, name: str, per_channel: bool) -> Value:
    """Adds a weighted op with a fake-quantized filter of 4 output channels, on an input of 4."""
    x = graph.inputs[0]
    shape = {"conv_2d": (4, 3, 3, 4), "depthwise_conv_2d": (1, 3, 3, 4), "fully_connected": (4, 4)}
    weights = random(*shape.get(name, (4, 3, 3, 4)))
    axis = 3 if name == "depthwise_conv_2d" else 0
    weights_value = _pair(graph, weights, axis) if per_channel else _fake_quant(graph, weights)
    if name == "transpose_conv":
        return graph.op(name, [1, 6, 6, 4], weights_value, x, random(4), shape=(1, 6, 6, 4), **SAME)
    if name == "fully_connected":
        return graph.op(name, x, weights_value, None, keep_num_dims=True)
    more: dict[str, Any] = {"depth_multiplier": 1} if name == "depthwise_conv_2d" else {}
    return graph.op(name, x, weights_value, random(4), **SAME, **more)


def _check(graph: Graph, expected: list[str], run_tflite: RunTFLite, tolerance: float = 1e-5) -> Operation:
    """Compares what a graph computes with all folded before and after it is optimized; returns the weighted op."""
    before = graph.module.clone()
    FoldFakeQuant().apply(before)
    inputs = [random(*(value.shape or ()), scale=3) for value in graph.inputs]
    plain = Graph.of(before).run(run_tflite, inputs)
    graph.optimize()
    weighted = graph.ops[-1]
    names = [op.name.removeprefix("tfl.") for op in graph.ops]
    FoldFakeQuant().apply(graph.module)
    verify(graph.module)
    assert names == expected
    for old, new in zip(plain, graph.run(run_tflite, inputs), strict=True):
        np.testing.assert_allclose(new, old, rtol=tolerance, atol=tolerance * float(np.abs(old).max(initial=1)))
    return weighted


@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("name", ["conv_2d", "depthwise_conv_2d", "fully_connected", "transpose_conv"])
def test_a_scale_after_goes_into_filter_and_ranges(name: str, per_channel: bool, run_tflite: RunTFLite) -> None:
    graph = Graph((1, 6, 6, 4))
    scaled = graph.op("mul", _weighted(graph, name, per_channel), FACTORS)
    graph.returns(graph.op("relu6", graph.op("add", scaled, random(4))))
    _check(graph, ["quantize", "dequantize", name], run_tflite)


def test_one_factor_for_all_keeps_one_range(run_tflite: RunTFLite) -> None:
    graph = Graph((1, 6, 6, 4))
    graph.returns(graph.op("mul", _weighted(graph, "conv_2d", per_channel=False), -3.0))
    _check(graph, ["fake_quant", "conv_2d"], run_tflite)


@pytest.mark.parametrize("limits", [None, LIMITS])
def test_negative_factors_mirror_the_integers(limits: tuple[int, int] | None, run_tflite: RunTFLite) -> None:
    graph = Graph((1, 6, 6, 3))
    weights = _pair(graph, random(4, 3, 3, 3), 0, (5, -40, 0, 100), limits)
    bias = np.zeros(4, np.float32)
    conv = graph.op("conv_2d", graph.inputs[0], weights, bias, shape=(1, 6, 6, 4), **SAME)
    graph.returns(graph.op("mul", conv, -FACTORS))
    conv_op = _check(graph, ["quantize", "dequantize", "conv_2d"], run_tflite)
    assert conv_op.name == "tfl.conv_2d"


def test_a_channel_without_scale_keeps_its_own() -> None:
    uniform = Uniform(I8, (0.5, 0.25), (3, 4), 0, LIMITS)
    made = fake_quant.scaled_uniform(uniform, f32([0, -2]), 0)
    assert made == Uniform(I8, (0.5, 0.5), (3, -4), 0, LIMITS)


def test_ranges_along_another_dimension_stop_folding(run_tflite: RunTFLite) -> None:
    graph = Graph((1, 6, 6, 3))
    weights = _pair(graph, random(4, 3, 3, 3), 3)
    conv = graph.op("conv_2d", graph.inputs[0], weights, np.zeros(4, np.float32), shape=(1, 6, 6, 4), **SAME)
    graph.returns(graph.op("mul", conv, FACTORS))
    _check(graph, ["quantize", "dequantize", "conv_2d", "mul"], run_tflite)


def test_computed_filters_are_not_scaled(run_tflite: RunTFLite) -> None:
    graph = Graph((2, 4), (3, 4))
    rounded = graph.op("fake_quant", graph.inputs[1], min=-4.0, max=4.0, num_bits=8, narrow_range=False)
    product = graph.op("fully_connected", graph.inputs[0], rounded, None, shape=(2, 3))
    graph.returns(graph.op("mul", product, random(3)))
    _check(graph, ["fake_quant", "fully_connected", "mul"], run_tflite)


@pytest.mark.parametrize("per_channel", [False, True])
def test_layouts_are_changed_below(per_channel: bool, run_tflite: RunTFLite) -> None:
    graph = Graph((2, 12))
    value = random(3, 4, 5)
    weights = _pair(graph, value, 2) if per_channel else _fake_quant(graph, value)
    flat = graph.op("reshape", weights, [12, 5], shape=(12, 5))
    moved = graph.op("transpose", flat, [1, 0], shape=(5, 12))
    graph.returns(graph.op("fully_connected", graph.inputs[0], moved, None, shape=(2, 5)))
    names = ["quantize", "dequantize"] if per_channel else ["fake_quant"]
    op = _check(graph, [*names, "fully_connected"], run_tflite)
    assert tensor_data.constant_of(op.operands[1]) is not None


def test_a_reshape_that_cuts_the_axis_stays(run_tflite: RunTFLite) -> None:
    graph = Graph((2, 3))
    weights = graph.op("reshape", _pair(graph, random(4, 3), 0), [2, 2, 3], shape=(2, 2, 3))
    graph.returns(graph.op("add", weights, graph.inputs[0], shape=(2, 2, 3)))
    _check(graph, ["quantize", "dequantize", "reshape", "add"], run_tflite)


@pytest.mark.parametrize("per_channel", [False, True])
def test_grouped_filters_become_depthwise(per_channel: bool, run_tflite: RunTFLite) -> None:
    graph = Graph((1, 6, 6, 4))
    value = random(8, 3, 3, 1)
    weights = _pair(graph, value, 0) if per_channel else _fake_quant(graph, value)
    bias = np.zeros(8, np.float32)
    graph.returns(graph.op("conv_2d", graph.inputs[0], weights, bias, shape=(1, 6, 6, 8), **SAME))
    names = ["quantize", "dequantize"] if per_channel else ["fake_quant"]
    _check(graph, [*names, "depthwise_conv_2d"], run_tflite)


@pytest.mark.parametrize(
    ("before", "axis", "after", "scales", "new_axis"),
    [
        ((3, 3, 2, 4), 3, (1, 3, 3, 8), [1, 2, 3, 4, 1, 2, 3, 4], 3),
        ((3, 3, 2, 4), 2, (1, 3, 3, 8), [1, 1, 1, 1, 2, 2, 2, 2], 3),
        ((3, 4), 1, (1, 3, 1, 4), [1, 2, 3, 4], 3),
        ((4, 3, 2), 0, (4, 6), [1, 2, 3, 4], 0),
        ((2, 4, 3), 1, (8, 3), [1, 2, 3, 4, 1, 2, 3, 4], 0),
        ((2, 4, 3), 1, (24,), np.tile(np.repeat([1, 2, 3, 4], 3), 2).tolist(), 0),
        ((4, 6), 0, (2, 2, 6), None, None),
        ((4, 6), 1, (8, 3), None, None),
    ],
)
def test_axes_are_renumbered(
    before: tuple[int, ...], axis: int, after: tuple[int, ...], scales: list[int] | None, new_axis: int | None
) -> None:
    graph = Graph((1,))
    count = before[axis]
    uniform = Uniform(I8, tuple(map(float, range(1, count + 1))), tuple(range(count)), axis)
    value = graph.fake_quantized(random(*before), uniform)
    assert fake_quant.can_reshape(value, after) == (scales is not None)
    moved = fake_quant.reshaped(lambda op: op, value, after)
    if scales is None:
        assert moved is None
        return
    assert moved is not None
    assert moved.shape == after
    found = fake_quant.uniform_of(moved)
    assert (list(found.scales), found.axis) == (scales, new_axis)
    # Slices along the new axis are multiples of the old axis' scales, as the elements are.
    marks = np.broadcast_to(
        np.arange(1.0, count + 1).reshape([-1 if at == axis else 1 for at in range(len(before))]), before
    )
    shape = [-1 if at == found.axis else 1 for at in range(len(after))]
    np.testing.assert_array_equal(marks.reshape(after), np.broadcast_to(np.array(found.scales).reshape(shape), after))
