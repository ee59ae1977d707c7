"""Scripts that are written for the official converter give the same when only their import changes."""

from __future__ import annotations

import os
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.compat.script_corpus import SCRIPTS

IMPORTS = {
    False: ("from tensorflow import lite", "import tfconvert as lite"),
    True: ("from tensorflow.compat.v1 import lite", "from tfconvert.compat import v1 as lite"),
}
"""The line that changes, before and after, for both generations."""


@pytest.fixture(scope="module")
def images() -> np.ndarray:
    return np.random.default_rng(3).random((40, 8, 8, 1), np.float32)


@pytest.fixture(scope="module")
def folder(tf: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """Returns a folder with a model in the forms in which scripts find it, and the model."""
    where = tmp_path_factory.mktemp("scripts")
    tf.keras.utils.set_random_seed(5)
    image = tf.keras.Input((8, 8, 1), name="image")
    x = tf.keras.layers.Conv2D(4, 3, activation="relu")(image)
    x = tf.keras.layers.BatchNormalization()(x)
    x = tf.keras.layers.MaxPooling2D()(x)
    x = tf.keras.layers.Flatten()(x)
    model = tf.keras.Model(image, tf.keras.layers.Dense(10, activation="softmax")(x))
    model.save(where / "model.keras")
    model.save(where / "model.h5")
    model.export(where / "saved_model", verbose=False)
    _two_signatures(tf, where / "two_signatures")
    with tf.Graph().as_default() as graph:
        fed = tf.compat.v1.placeholder(tf.float32, [1, 4], name="x")
        weight = tf.constant(np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3))
        weight = tf.quantization.fake_quant_with_min_max_args(weight, -1, 1, narrow_range=True)
        tf.quantization.fake_quant_with_min_max_args(tf.matmul(fed, weight), -4, 4, name="y")
    (where / "frozen.pb").write_bytes(graph.as_graph_def().SerializeToString())
    return where, model


def _two_signatures(tf: ModuleType, where: Path) -> None:
    module = tf.Module()
    module.weight = tf.Variable([1.0, -1.0, 2.0, -2.0])
    spec = [tf.TensorSpec([4], tf.float32, name="x")]
    module.double = tf.function(lambda x: {"y": x * 2.0}, input_signature=spec)
    module.encode = tf.function(lambda x: {"code": tf.tanh(x * module.weight)}, input_signature=spec)
    tf.saved_model.save(module, str(where), signatures={"double": module.double, "encode": module.encode})


def _run(text: str, name: str, where: Path, names: dict[str, Any]) -> list[Any]:
    """Returns the results of a script that is run in a folder of its own."""
    where.mkdir()
    before = Path.cwd()
    for path in names["folder"].iterdir():
        (where / path.name).symlink_to(path)
    os.chdir(where)
    try:
        space = dict(names)
        exec(compile(text, name, "exec"), space)  # noqa: S102
    finally:
        os.chdir(before)
    results: list[Any] = space["results"]
    return results


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning", "ignore::RuntimeWarning")
@pytest.mark.parametrize("name", SCRIPTS)
def test_script(name: str, folder: tuple[Path, Any], images: np.ndarray, tf: ModuleType, tmp_path: Path) -> None:
    script = SCRIPTS[name]
    names = {"folder": folder[0], "model": folder[1], "x_train": images[:30], "x_test": images[30:], "np": np, "tf": tf}
    expected, found = (
        _run(f"{line}\n{script.text}", name, tmp_path / str(index), names)
        for index, line in enumerate(IMPORTS[script.is_old])
    )
    assert expected
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(np.asarray(one, np.float64), np.asarray(other, np.float64), atol=script.atol, rtol=0)


def test_there_are_enough() -> None:
    assert len(SCRIPTS) >= 30
    assert len({script.text for script in SCRIPTS.values()}) == len(SCRIPTS)
