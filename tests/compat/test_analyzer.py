"""`experimental.Analyzer`: rows of files, what it prints, and what it says about GPUs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tfconvert
from tests.support.sample_models import traced
from tfconvert.experimental import Analyzer
from tfconvert.schema.diagnostics import ConversionError


@pytest.fixture(scope="module")
def content(digits_model: Path) -> bytes:
    return bytes(tfconvert.convert(digits_model))


def test_rows_are_what_litert_reads(content: bytes) -> None:
    found = Analyzer.rows(model_content=content)
    interpreter = tfconvert.Interpreter(model_content=content)
    details = interpreter.get_tensor_details()[: len(found.tensors)]
    assert [(row.number, row.name, row.shape) for row in found.tensors] == [
        (each["index"], each["name"], tuple(each["shape_signature" if len(each["shape_signature"]) else "shape"]))
        for each in details
    ]
    assert found.size == len(content)
    assert found.constants == sum(row.size for row in found.tensors)
    signatures = {row.key: (list(row.inputs), list(row.outputs)) for row in found.signatures}
    assert signatures == {
        key: (each["inputs"], each["outputs"]) for key, each in interpreter.get_signature_list().items()
    }
    assert found.subgraphs[0].inputs == (interpreter.get_input_details()[0]["index"],)
    assert not any(row.gpu for row in found.operators)


def test_text(content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(content)
    Analyzer.analyze(str(path), gpu_compatibility=True)
    text = capsys.readouterr().out
    assert text.startswith(f"=== {path} ===")
    for line in (
        "Subgraph#0 main(T#0) -> [T#26]",
        "  Op#0 CONV_2D(T#0, T#1, T#2) -> [T#3]",
        "  T#0(pixels) shape:[-1, 8, 8, 1], type:FLOAT32",
        "  T#2(",
        ", constant of 96 bytes",
        "Your model looks compatible with the GPU delegate.",
        "Signature#0 'serving_default' of Subgraph#0: 'pixels': T#0 -> 'output_0': T#26",
        f"Model size: {len(content)} bytes",
    ):
        assert line in text


def test_mlir(content: bytes, capsys: pytest.CaptureFixture[str]) -> None:
    Analyzer.analyze(model_content=content, experimental_use_mlir=True)
    assert '"tfl.conv_2d"' in capsys.readouterr().out


def _declined(tf: ModuleType) -> Callable[..., Any]:
    @traced(tf, tf.TensorSpec([4, 4], tf.float32, name="x"), tf.TensorSpec([1, 8, 8, 2], tf.float32, name="image"))
    def call(x: Any, image: Any) -> Any:
        return {
            "sorted": tf.sort(x),
            "least": tf.argmin(x, -1, tf.int32),
            "outer": tf.reshape(x, [4, 1, 4]) * tf.reshape(x, [4, 4, 1]),
            "flags": tf.cast(x > 1, tf.int32),
            "padded": tf.pad(x, [[1, 1], [1, 1]]),
            "fine": tf.nn.relu(tf.image.resize(image, (16, 16))),
        }

    result: Callable[..., Any] = call
    return result


def test_what_a_gpu_does_not_take(tf: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    model = bytes(tfconvert.convert(_declined(tf)))
    found = Analyzer.rows(model_content=model, gpu_compatibility=True).operators
    why = {row.name: row.gpu for row in found if row.gpu}
    assert why == {
        "ARG_MIN": "refused: Operation is not supported",
        "PAD": ("refused: its data have a rank below 3 (Invalid paddings tensor shape: expected 4x2 or 3x2, got 2x2)"),
    }
    Analyzer.analyze(model_content=model, gpu_compatibility=True)
    text = capsys.readouterr().out
    assert f"2 of {len(found)} operators don't run on the GPU delegate" in text
    assert text.count("    GPU COMPATIBILITY WARNING") == 2
    for name, reason in why.items():
        assert f"    GPU COMPATIBILITY WARNING: {name}: {reason}" in text


def _with_options(tf: ModuleType) -> Callable[..., Any]:
    shapes: Sequence[Sequence[int]] = ([1, 8, 8, 1], [1, 4], [3, 1, 1], [])
    kinds = (tf.float32, tf.int32, tf.int32, tf.float32)

    @traced(tf, *(tf.TensorSpec(*spec, name=f"x{i}") for i, spec in enumerate(zip(shapes, kinds, strict=True))))
    def call(image: Any, places: Any, batch: Any, on: Any) -> Any:
        return {
            "a_hot": tf.one_hot(places[:, :1], 5),
            "b_rows": tf.one_hot(batch, 5),
            "c_first": tf.one_hot(places[:, :1], 5, axis=0),
            "d_computed": tf.one_hot(places[:, :1], 5, on_value=on, off_value=0.0),
            "e_blocks": tf.nn.depth_to_space(tf.nn.space_to_depth(image, 2), 2),
            "f_one": tf.nn.depthwise_conv2d(image, tf.ones([3, 3, 1, 2]), [1, 1, 1, 1], "SAME"),
            "g_two": tf.nn.depthwise_conv2d(tf.tile(image, [1, 1, 1, 2]), tf.ones([3, 3, 2, 2]), [1, 1, 1, 1], "SAME"),
        }

    result: Callable[..., Any] = call
    return result


def test_options_count(tf: ModuleType) -> None:
    found = Analyzer.rows(model_content=bytes(tfconvert.convert(_with_options(tf))), gpu_compatibility=True).operators
    why = [(row.name, row.gpu) for row in found if row.gpu]
    assert why == [("ONE_HOT", "refused: its axis is not the last (OneHot axis must be -1 or the last dimension)")]
    counts = Counter(row.name for row in found)
    assert {name: counts[name] for name in ("ONE_HOT", "SPACE_TO_DEPTH", "DEPTH_TO_SPACE", "DEPTHWISE_CONV_2D")} == {
        "ONE_HOT": 4,
        "SPACE_TO_DEPTH": 1,
        "DEPTH_TO_SPACE": 1,
        "DEPTHWISE_CONV_2D": 2,
    }


def test_errors(tmp_path: Path) -> None:
    for arguments, code in (
        ({}, "wrong-option"),
        ({"model_path": tmp_path / "none"}, "model-not-found"),
        ({"model_content": b"\0" * 64}, "malformed-tflite"),
        ({"model_content": b"\0", "no_such_thing": 1}, "wrong-option"),
    ):
        with pytest.raises(ConversionError) as caught:
            Analyzer.analyze(**arguments)
        assert caught.value.code == code


def test_a_converter_for_gpus_warns(digits_model: Path, tf: ModuleType) -> None:
    function = _declined(tf).get_concrete_function()  # type: ignore[attr-defined]
    converter = tfconvert.TFLiteConverter.from_concrete_functions([function])
    converter.target_spec.experimental_supported_backends = ["GPU"]
    content = converter.convert()
    assert converter.report is not None
    warned = [note for note in converter.report.notes if note.code == "not-for-gpu"]
    assert sorted(str(note.op) for note in warned) == ["ARG_MIN", "PAD"]
    assert np.array(bytearray(content)).size == converter.report.size
    converter.target_spec.experimental_supported_backends = ["TPU"]
    with pytest.raises(ConversionError, match="TPU"):
        converter.convert()
