"""Constants that are folded into filters and biases, and those that must not be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.converter.targets.litert.optimize.graph import Graph, check, f32, i32, random
from tests.support.litert import RunTFLite
from tfconvert.converter.rewrite.pattern import Failure
from tfconvert.converter.targets.litert.optimize import fold_into_weights, optimizations
from tfconvert.schema.dialects import tensor_data, tfl, types
from tfconvert.schema.dialects.quant import Uniform, UniformType
from tfconvert.schema.ir.types import I8
from tfconvert.schema.ir.values import Value

IMAGE = (1, 6, 6, 3)
FILTER = random(4, 3, 3, 3)


def _weighted(graph: Graph, name: str, activation: str = "NONE") -> Value:
    """Adds a weighted op with 4 output channels on an input of 4 (3 for conv_2d)."""
    x = graph.inputs[0]
    same: dict[str, Any] = {"padding": "SAME", "stride_h": 1, "stride_w": 1, "fused_activation_function": activation}
    if name == "conv_2d":
        return graph.conv(x, random(4, 3, 3, 4), random(4), fused_activation_function=activation)
    if name == "depthwise_conv_2d":
        return graph.op(name, x, random(1, 3, 3, 4), random(4), depth_multiplier=1, **same)
    if name == "transpose_conv":
        return graph.op(name, [1, 6, 6, 4], random(4, 3, 3, 4), x, random(4), shape=(1, 6, 6, 4), **same)
    return graph.op("fully_connected", x, random(4, 4), None, keep_num_dims=True, fused_activation_function=activation)


WEIGHTED = ("conv_2d", "depthwise_conv_2d", "fully_connected", "transpose_conv")


@pytest.mark.parametrize("constant", [random(4), random(1, 1, 1, 4), f32([2.5]), 0.75])
@pytest.mark.parametrize("name", WEIGHTED)
def test_scale_and_shift_are_folded(name: str, constant: np.ndarray | float, run_tflite: RunTFLite) -> None:
    graph = Graph((1, 6, 6, 4))
    value = graph.op("mul", _weighted(graph, name), constant)
    value = graph.op("sub", value, constant)
    value = graph.op("relu6", value)
    graph.returns(value)
    check(graph, [f"{name}{{RELU6}}"], run_tflite)


@pytest.mark.parametrize("name", WEIGHTED)
def test_an_activation_in_between_stops_folding(name: str, run_tflite: RunTFLite) -> None:
    graph = Graph((1, 6, 6, 4))
    graph.returns(graph.op("add", _weighted(graph, name, "RELU"), random(4)))
    check(graph, [f"{name}{{RELU}}", "add"], run_tflite)


def test_a_second_user_stops_folding(run_tflite: RunTFLite) -> None:
    graph = Graph(IMAGE)
    conv = graph.conv(graph.inputs[0], FILTER)
    graph.returns(graph.op("mul", conv, random(4)), graph.op("relu", conv))
    check(graph, ["conv_2d", "mul", "relu"], run_tflite)


@pytest.mark.parametrize("shape", [(6, 6, 4), (6, 1), (6, 1, 4)])
def test_a_constant_that_varies_over_the_image_is_not_folded(shape: tuple[int, ...], run_tflite: RunTFLite) -> None:
    graph = Graph(IMAGE)
    conv = graph.conv(graph.inputs[0], FILTER)
    graph.returns(graph.op("add", graph.op("mul", conv, random(*shape)), random(*shape)))
    check(graph, ["conv_2d", "mul", "add"], run_tflite)


def test_a_constant_of_higher_rank_is_not_folded(run_tflite: RunTFLite) -> None:
    graph = Graph((2, 4))
    product = graph.op("fully_connected", graph.inputs[0], random(3, 4), None, shape=(2, 3))
    graph.returns(graph.op("add", product, random(1, 1, 3), shape=(1, 2, 3)))
    check(graph, ["fully_connected", "add"], run_tflite)


def test_a_computed_filter_is_not_scaled(run_tflite: RunTFLite) -> None:
    graph = Graph((2, 4), (3, 4))
    product = graph.op("fully_connected", *graph.inputs, None, shape=(2, 3))
    graph.returns(graph.op("mul", product, random(3)))
    check(graph, ["fully_connected", "mul"], run_tflite)


def test_an_addition_to_a_computed_filter_is_folded(run_tflite: RunTFLite) -> None:
    graph = Graph((2, 4), (3, 4))
    product = graph.op("fully_connected", *graph.inputs, None, shape=(2, 3))
    graph.returns(graph.op("add", product, random(3)))
    check(graph, ["fully_connected"], run_tflite)


def test_large_filters_are_not_read() -> None:
    graph = Graph((1, 6, 6, 3))
    conv = graph.conv(graph.inputs[0], random(300, 3, 3, 3))
    graph.returns(graph.op("mul", conv, random(300)))
    graph.optimize()
    weights = tensor_data.constant_of(graph.ops[0].operands[1])
    assert type(weights.source).__name__ == "Deferred"  # type: ignore[union-attr]


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_a_scale_before_a_convolution_is_folded(padding: str, run_tflite: RunTFLite) -> None:
    graph = Graph(IMAGE)
    graph.returns(graph.conv(graph.op("mul", graph.inputs[0], random(3)), FILTER, padding=padding))
    check(graph, ["conv_2d"], run_tflite)


def test_a_scale_before_a_depthwise_convolution_is_folded(run_tflite: RunTFLite) -> None:
    graph = Graph((1, 6, 6, 4))
    options: dict[str, Any] = {"padding": "SAME", "stride_h": 1, "stride_w": 1, "depth_multiplier": 1}
    scaled = graph.op("mul", graph.inputs[0], random(4))
    graph.returns(graph.op("depthwise_conv_2d", scaled, random(1, 3, 3, 4), random(4), **options))
    check(graph, ["depthwise_conv_2d"], run_tflite)


@pytest.mark.parametrize("name", ["mul", "add"])
def test_a_constant_after_concatenated_channels_is_folded(name: str, run_tflite: RunTFLite) -> None:
    graph = Graph((1, 6, 6, 4), (1, 6, 6, 4))
    parts = [graph.conv(x, random(4, 3, 3, 4, seed=index), random(4)) for index, x in enumerate(graph.inputs)]
    joined = graph.op("concatenation", *parts, shape=(1, 6, 6, 8), axis=3, fused_activation_function="NONE")
    graph.returns(graph.op("relu", graph.op(name, joined, random(8))))
    check(graph, ["conv_2d{RELU}", "conv_2d{RELU}", "concatenation"], run_tflite)


@pytest.mark.parametrize("form", ["rows", "uses", "part", "activation"])
def test_a_constant_after_other_concatenations_stays(form: str, run_tflite: RunTFLite) -> None:
    graph = Graph((1, 6, 6, 4))
    (x,) = graph.inputs
    axis = 1 if form == "rows" else 3
    shape = (1, 12, 6, 4) if form == "rows" else (1, 6, 6, 8)
    one = graph.conv(x, random(4, 3, 3, 4), fused_activation_function="RELU" if form == "activation" else "NONE")
    other = graph.op("neg", x) if form == "part" else graph.conv(x, random(4, 3, 3, 4, seed=1))
    joined = graph.op("concatenation", one, other, shape=shape, axis=axis, fused_activation_function="NONE")
    scaled = graph.op("mul", joined, random(shape[-1]))
    graph.returns(scaled, *([joined] if form == "uses" else []))
    check(graph, list(graph.names), run_tflite)


@pytest.mark.parametrize("place", ["before", "after"])
def test_a_table_of_embeddings_is_not_scaled(place: str, run_tflite: RunTFLite) -> None:
    """Scaled, it would be in the file twice: as the table, and as the last layer's weights."""
    graph = Graph((1, 4))
    table = graph.constant(random(32, 4))
    token = graph.op("cast", graph.op("reduce_max", graph.inputs[0], [1], shape=(1,)), shape=(1,), element=types.I32)
    row = graph.op("gather", table, token, shape=(1, 4), axis=0, batch_dims=0)
    x = graph.op("add", graph.inputs[0], row)
    x = graph.op("mul", x, random(4)) if place == "before" else x
    y = graph.op("fully_connected", x, table, None, shape=(1, 32), fused_activation_function="NONE")
    graph.returns(y if place == "before" else graph.op("mul", y, random(32)))
    graph.optimize()
    assert graph.names.count("mul") == 1


