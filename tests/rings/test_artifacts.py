"""Portable artifacts of StableHLO, as jaxlib writes them, in TensorFlow's engine."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tfconvert
from tests.converter.targets.stablehlo.engine import Program
from tfconvert.schema.diagnostics import ConversionError

pytest.importorskip("jaxlib")

WEIGHTS = np.random.default_rng(3).normal(size=(16, 32)).astype(np.float32)


def _function(tf: ModuleType) -> Any:
    weights = tf.constant(WEIGHTS)

    @tf.function(input_signature=[tf.TensorSpec([None, 16], tf.float32, name="x")])  # type: ignore[untyped-decorator]
    def function(x: Any) -> Any:
        # An op of `chlo` on open sizes, which an artifact has to spell out.
        return {"y": tf.math.erf(x @ weights)}

    return function


def _run(content: bytes, tf: ModuleType, *inputs: np.ndarray) -> np.ndarray:
    (found,) = Program(content, [(tf.float32, (None, 32))]).run(inputs)
    return found


@pytest.mark.parametrize("batch", [1, 5])
def test_an_artifact_computes_what_the_model_does(tf: ModuleType, batch: int) -> None:
    function = _function(tf)
    converted = tfconvert.convert(function, target=tfconvert.StableHLO(artifact=True))
    content = bytes(converted)
    assert content.startswith(b"ML\xefR\x01StableHLO_v")
    assert len(content) == len(converted)
    x = np.random.default_rng(batch).normal(size=(batch, 16)).astype(np.float32)
    np.testing.assert_allclose(_run(content, tf, x), function(x)["y"], rtol=1e-5, atol=1e-6)


def test_weights_may_be_arguments(tf: ModuleType, tmp_path: Path) -> None:
    function = _function(tf)
    converted = tfconvert.convert(function, target=tfconvert.StableHLO(artifact=True, weights="arguments"))
    with pytest.raises(ConversionError, match="more than one file"):
        bytes(converted)
    converted.save(tmp_path / "model.mlirbc")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["model.mlirbc", "model.safetensors"]
    content = (tmp_path / "model.mlirbc").read_bytes()
    assert WEIGHTS.tobytes() not in content
    assert WEIGHTS.tobytes() in (tmp_path / "model.safetensors").read_bytes()
    x = np.ones((2, 16), np.float32)
    np.testing.assert_allclose(_run(content, tf, x, WEIGHTS), function(x)["y"], rtol=1e-5, atol=1e-6)


def test_it_is_verified_as_its_text_is(tf: ModuleType) -> None:
    converted = tfconvert.convert(_function(tf), verify=True, target=tfconvert.StableHLO(artifact=True))
    assert converted.report.verification


def test_globals_have_no_form_in_artifacts(tf: ModuleType) -> None:
    class Counter(tf.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.count = tf.Variable(0.0)

        @tf.function(input_signature=[])  # type: ignore[untyped-decorator]
        def more(self) -> Any:
            return self.count.assign_add(1.0)

    with pytest.raises(ConversionError) as caught:
        tfconvert.convert(Counter(), target=tfconvert.StableHLO(artifact=True))
    (told,) = caught.value.diagnostics
    assert told.code == "artifact-failed"
    assert "--mlir-state" in told.hint
    tfconvert.convert(Counter(), target=tfconvert.StableHLO(artifact=True, state="arguments"))
