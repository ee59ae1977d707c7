"""Runs models that have state in LiteRT and in TensorFlow, call by call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

import tfconvert

Arrays = Mapping[str, np.ndarray]
Runner = Callable[..., dict[str, np.ndarray]]


def runners(model: tfconvert.Model) -> Callable[[str], Runner]:
    """Returns a function that returns a signature's runner; all are of one interpreter, and so of one state."""
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(model_content=bytes(model), num_threads=1)
    return interpreter.get_signature_runner  # type: ignore[no-any-return]


def same(got: Arrays, expected: Mapping[str, Any], tolerance: float = 0) -> None:
    """Asserts that results are TensorFlow's, of the same names and types."""
    assert got.keys() == expected.keys()
    for name, value in got.items():
        wanted = np.asarray(expected[name])
        assert wanted.dtype in (value.dtype, object)
        np.testing.assert_allclose(value, wanted, tolerance, tolerance, err_msg=name) if tolerance else (
            np.testing.assert_array_equal(value, wanted, err_msg=name)
        )


def compare_calls(
    tf: ModuleType,
    folder: Path,
    module: Any,
    signatures: Mapping[str, Any],
    calls: Iterable[tuple[str, Arrays]],
    tolerance: float = 1e-5,
) -> tfconvert.Model:
    """Saves a module, converts it, and asserts that calls of its signatures return the same in LiteRT as in TensorFlow.

    Args:
        tf: TensorFlow.
        folder: Where to save.
        module: The owner of the variables, with their initial values.
        signatures: The functions by their signatures' keys.
        calls: Signatures and their inputs, in order.
        tolerance: Largest difference, absolute and relative.
    """
    tf.saved_model.save(module, str(folder), signatures=dict(signatures))
    model = tfconvert.convert(folder)
    run = runners(model)
    for key, inputs in calls:
        expected = signatures[key](**{name: tf.constant(value) for name, value in inputs.items()})
        same(run(key)(**inputs), expected, tolerance)
    return model
