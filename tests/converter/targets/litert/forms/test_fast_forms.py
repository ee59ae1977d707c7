"""Each fast form: what it becomes, that LiteRT computes the same, and that its rows of the table say it is faster."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tfconvert
from tests.converter.targets.litert.forms.cases import FAST_CASES, FastCase
from tests.converter.targets.litert.optimize.graph import Graph, f32, i32, random
from tests.support.litert import RunTFLite
from tfconvert.converter.targets.litert.forms import tables
from tfconvert.converter.targets.litert.passes.fast_forms import FastForms
from tfconvert.converter.targets.litert.rewrite_index import FAST
from tfconvert.ops.verification import verify
from tfconvert.schema.dialects import types
from tfconvert.schema.dialects.quant import Uniform, UniformType
from tfconvert.schema.ir.types import I8
from tfconvert.schema.ir.values import Value
from tfconvert.settings.quantization import Quantize

TABLE = Path(tables.__file__).with_name("speed.tsv")


def _patterns() -> set[str]:
    names = [f"tfl.{name}" for names in FAST.values() for name in names.split()]
    found = tables.fast_forms(names, only_floats=True)
    return {pattern.name for pattern in found if "forms" in pattern.rewrite.__module__}


@pytest.mark.parametrize("case", FAST_CASES, ids=[case.name for case in FAST_CASES])
def test_forms(case: FastCase, run_tflite: RunTFLite) -> None:
    graph = Graph(case.shape)
    graph.returns(case.make(graph, graph.inputs[0]))
    x = random(*case.shape)
    before = graph.run(run_tflite, [x])
    assert FastForms().apply(graph.module).counts[case.pattern]
    verify(graph.module, with_relations=False)
    assert " ".join(graph.names) == case.expected
    for old, new in zip(before, graph.run(run_tflite, [x]), strict=True):
        assert new.shape == old.shape
        np.testing.assert_allclose(new, old, rtol=1e-5, atol=1e-5)
    assert not FastForms().apply(graph.module).counts


SLICES = ("unpack-slices", "drop-by-reshape", "every-nth", "phases")


@pytest.mark.parametrize("case", [case for case in FAST_CASES if case.pattern in SLICES], ids=lambda case: case.name)
def test_slices_of_integers_have_the_same_forms(case: FastCase, run_tflite: RunTFLite) -> None:
    graph = Graph(case.shape, element=UniformType.get(Uniform(I8, (0.1,), (3,))))
    graph.returns(case.make(graph, graph.inputs[0]))
    x = np.random.default_rng(1).integers(-128, 128, case.shape).astype(np.int8)
    before = graph.run(run_tflite, [x])
    assert FastForms().apply(graph.module).counts[case.pattern]
    verify(graph.module, with_relations=False)
    assert " ".join(graph.names) == case.expected
    for old, new in zip(before, graph.run(run_tflite, [x]), strict=True):
        np.testing.assert_array_equal(new, old)


def test_the_table_has_a_row_for_each_case_and_says_that_it_is_faster() -> None:
    rows = [line.split("\t") for line in TABLE.read_text().splitlines()[1:]]
    cases = [(case.pattern, "x".join(map(str, case.shape)), case.expected) for case in FAST_CASES]
    assert [tuple(row[:3]) for row in rows] == cases
    assert all(float(fast) < float(usual) for *_, usual, fast in rows)


def test_each_pattern_has_a_case() -> None:
    assert {case.pattern for case in FAST_CASES} == _patterns()


def _batched(case: FastCase) -> Graph:
    graph = Graph((-1, *case.shape[1:]))
    return graph.returns(case.make(graph, graph.inputs[0]))


BATCHED = [
    case
    for case in FAST_CASES
    if case.shape[0] == 1
    and case.pattern.split("-")[0]
    not in ("broadcast", "mirror", "transpose", "tile", "mask", "narrow", "join", "reduce", "scatter")
]


@pytest.mark.parametrize("case", BATCHED, ids=[case.name for case in BATCHED])
def test_a_batch_may_be_of_any_size(case: FastCase, run_tflite: RunTFLite) -> None:
    graph = _batched(case)
    x = random(3, *case.shape[1:])
    before = graph.run(run_tflite, [x])
    assert FastForms().apply(graph.module).counts[case.pattern]
    verify(graph.module, with_relations=False)
    for old, new in zip(before, graph.run(run_tflite, [x]), strict=True):
        np.testing.assert_allclose(new, old, rtol=1e-5, atol=1e-5)


def _names(graph: Graph, *results: Value, quantize: Quantize | None = None) -> list[str]:
    graph.returns(*results)
    FastForms(quantize).apply(graph.module)
    return graph.names


def _softmax(g: Graph, x: Value) -> Value:
    return g.op("softmax", x, beta=1.0)


def _part(g: Graph, x: Value, begin: list[int], strides: list[int], shape: tuple[int, ...], **masks: Any) -> Value:
    end = [0] * len(begin)
    return g.op("strided_slice", x, begin, end, strides, shape=shape, end_mask=(1 << len(begin)) - 1, **masks)


KEPT: dict[str, tuple[tuple[int, ...], Callable[[Graph, Value], Value]]] = {
    "few vectors": ((1, 1000), _softmax),
    "many classes": ((1, 500, 1000), _softmax),
    "a multiple of 16 classes": ((12, 64, 64), _softmax),
    "short vectors": ((1, 256, 8), lambda g, x: g.op("l2_normalization", x, fused_activation_function="NONE")),
    "a factor": ((1, 100, 8), lambda g, x: g.op("softmax", x, beta=2.0)),
    "a small slice": ((3, 4, 8), lambda g, x: _part(g, x, [1, 0, 0], [1, 1, 1], (4, 8), shrink_axis_mask=1)),
    "an odd size": ((1, 33, 33, 16), lambda g, x: _part(g, x, [0] * 4, [1, 2, 2, 1], (1, 17, 17, 16))),
    "strides of two kinds": ((1, 32, 32, 16), lambda g, x: _part(g, x, [0] * 4, [1, 2, 1, 2], (1, 16, 32, 8))),
    "a reversal": ((64, 64), lambda g, x: _part(g, x, [0, 0], [-1, 1], (64, 64), begin_mask=3)),
    "a stride of pixels beyond the image": (
        (1, 33, 33, 16),
        lambda g, x: g.op(
            "max_pool_2d",
            x,
            shape=(1, 17, 17, 16),
            padding="SAME",
            stride_h=2,
            stride_w=2,
            filter_height=1,
            filter_width=1,
        ),
    ),
    "a mask as large as the scores": (
        (1, 2, 64, 64),
        lambda g, x: _softmax(
            g,
            g.op(
                "select_v2",
                g.op("greater", x, f32(0), element=types.I1, shape=(1, 2, 64, 64)),
                x,
                f32(-1e9),
                element=types.F32,
                shape=(1, 2, 64, 64),
            ),
        ),
    ),
    "a number that isn't very negative": (
        (1, 2, 64, 64),
        lambda g, x: _softmax(
            g, g.op("select_v2", np.tril(np.ones((64, 64), bool)), x, f32(-10), element=types.F32, shape=(1, 2, 64, 64))
        ),
    ),
    "masked scores that are used themselves": (
        (1, 2, 64, 64),
        lambda g, x: g.op(
            "select_v2", np.tril(np.ones((64, 64), bool)), x, f32(-1e9), element=types.F32, shape=(1, 2, 64, 64)
        ),
    ),
    "aligned corners": (
        (1, 16, 16, 8),
        lambda g, x: g.op("resize_nearest_neighbor", x, [32, 32], shape=(1, 32, 32, 8), align_corners=True),
    ),
    "many channels": (
        (1, 16, 16, 256),
        lambda g, x: g.op("resize_nearest_neighbor", x, [32, 32], shape=(1, 32, 32, 256), align_corners=False),
    ),
    "long rows": ((1, 8, 1, 128, 64), lambda g, x: g.op("tile", x, [1, 1, 4, 1, 1], shape=(1, 8, 4, 128, 64))),
    "a reduction of whole rows": (
        (1, 16, 16, 32),
        lambda g, x: g.op("mean", x, [1, 2], shape=(1, 1, 1, 32), keep_dims=True),
    ),
    "a border of many short rows": (
        (1, 64, 64, 3),
        lambda g, x: g.op("mirror_pad", x, i32([[0, 0], [9, 9], [9, 9], [0, 0]]), shape=(1, 82, 82, 3), mode="REFLECT"),
    ),
    "different strides": (
        (1, 16, 16, 8),
        lambda g, x: g.op(
            "transpose_conv",
            [1, 32, 16, 8],
            random(8, 2, 2, 8),
            x,
            shape=(1, 32, 16, 8),
            padding="SAME",
            stride_h=2,
            stride_w=1,
        ),
    ),
    "a slice of a large part": ((1, 64, 64), lambda g, x: _sliced_product(g, x, 60)),
    "a gather of a small product": (
        (1, 64, 64),
        lambda g, x: g.op("gather", _product(g, x), i32([3]), shape=(1, 1, 64), axis=1, batch_dims=0),
    ),
    "a mean of few rows": ((1, 4, 128), lambda g, x: g.op("mean", _product(g, x), [1], shape=(1, 128))),
    "a mean of channels": ((1, 64, 64), lambda g, x: g.op("mean", _product(g, x), [2], shape=(1, 64))),
    "convolutions of two images": ((1, 16, 16, 8), lambda g, x: _convolutions(g, x, g.op("neg", x), (3, 1), (1, 1))),
    "convolutions with other strides": (
        (1, 16, 1, 8),
        lambda g, x: _convolutions(g, x, x, (1, 1), (1, 1), stride_w=[1, 2]),
    ),
    "a convolution beyond the other": ((1, 16, 16, 8), lambda g, x: _convolutions(g, x, x, (3, 1), (1, 3))),
    "a convolution with an activation": (
        (1, 16, 16, 8),
        lambda g, x: _convolutions(g, x, x, (3, 1), (1, 1), fused_activation_function=["NONE", "RELU"]),
    ),
    "few maps": (
        (1, 16, 16, 8),
        lambda g, x: g.op(
            "concatenation",
            *(g.op("mean", each, [3], shape=(1, 16, 16, 1), keep_dims=True) for each in (x, g.op("neg", x))),
            shape=(1, 16, 16, 2),
            axis=3,
            fused_activation_function="NONE",
        ),
    ),
    "a slice without a product": (
        (1, 64, 64),
        lambda g, x: g.op("slice", g.op("abs", x), [0, 0, 0], [1, 2, 64], shape=(1, 2, 64)),
    ),
}


def _product(g: Graph, x: Value) -> Value:
    depth = (x.shape or ())[-1]
    options: dict[str, Any] = {"keep_num_dims": True, "fused_activation_function": "NONE"}
    return g.op("fully_connected", x, random(depth, depth), None, **options)


def _sliced_product(g: Graph, x: Value, count: int) -> Value:
    return g.op("slice", _product(g, x), [0, 0, 0], [1, count, 64], shape=(1, count, 64))


def _convolutions(
    g: Graph, x: Value, y: Value, one: tuple[int, int], other: tuple[int, int], **options: list[Any]
) -> Value:
    """Adds two convolutions with filters of some heights and widths, and with options of each."""
    made = [
        g.conv(image, random(8, *size, 8), **{name: values[index] for name, values in options.items()})
        for index, (image, size) in enumerate(((x, one), (y, other)))
    ]
    return g.op("add", *made)


@pytest.mark.parametrize("name", KEPT)
def test_what_keeps_its_form(name: str) -> None:
    shape, make = KEPT[name]
    graph = Graph(shape)
    graph.returns(make(graph, graph.inputs[0]))
    before = graph.names
    assert not FastForms().apply(graph.module).counts
    assert graph.names == before


def test_convolutions_of_parts_in_another_order_stay() -> None:
    graph = Graph((1, 16, 16, 8))
    parts = graph.split(graph.inputs[0], [4, 4], 3)[::-1]
    convolved = [graph.conv(part, random(4, 3, 3, 4)) for part in parts]
    options: dict[str, Any] = {"axis": 3, "fused_activation_function": "NONE"}
    joined = graph.op("concatenation", *convolved, shape=(1, 16, 16, 8), **options)
    assert _names(graph, joined) == ["slice", "slice", "conv_2d", "conv_2d", "concatenation"]


@pytest.mark.parametrize("mode", ["dynamic", "int8"])
@pytest.mark.parametrize(("scale", "per_channel"), [(1, True), (100, True), (1, False)])
def test_branches_whose_weights_become_integers(mode: Any, scale: float, per_channel: bool) -> None:
    """They are added unless weights would get lost: those of one are much smaller, or all have one scale."""
    graph = Graph((1, 16, 16, 8))
    (x,) = graph.inputs
    added = graph.op("add", graph.conv(x, random(8, 3, 3, 8)), graph.conv(x, random(8, 1, 1, 8, scale=scale)))
    names = _names(graph, added, quantize=Quantize(mode, per_channel=per_channel))
    assert names == (["conv_2d"] if (scale, per_channel) == (1, True) else ["conv_2d", "conv_2d", "add"])


@pytest.mark.parametrize(
    ("size", "options"),
    [
        ((3, 5), {}),
        ((4, 4), {}),
        ((5, 1), {"stride_h": 2, "stride_w": 2}),
        ((4, 4), {"stride_h": 2, "stride_w": 2}),
        ((3, 5), {"dilation_h_factor": 2}),
    ],
)
def test_branches_of_several_sizes(size: tuple[int, int], options: dict[str, int], run_tflite: RunTFLite) -> None:
    """A filter of one pixel is where the other filter's windows begin, behind its padding."""
    graph = Graph((1, 13, 32, 8))
    (x,) = graph.inputs
    same = {name: [value, value] for name, value in options.items()}
    graph.returns(_convolutions(graph, x, x, size, (1, 1), **same))
    image = random(1, 13, 32, 8)
    (before,) = graph.run(run_tflite, [image])
    assert FastForms().apply(graph.module).counts == {"sum-of-convolutions": 1}
    (after,) = graph.run(run_tflite, [image])
    np.testing.assert_allclose(after, before, rtol=1e-5, atol=1e-4)


