"""The pass `keep-nan`: what LiteRT makes of NaN in models that were StableHLO."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import numpy as np
import pytest

import tfconvert
from tests.converter.from_stablehlo.programs import program
from tests.support.litert import run

KIND = "tensor<2x3xf32>"
X = np.array([[1, np.nan, -3], [np.nan, 0, 2]], np.float32)


def _converted(body: str, operands: int = 1, result: str = KIND) -> tfconvert.Model:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.mlir")
        path.write_text(program(body, [KIND] * operands, [result]), "utf-8")
        return tfconvert.convert(str(path))


def _notes(model: tfconvert.Model) -> list[str]:
    return [note.message for note in model.report.notes if "NaN" in note.message]


@pytest.mark.parametrize(("op", "compute"), [("maximum", np.maximum), ("minimum", np.minimum)])
@pytest.mark.parametrize("limit", ["1.5", "0.0", "[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]"])
def test_extremes_with_a_constant_keep_nan(op: str, compute: np.ufunc, limit: str) -> None:
    body = f"""    %c = stablehlo.constant dense<{limit}> : {KIND}
    %0 = stablehlo.{op} %a, %c : {KIND}
    return %0 : {KIND}"""
    model = _converted(body)
    expected = compute(X, np.array(json.loads(limit), np.float32))
    assert np.array_equal(run(bytes(model), [X])[0], expected, equal_nan=True)
    assert not _notes(model)


def test_extremes_of_two_tensors_are_reported_once() -> None:
    body = f"""    %0 = stablehlo.maximum %a, %b : {KIND}
    %1 = stablehlo.minimum %0, %a : {KIND}
    return %1 : {KIND}"""
    assert _notes(_converted(body, 2)) == ["MAXIMUM, MINIMUM: NaN may be lost, where JAX's result is NaN (2 of them)"]


def test_orders_of_numbers_are_reported() -> None:
    largest = """    %init = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %0 = stablehlo.reduce(%a init: %init) applies stablehlo.maximum across dimensions = [1]
        : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
    return %0 : tensor<2xf32>"""
    assert _notes(_converted(largest, result="tensor<2xf32>")) == [
        "REDUCE_MAX: NaN may be lost, where JAX's result is NaN (1 of them)"
    ]
    first = """    %0, %1 = "chlo.top_k"(%a) <{k = 2 : i64}> : (tensor<2x3xf32>) -> (tensor<2x2xf32>, tensor<2x2xi32>)
    return %1 : tensor<2x2xi32>"""
    assert _notes(_converted(first, result="tensor<2x2xi32>")) == [
        "TOPK_V2: NaN is not ordered, where JAX puts it after all numbers (1 of them)"
    ]