@pytest.mark.parametrize("is_copied", [False, True])
def test_a_transposed_table_of_embeddings_is_not_scaled(is_copied: bool) -> None:
    graph = Graph((1, 16), (2,))
    tokens = graph.op("cast", graph.inputs[1], shape=(2,), element=types.I32)
    table = tensor_data.as_handle(tensor_data.of_array(random(16, 512)))
    turned = tensor_data.defer("transpose", (table,), (512, 16), (1, 0))
    again = tensor_data.defer("transpose", (table,), (512, 16), (1, 0))
    if is_copied:
        again = tensor_data.of_array(tensor_data.to_array(again).copy())
    rows = graph.op("gather", graph._add(tfl.constant(turned)), tokens, shape=(2, 16), axis=0, batch_dims=0)
    x = graph.op("mul", graph.inputs[0], random(16))
    y = graph.op("fully_connected", x, graph._add(tfl.constant(again)), None, shape=(1, 512))
    graph.returns(rows, y)
    graph.optimize()
    assert "mul" in graph.names


def test_a_scale_before_a_multiplying_depthwise_convolution_stays(run_tflite: RunTFLite) -> None:
    graph = Graph((1, 6, 6, 2))
    options: dict[str, Any] = {"padding": "SAME", "stride_h": 1, "stride_w": 1, "depth_multiplier": 2}
    scaled = graph.op("mul", graph.inputs[0], random(2))
    value = graph.op("depthwise_conv_2d", scaled, random(1, 3, 3, 4), random(4), shape=(1, 6, 6, 4), **options)
    graph.returns(value)
    check(graph, ["mul", "depthwise_conv_2d"], run_tflite)


