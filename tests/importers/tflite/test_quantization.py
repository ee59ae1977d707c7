"""Quantized tensors are read as the integers with scales that they are, whatever else their parameters state."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tfconvert
from tests.importers.tflite import official_models
from tests.importers.tflite.written_files import File, RoundTrip
from tests.support.litert import RunTFLite
from tfconvert.exporters.tflite.model import export
from tfconvert.importers.tflite.model import import_tflite
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.dialects import quant
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.dialects.quant import Uniform, UniformType
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.tflite.reader import read_model

CALL = {"opcode_index": 0, "inputs": (0,), "outputs": (1,)}
RANDOM = np.random.default_rng(11)


def element(file: File, fields: dict[str, Any]) -> Attribute:
    """Returns the element type of an input."""
    module = import_tflite(file([fields, {}], [CALL], ["ABS"]))
    function = next(op for op in module.walk() if isinstance(op, FuncOp))
    return function.body.block.args[0].element


def tensor(kind: str, shape: tuple[int, ...], **quantization: Any) -> dict[str, Any]:
    return {"type": kind, "shape": shape, "quantization": quantization}


# Parameters, and the scales, zero points and axis that they mean.
READ: dict[str, tuple[dict[str, Any], tuple[Any, Any, Any]]] = {
    "statistics": (
        tensor("INT8", (2, 3), scale=(0.5,), zero_point=(3,), min=(-1.0,), max=(2.0,)),
        ((0.5,), (3,), None),
    ),
    "statistics by axis": (
        tensor("INT8", (2, 3), scale=(0.5, 2.0), zero_point=(0, 0), min=(-1.0, 0.0), max=(2.0, 1.0)),
        ((0.5, 2.0), (0, 0), 0),
    ),
    "16 bits": (tensor("INT16", (3,), scale=(0.25,), zero_point=(0,), min=(-1.0,), max=(1.0,)), ((0.25,), (0,), None)),
    "unsigned": (tensor("UINT8", (3,), scale=(0.25,), zero_point=(128,), max=(1.0,)), ((0.25,), (128,), None)),
    "a bias": (tensor("INT32", (2,), scale=(0.5, 0.25), zero_point=(0, 0), min=(-1.0,)), ((0.5, 0.25), (0, 0), 0)),
    "a long bias": (tensor("INT64", (2,), scale=(0.5,), zero_point=(0,), max=(1.0,)), ((0.5,), (0,), None)),
    "4 bits": (tensor("INT4", (2,), scale=(0.5,), zero_point=(0,), max=(1.0,)), ((0.5,), (0,), None)),
    "custom details": (
        tensor("INT8", (2,), scale=(0.5,), zero_point=(1,), details=("CustomQuantization", {"custom": b"\1"})),
        ((0.5,), (1,), None),
    ),
    "no zero point": (tensor("INT8", (2,), scale=(0.5,)), ((0.5,), (0,), None)),
    "no zero points": (tensor("INT8", (2, 3), scale=(0.5, 2.0), quantized_dimension=0), ((0.5, 2.0), (0, 0), 0)),
    "one zero point": (
        tensor("INT8", (2, 2), scale=(0.5, 2.0), zero_point=(4,), quantized_dimension=1),
        ((0.5, 2.0), (4, 4), 1),
    ),
    "one channel": (
        tensor("INT8", (1, 3, 3, 1), scale=(0.5,), zero_point=(0,), quantized_dimension=3),
        ((0.5,), (0,), 3),
    ),
    "a dimension that says nothing": (
        tensor("INT8", (2, 3), scale=(0.5,), zero_point=(1,), quantized_dimension=1),
        ((0.5,), (1,), None),
    ),
    "a dimension that is missing": (
        tensor("INT8", (2,), scale=(0.5,), zero_point=(1,), quantized_dimension=7),
        ((0.5,), (1,), None),
    ),
    "a channel of zeros": (tensor("INT8", (2,), scale=(0.5, 0.0), zero_point=(0, 0)), ((0.5, 2.0**-126), (0, 0), 0)),
}


@pytest.mark.parametrize(
    "ranges",
    [
        {"min": (float("nan"),), "max": (float("inf"),)},
        {"min": (-1.0, 0.0, 1.0), "max": (2.0,)},
        {"min": (2.0,), "max": (-1.0,)},
    ],
)
def test_ranges_say_nothing(file: File, run_tflite: RunTFLite, tmp_path: Path, ranges: dict[str, Any]) -> None:
    """Nothing reads `min` and `max` where there are scales, so LiteRT runs files in which they are wrong."""
    x = tensor("INT8", (2,), scale=(0.5,), zero_point=(3,), **ranges)
    content, path = file([x, x], [CALL], [{"builtin_code": "ABS", "version": 2}]), tmp_path / "model.tflite"
    path.write_bytes(content)
    given = [np.array([-7, 20], np.int8)]
    for expected, got in zip(
        run_tflite(content, given), run_tflite(bytes(tfconvert.convert(path)), given), strict=True
    ):
        np.testing.assert_array_equal(got, expected, strict=True)


@pytest.mark.parametrize("kind", ["INT32", "INT64"])
def test_wide_integers_with_a_scale_of_zero_are_numbers(
    file: File, run_tflite: RunTFLite, tmp_path: Path, kind: str
) -> None:
    """LiteRT's kernels don't read the scales of integers of 32 and 64 bits."""
    x = tensor(kind, (2,), scale=(0.0,), zero_point=(0,))
    call = {"opcode_index": 0, "inputs": (0, 0), "outputs": (1,), "builtin_options": ("AddOptions", {})}
    content, path = file([x, x], [call], ["ADD"]), tmp_path / "model.tflite"
    path.write_bytes(content)
    (got,) = run_tflite(bytes(tfconvert.convert(path)), [np.array([-7, 20], kind.lower())])
    np.testing.assert_array_equal(got, np.array([-14, 40], kind.lower()), strict=True)


@pytest.mark.parametrize("name", READ)
def test_scales_are_read(file: File, round_trip: RoundTrip, name: str) -> None:
    fields, expected = READ[name]
    found = element(file, fields)
    assert isinstance(found, UniformType)
    assert (found.data.scales, found.data.zero_points, found.data.axis) == expected
    if name != "a channel of zeros":
        round_trip(file([fields, {}], [CALL], ["ABS"]))


@pytest.mark.parametrize(
    "fields",
    [
        tensor("FLOAT32", (2,), min=(-1.0,), max=(1.0,)),
        tensor("INT8", (2,), min=(-1.0,), max=(1.0,)),
        tensor("FLOAT32", (2,), scale=(0.5,), zero_point=(1,)),
        tensor("BOOL", (2,), scale=(0.5,), zero_point=(1,)),
        tensor("FLOAT32", (2,), scale=(-1.0,), zero_point=(2**40,), quantized_dimension=9),
    ],
)
def test_others_stay_what_they_are(file: File, round_trip: RoundTrip, fields: dict[str, Any]) -> None:
    found = element(file, fields)
    assert quant.storage_of(found) is found
    round_trip(file([fields, {}], [CALL], ["ABS"]))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (tensor("INT8", (2,), scale=(float("nan"),), zero_point=(0,)), "has the scale nan"),
        (tensor("INT8", (2,), scale=(float("inf"),), zero_point=(0,)), "has the scale inf"),
        (tensor("INT8", (2,), scale=(-0.5,), zero_point=(0,)), "has the scale -0.5"),
        (tensor("INT8", (2,), scale=(0.5,), zero_point=(0, 0)), "has 1 scales, but 2 zero points"),
        (tensor("INT8", (3,), scale=(0.5,) * 3, zero_point=(0, 0)), "has 3 scales, but 2 zero points"),
        (tensor("INT8", (3,), scale=(0.5,) * 2), r"has 2 scales along dimension 0, but its shape is \[3\]"),
        (tensor("INT8", (2,), scale=(0.5,) * 2, quantized_dimension=1), "along dimension 1"),
        (tensor("INT8", (2,), scale=(0.5,) * 2, quantized_dimension=-1), "along dimension -1"),
        (tensor("INT8", (), scale=(0.5,) * 2), "its shape is unknown"),
        (tensor("INT8", (2,), scale=(0.5,), zero_point=(128,)), "zero point 128, which is not from -128 to 127"),
        (tensor("INT8", (2,), scale=(0.5,) * 2, zero_point=(0, -129)), "zero point -129, which"),
        (tensor("UINT8", (2,), scale=(0.5,), zero_point=(-1,)), "zero point -1, which is not from 0 to 255"),
        (tensor("INT16", (2,), scale=(0.5,), zero_point=(2**15,)), "zero point 32768, which"),
        (tensor("INT4", (2,), scale=(0.5,), zero_point=(8,)), "zero point 8, which is not from -8 to 7"),
        # The runtime reads 32 bits.
        (tensor("INT64", (2,), scale=(0.5,), zero_point=(2**40,)), "zero point 1099511627776, which"),
    ],
)
def test_damaged_scales_are_refused(file: File, fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ConversionError, match=f"tensor 'x' .*{message}") as caught:
        element(file, {**fields, "name": "x"})
    assert caught.value.code == "malformed-tflite"


def test_scales_follow_the_type_and_statistics_stay_beside_them(file: File) -> None:
    """A pass may give another type to the result of an op that a file's fields are recorded for."""
    x = tensor("INT8", (2,), scale=(0.5,), zero_point=(3,), min=(-1.0,), max=(2.0,))
    module = import_tflite(file([x, x], [CALL], ["ABS"]))
    result = next(op for op in module.walk() if op.name == "tfl.abs").results[0]
    before = result.element
    assert isinstance(before, UniformType)
    result.type = quant.tensor(Uniform(before.storage, (0.25,), (1,)), (2,))
    (subgraph,) = read_model(export(module).to_bytes())["subgraphs"]
    found = subgraph["tensors"][1].tree()["quantization"]
    assert found == {"scale": (0.25,), "zero_point": (1,), "min": (-1.0,), "max": (2.0,)}


