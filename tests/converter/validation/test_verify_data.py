"""Verification on inputs of the user's own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tfconvert
from tests.converter.validation.test_valid_inputs import save
from tfconvert.schema.diagnostics import ConversionError


@pytest.fixture(scope="module")
def model(tf: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a model with an input for which no random values are right."""

    def build(tf: Any) -> Any:
        def run(x: Any, code: Any) -> Any:
            with tf.control_dependencies([tf.debugging.assert_equal(code, 4711)]):
                return tf.sqrt(x)

        return run, [tf.TensorSpec([None, 2], tf.float32, "x"), tf.TensorSpec([None], tf.int32, "code")]

    return save(tf, build, tmp_path_factory.mktemp("models") / "model")


def _sample(count: int = 1) -> dict[str, np.ndarray[Any, Any]]:
    x = np.random.default_rng(0).normal(size=(count, 2)).astype(np.float32)
    return {"x": x, "code": np.full(count, 4711, np.int32)}


def _npz(folder: Path) -> Any:
    np.savez(folder / "x.npz", **_sample(3))  # type: ignore[arg-type]
    return str(folder / "x.npz")


def _folder(folder: Path) -> Any:
    for name in ("a", "b"):
        np.savez(folder / f"{name}.npz", **_sample(2))  # type: ignore[arg-type]
    return folder


def _generator(folder: Path) -> Any:
    def each() -> Iterator[Any]:
        yield _sample()
        yield _sample(4)

    return each


@pytest.mark.parametrize("make", [_npz, _folder, _generator, lambda folder: {"serving_default": [_sample(2)]}])
def test_every_form_of_data_is_accepted(make: Callable[[Path], Any], model: Path, tmp_path: Path) -> None:
    """The numbers under the root are negative here and there: NaN at the same places isn't a difference."""
    report = tfconvert.convert(model, verify=tfconvert.Verify(data=make(tmp_path))).report
    assert [note for note in report.notes if note.code == "not-verified"] == []
    (checked,) = report.verification
    assert checked.max_relative < 1e-5


def test_without_data_the_model_is_declined(model: Path) -> None:
    report = tfconvert.convert(model, verify=True).report
    assert report.verification == ()
    (note,) = [note for note in report.notes if note.code == "not-verified"]
    assert "pass inputs of your own" in note.hint


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([{"x": np.ones((1, 2), np.float32)}], "no value for 'code'"),
        ([{"x": np.ones((1, 2), np.float32), "code": np.ones(1, np.int32)}], "can't be run on sample 0"),
        ([{"x": np.ones((1, 3), np.float32), "code": np.ones(1, np.int32)}], "shape"),
    ],
)
def test_wrong_data_is_refused(data: Any, message: str, model: Path) -> None:
    with pytest.raises(ConversionError, match=message) as caught:
        tfconvert.convert(model, verify=tfconvert.Verify(data=data))
    assert caught.value.code == "wrong-sample"


def test_the_command_takes_data_and_is_quiet_about_the_runtime(model: Path, tmp_path: Path) -> None:
    output = tmp_path / "model.tflite"
    command = [sys.executable, "-m", "tfconvert", str(model), "-o", str(output), "--verify-data", _npz(tmp_path)]
    run = subprocess.run([*command, "--json"], capture_output=True, text=True, check=True)
    assert json.loads(run.stdout)["verification"][0]["max_relative"] < 1e-5
    assert run.stderr == ""
