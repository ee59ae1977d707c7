"""Weights that files store as 16-bit floats, integers or sparse, when the files are quantized."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.converter.targets.litert.optimize.graph import random
from tests.importers.tflite.written_files import build_file
from tests.support.litert import RunTFLite
from tfconvert import Quantize, convert
from tfconvert.schema.tflite.reader import Allowance, read_model

_SPARSITY = {
    "blocks": {
        "traversal_order": (0, 1, 2),
        "block_map": (1,),
        "dim_metadata": [
            {"dense_size": 32},
            {
                "format": "SPARSE_CSR",
                "array_segments": ("Uint8Vector", {"values": tuple(range(33))}),
                "array_indices": ("Uint8Vector", {"values": tuple(row % 16 for row in range(32))}),
            },
            {"dense_size": 4},
        ],
    },
    "numbers, columns first": {
        "traversal_order": (1, 0),
        "dim_metadata": [
            {"dense_size": 64},
            {
                "format": "SPARSE_CSR",
                "array_segments": ("Uint8Vector", {"values": tuple(range(0, 130, 2))}),
                "array_indices": ("Uint8Vector", {"values": tuple(at for row in range(64) for at in (row % 31, 31))}),
            },
        ],
    },
}


def _file(stored: dict[str, Any], data: bytes, *makers: str) -> bytes:
    """Returns a fully connected layer of a weight that operators make of a stored one."""
    codes = ["FULLY_CONNECTED", *makers]
    tensors: list[dict[str, Any]] = [{"shape": (4, 64)}, {"shape": (4, 32)}, {"shape": (32, 64), "buffer": 1, **stored}]
    operators: list[dict[str, Any]] = []
    for number, maker in enumerate(makers, start=1):
        kind = "FLOAT32" if maker == "DEQUANTIZE" else stored["type"]
        tensors.append({"shape": (32, 64), "type": kind})
        operators.append({"opcode_index": number, "inputs": (len(tensors) - 2,), "outputs": (len(tensors) - 1,)})
    options: tuple[str, dict[str, Any]] = ("FullyConnectedOptions", {})
    operators.append({"inputs": (0, len(tensors) - 1, -1), "outputs": (1,), "builtin_options": options})
    return build_file(tensors, operators, codes, buffers=[data])


def _half() -> bytes:
    return _file({"type": "FLOAT16"}, random(32, 64).astype(np.float16).tobytes(), "DEQUANTIZE")


def _integers() -> bytes:
    scales = tuple(np.linspace(0.01, 0.02, 32).tolist())
    quantization = {"scale": scales, "zero_point": (0,) * 32, "quantized_dimension": 0}
    values = np.random.default_rng(0).integers(-127, 128, (32, 64)).astype(np.int8)
    values[:, 0] = 127
    return _file({"type": "INT8", "quantization": quantization}, values.tobytes(), "DEQUANTIZE")


def _sparse(form: str, *makers: str) -> bytes:
    dtype = np.float16 if "DEQUANTIZE" in makers else np.float32
    return _file(
        {"type": dtype.__name__.upper(), "sparsity": _SPARSITY[form]}, random(128).astype(dtype).tobytes(), *makers
    )


FILES = {
    "float16": _half(),
    "integers": _integers(),
    **{f"sparse {form}": _sparse(form, "DENSIFY") for form in _SPARSITY},
    **{f"sparse float16 {form}": _sparse(form, "DENSIFY", "DEQUANTIZE") for form in _SPARSITY},
}
_RATIOS = {"int8": 1, "int16": 1, "dynamic": 1, "weights": 1, "float16": 2}


@pytest.mark.parametrize("mode", _RATIOS)
@pytest.mark.parametrize("name", FILES)
def test_stored_weights_are_quantized(run_tflite: RunTFLite, tmp_path: Path, name: str, mode: Any) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(FILES[name])
    x = random(16, 4, 64)
    samples = x if mode in ("int8", "int16") else None
    quantize = Quantize(mode, samples=samples, slow_integers=mode == "int8")
    result = bytes(convert(path, quantize=quantize))
    ratio = 1 if name == "integers" else _RATIOS[mode]
    buffers = read_model(memoryview(result), Allowance(len(result)))["buffers"]
    assert sum(len(each["data"]) >= 1024 for each in buffers if each["data"] is not None) == 1
    assert max(len(each["data"]) for each in buffers if each["data"] is not None) == ratio * 32 * 64
    (expected,), (found,) = run_tflite(FILES[name], [x[0]]), run_tflite(result, [x[0]])
    np.testing.assert_allclose(found, expected, atol=0.05 * np.abs(expected).max())


@pytest.mark.parametrize("mode", ["int8", "dynamic"])
def test_a_quantization_that_did_nothing_reports_it(tmp_path: Path, mode: Any) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(build_file([{}, {}], [{"inputs": (0,), "outputs": (1,)}], ["SIN"]))
    samples = random(4, 2) if mode == "int8" else None
    model = convert(path, quantize=Quantize(mode, samples=samples), verify=True)
    assert "nothing-quantized" in [note.code for note in model.report.notes]
    assert "the same numbers" not in str(model.report)
