"""Padding that goes into convolutions, and padding that must not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.converter.targets.litert.optimize.graph import Graph, check, i32, random
from tests.support.litert import RunTFLite
from tfconvert.schema.dialects import tfl
from tfconvert.schema.ir.values import Value

Pads = tuple[tuple[int, int], ...]


def _pad(graph: Graph, value: Value, dims: tuple[int, ...], pads: Pads) -> tuple[Value, tuple[int, ...]]:
    shape = tuple(dim + before + after for dim, (before, after) in zip(dims, pads, strict=True))
    return graph.op("pad", value, i32(pads), shape=shape), shape


def _convolved(size: int, pads: tuple[int, int], window: int, stride: int, dilation: int = 1) -> Graph:
    dims = (1, size, size, 2)
    graph = Graph(dims)
    value, padded = _pad(graph, graph.inputs[0], dims, ((0, 0), pads, pads, (0, 0)))
    out = (padded[1] - (window - 1) * dilation - 1) // stride + 1
    sides = ("h", "w")
    options: dict[str, Any] = {"padding": "VALID"}
    options |= {f"stride_{side}": stride for side in sides} | {f"dilation_{side}_factor": dilation for side in sides}
    weights, bias = random(3, window, window, 2), random(3)
    return graph.returns(graph.op("conv_2d", value, weights, bias, shape=(1, out, out, 3), **options))


@pytest.mark.parametrize(
    ("size", "pads", "window", "stride", "dilation"),
    [(8, (1, 1), 3, 1, 1), (8, (0, 1), 3, 2, 1), (7, (1, 1), 3, 2, 1), (8, (2, 2), 3, 1, 2), (8, (0, 2), 3, 2, 1)],
)
def test_same_padding_goes_into_the_convolution(
    size: int, pads: tuple[int, int], window: int, stride: int, dilation: int, run_tflite: RunTFLite
) -> None:
    graph = _convolved(size, pads, window, stride, dilation)
    check(graph, ["conv_2d"], run_tflite)
    assert tfl.attribute(graph.ops[0], "padding") == "SAME"


@pytest.mark.parametrize(
    ("size", "pads", "window", "stride"), [(8, (1, 1), 3, 2), (8, (2, 2), 3, 1), (8, (3, 3), 7, 2), (8, (0, 1), 3, 1)]
)
def test_other_padding_stays(size: int, pads: tuple[int, int], window: int, stride: int, run_tflite: RunTFLite) -> None:
    check(_convolved(size, pads, window, stride), ["pad", "conv_2d"], run_tflite)


@settings(max_examples=60)
@given(
    size=st.integers(4, 9),
    before=st.integers(0, 3),
    after=st.integers(0, 3),
    window=st.integers(1, 4),
    stride=st.integers(1, 3),
    dilation=st.integers(1, 2),
)
def test_padding_never_changes_the_result(
    size: int, before: int, after: int, window: int, stride: int, dilation: int, run_tflite: RunTFLite
) -> None:
    if stride > 1 or (window - 1) * dilation + 1 > size + before + after:
        dilation = 1
    graph = _convolved(size, (before, after), window, stride, dilation)
    inputs = [random(1, size, size, 2)]
    expected = graph.run(run_tflite, inputs)[0]
    graph.optimize()
    np.testing.assert_allclose(graph.run(run_tflite, inputs)[0], expected, rtol=1e-5, atol=1e-5)


def test_padded_channels_stay(run_tflite: RunTFLite) -> None:
    dims = (1, 6, 6, 2)
    graph = Graph(dims)
    value, _ = _pad(graph, graph.inputs[0], dims, ((0, 0), (1, 1), (1, 1), (0, 1)))
    weights = random(3, 3, 3, 3)
    options: dict[str, Any] = {"padding": "VALID", "stride_h": 1, "stride_w": 1}
    graph.returns(graph.op("conv_2d", value, weights, random(3), shape=(1, 6, 6, 3), **options))
    check(graph, ["pad", "conv_2d"], run_tflite)


def test_padding_used_twice_stays_for_the_other_user(run_tflite: RunTFLite) -> None:
    dims = (1, 6, 6, 2)
    graph = Graph(dims)
    value, padded = _pad(graph, graph.inputs[0], dims, ((0, 0), (1, 1), (1, 1), (0, 0)))
    graph.returns(graph.conv(value, random(3, 3, 3, 2), padding="VALID"), graph.op("neg", value, shape=padded))
    check(graph, ["pad", "conv_2d", "neg"], run_tflite)
    assert tfl.attribute(graph.ops[1], "padding") == "SAME"


def test_padding_of_two_convolutions_vanishes(run_tflite: RunTFLite) -> None:
    dims = (1, 6, 6, 2)
    graph = Graph(dims)
    value, _ = _pad(graph, graph.inputs[0], dims, ((0, 0), (1, 1), (1, 1), (0, 0)))
    graph.returns(*(graph.conv(value, random(3, 3, 3, 2, seed=seed), padding="VALID") for seed in (1, 2)))
    check(graph, ["conv_2d", "conv_2d"], run_tflite)


def test_paddings_add_up(run_tflite: RunTFLite) -> None:
    graph = Graph((2, 3))
    value, dims = _pad(graph, graph.inputs[0], (2, 3), ((1, 0), (0, 2)))
    value, _ = _pad(graph, value, dims, ((0, 1), (1, 0)))
    graph.returns(value)
    check(graph, ["pad"], run_tflite)


def test_no_padding_vanishes(run_tflite: RunTFLite) -> None:
    graph = Graph((2, 3))
    value, _ = _pad(graph, graph.op("neg", graph.inputs[0]), (2, 3), ((0, 0), (0, 0)))
    graph.returns(graph.op("abs", value))
    check(graph, ["neg", "abs"], run_tflite)


def _phases(
    size: int, rate: int, window: int, padding: str, *, crop: int = 0, shift: int = 0, depthwise: bool = False
) -> Graph:
    """Builds a dilated convolution as TensorFlow writes it; `crop` and `shift` spoil it."""
    total = (window - 1) * rate if padding == "SAME" else 0
    before = total // 2 + shift
    filling = -(size + total) % rate
    after = total - total // 2 - shift + filling
    padded = size + before + after
    graph = Graph((1, size, size, 2))
    pads = i32([[before, after]] * 2)
    phase = padded // rate
    value = graph.op("space_to_batch_nd", graph.inputs[0], [rate, rate], pads, shape=(rate * rate, phase, phase, 2))
    out = phase - window + 1
    options: dict[str, Any] = {"padding": "VALID", "stride_h": 1, "stride_w": 1}
    if depthwise:
        options["depth_multiplier"] = 1
        name, weights, channels = "depthwise_conv_2d", random(1, window, window, 2), 2
    else:
        name, weights, channels = "conv_2d", random(3, window, window, 2), 3
    value = graph.op(name, value, weights, random(channels), shape=(rate * rate, out, out, channels), **options)
    crops = i32([[crop, filling]] * 2)
    result = out * rate - crop - filling
    return graph.returns(graph.op("batch_to_space_nd", value, [rate, rate], crops, shape=(1, result, result, channels)))


@pytest.mark.parametrize("depthwise", [False, True])
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize(("size", "rate", "window"), [(12, 2, 3), (11, 2, 3), (13, 3, 3), (12, 4, 2)])
def test_phases_are_dilation(
    size: int, rate: int, window: int, padding: str, depthwise: bool, run_tflite: RunTFLite
) -> None:
    graph = _phases(size, rate, window, padding, depthwise=depthwise)
    check(graph, ["depthwise_conv_2d" if depthwise else "conv_2d"], run_tflite)
    op = graph.ops[0]
    assert tfl.attribute(op, "padding") == padding
    assert (tfl.attribute(op, "dilation_h_factor"), tfl.attribute(op, "dilation_w_factor")) == (rate, rate)


@pytest.mark.parametrize("spoilt", [{"crop": 1}, {"shift": 1}])
def test_other_phases_stay(spoilt: dict[str, int], run_tflite: RunTFLite) -> None:
    graph = _phases(12, 2, 3, "SAME", **spoilt)  # type: ignore[arg-type]  # all are ints
    check(graph, ["space_to_batch_nd", "conv_2d", "batch_to_space_nd"], run_tflite)


def test_convolutions_that_share_their_phases_are_dilated_too(run_tflite: RunTFLite) -> None:
    graph = Graph((1, 24, 2))
    phases = graph.op("space_to_batch_nd", graph.inputs[0], [2], i32([[0, 0]]), shape=(2, 12, 2))
    images = graph.op("reshape", phases, [2, 1, 12, 2], shape=(2, 1, 12, 2), new_shape=(2, 1, 12, 2))
    results = []
    for seed in (1, 2):
        value = graph.conv(images, random(3, 1, 2, 2, seed=seed), padding="VALID")
        value = graph.op("reshape", value, [2, 11, 3], shape=(2, 11, 3), new_shape=(2, 11, 3))
        results.append(graph.op("batch_to_space_nd", value, [2], i32([[0, 0]]), shape=(1, 22, 3)))
    graph.returns(*results)
    check(graph, ["reshape", "conv_2d", "reshape", "reshape", "conv_2d", "reshape"], run_tflite)


def _padded_rows(graph: Graph, pads: tuple[int, int], images: tuple[int, ...]) -> Value:
    value, _ = _pad(graph, graph.inputs[0], (1, 20, 4), ((0, 0), pads, (0, 0)))
    return graph.op("reshape", value, list(images), shape=images, new_shape=images)


def test_rows_are_padded_as_images(run_tflite: RunTFLite) -> None:
    graph = Graph((1, 20, 4))
    value = _padded_rows(graph, (3, 0), (1, 1, 23, 4))
    graph.returns(graph.conv(value, random(5, 1, 4, 4), padding="VALID"))
    check(graph, ["reshape", "pad", "conv_2d"], run_tflite)


def test_rows_that_become_the_pixels_of_an_image_are_padded_before(run_tflite: RunTFLite) -> None:
    graph = Graph((1, 20, 4))
    value = _padded_rows(graph, (4, 0), (1, 4, 6, 4))
    graph.returns(graph.conv(value, random(5, 2, 2, 4), padding="VALID"))
    check(graph, ["pad", "reshape", "conv_2d"], run_tflite)
