"""Ops of constants that are computed in place become what their rows make of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tfconvert
from tests.converter.from_stablehlo.programs import convert, operators, program, results
from tfconvert.converter.from_stablehlo import raising

KIND = "tensor<1x1x1x4xf32>"
IMAGE = "tensor<2x3x3x4xf32>"

VARIANCE = np.array([0.25, 1, 4, 0.5], np.float32)
GAMMA = np.array([2, -1, 0.5, 3], np.float32)
EPSILON = np.float32(1e-3)

BATCH_NORMALIZATION = f"""    %v = stablehlo.constant dense<[0.25, 1.0, 4.0, 0.5]> : tensor<4xf32>
    %g = stablehlo.constant dense<[2.0, -1.0, 0.5, 3.0]> : tensor<4xf32>
    %e = stablehlo.constant dense<1.0e-3> : tensor<f32>
    %0 = stablehlo.reshape %v : (tensor<4xf32>) -> {KIND}
    %1 = stablehlo.reshape %g : (tensor<4xf32>) -> {KIND}
    %2 = stablehlo.broadcast_in_dim %e, dims = [] : (tensor<f32>) -> {KIND}
    %3 = stablehlo.add %0, %2 : {KIND}
    %4 = stablehlo.rsqrt %3 : {KIND}
    %5 = stablehlo.multiply %4, %1 : {KIND}
    %6 = stablehlo.negate %5 : {KIND}
    %7 = stablehlo.subtract %6, %1 : {KIND}
    %8 = stablehlo.broadcast_in_dim %7, dims = [0, 1, 2, 3] : ({KIND}) -> {IMAGE}
    %9 = stablehlo.add %a, %8 : {IMAGE}
    return %9 : {IMAGE}"""


def _of_constants(one: str, other: str, op: str) -> str:
    return program(
        f"""    %0 = stablehlo.constant dense<{one}> : tensor<{"4x" if "[" in one else ""}f32>
    %1 = stablehlo.constant dense<{other}> : tensor<{"4x" if "[" in other else ""}f32>
    %2 = stablehlo.broadcast_in_dim %0, dims = [{"0" if "[" in one else ""}] : (tensor<{"4x" if "[" in one else ""}f32>)
        -> tensor<4xf32>
    %3 = stablehlo.broadcast_in_dim %1, dims = [{"0" if "[" in other else ""}]
        : (tensor<{"4x" if "[" in other else ""}f32>) -> tensor<4xf32>
    %4 = stablehlo.{op} %2, %3 : tensor<4xf32>
    %5 = stablehlo.maximum %a, %4 : tensor<4xf32>
    return %5 : tensor<4xf32>""",
        ["tensor<4xf32>"],
        ["tensor<4xf32>"],
    )


PROGRAMS = {
    "batch-normalization": program(BATCH_NORMALIZATION, [IMAGE], [IMAGE]),
    **{
        f"{op} {one} {other}": _of_constants(one, other, op)
        for op in ("add", "multiply", "subtract")
        for one, other in (
            ("[1.0, 2.0, 3.0, 4.0]", "[0.5, -0.5, 0.25, 8.0]"),
            ("[1.0, 1.0, 1.0, 1.0]", "[0.5, -0.5, 0.25, 8.0]"),
            ("[2.0, 2.0, 2.0, 2.0]", "0.5"),
            ("[2.0, 3.0, 4.0, 2.0]", "0.5"),
            ("0.5", "[2.0, 3.0, 4.0, 1.0]"),
            ("1.0", "[2.0, 3.0, 4.0, 1.0]"),
            ("2.0", "0.5"),
        )
    },
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_file_is_the_one_that_the_rows_make(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = convert(PROGRAMS[name])
    monkeypatch.setattr(raising, "CONSTANT_OPS", frozenset())
    assert found == convert(PROGRAMS[name])


def test_the_parameters_of_a_batch_normalization_become_one_constant() -> None:
    text = PROGRAMS["batch-normalization"]
    x = np.random.default_rng(0).normal(size=(2, 3, 3, 4)).astype(np.float32)
    assert operators(convert(text)) == {"ADD": 1}
    (found,) = results(text, x)
    np.testing.assert_allclose(found, x - GAMMA / np.sqrt(VARIANCE + EPSILON) - GAMMA, rtol=1e-6)


def test_an_op_that_exceeds_a_limit_is_left_to_its_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kind = "tensor<2000xf32>"
    path = tmp_path / "model.mlir"
    body = f"""    %0 = stablehlo.iota dim = 0 : {kind}
    %1 = stablehlo.rsqrt %0 : {kind}
    %2 = stablehlo.add %a, %1 : {kind}
    return %2 : {kind}"""
    path.write_text(program(body, [kind], [kind]), "utf-8")

    def notes() -> list[str]:
        model = tfconvert.convert(str(path), limits=tfconvert.Limits(folding_work=100))
        return [each.message for each in model.report.notes]

    found = notes()
    assert any("tf.Rsqrt" in each for each in found)
    monkeypatch.setattr(raising, "CONSTANT_OPS", frozenset())
    assert found == notes()
