"""Random ops: shapes, element types and ranges, since the numbers are the runtime's own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tfconvert
from tests.converter.targets.litert.legalize.cases import Array, Case, graph, operand
from tests.support.litert import RunTFLite

CASES = [
    Case("RandomUniform", ["i32[2]@40:41"], {"dtype": np.float32, "seed": 3}),
    Case("RandomStandardNormal", ["i32[2]@40:41"], {"dtype": np.float32}),
    Case("Multinomial", ["f32[2,3]", "i32[]@5:6"], {"output_dtype": np.int64}),
]


def _run(case: Case, run_tflite: RunTFLite, folder: Path) -> Array:
    operands = [operand(spec, 1) for spec in case.operands]
    path = folder / "graph.pb"
    path.write_bytes(graph(case, operands).SerializeToString())
    names = [f"x{i}" for i in range(len(operands))]
    model = tfconvert.convert(path, inputs=names, outputs=["y"])
    (result,) = run_tflite(bytes(model), [each.value for each in operands])
    return result


def test_random_uniform(run_tflite: RunTFLite, tmp_path: Path) -> None:
    result = _run(CASES[0], run_tflite, tmp_path)
    assert result.shape == (40, 40)
    assert result.dtype == np.float32
    assert result.min() >= 0
    assert result.max() < 1
    assert result.mean() == pytest.approx(0.5, abs=0.05)


def test_random_standard_normal(run_tflite: RunTFLite, tmp_path: Path) -> None:
    result = _run(CASES[1], run_tflite, tmp_path)
    assert result.mean() == pytest.approx(0, abs=0.1)
    assert result.std() == pytest.approx(1, abs=0.1)


def test_multinomial(run_tflite: RunTFLite, tmp_path: Path) -> None:
    result = _run(CASES[2], run_tflite, tmp_path)
    assert result.shape == (2, 5)
    assert result.dtype == np.int64
    assert set(result.ravel()) <= {0, 1, 2}
