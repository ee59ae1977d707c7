"""Graphs of any size: they convert, they compute, and what comes out grows as they do."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tfconvert
from benchmarks.synthetic import CHANNELS, INPUT, OUTPUT, SHAPES, SIDE, write
from tests.support.litert import RunTFLite


@pytest.mark.parametrize("shape", SHAPES)
def test_sizes_are_as_requested(shape: str, tmp_path: Path) -> None:
    for nodes in (50, 500):
        assert abs(write(shape, nodes, tmp_path / "graph.pb") - nodes) <= 8


@pytest.mark.parametrize("shape", SHAPES)
def test_graphs_are_the_same_each_time(shape: str, tmp_path: Path) -> None:
    for name in ("one", "again"):
        write(shape, 60, tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "again").read_bytes()


@pytest.mark.parametrize("shape", SHAPES)
def test_operators_grow_with_the_nodes(shape: str, tmp_path: Path, run_tflite: RunTFLite) -> None:
    counts = []
    for blocks in (4, 8, 16):
        path = tmp_path / f"{blocks}.pb"
        write(shape, 8 * blocks + 3, path)
        model = tfconvert.convert(path, inputs=[INPUT], outputs=[OUTPUT])
        counts.append(model.report.operators.total())
        (result,) = run_tflite(bytes(model), [np.ones((1, SIDE, SIDE, CHANNELS), np.float32)])
        assert np.isfinite(result).all()
        assert result.std() > 0
    assert counts[2] - counts[1] == 2 * (counts[1] - counts[0]) > 0
