"""Samples of a mask may be infinite: what is hidden takes no part in ranges. Other infinities are refused."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any, Literal

import numpy as np
import pytest
from click.testing import CliRunner

import tfconvert
from tests.converter.targets.litert.quantize.runs import run_model, signal_to_noise
from tfconvert.cli.main import main
from tfconvert.converter.targets.litert import runtime
from tfconvert.schema.diagnostics import ConversionError

Array = np.ndarray[Any, np.dtype[Any]]

ROWS, WIDTH = 12, 16
RANDOM = np.random.default_rng(7)
KEYS, VALUES = (RANDOM.normal(size=(WIDTH, WIDTH)).astype(np.float32) / 4 for _ in range(2))
X = RANDOM.normal(size=(24, 1, ROWS, WIDTH)).astype(np.float32)
HIDDEN = np.arange(ROWS) >= RANDOM.integers(4, ROWS, (24, 1, 1, 1))


def _masks(number: float) -> Array:
    return np.where(HIDDEN, np.float32(number), np.float32(0))


def _attention(tf: ModuleType, x: Any, mask: Any) -> Any:
    scores = tf.matmul(tf.matmul(x, KEYS), x, transpose_b=True) + mask
    return tf.matmul(tf.nn.softmax(scores), tf.matmul(x, VALUES))


def _largest(tf: ModuleType, x: Any, mask: Any) -> Any:
    return tf.reduce_max(tf.matmul(x, KEYS) + tf.transpose(mask, [0, 2, 1]), 1)


def _chosen(tf: ModuleType, x: Any, mask: Any) -> Any:
    return tf.matmul(tf.where(mask < 0.0, 0.0, tf.matmul(x, KEYS, transpose_b=True)[:, :, :ROWS]), x)


def _model(tf: ModuleType, compute: Any) -> Any:
    specs = [tf.TensorSpec([1, ROWS, WIDTH], tf.float32, "x"), tf.TensorSpec([1, 1, ROWS], tf.float32, "mask")]
    return tf.function(lambda x, mask: compute(tf, x, mask), input_signature=specs)


def _samples(masks: Array) -> list[dict[str, Array]]:
    return [{"x": x, "mask": mask} for x, mask in zip(X, masks, strict=True)]


@pytest.mark.parametrize("ranges", ["minmax", "mse", "percentile"])
@pytest.mark.parametrize(("mode", "least"), [("int8", 28), ("int16", 39)])
@pytest.mark.parametrize("compute", [_attention, _largest, _chosen])
def test_infinities_that_hide_numbers_widen_no_range(
    tf: ModuleType,
    compute: Any,
    mode: Literal["int8", "int16"],
    least: float,
    ranges: Literal["minmax", "mse", "percentile"],
) -> None:
    model, masks = _model(tf, compute), _masks(-np.inf)
    quantize = tfconvert.Quantize(mode, samples=_samples(masks), ranges=ranges)
    content = bytes(tfconvert.convert(model, quantize=quantize))
    expected = np.concatenate([model(x, mask).numpy() for x, mask in zip(X, masks, strict=True)])
    got = np.concatenate([run_model(content, [x, mask], times=1) for x, mask in zip(X, masks, strict=True)])
    assert signal_to_noise(expected, got) >= least


@pytest.mark.parametrize("mode", ["int8", "int16"])
def test_the_command_takes_them(tf: ModuleType, tmp_path: Path, mode: str) -> None:
    module = tf.Module()
    module.run = _model(tf, _attention)
    tf.saved_model.save(module, str(tmp_path / "model"))
    files = []
    for number in (-np.inf, -1e9):
        np.savez(tmp_path / "samples.npz", x=X, mask=_masks(number))
        path = tmp_path / f"{number}.tflite"
        arguments = [str(tmp_path / "model"), "-q", "--quantize", mode, "--samples", str(tmp_path / "samples.npz")]
        done = CliRunner().invoke(main, [*arguments, "-o", str(path)])
        assert done.exit_code == 0, done.output
        files.append(path.read_bytes())
    # The same integers as with a finite mask.
    assert files[0] == files[1]
    np.savez(tmp_path / "samples.npz", x=np.where(X > 2, np.inf, X), mask=_masks(0))
    refused = CliRunner().invoke(main, [*arguments, "-o", str(path)])
    assert refused.exit_code == 1
    assert "samples of 'x' have infinities" in refused.output


@pytest.mark.parametrize("installed", [True, False])
@pytest.mark.parametrize("mode", ["int8", "int16"])
def test_infinities_that_reach_results_are_refused(
    tf: ModuleType, mode: Literal["int8", "int16"], installed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not installed:
        monkeypatch.setattr(runtime, "is_installed", lambda: False)
    wrong = {
        "everything of a row is hidden": (_attention, X, np.full_like(_masks(0), -np.inf)),
        "not a mask": (_attention, np.where(X > 2, np.float32(np.inf), X), _masks(0)),
        "a factor": (lambda tf, x, mask: tf.matmul(x * tf.transpose(mask, [0, 2, 1]), KEYS), X, _masks(-np.inf)),
    }
    for what, (compute, x, masks) in wrong.items():
        samples = [{"x": each, "mask": mask} for each, mask in zip(x[:4], masks[:4], strict=True)]
        with pytest.raises(ConversionError, match=r"have infinities.*\n.*-1e9 in a mask") as caught:
            tfconvert.convert(_model(tf, compute), quantize=tfconvert.Quantize(mode, samples=samples))
        assert caught.value.code == "wrong-sample", what
    masks = _masks(0)
    masks[1, 0, 0, 0] = np.nan
    with pytest.raises(ConversionError, match="sample 1 of 'mask' has elements that are NaN"):
        tfconvert.convert(_model(tf, _attention), quantize=tfconvert.Quantize(mode, samples=_samples(masks)))
