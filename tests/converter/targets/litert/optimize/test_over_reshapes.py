"""One-dimensional convolutions: dilated ones, and the reshapes around all of them."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tfconvert
from tests.converter.targets.litert.optimize.graph import Graph, check, i32, random
from tests.support.litert import RunTFLite
from tfconvert.schema.dialects import tfl


def _phases(
    size: int,
    rate: int,
    window: int,
    padding: str,
    *,
    crop: int = 0,
    depthwise: bool = False,
    batch: int = 1,
    high: bool = False,
) -> Graph:
    """Builds a dilated convolution of rows as TensorFlow writes it; `crop` and `high` spoil it."""
    total = (window - 1) * rate if padding == "SAME" else 0
    before = total // 2
    filling = -(size + total) % rate
    after = total - before + filling
    phase = (size + before + after) // rate
    graph = Graph((batch, size, 2))
    rows = batch * rate if batch > 0 else -1
    row, image = (rows, phase, 2), (rows, phase, 1, 2) if high else (rows, 1, phase, 2)
    value = graph.op("space_to_batch_nd", graph.inputs[0], [rate], i32([[before, after]]), shape=row)
    value = graph.op("reshape", value, list(image), shape=image)
    channels, out = 2 if depthwise else 3, phase - window + 1
    options: dict[str, Any] = {"padding": "VALID", "stride_h": 1, "stride_w": 1}
    name, kernel = ("depthwise_conv_2d", (1, 1, window, 2)) if depthwise else ("conv_2d", (3, 1, window, 2))
    if depthwise:
        options["depth_multiplier"] = 1
    if high:
        kernel = (kernel[0], window, 1, 2)
    row, image = (rows, out, channels), (rows, out, 1, channels) if high else (rows, 1, out, channels)
    value = graph.op(name, value, random(*kernel), random(channels), shape=image, **options)
    value = graph.op("reshape", value, list(row), shape=row)
    result = out * rate - crop - filling
    crops = i32([[crop, filling]])
    return graph.returns(graph.op("batch_to_space_nd", value, [rate], crops, shape=(batch, result, channels)))


@pytest.mark.parametrize("batch", [1, 3, -1])
@pytest.mark.parametrize("depthwise", [False, True])
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize(("size", "rate", "window"), [(12, 2, 3), (11, 2, 3), (13, 3, 3), (12, 4, 2)])
def test_phases_of_rows_are_dilation(
    size: int, rate: int, window: int, padding: str, depthwise: bool, batch: int, run_tflite: RunTFLite
) -> None:
    graph = _phases(size, rate, window, padding, depthwise=depthwise, batch=batch)
    check(graph, ["reshape", "depthwise_conv_2d" if depthwise else "conv_2d", "reshape"], run_tflite)
    op = graph.ops[1]
    assert tfl.attribute(op, "padding") == padding
    assert (tfl.attribute(op, "dilation_h_factor"), tfl.attribute(op, "dilation_w_factor")) == (1, rate)


@pytest.mark.parametrize("spoilt", [{"crop": 1}, {"high": True}])
def test_other_phases_of_rows_stay(spoilt: dict[str, int], run_tflite: RunTFLite) -> None:
    graph = _phases(12, 2, 3, "SAME", **spoilt)  # type: ignore[arg-type]  # all are ints
    check(graph, ["space_to_batch_nd", "reshape", "conv_2d", "reshape", "batch_to_space_nd"], run_tflite)


@pytest.mark.parametrize("names", [("tanh",), ("logistic",), ("abs", "sqrt", "neg")])
def test_elementwise_ops_between_reshapes_take_what_the_first_one_takes(
    names: tuple[str, ...], run_tflite: RunTFLite
) -> None:
    graph = Graph((2, 3, 4))
    value = graph.op("reshape", graph.inputs[0], [6, 4], shape=(6, 4))
    for name in names:
        value = graph.op(name, value)
    graph.returns(graph.op("reshape", value, [3, 8], shape=(3, 8)))
    check(graph, [*names, "reshape"], run_tflite)


def test_a_restored_shape_needs_no_reshape(run_tflite: RunTFLite) -> None:
    graph = Graph((-1, 1, 5, 4))
    value = graph.op("tanh", graph.op("reshape", graph.inputs[0], [-1, 5, 4], shape=(-1, 5, 4)))
    graph.returns(graph.op("reshape", value, [-1, 1, 5, 4], shape=(-1, 1, 5, 4)))
    check(graph, ["tanh"], run_tflite)


@pytest.mark.parametrize("used", ["first", "middle"])
def test_reshapes_that_are_used_elsewhere_stay(used: str, run_tflite: RunTFLite) -> None:
    graph = Graph((2, 3, 4))
    first = graph.op("reshape", graph.inputs[0], [6, 4], shape=(6, 4))
    middle = graph.op("tanh", first)
    last = graph.op("reshape", middle, [3, 8], shape=(3, 8))
    graph.returns(last, graph.op("softmax", first if used == "first" else middle, beta=1.0))
    check(graph, ["reshape", "tanh", "reshape", "softmax"], run_tflite)


def test_softmax_is_not_moved(run_tflite: RunTFLite) -> None:
    graph = Graph((2, 3, 4))
    value = graph.op("softmax", graph.op("reshape", graph.inputs[0], [6, 4], shape=(6, 4)), beta=1.0)
    graph.returns(graph.op("reshape", value, [3, 8], shape=(3, 8)))
    check(graph, ["reshape", "softmax", "reshape"], run_tflite)


@pytest.mark.parametrize("name", ["mean", "sum", "reduce_max"])
@pytest.mark.parametrize("between", [(), ("logistic",)])
@pytest.mark.parametrize(
    ("before", "after", "axes", "whole"),
    [
        ((2, 1, 5, 4), (2, 5, 4), [1], (1, 2)),
        ((-1, 1, 5, 4), (-1, 5, 4), [-2], (1, 2)),
        ((1, 5, 1, 4), (5, 4), [0], (0, 1, 2)),
        ((1, 1, 4), (1, 4), [1], (1, 2)),
    ],
)
def test_dimensions_of_one_element_are_reduced_instead_of_left_out(
    name: str,
    between: tuple[str, ...],
    before: tuple[int, ...],
    after: tuple[int, ...],
    axes: list[int],
    whole: tuple[int, ...],
    run_tflite: RunTFLite,
) -> None:
    graph = Graph(before)
    value = graph.op("reshape", graph.inputs[0], list(after), shape=after)
    for each in between:
        value = graph.op(each, value)
    left = [dim for index, dim in enumerate(after) if index not in {axis % len(after) for axis in axes}]
    graph.returns(graph.op(name, value, axes, shape=left, keep_dims=False))
    check(graph, [*between, name], run_tflite)
    owner = graph.ops[-1].operands[1].owner
    assert "dense<[" + ", ".join(map(str, whole)) + "]>" in str(owner)


@pytest.mark.parametrize(("after", "keep"), [((2, 5, 4), True), ((2, 20), False), ((1, 2, 5, 4), False)])
def test_other_reductions_stay(after: tuple[int, ...], keep: bool, run_tflite: RunTFLite) -> None:
    graph = Graph((2, 1, 5, 4))
    value = graph.op("reshape", graph.inputs[0], list(after), shape=after)
    shape = [1 if index == 1 else dim for index, dim in enumerate(after) if keep or index != 1]
    graph.returns(graph.op("mean", value, [1], shape=shape, keep_dims=keep))
    check(graph, ["reshape", "mean"], run_tflite)


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_a_row_of_layers_has_a_reshape_at_its_beginning_only(
    padding: str, tf: ModuleType, tmp_path: Path, run_tflite: RunTFLite
) -> None:
    filters = [tf.constant(random(*shape, scale=0.5)) for shape in ((3, 4, 6), (2, 6, 8), (3, 8, 5))]
    biases = [tf.constant(random(channels)) for channels in (6, 8, 5)]

    def layers(x: Any) -> Any:
        for kernel, bias, rate, activation in zip(
            filters, biases, (1, 2, 3), (tf.tanh, tf.nn.relu, tf.sigmoid), strict=True
        ):
            x = activation(tf.nn.bias_add(tf.nn.convolution(x, kernel, padding=padding, dilations=[rate]), bias))
        return tf.reduce_mean(x, axis=1)

    module = tf.Module()
    module.layers = tf.function(layers, input_signature=[tf.TensorSpec([2, 23, 4])])
    tf.saved_model.save(module, str(tmp_path / "model"), signatures=module.layers)
    model = tfconvert.convert(tmp_path / "model")
    assert model.report.operators == {"RESHAPE": 1, "CONV_2D": 3, "TANH": 1, "LOGISTIC": 1, "MEAN": 1}
    model.save(tmp_path / "m.tflite")
    x = random(2, 23, 4)
    np.testing.assert_allclose(run_tflite((tmp_path / "m.tflite").read_bytes(), [x])[0], layers(x), atol=1e-5)
