"""Converts a module that is text, and compares the results of LiteRT with those of the reference executor."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfconvert
from tests.support.run_text import run_text

LSTM, RNN = "UNIDIRECTIONAL_SEQUENCE_LSTM", "UNIDIRECTIONAL_SEQUENCE_RNN"

_RNG = np.random.default_rng(5)


def compare(folder: Path, source: str, *shapes: Sequence[tuple[int, ...]], loops: int = 0, **fused: int) -> Any:
    """Converts a module to the expected operators, and runs it twice with inputs of the given shapes.

    Args:
        folder: A directory for files.
        source: The module.
        shapes: The inputs' shapes, one by one; the model is resized to each of them.
        loops: The expected number of loops.
        fused: The expected number of operators that compute sequences.

    Returns:
        The converted model.
    """
    path = folder / "model.mlir"
    path.write_text(source)
    model = tfconvert.convert(path, target=tfconvert.LiteRT(recurrent="fused"))
    assert model.report.operators["WHILE"] == loops
    assert {name: count for name, count in model.report.operators.items() if "SEQUENCE" in name} == fused
    interpreter = pytest.importorskip("ai_edge_litert.interpreter").Interpreter(model_content=bytes(model))
    for sizes in shapes:
        for detail, size in zip(interpreter.get_input_details(), sizes, strict=True):
            interpreter.resize_tensor_input(detail["index"], size)
        interpreter.allocate_tensors()
        for _ in range(2):
            inputs = [_RNG.normal(size=size).astype(np.float32) for size in sizes]
            for detail, value in zip(interpreter.get_input_details(), inputs, strict=True):
                interpreter.set_tensor(detail["index"], value)
            interpreter.invoke()
            for detail, want in zip(interpreter.get_output_details(), run_text(source, inputs), strict=True):
                np.testing.assert_allclose(interpreter.get_tensor(detail["index"]), want, rtol=1e-5, atol=1e-5)
    return model