def test_a_scale_before_a_grouped_convolution_stays(run_tflite: RunTFLite) -> None:
    graph = Graph((1, 6, 6, 4))
    graph.returns(graph.conv(graph.op("mul", graph.inputs[0], random(4)), random(6, 3, 3, 2)))
    check(graph, ["mul", "conv_2d"], run_tflite)


def test_a_number_before_a_grouped_convolution_is_folded(run_tflite: RunTFLite) -> None:
    graph = Graph((1, 6, 6, 4))
    graph.returns(graph.conv(graph.op("mul", graph.inputs[0], 0.5), random(6, 3, 3, 2)))
    check(graph, ["conv_2d"], run_tflite)


@pytest.mark.parametrize(("padding", "left"), [("VALID", []), ("SAME", ["add"])])
def test_a_shift_before_a_convolution_is_folded_where_nothing_is_padded(
    padding: str, left: list[str], run_tflite: RunTFLite
) -> None:
    graph = Graph(IMAGE)
    graph.returns(graph.conv(graph.op("add", graph.inputs[0], random(3)), FILTER, padding=padding))
    check(graph, [*left, "conv_2d"], run_tflite)


def test_a_shift_before_a_pointwise_convolution_is_folded(run_tflite: RunTFLite) -> None:
    graph = Graph(IMAGE)
    graph.returns(graph.conv(graph.op("add", graph.inputs[0], random(3)), random(4, 1, 1, 3)))
    check(graph, ["conv_2d"], run_tflite)


def test_layer_normalization_before_a_product_is_folded(run_tflite: RunTFLite) -> None:
    graph = Graph((2, 5, 8))
    value = graph.op("add", graph.op("mul", graph.inputs[0], random(8)), random(8))
    value = graph.op("fully_connected", value, random(6, 8), random(6), shape=(2, 5, 6), keep_num_dims=True)
    graph.returns(value)
    check(graph, ["fully_connected"], run_tflite)


def test_image_normalization_leaves_one_op(run_tflite: RunTFLite) -> None:
    """As image nets begin: scale to 0..1, subtract the mean, divide by the deviation, pad, convolve."""
    graph = Graph(IMAGE)
    value = graph.op("mul", graph.inputs[0], 1 / 255)
    value = graph.op("sub", value, f32([0.485, 0.456, 0.406]))
    value = graph.op("div", value, f32([0.229, 0.224, 0.225]))
    value = graph.op("pad", value, i32([[0, 0], [1, 2], [1, 2], [0, 0]]), shape=(1, 9, 9, 3))
    graph.returns(graph.conv(value, FILTER, padding="VALID"))
    image = np.random.default_rng(0).uniform(0, 255, IMAGE).astype(np.float32)
    check(graph, ["add", "pad", "conv_2d"], run_tflite, image)


