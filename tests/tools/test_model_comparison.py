"""`compare`: a converted model beside its source or another file, by output and layer by layer."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tfconvert
from tests.support import outlier
from tfconvert.schema.diagnostics import size_text


@pytest.fixture(scope="module")
def pixels(root: Path) -> np.ndarray[Any, Any]:
    """Returns images of digits."""
    with np.load(root / "examples" / "digits" / "held_out.npz") as file:
        return np.asarray(file[file.files[0]][:50], np.float32).reshape(-1, 8, 8, 1)


@pytest.fixture(scope="module")
def pair(digits_model: Path, pixels: np.ndarray[Any, Any]) -> tuple[tfconvert.Model, tfconvert.Model]:
    """Returns a model in floats, and quantized."""
    return tfconvert.convert(digits_model), tfconvert.convert(digits_model, quantize="int8", samples=pixels)


def test_a_model_agrees_with_its_source(digits_model: Path, pair: Any, pixels: np.ndarray[Any, Any]) -> None:
    found = pair[0].compare(digits_model, pixels)
    (output,) = found.fidelity.outputs
    assert output.snr > 100
    assert output.agreement == 1
    assert found.advice == ()
    assert found.fidelity.samples == 32, "the reference is slow"
    assert "the first 32 samples were compared, not the others" in str(found)
    assert "not the others" not in str(pair[0].compare(digits_model, pixels[:32]))
    assert f"{digits_model} ({size_text(pair[0].size)}) compared with {digits_model} on 32 samples:" in str(found)


def test_a_quantized_model_loses_little(digits_model: Path, pair: Any, pixels: np.ndarray[Any, Any]) -> None:
    floats, inputs = pair[0], pixels / 16
    quantized = tfconvert.convert(digits_model, quantize="int8", samples=inputs)
    by_source = quantized.compare(digits_model, inputs[:32], layers=True)
    by_file = quantized.compare(floats, inputs[:32], layers=True)
    for found in (by_source, by_file):
        assert 20 < found.fidelity.snr < 100
        assert {layer.op for layer in found.fidelity.layers} >= {"CONV_2D", "FULLY_CONNECTED"}
        assert not found.is_low
    assert by_source.fidelity.snr == pytest.approx(by_file.fidelity.snr, abs=0.5)
    # The floats are taken to be right, whichever of the two is asked.
    assert floats.compare(quantized, inputs[:32], layers=True) == by_file


def test_files_are_compared_by_name(
    pair: Any, pixels: np.ndarray[Any, Any], digits_model: Path, tmp_path: Path
) -> None:
    for name, model in zip(("float.tflite", "int8.tflite"), pair, strict=True):
        model.save(tmp_path / name)
    renamed = tfconvert.convert(digits_model, quantize="int8", samples=pixels, rename={"output_0": "scores"})
    found = tfconvert.compare(tmp_path / "int8.tflite", str(tmp_path / "float.tflite"), pixels)
    assert found.fidelity == pair[1].compare(pair[0], pixels).fidelity
    assert renamed.compare(pair[0], pixels).fidelity == found.fidelity
    assert "int8.tflite compared with " in str(found)


def test_random_inputs_are_within_the_ranges(pair: Any) -> None:
    found = pair[1].compare(pair[0])
    assert found.fidelity.is_random
    assert found.fidelity.snr > 20
    assert "on 2 random inputs" in str(found)


def test_it_shows_where_accuracy_is_lost(outlier_model: Path) -> None:
    images = outlier.images()
    floats = tfconvert.convert(outlier_model)
    quantized = tfconvert.convert(outlier_model, quantize=tfconvert.Quantize("int8", samples=images, equalize="off"))
    short = quantized.compare(floats, images)
    assert short.is_low
    assert short.advice == ("layers=True shows where accuracy is lost",)
    for other in (floats, outlier_model):
        found = quantized.compare(other, images, layers=True)
        assert [layer.node for layer in found.fidelity.layers][:2] == outlier.CULPRITS
        first, *_, last = found.advice
        assert "widened (CONV_2D) loses 88% of the signal of its channels: the typical channel uses 0.05%" in first
        assert "exclude=['widened', 'narrowed']" in last
    better = tfconvert.Quantize("int8", samples=images, exclude=outlier.CULPRITS)
    assert not tfconvert.convert(outlier_model, quantize=better).compare(floats, images).is_low


@pytest.mark.parametrize(("factor", "kind"), [(64, "larger"), (1 / 16, "smaller")])
def test_samples_of_another_scale_are_noticed(
    factor: float, kind: str, digits_model: Path, pair: Any, pixels: np.ndarray[Any, Any]
) -> None:
    inputs = pixels / 16
    quantized = tfconvert.convert(digits_model, quantize="int8", samples=inputs * factor)
    (found,) = quantized.compare(pair[0], inputs, layers=True).advice
    assert f"the samples of the quantization had {kind} numbers than these inputs" in found


def test_it_prints_as_tables(pair: Any, pixels: np.ndarray[Any, Any]) -> None:
    found = pair[1].compare(pair[0], ((x[None], 3) for x in pixels), layers=True)
    text = str(found)
    assert repr(found) == text
    assert "same largest element" in text
    assert "worst channel" in text
    assert "note: the samples have labels, which are left out" in text
    data = json.loads(json.dumps(found.to_dict()))
    assert data["samples"] == 50
    assert data["layers"][0]["node"]
    html = found._repr_html_()
    assert html.count("<table") == 2
    assert html.count("</tr>") == 3 + len(found.fidelity.layers) - 1 + 1
    assert "<script" not in html
    assert "http" not in html


def test_others_are_refused(pair: Any, digits_model: Path, tf: ModuleType, tmp_path: Path) -> None:
    @tf.function(input_signature=[tf.TensorSpec([3], name="x")])  # type: ignore[untyped-decorator]
    def other(x: Any) -> Any:
        return x + 1, x

    unlike = tfconvert.convert(other.get_concrete_function())
    for call, code in (
        (lambda: pair[0].compare(unlike), "unlike-interface"),
        (lambda: pair[0].compare(other.get_concrete_function()), "unlike-interface"),
        (lambda: pair[0].compare(3), "unknown-format"),
        (lambda: pair[0].compare(pair[1], np.zeros((3, 5))), "wrong-sample"),
        (lambda: pair[0].compare("none.tflite"), "model-not-found"),
        (lambda: tfconvert.compare(3, pair[0]), "wrong-option"),
        (lambda: tfconvert.convert(digits_model, target="stablehlo").compare(pair[0]), "wrong-option"),
    ):
        with pytest.raises(tfconvert.ConversionError) as refused:
            call()
        assert refused.value.code == code