def _same(run_tflite: RunTFLite, content: bytes, path: Path, x: np.ndarray) -> None:
    path.write_bytes(content)
    again = bytes(tfconvert.convert(path))
    for expected, got in zip(run_tflite(content, [x]), run_tflite(again, [x]), strict=True):
        np.testing.assert_array_equal(got, expected, strict=True)


def _operators(tf: ModuleType) -> dict[str, Any]:
    """Functions of few operators, which read a tensor [1, 4, 4, 2]."""
    filters = tf.constant(RANDOM.normal(size=(3, 3, 2, 1)), tf.float32)
    weights = tf.constant(RANDOM.normal(size=(2, 5)), tf.float32)
    return {
        "a filter of one channel": lambda x: tf.nn.relu(tf.nn.conv2d(x, filters, 1, "SAME")),
        "depthwise": lambda x: tf.nn.depthwise_conv2d(x, filters, [1, 1, 1, 1], "SAME"),
        "depthwise of one channel": lambda x: tf.nn.depthwise_conv2d(
            x[..., :1], filters[:, :, :1], [1, 1, 1, 1], "SAME"
        ),
        "dense": lambda x: tf.matmul(tf.reduce_mean(x, [1, 2]), weights),
        "pool": lambda x: tf.nn.leaky_relu(tf.nn.avg_pool2d(x, 2, 2, "SAME")),
        "arithmetic": lambda x: (x - tf.abs(x[:, :1])) * x,
        "movement": lambda x: tf.concat(
            [tf.pad(x, [[0, 0], [1, 1], [0, 0], [0, 0]]), tf.tile(x, [1, 2, 1, 1])[:, :6]], 1
        ),
    }