def test_a_product_that_is_used_whole_stays_whole() -> None:
    graph = Graph((1, 64, 64))
    options: dict[str, Any] = {"keep_num_dims": True, "fused_activation_function": "NONE"}
    y = graph.op("fully_connected", graph.inputs[0], random(64, 64), None, **options)
    part = graph.op("slice", y, [0, 0, 0], [1, 2, 64], shape=(1, 2, 64))
    assert _names(graph, part, graph.op("abs", y)) == ["fully_connected", "slice", "abs"]


def test_integers_keep_the_operators_that_have_kernels_for_them() -> None:
    graph = Graph((1, 64, 64, 5))
    (x,) = graph.inputs
    square = graph.op("squared_difference", x, graph.op("neg", x))
    assert _names(graph, _softmax(graph, x), square, quantize=Quantize("int8")) == ["neg", "sub", "mul", "softmax"]


def test_fully_masked_rows_are_uniform_as_in_tensorflow(tf: ModuleType, tmp_path: Path, run_tflite: RunTFLite) -> None:
    mask = np.tril(np.ones((32, 32), bool))
    mask[5] = False

    def call(x: Any) -> dict[str, Any]:
        return {"y": tf.nn.softmax(tf.where(mask, x, -1e9))}

    module = tf.Module()
    module.run = tf.function(call, input_signature=[tf.TensorSpec((1, 4, 32, 32))])
    tf.saved_model.save(module, str(tmp_path / "model"), signatures=module.run)
    model = tfconvert.convert(tmp_path / "model")
    assert model.report.operators == {"MINIMUM": 1, "SOFTMAX": 1}
    x = random(1, 4, 32, 32, scale=100)
    (y,) = run_tflite(bytes(model), [x])
    np.testing.assert_allclose(y, call(x)["y"].numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "target", [tfconvert.LiteRT(accelerator=["gpu"]), tfconvert.LiteRT(composites=["odml"])], ids=["gpu", "odml"]
)
def test_files_for_accelerators_keep_the_usual_forms(tf: ModuleType, tmp_path: Path, target: tfconvert.LiteRT) -> None:
    module = tf.Module()
    module.run = tf.function(lambda x: {"y": tf.nn.softmax(x)}, input_signature=[tf.TensorSpec((1, 64, 64, 5))])
    tf.saved_model.save(module, str(tmp_path / "model"), signatures=module.run)
    assert "SOFTMAX" in tfconvert.convert(tmp_path / "model", target=target).report.operators
    assert "SOFTMAX" not in tfconvert.convert(tmp_path / "model").report.operators


