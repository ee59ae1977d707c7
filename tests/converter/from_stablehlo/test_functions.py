"""Functions of a module that nothing exports: they are used or gone, and the exported one keeps its name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfconvert
from tests.support.litert import run
from tfconvert.importers.mlir import import_mlir
from tfconvert.schema.dialects.func import functions_of

KIND = "tensor<4xf32>"

_DEAD = """  func.func @dead(%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = "stablehlo.custom_call"(%x) <{call_target_name = "nothing_known"}> : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
"""
_COMPARATOR = """  func.func @gt(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<i32>, %d: tensor<i32>) -> tensor<i1> {
    %0 = stablehlo.compare GT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    return %0 : tensor<i1>
  }
"""
_ONE = (
    "  func.func {visibility}@one(%x: tensor<4xf32>) -> tensor<4xf32> {{\n    %0 = stablehlo.tanh %x : tensor<4xf32>\n"
)
_ONE += "    return %0 : tensor<4xf32>\n  }}\n"

# Names -> the functions beside `main`, what it computes, and the same in numpy.
USES: dict[str, tuple[str, str, Callable[[Any], Any]]] = {
    "dead": (_DEAD, "%r = stablehlo.tanh %x : tensor<4xf32>", np.tanh),
    "call": (_DEAD + _ONE.format(visibility=""), "%r = call @one(%x) : (tensor<4xf32>) -> tensor<4xf32>", np.tanh),
    "composite": (
        _ONE.format(visibility=""),
        '%r = stablehlo.composite "my.one" %x {decomposition = @one} : (tensor<4xf32>) -> tensor<4xf32>',
        np.tanh,
    ),
    "comparator": (
        _COMPARATOR,
        """%i = stablehlo.iota dim = 0 : tensor<4xi32>
    %w = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %z = stablehlo.constant dense<0> : tensor<i32>
    %r, %p = stablehlo.custom_call @ApproxTopK(%x, %i, %w, %z) {called_computations = [@gt], mhlo.backend_config =
        {aggregate_to_topk = true, recall_target = 1.0 : f32, reduction_dim = 0 : i64, top_k = 4 : i64}}
        : (tensor<4xf32>, tensor<4xi32>, tensor<f32>, tensor<i32>) -> (tensor<4xf32>, tensor<4xi32>)""",
        lambda x: np.sort(x)[::-1],
    ),
}


def _text(name: str) -> str:
    others, body, _ = USES[name]
    main = f"  func.func public @main(%x: {KIND}) -> {KIND} {{\n    {body}\n    return %r : {KIND}\n  }}\n"
    return f"module {{\n{others}{main}}}\n"


@pytest.mark.parametrize("name", USES)
def test_what_is_written_as_stablehlo_has_main_alone_and_is_read_again(name: str, tmp_path: Path) -> None:
    path, written = tmp_path / "a.mlir", tmp_path / "b.mlir"
    path.write_text(_text(name), "utf-8")
    tfconvert.convert(path, target=tfconvert.StableHLO()).save(written)
    functions = functions_of(import_mlir(written.read_text("utf-8")))
    assert "main" in functions
    assert not {"dead", "gt"} & functions.keys()
    x = np.array([0.5, -1.0, 2.0, 0.25], np.float32)
    for each in (path, written):
        np.testing.assert_allclose(run(bytes(tfconvert.convert(each)), [x])[0], USES[name][2](x), rtol=1e-6)


def test_a_function_without_names_has_an_interface_and_can_be_called(tmp_path: Path) -> None:
    path = tmp_path / "a.mlir"
    path.write_text(_text("dead").replace("public ", ""), "utf-8")
    model = tfconvert.convert(path)
    (interface,) = model.report.interfaces
    assert (interface.function, interface.keys) == ("main", ())
    assert [tensor.name for tensor in model.inputs] == ["input_0"]
    x = np.array([0.5, -1.0, 2.0, 0.25], np.float32)
    np.testing.assert_allclose(model(x), np.tanh(x), rtol=1e-6)
    model.save(tmp_path / "a.tflite")
    np.testing.assert_allclose(tfconvert.load(tmp_path / "a.tflite")(x), np.tanh(x), rtol=1e-6)
