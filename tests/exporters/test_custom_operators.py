"""Custom operators that the interpreter runs without the app's help."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

import tfconvert
from tests.importers.tflite.written_files import Tree, build_file
from tests.support.litert import RunTFLite
from tfconvert.converter.targets.litert.accelerator_check import check
from tfconvert.importers.tflite.model import import_tflite

_VALID = 2
_IMAGE, _POOLED = {"shape": (1, 4, 4, 3)}, {"shape": (1, 2, 2, 3)}
_POOL = struct.pack("<10i", _VALID, 2, 2, 2, 2, 0, 0, 0, 0, 0)
_WEIGHT = np.random.default_rng(0).normal(size=(5, 2, 2, 3)).astype(np.float32)


def _file(name: str, inputs: list[Tree], outputs: list[Tree], options: bytes, *buffers: bytes) -> bytes:
    tensors = [*inputs, *outputs]
    fed = [index for index, each in enumerate(inputs) if "buffer" not in each]
    made = range(len(inputs), len(tensors))
    call = {"inputs": tuple(range(len(inputs))), "outputs": tuple(made), "custom_options": options}
    return build_file(tensors, [call], [{"builtin_code": "CUSTOM", "custom_code": name}], fed, made, buffers)


_FILES = {
    "Convolution2DTransposeBias": _file(
        "Convolution2DTransposeBias",
        [_IMAGE, {"shape": _WEIGHT.shape, "buffer": 1}, {"shape": (5,), "buffer": 2}],
        [{"shape": (1, 8, 8, 5)}],
        struct.pack("<4i", _VALID, 2, 2, 0),
        _WEIGHT.tobytes(),
        bytes(20),
    ),
    "MaxPoolingWithArgmax2D": _file("MaxPoolingWithArgmax2D", [_IMAGE], [_POOLED, _POOLED], _POOL),
    "own": _file("own", [_IMAGE], [_IMAGE], b""),
}


@pytest.mark.parametrize("name", _FILES)
def test_the_interpreter_decides_what_must_be_registered(run_tflite: RunTFLite, tmp_path: Path, name: str) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(_FILES[name])
    codes = [note.code for note in tfconvert.convert(path).report.notes]
    try:
        run_tflite(_FILES[name], [np.ones((1, 4, 4, 3), np.float32)])
    except RuntimeError:
        assert "custom-operators" in codes
    else:
        assert "custom-operators" not in codes


def test_the_gpu_takes_a_transposed_convolution_with_a_bias() -> None:
    assert check(import_tflite(_FILES["Convolution2DTransposeBias"]), "gpu").is_whole
    assert not check(import_tflite(_FILES["own"]), "gpu").is_whole