def _patches(
    channels: int, size: int, stride: int, padding: str = "VALID", image: int = 32, taken: int = 0, **options: int
) -> Graph:
    """Returns a convolution of an image."""
    graph = Graph((1, image, image, channels))
    weights = random(32, size, size, taken or channels, scale=0.1)
    strides = {"stride_h": stride, "stride_w": stride, "dilation_h_factor": 1, "dilation_w_factor": 1}
    result = -(-image // stride) if padding == "SAME" else (image - size) // stride + 1
    fixed: dict[str, Any] = {"padding": padding, "fused_activation_function": "NONE", **strides, **options}
    operands = (graph.inputs[0], weights, random(32, seed=2))
    return graph.returns(graph.op("conv_2d", *operands, shape=(1, result, result, 32), **fixed))


@pytest.mark.parametrize("mode", ["dynamic", "int8"])
@pytest.mark.parametrize("case", [(3, 4, 4, "SAME"), (3, 8, 4, "VALID"), (7, 2, 2, "VALID"), (1, 16, 2, "VALID")])
def test_pixels_become_channels_for_products_of_integers(
    case: tuple[int, int, int, str], mode: Any, run_tflite: RunTFLite
) -> None:
    graph, channels = _patches(*case), case[0]
    x = random(1, 32, 32, channels)
    before = graph.run(run_tflite, [x])
    FastForms(Quantize(mode)).apply(graph.module)
    assert graph.names == ["reshape", "conv_2d"]
    np.testing.assert_allclose(graph.run(run_tflite, [x])[0], before[0], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "graph",
    [
        _patches(8, 4, 4),
        _patches(3, 3, 2),
        _patches(3, 4, 2, "SAME"),
        _patches(3, 4, 4, image=33),
        _patches(6, 4, 4, taken=3),
        _patches(3, 2, 2, "SAME", dilation_w_factor=2),
    ],
    ids=["channels", "gaps", "padding", "width", "groups", "dilation"],
)
def test_pixels_stay_pixels(graph: Graph) -> None:
    FastForms(Quantize("int8")).apply(graph.module)
    assert graph.names == ["conv_2d"]


@pytest.mark.parametrize("mode", [None, "float16", "int16"])
def test_pixels_of_floats_stay_pixels(mode: Any) -> None:
    graph = _patches(3, 4, 4)
    FastForms(None if mode is None else Quantize(mode)).apply(graph.module)
    assert graph.names == ["conv_2d"]


def test_differences_of_tensors_without_a_rank_stay_as_they_are(tmp_path: Path) -> None:
    model = tmp_path / "model.mlir"
    model.write_text("""
    func.func @main(%x: tensor<*xf32>, %y: tensor<*xf32>) -> (tensor<*xf32>, tensor<*xf32>) {
      %0 = "tf.SquaredDifference"(%x, %y) : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
      %1 = "tf.Sub"(%x, %y) : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
      func.return %0, %1 : tensor<*xf32>, tensor<*xf32>
    }
    """)
    assert dict(tfconvert.convert(model).report.operators) == {"SQUARED_DIFFERENCE": 1, "SUB": 1}