def test_a_range_of_values_is_normalized_by_one_op(run_tflite: RunTFLite) -> None:
    graph = Graph(IMAGE)
    value = graph.op("sub", graph.op("div", graph.inputs[0], 127.5), 1.0)
    value = graph.op("pad", value, i32([[0, 0], [1, 2], [1, 2], [0, 0]]), shape=(1, 9, 9, 3))
    graph.returns(graph.conv(value, FILTER, padding="VALID"))
    check(graph, ["add", "pad", "conv_2d"], run_tflite)


@pytest.mark.parametrize("scale", [1e-9, 1e9])
def test_a_shift_does_not_move_before_an_extreme_scale(scale: float, run_tflite: RunTFLite) -> None:
    graph = Graph(IMAGE)
    value = graph.op("add", graph.op("mul", graph.inputs[0], scale), random(3))
    graph.returns(graph.conv(value, FILTER))
    check(graph, ["mul", "add", "conv_2d"], run_tflite)


def test_declining_says_why() -> None:
    graph = Graph(IMAGE)
    graph.returns(graph.conv(graph.inputs[0], FILTER))
    reasons = optimizations.patterns().reasons(graph.ops[0])
    assert len(reasons) == len(optimizations.patterns().for_root("tfl.conv_2d"))
    assert any("scaled" in reason for reason in reasons)
    fold_mul = next(each for each in fold_into_weights.PATTERNS if each.name == "fold-mul-into-filter")
    alone = Graph(IMAGE)
    alone.returns(alone.op("mul", alone.inputs[0], 2.0))
    assert isinstance(fold_mul.match(alone.ops[0]), Failure)


STEPS = st.lists(
    st.sampled_from(["mul channel", "mul one", "add channel", "sub one", "div channel", "relu", "relu6", "add pixel"]),
    max_size=6,
)


@settings(max_examples=40)
@given(before=STEPS, after=STEPS, padding=st.sampled_from(["SAME", "VALID"]), seed=st.integers(0, 99))
def test_chains_compute_the_same(
    before: list[str], after: list[str], padding: str, seed: int, run_tflite: RunTFLite
) -> None:
    graph = Graph((1, 5, 5, 3))
    value = graph.inputs[0]
    for index, step in enumerate(before):
        value = _step(graph, value, step, 3, 5, seed + index)
    value = graph.conv(value, random(4, 3, 3, 3, seed=seed), random(4, seed=seed), padding=padding)
    for index, step in enumerate(after):
        value = _step(graph, value, step, 4, 5 if padding == "SAME" else 3, seed + 50 + index)
    graph.returns(value)
    inputs = [random(1, 5, 5, 3, seed=seed)]
    count, expected = len(graph.ops), graph.run(run_tflite, inputs)
    graph.optimize()
    assert len(graph.ops) <= count
    actual = graph.run(run_tflite, inputs)
    np.testing.assert_allclose(actual[0], expected[0], rtol=1e-4, atol=1e-4 * float(np.abs(expected[0]).max(initial=1)))


def _step(graph: Graph, value: Value, step: str, channels: int, size: int, seed: int) -> Value:
    name, _, extent = step.partition(" ")
    if not extent:
        return graph.op(name, value)
    shape = {"channel": (channels,), "one": (), "pixel": (1, size, size, 1)}[extent]
    constant = random(*shape, seed=seed)
    return graph.op(name, value, np.asarray(np.where(constant < 0, -0.5, 0.5) + constant, np.float32))


@pytest.mark.parametrize(("channels", "outputs"), [(4, 4), (3, 6)])
def test_one_channel_a_group_is_depthwise(channels: int, outputs: int, run_tflite: RunTFLite) -> None:
    graph = Graph((1, 6, 6, channels))
    value = graph.conv(graph.inputs[0], random(outputs, 3, 3, 1), random(outputs), fused_activation_function="RELU")
    graph.returns(graph.op("mul", value, 2.0))
    check(graph, ["depthwise_conv_2d{RELU}", "mul"], run_tflite)
    assert tfl.attribute(graph.ops[0], "depth_multiplier") == outputs // channels


