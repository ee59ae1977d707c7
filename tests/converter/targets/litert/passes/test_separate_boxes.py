"""Boxes without an area in non-maximum suppression: TensorFlow chooses each once, and so do LiteRT's files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfconvert
from tests.support.litert import RunTFLite
from tests.support.run_text import parse
from tfconvert.converter.targets.litert.passes import separate_boxes
from tfconvert.schema.dialects.boxes import Array

Function = Callable[..., Any]

_NUMBERS = np.random.default_rng(0)
_LOWEST = float(np.finfo(np.float32).min)


def _boxes(count: int) -> Array:
    """Returns boxes of which most are clipped to lines and points, some of them equal, with corners in any order."""
    corners = _NUMBERS.uniform(-0.5, 1.5, (count, 2))
    boxes = np.concatenate([corners, corners + _NUMBERS.uniform(-0.7, 0.7, (count, 2))], 1)
    return np.asarray(np.clip(boxes, 0, 1), np.float32)


_OPS: dict[str, Callable[[Any], Function]] = {
    "V2": lambda tf: (
        lambda b, s: tf.raw_ops.NonMaxSuppressionV2(boxes=b, scores=s, max_output_size=30, iou_threshold=0.3)
    ),
    "V3": lambda tf: lambda b, s: tf.image.non_max_suppression(b, s, 30, 0.5, 0.1),
    "V3-all": lambda tf: lambda b, s: tf.image.non_max_suppression(b, s, 30, 0.0),
    "V4": lambda tf: (
        lambda b, s: tf.raw_ops.NonMaxSuppressionV4(
            boxes=b, scores=s, max_output_size=50, iou_threshold=0.3, score_threshold=0.2, pad_to_max_output_size=True
        )
    ),
    "V5": lambda tf: lambda b, s: tf.image.non_max_suppression_with_scores(b, s, 30, 0.4, 0.1),
    "soft": lambda tf: lambda b, s: tf.image.non_max_suppression_with_scores(b, s, 30, 1.0, 0.1, 0.3),
}


def _saved(tf: Any, function: Function, folder: Path, size: int | None) -> Any:
    specs = [tf.TensorSpec([size, 4], name="boxes"), tf.TensorSpec([size], name="scores")]
    module = tf.Module()
    module.f = tf.function(
        lambda boxes, scores: dict(zip("abc", _many(function(boxes, scores)), strict=False)), input_signature=specs
    )
    tf.saved_model.save(module, str(folder), signatures=module.f)
    return function


def _many(results: Any) -> list[Any]:
    return list(results) if isinstance(results, (list, tuple)) else [results]


@pytest.mark.parametrize("size", [None, 40], ids=["dynamic", "static"])
@pytest.mark.parametrize("op", _OPS)
def test_each_is_chosen_once(op: str, size: int | None, tf: Any, tmp_path: Path, run_tflite: RunTFLite) -> None:
    function = _saved(tf, _OPS[op](tf), tmp_path, size)
    content = bytes(tfconvert.convert(tmp_path))
    for _ in range(5):
        boxes, scores = _boxes(40), _NUMBERS.permutation(np.linspace(0.05, 0.95, 40)).astype(np.float32)
        if op == "soft":  # Boxes that are equal and have an area are dropped, as the report says.
            boxes = np.unique(boxes, axis=0)[np.arange(40) % len(np.unique(boxes, axis=0))]
            boxes[len(np.unique(boxes, axis=0)) :] = 0.5
        assert not np.prod(boxes[:, 2:] - boxes[:, :2], axis=1).all()
        for got, wanted in zip(run_tflite(content, [boxes, scores]), _many(function(boxes, scores)), strict=True):
            np.testing.assert_allclose(got, wanted.numpy(), atol=1e-6)


def test_the_composite_too(tf: Any, tmp_path: Path, run_tflite: RunTFLite) -> None:
    def suppress(boxes: Any, scores: Any) -> Any:
        return tf.image.non_max_suppression_padded(boxes, scores, 8, 0.5, 0.1, pad_to_max_output_size=True)

    function = _saved(tf, suppress, tmp_path, 40)
    model = tfconvert.convert(tmp_path)
    assert model.report.operators["NON_MAX_SUPPRESSION_V4"] == 1
    boxes, scores = np.sort(_boxes(40).reshape(40, 2, 2), 1).reshape(40, 4), np.linspace(0.9, 0.2, 40, dtype=np.float32)
    boxes = np.maximum(boxes, np.float32(0.01))
    wanted, count = (value.numpy() for value in function(boxes, scores))
    got, number = run_tflite(bytes(model), [boxes, scores])
    assert number == count
    np.testing.assert_array_equal(got[:number], wanted[:count])


def test_the_lowest_number_is_not_a_score(tf: Any, tmp_path: Path, run_tflite: RunTFLite) -> None:
    function = _saved(tf, _OPS["V2"](tf), tmp_path, 3)
    boxes = np.array([[0, 0, 1, 1], [2, 2, 3, 3], [4, 4, 5, 5]], np.float32)
    scores = np.array([_LOWEST, 0.5, -0.5], np.float32)
    (got,) = run_tflite(bytes(tfconvert.convert(tmp_path)), [boxes, scores])
    np.testing.assert_array_equal(got, function(boxes, scores).numpy())


def test_areas_that_are_not_finite_repeat_no_box(tf: Any, tmp_path: Path, run_tflite: RunTFLite) -> None:
    _saved(tf, _OPS["V3"](tf), tmp_path, 5)
    boxes = np.array([[0, 0, np.inf, 1], [np.nan, 0, 1, 1], [-1e30, -1e30, 1e30, 1e30], [0, 0, 1, 1], [5, 5, 6, 6]])
    scores = np.linspace(0.9, 0.5, 5, dtype=np.float32)
    (got,) = run_tflite(bytes(tfconvert.convert(tmp_path)), [boxes.astype(np.float32), scores])
    assert got.tolist() == [0, 1, 2, 3, 4]


def test_classes_share_their_boxes(tf: Any, tmp_path: Path) -> None:
    suppress = tf.image.non_max_suppression
    _saved(tf, lambda b, s: (suppress(b, s, 5, 0.5), suppress(b, -s, 5, 0.5)), tmp_path, 40)
    operators = tfconvert.convert(tmp_path).report.operators
    assert (operators["NON_MAX_SUPPRESSION_V4"], operators["SELECT"]) == (2, 1)


def test_files_get_it_once(tf: Any, tmp_path: Path, run_tflite: RunTFLite) -> None:
    before, after = (separate_boxes.__doc__ or "").partition("Before:")[2].split("After")
    path = tmp_path / "model.mlir"
    path.write_text(before)
    model = tfconvert.convert(path)
    boxes = np.array([[0, 0, 0, 1], [0, 0, 1, 1], [0, 0, 0.9, 1], [3, 3, 4, 4], [0, 0, 0, 1]], np.float32)
    inputs = [boxes, np.linspace(0.9, 0.6, 5, dtype=np.float32), np.array(5, np.int32), np.array(0.5, np.float32)]
    (got,) = run_tflite(bytes(model), inputs)
    assert got.tolist() == [0, 1, 3, 4, 0]
    (tmp_path / "model.tflite").write_bytes(bytes(model))
    again = tfconvert.convert(tmp_path / "model.tflite").report.operators  # Far boxes may be constants now.
    assert (again["DIV"], again["SELECT"], again["NON_MAX_SUPPRESSION_V4"]) == (1, 1, 1)
    text = after.partition("\n")[2]
    assert Counter(op.name for op in parse(before).walk()) != Counter(op.name for op in parse(text).walk())
    assert separate_boxes.SeparateBoxes().apply(parse(text)).counts == Counter()
