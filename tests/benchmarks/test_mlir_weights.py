"""The cost of texts and programs is measured in the process that makes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import mlir_weights
from benchmarks.large_weights import shapes, write_model


def test_weights_are_not_in_memory(tmp_path: Path) -> None:
    write_model(tmp_path / "model", shapes(16))
    weights = (tmp_path / "model" / "variables" / "variables.data-00000-of-00001").stat().st_size
    measured = mlir_weights.cost(
        tmp_path / "model", tmp_path / "model.mlir", ("--target", "stablehlo", "--mlir-weights", "inline")
    )
    assert (tmp_path / "model.mlir").stat().st_size > 2 * weights
    assert 20e6 < measured.peak < mlir_weights.TEXTS
    assert measured.processor > 0


@pytest.mark.parametrize("has_compiler", [False, True])
def test_programs_are_measured_where_they_can_be_compiled(has_compiler: bool) -> None:
    found = mlir_weights.forms(has_compiler)
    assert any("iree" in flags for flags in found.values()) == has_compiler
    assert len(found) == (5 if has_compiler else 3)