@pytest.mark.parametrize(("channels", "outputs"), [(1, 4), (4, 4)])
def test_other_groups_stay(channels: int, outputs: int, run_tflite: RunTFLite) -> None:
    graph = Graph((1, 6, 6, channels))
    graph.returns(graph.conv(graph.inputs[0], random(outputs, 3, 3, min(channels, 2))))
    check(graph, ["conv_2d"], run_tflite)


def _normalized(form: str, *, gain: bool = True, axis: int = -1) -> Graph:
    graph = Graph((2, 5, 8))
    x = graph.inputs[0]
    kept = tuple(1 if index == axis % 3 else dim for index, dim in enumerate((2, 5, 8)))
    mean = graph.op("mean", x, [axis], shape=kept, keep_dims=True)
    variance = graph.op("mean", graph.op("squared_difference", x, mean), [axis], shape=kept, keep_dims=True)
    scale = graph.op("rsqrt", graph.op("add", variance, 1e-3))
    if gain:
        scale = graph.op("mul", scale, random(8), shape=(*kept[:2], 8))
    wide = (2, 5, 8) if axis == -1 else (2, 1, 8)
    if form == "sub":
        rest = graph.op("sub", graph.constant(random(1, 1, 8)), graph.op("mul", mean, scale, shape=wide), shape=wide)
    else:
        rest = graph.op("mul", graph.op("neg", mean), scale, shape=wide)
    if form == "neg add":
        rest = graph.op("add", rest, random(8), shape=wide)
    return graph.returns(graph.op("add", graph.op("mul", x, scale), rest))


@pytest.mark.parametrize(
    ("form", "steps"),
    [("sub", ["sub", "mul", "mul", "add"]), ("neg", ["sub", "mul", "mul"]), ("neg add", ["sub", "mul", "mul", "add"])],
)
def test_normalization_is_taken_apart(form: str, steps: list[str], run_tflite: RunTFLite) -> None:
    check(_normalized(form), ["mean", "squared_difference", "mean", "add", "rsqrt", *steps], run_tflite)


def test_normalization_without_a_gain(run_tflite: RunTFLite) -> None:
    expected = ["mean", "squared_difference", "mean", "add", "rsqrt", "sub", "mul"]
    check(_normalized("neg", gain=False), expected, run_tflite)


def test_normalization_over_the_batch_stays_together(run_tflite: RunTFLite) -> None:
    graph = _normalized("neg add", axis=1)
    count = len(graph.ops)
    graph.optimize()
    assert len(graph.ops) == count


def _quantized(graph: Graph, values: np.ndarray, axis: int | None) -> Value:
    """Adds a constant of 8-bit integers, quantised along an axis or as a whole."""
    count = 1 if axis is None else values.shape[axis]
    scales = tuple(float(scale) for scale in f32(np.linspace(0.25, 0.5, count)))
    kind = UniformType.get(Uniform(I8, scales, (0,) * count, axis))
    stored = tensor_data.of_array(values.astype(np.int8))
    return graph._add(tfl.constant(stored, result_type=types.tensor(kind, values.shape)))


@pytest.mark.parametrize("form", ["mul after", "mul before", "add before"])
def test_nothing_is_folded_into_the_integers_of_quantised_filters(form: str, run_tflite: RunTFLite) -> None:
    graph = Graph((2, 8))
    name = form.partition(" ")[0]
    value = graph.inputs[0] if form == "mul after" else graph.op(name, graph.inputs[0], random(8))
    value = graph.op("fully_connected", value, _quantized(graph, 100 * random(4, 8), 0), None, shape=(2, 4))
    value = graph.op(name, value, random(4)) if form == "mul after" else value
    graph.returns(value)
    check(graph, graph.names, run_tflite)


@pytest.mark.parametrize(("name", "shape"), [("transpose", (8, 4)), ("reshape", (2, 16))])
def test_quantised_constants_stay_quantised(name: str, shape: tuple[int, ...], run_tflite: RunTFLite) -> None:
    graph = Graph((4, 8))
    values = _quantized(graph, 100 * random(4, 8), None)
    moved = graph.op(name, values, [1, 0] if name == "transpose" else list(shape), shape=shape)
    graph.returns(graph.inputs[0], graph.op("dequantize", moved, shape=shape, element=types.F32))
    check(graph, ["pseudo_qconst", name, "dequantize"], run_tflite)
