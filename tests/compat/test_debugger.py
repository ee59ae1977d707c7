"""`experimental.QuantizationDebugger` finds what the official one finds, and leaves floats what it is told to."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tfconvert
from tfconvert.experimental import Analyzer, QuantizationDebugger, QuantizationDebugOptions
from tfconvert.schema.diagnostics import ConversionError


@pytest.fixture(scope="module")
def images(digits_model: Path) -> list[np.ndarray]:
    with np.load(digits_model.parent / "held_out.npz") as held_out:
        pixels = held_out["pixels"][:16, np.newaxis, ..., np.newaxis]
    return list((pixels / 16).astype(np.float32))


def _dataset(images: list[np.ndarray]) -> Any:
    def read() -> Iterator[list[np.ndarray]]:
        for image in images:
            yield [image]

    return read


def _converter(lite: Any, model: Path, images: list[np.ndarray]) -> Any:
    converter = lite.TFLiteConverter.from_saved_model(str(model), signature_keys=["serving_default"])
    converter.optimizations = [lite.Optimize.DEFAULT]
    converter.representative_dataset = _dataset(images)
    return converter


def _rows(debugger: Any) -> list[dict[str, str]]:
    text = io.StringIO()
    debugger.layer_statistics_dump(text)
    return list(csv.DictReader(io.StringIO(text.getvalue())))


@pytest.mark.filterwarnings("ignore:.*tf.lite.Interpreter is deprecated:UserWarning")
def test_the_first_layer_differs_as_much_as_there(digits_model: Path, images: list[np.ndarray], tf: ModuleType) -> None:
    """Later layers inherit the differences of those before; the official one compares each on its own."""
    found = []
    for lite in (tfconvert, tf.lite):
        options = lite.experimental.QuantizationDebugOptions(
            layer_debug_metrics={"mean_abs": lambda differences: np.mean(np.abs(differences))},
            model_debug_metrics={"agree": lambda one, other: float(one[0].argmax() == other[0].argmax())},
        )
        debugger = lite.experimental.QuantizationDebugger(
            converter=_converter(lite, digits_model, images), debug_dataset=_dataset(images), debug_options=options
        )
        debugger.run()
        assert debugger.model_statistics["agree"] >= 0.9
        found.append(_rows(debugger))
    ours, theirs = found
    assert list(ours[0]) == list(theirs[0])
    assert [row["op_name"] for row in ours] == [row["op_name"] for row in theirs if row["op_name"] != "SOFTMAX"]
    for name in ("num_elements", "stddev", "max_abs_error", "mean_squared_error", "mean_abs", "scale", "zero_point"):
        assert float(ours[0][name]) == pytest.approx(float(theirs[0][name]), rel=1e-2), name
    for one, other in zip(ours, theirs, strict=False):
        assert float(one["mean_squared_error"]) >= 0.5 * float(other["mean_squared_error"])


def test_layers_and_operators_may_stay_floats(digits_model: Path, images: list[np.ndarray]) -> None:
    debugger = QuantizationDebugger(
        converter=_converter(tfconvert, digits_model, images[:4]), debug_dataset=_dataset(images[:4])
    )
    with pytest.raises(ConversionError) as caught:
        debugger.get_debug_quantized_model()
    assert caught.value.code == "no-debug-model"
    assert _rows(debugger) == []
    debugger.run()
    rows = _rows(debugger)
    assert debugger.layer_statistics is not None
    assert list(debugger.layer_statistics) == [row["tensor_name"] for row in rows]
    worst = max(rows, key=lambda row: float(row["mean_squared_error"]) / float(row["scale"]) ** 2)
    before = [row["op_name"] for row in rows]
    for options, expected in (
        ({"denylisted_nodes": [worst["tensor_name"]]}, [row["op_name"] for row in rows if row is not worst]),
        ({"denylisted_ops": ["CONV_2D"]}, [name for name in before if name != "CONV_2D"]),
        ({"fully_quantize": True}, [*before, "SOFTMAX"]),
    ):
        debugger.options = QuantizationDebugOptions(**options)
        assert _rows(debugger) == []
        debugger.run()
        assert [row["op_name"] for row in _rows(debugger)] == expected
        model = debugger.get_nondebug_quantized_model()
        kinds = {
            row.kind for row in Analyzer.rows(model_content=model).tensors if row.name == "serving_default_pixels:0"
        }
        assert kinds == {"INT8" if "fully_quantize" in options else "FLOAT32"}


def test_two_files(digits_model: Path, images: list[np.ndarray], tmp_path: Path) -> None:
    converter = _converter(tfconvert, digits_model, images[:4])
    quantized = converter.convert()
    converter.optimizations = []
    path = tmp_path / "float.tflite"
    path.write_bytes(converter.convert())
    compare = {
        "correlation": lambda one, other, scale, zero: np.corrcoef(
            one.ravel(), (other.ravel().astype(np.float64) - zero) * scale
        )[0, 1]
    }
    debugger = QuantizationDebugger(
        quant_debug_model_content=quantized,
        float_model_path=path,
        debug_options=QuantizationDebugOptions(layer_direct_compare_metrics=compare),
        debug_dataset=lambda: [{"pixels": images[0]}],
    )
    debugger.run()
    assert debugger.layer_statistics is not None
    assert all(0.99 < each["correlation"] <= 1 for each in debugger.layer_statistics.values())
    with pytest.raises(ConversionError, match="pass converter"):
        debugger.get_nondebug_quantized_model()


def test_what_is_missing_is_told(digits_model: Path, images: list[np.ndarray], tmp_path: Path) -> None:
    with pytest.raises(ConversionError, match="neither a converter nor"):
        QuantizationDebugger()
    with pytest.raises(ConversionError) as caught:
        QuantizationDebugger(float_model_path=tmp_path / "none")
    assert caught.value.code == "model-not-found"
    with pytest.raises(ConversionError, match="must be set to make integers"):
        QuantizationDebugger(converter=tfconvert.TFLiteConverter.from_saved_model(digits_model))
    with pytest.raises(ConversionError, match="two metrics are called size"):
        QuantizationDebugOptions({"size": np.size}, {"size": lambda _, __: 0.0})
    converter = _converter(tfconvert, digits_model, images[:2])
    for dataset, code in ((None, "no-samples"), (lambda: [[]], "wrong-sample"), (lambda: [{}], "wrong-sample")):
        with pytest.raises(ConversionError) as caught:
            QuantizationDebugger(converter=converter, debug_dataset=dataset).run()
        assert caught.value.code == code
