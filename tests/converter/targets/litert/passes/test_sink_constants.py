"""Weights that files hand to branches and loops, when the files are quantized."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfconvert
from tests.importers.tflite.written_files import Tree, build_file
from tests.support.litert import RunTFLite

_SIZE = 64
_WEIGHT = (np.random.default_rng(0).normal(size=(_SIZE, _SIZE)) / 8).astype(np.float32)
_MULTIPLY = {"opcode_index": 0, "builtin_options": ("FullyConnectedOptions", {})}
_ROW = {"shape": (1, _SIZE), "type": "FLOAT32"}
_MATRIX = {"shape": (_SIZE, _SIZE), "type": "FLOAT32"}


def _branches() -> bytes:
    """Returns a file that multiplies by a weight that it hands to a branch, or copies."""
    main = {
        "tensors": [{"shape": (), "type": "BOOL", "name": "c"}, {**_ROW, "name": "x"},
                    {**_MATRIX, "buffer": 1, "name": "w"}, {**_ROW, "name": "y"}],
        "inputs": (0, 1), "outputs": (3,), "name": "main",
        "operators": [{"opcode_index": 1, "inputs": (0, 1, 2), "outputs": (3,),
                       "builtin_options": ("IfOptions", {"then_subgraph_index": 1, "else_subgraph_index": 2})}],
    }  # fmt: skip
    tensors = [{**_ROW, "name": "x"}, {**_MATRIX, "name": "w"}, {**_ROW, "name": "y"}]
    branch = {"tensors": tensors, "inputs": (0, 1), "outputs": (2,)}
    then = {**branch, "name": "then", "operators": [{**_MULTIPLY, "inputs": (0, 1, -1), "outputs": (2,)}]}
    other = {**branch, "name": "other", "operators": [{"opcode_index": 2, "inputs": (0,), "outputs": (2,)}]}
    return build_file(
        [], [], ["FULLY_CONNECTED", "IF", "ABS"], subgraphs=[main, then, other],
        buffers=[_WEIGHT.tobytes()],
    )  # fmt: skip


def _loop() -> bytes:
    """Returns a file that multiplies three times by a weight that it hands to a loop."""
    state: list[Tree] = [{"shape": (), "type": "INT32"}, _ROW, _MATRIX]
    main = {
        "tensors": [{**_ROW, "name": "x"}, {"shape": (), "type": "INT32", "buffer": 2, "name": "i"},
                    {**_MATRIX, "buffer": 1, "name": "w"},
                    *({**each, "name": f"r{n}"} for n, each in enumerate(state))],
        "inputs": (0,), "outputs": (4,), "name": "main",
        "operators": [{"opcode_index": 1, "inputs": (1, 0, 2), "outputs": (3, 4, 5),
                       "builtin_options": ("WhileOptions", {"cond_subgraph_index": 1, "body_subgraph_index": 2})}],
    }  # fmt: skip
    named = [{**each, "name": f"s{n}"} for n, each in enumerate(state)]
    condition = {
        "tensors": [*named, {"shape": (), "type": "INT32", "buffer": 3, "name": "n"},
                    {"shape": (), "type": "BOOL", "name": "b"}],
        "inputs": (0, 1, 2), "outputs": (4,), "name": "condition",
        "operators": [{"opcode_index": 2, "inputs": (0, 3), "outputs": (4,)}],
    }  # fmt: skip
    body = {
        "tensors": [*named, {"shape": (), "type": "INT32", "buffer": 4, "name": "one"},
                    {"shape": (), "type": "INT32", "name": "next"}, {**_ROW, "name": "y"}],
        "inputs": (0, 1, 2), "outputs": (4, 5, 2), "name": "body",
        "operators": [{"opcode_index": 3, "inputs": (0, 3), "outputs": (4,), "builtin_options": ("AddOptions", {})},
                      {**_MULTIPLY, "inputs": (1, 2, -1), "outputs": (5,)}],
    }  # fmt: skip
    numbers = [np.array(each, np.int32).tobytes() for each in (0, 3, 1)]
    return build_file(
        [], [], ["FULLY_CONNECTED", "WHILE", "LESS", "ADD"], subgraphs=[main, condition, body],
        buffers=[_WEIGHT.tobytes(), *numbers],
    )  # fmt: skip


@pytest.mark.parametrize("mode", ["dynamic", "weights"])
@pytest.mark.parametrize("form", ["branches", "loop"])
def test_weights_of_callees_are_quantized(run_tflite: RunTFLite, tmp_path: Path, form: str, mode: Any) -> None:
    content = _branches() if form == "branches" else _loop()
    path = tmp_path / "model.tflite"
    path.write_bytes(content)
    result = bytes(tfconvert.convert(path, quantize=mode))
    assert len(result) < len(content) - 2.5 * _SIZE * _SIZE
    x = np.random.default_rng(1).normal(size=(1, _SIZE)).astype(np.float32)
    for condition in (True, False) if form == "branches" else (None,):
        inputs = [x] if condition is None else [np.array(condition), x]
        (expected,), (found,) = run_tflite(content, inputs), run_tflite(result, inputs)
        np.testing.assert_allclose(found, expected, atol=0.05 * np.abs(expected).max())
