"""Whole models with open batches, lengths and image sizes in IREE, at five sizes each, against TensorFlow."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from benchmarks.open_models import MODELS
from tests.rings.iree.program import made

pytest.importorskip("iree.compiler")


@pytest.mark.parametrize("name", MODELS)
def test_models(tf: ModuleType, name: str, tmp_path: Path) -> None:
    model = MODELS[name]
    module = model.build(tf)
    function = module.serve.get_concrete_function()
    program = made(function, tmp_path)
    inputs = model.inputs()
    assert len(inputs) == 5
    for x in inputs:
        (found,) = program.run([x]).values()
        expected = function(tf.constant(x)).numpy()
        assert found.shape == expected.shape
        scale = float(np.abs(expected).max(initial=0))
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=2e-5 * scale)
