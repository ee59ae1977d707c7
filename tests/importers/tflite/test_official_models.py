"""The official converter's files round-trip through the IR, with bit-equal results."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import tfconvert
from tests.importers.tflite.official_models import MODELS, NEEDS_OTHER_KERNELS
from tests.importers.tflite.written_files import RoundTrip
from tests.support.litert import RunTFLite
from tfconvert.exporters.tflite.model import export


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.filterwarnings("ignore")
def test_official_model(
    tf: ModuleType, round_trip: RoundTrip, run_tflite: RunTFLite, name: str, tmp_path: Path
) -> None:
    content = MODELS[name](tf)
    module = round_trip(content)
    if name in NEEDS_OTHER_KERNELS:
        return
    signatures = ["add", "scale"] if name == "two_signatures" else ["serving_default"]
    for signature in signatures:
        runner = tf.lite.Interpreter(model_content=content).get_signature_runner(signature)
        inputs = {}
        for key, detail in runner.get_input_details().items():
            shape = [max(dim, 1) for dim in detail["shape"]]
            is_text = np.dtype(detail["dtype"]).kind in "SO"
            inputs[key] = np.full(shape, b"a", object) if is_text else np.linspace(-1, 2, np.prod(shape)).reshape(shape)
            inputs[key] = inputs[key].astype(detail["dtype"])
        expected = run_tflite(content, inputs, signature=signature)
        actual = run_tflite(export(module).to_bytes(), inputs, signature=signature)
        for one, other in zip(expected, actual, strict=True):
            np.testing.assert_array_equal(one, other, strict=True)


def test_our_own_model(digits_model: Path, round_trip: RoundTrip) -> None:
    round_trip(bytes(tfconvert.convert(digits_model)))
