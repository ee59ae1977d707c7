"""The example as a file, right and with a weight of a middle layer changed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tfconvert
from tfconvert.importers.checkpoint.bundle import Checkpoint
from tfconvert.schema.dialects import tensor_data, types
from tfconvert.schema.dialects.tensor_data import TensorData
from tfconvert.schema.ir.types import TensorType


@pytest.fixture(scope="session")
def right(digits_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the example, converted."""
    path = tmp_path_factory.mktemp("files") / "right.tflite"
    tfconvert.convert(digits_model).save(path)
    return path


@pytest.fixture(scope="session")
def wrong(digits_model: Path, right: Path) -> Path:
    """Returns the same file with one number of the hidden layer's bias changed."""
    checkpoint = Checkpoint(digits_model / "variables" / "variables")
    key = next(key for key, entry in checkpoint.entries().items() if tuple(entry.shape) == (32,))
    bias = tensor_data.to_array(TensorData.get(TensorType.get(types.F32, (32,)), checkpoint.read(key)))
    content = right.read_bytes()
    assert content.count(bias.tobytes()) == 1
    changed = np.array(bias)
    changed[5] += 3
    path = right.with_name("wrong.tflite")
    path.write_bytes(content.replace(bias.tobytes(), changed.tobytes()))
    return path
