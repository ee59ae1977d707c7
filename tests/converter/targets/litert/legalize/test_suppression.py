"""Suppression of boxes of several classes, as exported detectors have it."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tfconvert
from tests.support.litert import RunTFLite
from tests.support.saved_function import save_function

OPS = {"CombinedNonMaxSuppression"}
"""The ops that are tested through functions that use them."""


def _concrete(tf: Any, classes: int, sets: int, how: dict[str, Any], batch: int | None = 2) -> Any:
    def detect(boxes: Any, scores: Any) -> Any:
        found = tf.image.combined_non_max_suppression(boxes, scores, **how)
        return dict(zip("abcd", found, strict=True))

    signature = [tf.TensorSpec([batch, 12, sets, 4], name="boxes"), tf.TensorSpec([batch, 12, classes], name="scores")]
    return tf.function(detect, input_signature=signature).get_concrete_function()


def _boxes(sets: int) -> np.ndarray:
    """Returns boxes that overlap, some of which leave the image, and one without an area."""
    random = np.random.default_rng(3)
    near = random.uniform(-0.2, 0.9, (2, 12, sets, 2))
    boxes = np.concatenate([near, near + random.uniform(0.2, 0.5, near.shape)], -1)
    boxes[:, 3] = boxes[:, 3, :, :1]
    boxes[:, 5] = boxes[:, 5, :, [2, 3, 0, 1]].transpose(1, 2, 0)
    return boxes.astype(np.float32)


PLAIN: dict[str, Any] = {"max_output_size_per_class": 4, "max_total_size": 7, "iou_threshold": 0.3}
LARGE: dict[str, Any] = {"max_output_size_per_class": 20, "max_total_size": 100, "score_threshold": 0.4}


@pytest.mark.parametrize("how", [PLAIN, LARGE, {**LARGE, "pad_per_class": True}, {**PLAIN, "clip_boxes": False}])
@pytest.mark.parametrize(("classes", "sets"), [(1, 1), (3, 1), (3, 3)])
def test_boxes_of_classes(
    tf: ModuleType, run_tflite: RunTFLite, tmp_path: Path, classes: int, sets: int, how: dict[str, Any]
) -> None:
    concrete = _concrete(tf, classes, sets, how)
    save_function(tf, tmp_path, concrete)
    content = bytes(tfconvert.convert(tmp_path))
    scores = np.random.default_rng(4).permutation(24 * classes).reshape(2, 12, classes).astype(np.float32) / 100
    for inputs in ({"boxes": _boxes(sets), "scores": scores}, {"boxes": _boxes(sets) * 2, "scores": scores * 0}):
        got = run_tflite(content, inputs, signature="serving_default")
        wanted = concrete(**{name: tf.constant(value) for name, value in inputs.items()})
        for value, name in zip(got, sorted(wanted), strict=True):
            np.testing.assert_allclose(value, wanted[name].numpy(), 1e-6, err_msg=name)


def test_the_order_of_equal_scores_is_noted(tf: ModuleType, tmp_path: Path) -> None:
    save_function(tf, tmp_path, _concrete(tf, 3, 1, PLAIN))
    messages = [note.message for note in tfconvert.convert(tmp_path).report.notes if note.code == "runtime-difference"]
    assert sum("equal scores" in message for message in messages) == 1


def test_the_number_of_images_must_be_known(tf: ModuleType, tmp_path: Path) -> None:
    save_function(tf, tmp_path, _concrete(tf, 3, 1, PLAIN, None))
    with pytest.raises(
        tfconvert.ConversionError, match="the number of images, boxes or classes is not known"
    ) as caught:
        tfconvert.convert(tmp_path)
    assert caught.value.code == "unsupported-op"
    tfconvert.convert(tmp_path, batch=1)
