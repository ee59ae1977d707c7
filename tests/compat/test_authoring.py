"""`experimental.authoring.compatible`: calls tell what doesn't convert, and give their results."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tfconvert
from tests.support.sample_models import traced
from tfconvert.experimental import authoring
from tfconvert.schema.diagnostics import ConversionError


def test_functions_that_convert(tf: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    @authoring.compatible
    @traced(tf, tf.TensorSpec([None], tf.float32))
    def f(x: Any) -> Any:
        """Returns a cosine."""
        return tf.cosh(x)

    with pytest.raises(ConversionError) as caught:
        f.get_compatibility_log()
    assert caught.value.code == "not-checked"
    assert f.__doc__ == "Returns a cosine."
    np.testing.assert_allclose(f(tf.constant([0.0, 1.0])), np.cosh([0, 1]), rtol=1e-6)
    assert f.get_compatibility_log() == []
    assert f.get_concrete_function().structured_outputs.shape.as_list() == [None]
    assert not capsys.readouterr().out


def test_functions_that_do_not(tf: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    @authoring.compatible(converter_target_spec=tfconvert.TargetSpec())  # type: ignore[untyped-decorator]
    @traced(tf, tf.TensorSpec([40, 40], tf.float32))
    def f(x: Any) -> Any:
        return tf.linalg.det(x)

    assert f(tf.eye(40)) == 1
    (line,) = f.get_compatibility_log()
    assert line.startswith("COMPATIBILITY ERROR")
    assert "MatrixDeterminant" in line
    assert capsys.readouterr().out == f"{line}\n"
    f(tf.eye(40))
    assert not capsys.readouterr().out  # Once is enough.


def test_errors_if_asked_for(tf: ModuleType) -> None:
    @authoring.compatible(raise_exception=True)  # type: ignore[untyped-decorator]
    @traced(tf, tf.TensorSpec([40, 40], tf.float32))
    def f(x: Any) -> Any:
        return tf.linalg.det(x)

    with pytest.raises(authoring.CompatibilityError, match="MatrixDeterminant") as caught:
        f(tf.eye(40))
    assert caught.value.code == "not-compatible"
    assert len(f.get_compatibility_log()) == 1


def test_custom_ops_may_be_allowed(tf: ModuleType) -> None:
    @authoring.compatible(converter_allow_custom_ops=True, raise_exception=True)  # type: ignore[untyped-decorator]
    @traced(tf, tf.TensorSpec([40, 40], tf.float32))
    def f(x: Any) -> Any:
        return tf.linalg.det(x)

    assert f(tf.eye(40)) == 1
    assert f.get_compatibility_log() == []


def test_what_is_not_for_gpus_is_a_warning(tf: ModuleType) -> None:
    target = tfconvert.TargetSpec(experimental_supported_backends=["GPU"])

    @authoring.compatible(converter_target_spec=target)  # type: ignore[untyped-decorator]
    @traced(tf, tf.TensorSpec([4, 5], tf.float32))
    def f(x: Any) -> Any:
        return tf.cosh(x) + tf.sort(x)

    f(tf.zeros((4, 5)))
    (line,) = f.get_compatibility_log()
    assert line.startswith("COMPATIBILITY WARNING")
    assert "TOPK_V2" in line


def test_methods(tf: ModuleType) -> None:
    class Model(tf.Module):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            self.factor = tf.Variable(3.0)

        @authoring.compatible
        @tf.function(input_signature=[tf.TensorSpec([], tf.float32)])  # type: ignore[untyped-decorator]
        def call(self, x: Any) -> Any:
            return x * self.factor

    model = Model()
    assert model.call(tf.constant(2.0)) == 6
    assert model.call.get_compatibility_log() == []
