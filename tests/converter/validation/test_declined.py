"""Results that can't be compared become a note, rounding differences are tolerated, and all others fail."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tfconvert
from tests.converter.validation.test_valid_inputs import save
from tfconvert.converter.targets.litert.runtime_process import Runtime
from tfconvert.schema.diagnostics import ConversionError


def test_random_numbers_are_not_compared(tf: ModuleType, tmp_path: Path) -> None:
    def build(tf: Any) -> Any:
        return lambda x: x + tf.random.normal([3]), [tf.TensorSpec([3], tf.float32, "x")]

    report = tfconvert.convert(save(tf, build, tmp_path / "model"), verify=True).report
    assert report.verification == ()
    (note,) = [note for note in report.notes if note.code == "not-verified"]
    assert "tf.RandomStandardNormal" in note.message


def test_custom_ops_are_not_compared(tf: ModuleType, tmp_path: Path) -> None:
    def build(tf: Any) -> Any:
        return lambda x: tf.math.betainc(x, x, x), [tf.TensorSpec([3], tf.float32, "x")]

    model = save(tf, build, tmp_path / "model")
    report = tfconvert.convert(model, verify=True, target=tfconvert.LiteRT(allow_custom_ops=True)).report
    assert [note.code for note in report.notes if note.code == "not-verified"]


def _best(tf: Any) -> Any:
    """The two halves are the same numbers, summed in another order."""
    weights = np.random.default_rng(0).normal(size=(4, 64)).astype(np.float32)

    def run(x: Any) -> Any:
        one = tf.reduce_sum(x[:, None, :] * weights, -1)
        other = tf.matmul(x, weights, transpose_b=True)
        return tf.argmax(tf.concat([one, other], -1), -1)

    return run, [tf.TensorSpec([32, 64], tf.float32, "x")]


def _shifted(by: int, monkeypatch: pytest.MonkeyPatch) -> None:
    run_file = Runtime.run_file

    def wrong(self: Runtime, *arguments: Any) -> Any:
        return [(value + by) % 8 for value in run_file(self, *arguments)]

    monkeypatch.setattr(Runtime, "run_file", wrong)


def test_ties_decided_by_rounding_are_reported(tf: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = save(tf, _best, tmp_path / "model")
    _shifted(4, monkeypatch)  # The equal number of the other half.
    report = tfconvert.convert(model, verify=True).report
    assert {note.code for note in report.notes} == {"decided-by-rounding"}


def test_wrong_indices_fail(tf: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = save(tf, _best, tmp_path / "model")
    _shifted(1, monkeypatch)
    with pytest.raises(ConversionError) as caught:
        tfconvert.convert(model, verify=True)
    assert caught.value.code == "verification-failed"
    assert "numbers" in caught.value.diagnostics[0].message
