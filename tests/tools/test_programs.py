"""Converted models that run: as they come from `convert`, and loaded from files of any converter."""

from __future__ import annotations

import gc
import pickle
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tfconvert
from tests.support.litert import RunTFLite
from tests.support.sample_models import two_heads


@pytest.fixture(scope="module")
def pixels(root: Path) -> np.ndarray[Any, Any]:
    """Returns images of digits."""
    with np.load(root / "examples" / "digits" / "held_out.npz") as file:
        return np.asarray(file[file.files[0]][:50], np.float32).reshape(-1, 8, 8, 1)


@pytest.fixture(scope="module")
def model(digits_model: Path) -> tfconvert.Model:
    return tfconvert.convert(digits_model)


def test_a_model_describes_its_ends(model: tfconvert.Model) -> None:
    (tensor,) = model.inputs
    assert (tensor.name, tensor.dtype, tensor.shape) == ("pixels", "float32", (None, 8, 8, 1))
    assert [each.name for each in model.outputs] == ["output_0"]
    assert model.size == len(model) == len(bytes(model))


def test_a_model_runs_as_litert_runs_its_file(
    model: tfconvert.Model, pixels: np.ndarray[Any, Any], run_tflite: RunTFLite
) -> None:
    (expected,) = run_tflite(bytes(model), [pixels])
    for found in (
        model(pixels),
        model(pixels.tolist()),
        model(pixels=pixels)["output_0"],
        model({"pixels": pixels.astype(np.float64)})["output_0"],
        model(pixels, signature="serving_default"),
    ):
        np.testing.assert_array_equal(found, expected)
    np.testing.assert_allclose(model(pixels[0]), expected[:1], rtol=1e-5)


def test_results_stay_when_the_model_runs_again(model: tfconvert.Model, pixels: np.ndarray[Any, Any]) -> None:
    first = model(pixels[:1])
    copy = first.copy()
    model(pixels[1:2])
    gc.collect()
    np.testing.assert_array_equal(first, copy)


@pytest.mark.parametrize("batch", [None, 1, 8])
def test_predict_runs_batches(
    digits_model: Path, model: tfconvert.Model, pixels: np.ndarray[Any, Any], batch: int | None, tmp_path: Path
) -> None:
    expected = model(pixels)
    fixed = tfconvert.convert(digits_model, batch=batch)
    np.save(tmp_path / "pixels.npy", pixels)
    data: tuple[Any, ...] = (
        pixels,
        {"pixels": pixels},
        {"input_layer": pixels},
        list(pixels),
        (each for each in pixels),
        ((pixels[at : at + 20], np.zeros(20)) for at in range(0, 50, 20)),
        tmp_path / "pixels.npy",
    )
    for each in data:
        np.testing.assert_allclose(fixed.predict(each, batch_size=16), expected, rtol=1e-4, atol=1e-6)


def test_integers_are_fed_and_read_as_numbers(digits_model: Path, pixels: np.ndarray[Any, Any], tmp_path: Path) -> None:
    quantize = tfconvert.Quantize("INT8", io="int8")  # type: ignore[arg-type]
    model = tfconvert.convert(digits_model, quantize=quantize, samples=pixels)
    expected = tfconvert.convert(digits_model)(pixels)
    (tensor,) = model.inputs
    assert tensor.dtype == "int8"
    assert tensor.scale
    found = model(pixels)
    assert found.dtype == np.float32
    assert (found.argmax(-1) == expected.argmax(-1)).mean() > 0.9
    stored = np.clip(np.round(pixels / tensor.scale) + (tensor.zero_point or 0), -128, 127).astype(np.int8)
    np.testing.assert_array_equal(model(stored), found)
    model.save(tmp_path / "model.tflite")
    np.testing.assert_array_equal(tfconvert.load(tmp_path / "model.tflite")(pixels), found)


@pytest.mark.parametrize("has_signature", [False, True])
def test_files_of_the_official_converter_run(has_signature: bool, tf: ModuleType, tmp_path: Path) -> None:
    @tf.function(input_signature=[tf.TensorSpec([None, 3], name=name) for name in "ab"])  # type: ignore[untyped-decorator]
    def both(a: Any, b: Any) -> Any:
        return {"sum": a + b, "difference": a - b}

    module = tf.Module()
    module.both = both
    if has_signature:
        tf.saved_model.save(module, str(tmp_path / "model"))
        converter = tf.lite.TFLiteConverter.from_saved_model(str(tmp_path / "model"))
    else:
        converter = tf.lite.TFLiteConverter.from_concrete_functions([both.get_concrete_function()], module)
    path = tmp_path / "official"
    path.write_bytes(converter.convert())
    program = tfconvert.load(path)
    a, b = np.full((2, 3), 5, np.float32), np.full((2, 3), 3, np.float32)
    by_name = program(a=a, b=b)
    assert sorted(float(each[0, 0]) for each in by_name.values()) == [2, 8]
    assert list(by_name) == [each.name for each in program.outputs]
    names = [each.name for each in program.inputs]
    values = [{"a": a, "b": b}[name] for name in names]
    for results in (program(*values), program(values), program.predict(tuple(values), batch_size=1)):
        for tensor, found in zip(program.outputs, results, strict=True):
            np.testing.assert_array_equal(found, by_name[tensor.name])