@pytest.mark.parametrize("mode", ["int8", "int16"])
@pytest.mark.parametrize(
    "name",
    ["a filter of one channel", "depthwise", "depthwise of one channel", "dense", "pool", "arithmetic", "movement"],
)
@pytest.mark.filterwarnings("ignore")
def test_quantizers_that_state_ranges(
    tf: ModuleType, run_tflite: RunTFLite, tmp_path: Path, mode: str, name: str
) -> None:
    """The old quantizer, and today's for 16 bits, write min and max beside scales."""
    content = official_models.with_ranges(tf, _operators(tf)[name], (1, 4, 4, 2), mode)
    parameters = [each["quantization"] for each in read_model(content)["subgraphs"][0]["tensors"]]
    assert any(each is not None and each["min"] is not None and each["scale"] is not None for each in parameters)
    x = RANDOM.normal(size=(1, 4, 4, 2)).astype(np.float32)
    _same(run_tflite, content, tmp_path / "model.tflite", x)


def test_an_operator_that_litert_miscomputes_is_told(file: File, run_tflite: RunTFLite, tmp_path: Path) -> None:
    """LiteRT answers the zero point if the constant of a product has a scale for each column."""
    scales, path = tuple(np.linspace(0.01, 0.02, 5).tolist()), tmp_path / "model.tflite"
    for by_column in (False, True):
        parameters = (
            {"scale": scales, "zero_point": (0,) * 5, "quantized_dimension": 2}
            if by_column
            else {"scale": (0.01,), "zero_point": (0,)}
        )
        tensors = [
            tensor("INT8", (2, 3, 6), scale=(0.05,), zero_point=(1,)),
            {**tensor("INT8", (2, 6, 5), **parameters), "buffer": 1},
            tensor("INT8", (2, 3, 5), scale=(0.05,), zero_point=(-2,)),
        ]
        call = {"opcode_index": 0, "inputs": (0, 1), "outputs": (2,), "builtin_options": ("BatchMatMulOptions", {})}
        code = {"builtin_code": "BATCH_MATMUL", "deprecated_builtin_code": 126, "version": 4}
        constant = RANDOM.integers(-127, 128, (2, 6, 5), np.int8).tobytes()
        path.write_bytes(file(tensors, [call], [code], outputs=(2,), buffers=[constant]))
        model = tfconvert.convert(path)
        (got,) = run_tflite(bytes(model), [RANDOM.integers(-128, 128, (2, 3, 6), np.int8)])
        assert (got == -2).all() == by_column
        found = [(note.severity, note.op) for note in model.report.notes if note.code == "quantized-kernel"]
        assert found == ([("warning", "tfl.batch_matmul")] if by_column else [])


def test_floats_with_statistics_get_scales(file: File, tmp_path: Path) -> None:
    """Files of the first converters have ranges of floats, too."""
    fields, path = tensor("FLOAT32", (2, 2), min=(-1.0,), max=(1.0,)), tmp_path / "model.tflite"
    path.write_bytes(file([fields, fields], [CALL], ["ABS"]))
    samples = RANDOM.normal(size=(8, 2, 2)).astype(np.float32)
    model = tfconvert.convert(path, quantize=tfconvert.Quantize("int8", samples=list(samples), io="int8"))
    parameters = [each["quantization"] for each in read_model(bytes(model))["subgraphs"][0]["tensors"]]
    assert all(each["scale"] is not None and each["zero_point"] is not None for each in parameters)