def test_one_of_several_signatures_is_chosen(tf: ModuleType, tmp_path: Path) -> None:
    module, signatures = two_heads(tf)
    tf.saved_model.save(module, str(tmp_path / "model"), signatures=signatures)
    model = tfconvert.convert(tmp_path / "model")
    x = np.ones((2, 64), np.float32)
    assert model(x, signature="classify").shape == (2, 5)
    assert model.predict(x, signature="embed").shape == (2, 256)
    with pytest.raises(tfconvert.ConversionError, match="several signatures") as refused:
        model(x)
    assert "classify" in refused.value.diagnostics[0].hint


def test_tensors_without_a_batch_run_one_by_one(tf: ModuleType) -> None:
    @tf.function(input_signature=[tf.TensorSpec([4], name="x")])  # type: ignore[untyped-decorator]
    def total(x: Any) -> Any:
        return tf.reduce_sum(x)

    model = tfconvert.convert(total.get_concrete_function())
    np.testing.assert_array_equal(model.predict(np.arange(12).reshape(3, 4)), [6, 22, 38])


def test_state_lasts_as_long_as_the_program(tf: ModuleType, tmp_path: Path) -> None:
    class Counter(tf.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            self.count = tf.Variable(0.0)

        @tf.function(input_signature=[tf.TensorSpec([], name="x")])  # type: ignore[untyped-decorator]
        def add(self, x: Any) -> Any:
            return self.count.assign_add(x)

    counter = Counter()
    tf.saved_model.save(counter, str(tmp_path / "counter"), signatures=counter.add)
    model = tfconvert.convert(tmp_path / "counter")
    assert [float(model(2.0)) for _ in range(3)] == [2, 4, 6]
    model.save(tmp_path / "counter.tflite")
    assert float(tfconvert.load(tmp_path / "counter.tflite")(2.0)) == 2


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda model: model(), "0 inputs are given, but these are taken: pixels"),
        (lambda model: model(1, 2), "2 inputs are given"),
        (lambda model: model(1, pixels=2), "in order and by name"),
        (lambda model: model(voxels=1), "the inputs voxels are given"),
        (lambda model: model(np.zeros((1, 1, 8, 8))), r"x\.transpose\(0, 2, 3, 1\)"),
        (lambda model: model(np.zeros((8, 9))), r"image\[None\]"),
        (lambda model: model(np.zeros((1, 8, 8, 1)), signature="other"), "there is no signature 'other'"),
        (lambda model: model("text"), "expects float32"),
        (lambda model: model.predict([]), "there are no samples"),
        (lambda model: model.predict({"a": np.zeros(3), "b": np.zeros(3)}), "no value for 'pixels'"),
    ],
)
def test_wrong_inputs_are_refused(model: tfconvert.Model, call: Callable[[Any], Any], message: str) -> None:
    with pytest.raises(tfconvert.ConversionError, match=message) as refused:
        call(model)
    assert refused.value.code == "wrong-sample"


def test_other_files_are_refused(digits_model: Path, tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("no model", "utf-8")
    damaged = tmp_path / "damaged.tflite"
    damaged.write_bytes(bytes(tfconvert.convert(digits_model))[:500])
    for path, code in (
        (tmp_path / "none.tflite", "model-not-found"),
        (text, "unknown-format"),
        (digits_model, "unknown-format"),
        (damaged, "malformed-tflite"),
    ):
        with pytest.raises(tfconvert.ConversionError) as refused:
            tfconvert.load(path)
        assert refused.value.code == code
        assert refused.value.diagnostics[0].hint or code == "malformed-tflite"


def test_text_does_not_run(digits_model: Path) -> None:
    with pytest.raises(tfconvert.ConversionError, match="can't be run") as refused:
        tfconvert.convert(digits_model, target="stablehlo")(0)
    assert refused.value.code == "wrong-option"


def test_programs_describe_themselves(model: tfconvert.Model, tmp_path: Path) -> None:
    model.save(tmp_path / "<b>.tflite")
    program = tfconvert.load(tmp_path / "<b>.tflite")
    assert repr(program).startswith("<tfconvert.Program ")
    assert "pixels float32[?,8,8,1] -> output_0 float32[?,10]" in repr(program)
    html = program._repr_html_()
    assert "&lt;b&gt;.tflite" in html
    assert "<b>" not in html
    pickle.dumps(html)
