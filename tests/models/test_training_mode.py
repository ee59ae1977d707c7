"""Signatures that compute as in training get a warning; those that draw or update on purpose don't."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import tfconvert
from tfconvert.schema.diagnostics import ConversionError, Diagnostic

Made = Any
"""A model in memory, or signatures of a module by their names, with the module as the value of an empty name."""

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")


def _notes(model: Any, **settings: Any) -> list[Diagnostic]:
    report = tfconvert.convert(model, **settings).report
    return [note for note in report.notes if note.code in ("training-mode", "random-numbers")]


def _function(tf: ModuleType, compute: Callable[[Any], Any], *shape: int | None) -> Any:
    return tf.function(lambda x: {"y": compute(x)}, input_signature=[tf.TensorSpec(shape or (None, 4), name="x")])


def _exported_norm(tf: ModuleType, folder: Path) -> Made:
    """A model of Keras whose first layer trains by default, as Keras exports it."""
    keras = importlib.import_module("keras")
    given = keras.Input((6, 6, 3))
    hidden = keras.layers.BatchNormalization(name="first")(keras.layers.Resizing(4, 4)(given))
    keras.Model(given, keras.layers.BatchNormalization(name="second")(hidden)).export(str(folder), verbose=False)
    return folder


def _older_norm(tf: ModuleType, folder: Path) -> Made:
    keras = importlib.import_module("tf_keras")
    layer = keras.layers.BatchNormalization(name="first")
    module = tf.Module()
    module.serve = _function(tf, lambda x: layer(x, training=True), None, 4, 4, 3)
    return module


def _fused_norm(tf: ModuleType, folder: Path) -> Made:
    ones = tf.constant([1.0, 2.0, 3.0])

    def norm(x: Any) -> Any:
        with tf.name_scope("first"):
            return tf.compat.v1.nn.fused_batch_norm(x * 2.0, ones, ones)[0]

    return _function(tf, norm, None, 4, 4, 3)


def _dropout(tf: ModuleType, folder: Path) -> Made:
    def drop(x: Any) -> Any:
        with tf.name_scope("first"):
            return tf.where(tf.random.uniform(tf.shape(x)) >= 0.3, x / 0.7, 0.0)

    return _function(tf, drop)


def _noise(tf: ModuleType, folder: Path) -> Made:
    def draw(x: Any) -> Any:
        with tf.name_scope("gaussian_noise"):
            return x + 0.1 * tf.random.normal(tf.shape(x))

    return _function(tf, draw)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (_exported_norm, "serving_default computes .* moving averages are updated that nothing reads in first, second"),
        (_older_norm, "moving averages are updated that nothing reads in first$"),
        (_fused_norm, "batches are normalized with their own mean and variance in first$"),
        (_dropout, "random numbers are drawn in first$"),
        (_noise, "random numbers are drawn in gaussian_noise$"),
    ],
)
def test_training_mode_is_warned_about(
    tf: ModuleType, tmp_path: Path, make: Callable[[ModuleType, Path], Made], says: str
) -> None:
    (note,) = _notes(make(tf, tmp_path / "model"))
    assert note.severity == "warning"
    assert note.code == "training-mode"
    assert re.search(says, note.message)
    assert "training=False" in note.hint


def test_an_error_about_augmentation_comes_with_the_warning(tf: ModuleType, tmp_path: Path) -> None:
    keras = importlib.import_module("keras")
    given = keras.Input((6, 6, 3))
    made = keras.Model(given, keras.layers.RandomContrast(0.2)(given))
    made.export(str(tmp_path), verbose=False)
    flex = tfconvert.LiteRT(allow_flex=True)
    (note,) = _notes(tmp_path, target=flex)
    assert note.message.endswith("random_contrast_1")
    assert not _notes(made)


def _encoder(tf: ModuleType) -> Made:
    """A variational autoencoder, whose sampling is its purpose."""

    def sample(x: Any) -> Any:
        with tf.name_scope("sampling"):
            mean, deviation = x[:, :2], tf.exp(x[:, 2:] * 0.5)
            return mean + deviation * tf.random.normal(tf.shape(mean))

    return _function(tf, sample)


def _bernoulli(tf: ModuleType) -> Made:
    return _function(tf, lambda x: tf.cast(tf.random.uniform(tf.shape(x)) < tf.sigmoid(x), tf.float32))


def _denoiser(tf: ModuleType) -> Made:
    return _function(tf, lambda x: 0.9 * x + 0.1 * tf.random.normal(tf.shape(x)))


def _explorer(tf: ModuleType) -> Made:
    """A policy that does something else once in ten times."""

    def act(x: Any) -> Any:
        best = tf.argmax(x, 1)
        other = tf.cast(tf.random.uniform(tf.shape(best)) * 4.0, tf.int64)
        return tf.where(tf.random.uniform(tf.shape(best)) < 0.1, other, best)

    return _function(tf, act)


def _of_kept_seed(tf: ModuleType) -> Made:
    seed = tf.Variable((1, 2))
    return _function(tf, lambda x: x + tf.random.stateless_normal(tf.shape(x), seed.assign_add((1, 1))))


@pytest.mark.parametrize("make", [_encoder, _bernoulli, _denoiser, _explorer, _of_kept_seed])
def test_numbers_drawn_on_purpose_are_no_mistake(tf: ModuleType, make: Callable[[ModuleType], Made]) -> None:
    (note,) = _notes(make(tf))
    assert (note.code, note.severity) == ("random-numbers", "note")
    assert "at each run" in note.message
    assert "training:" not in note.message


def _of_constant_seed(tf: ModuleType) -> Made:
    return _function(tf, lambda x: x + tf.random.stateless_normal(tf.shape(x), (1, 2)))


def _of_given_seed(tf: ModuleType) -> Made:
    return _function(tf, lambda x: x + tf.random.stateless_uniform(tf.shape(x), tf.cast(x[0, :2], tf.int32)))


@pytest.mark.parametrize("make", [_of_constant_seed, _of_given_seed])
def test_numbers_of_a_known_seed_are_the_same_at_each_run(tf: ModuleType, make: Callable[[ModuleType], Made]) -> None:
    assert not _notes(make(tf))


def _step(tf: ModuleType) -> Made:
    """A step of training, the only signature."""
    keras = importlib.import_module("tf_keras")
    module = tf.Module()
    module.layers = [keras.layers.BatchNormalization(), keras.layers.Dropout(0.3)]
    module.weight = tf.Variable(tf.ones([4, 1]))

    @tf.function(input_signature=[tf.TensorSpec([3, 4], name="x")])  # type: ignore[untyped-decorator]
    def train(x: Any) -> Mapping[str, Any]:
        with tf.GradientTape() as tape:
            hidden = x
            for layer in module.layers:
                hidden = layer(hidden, training=True)
            loss = tf.reduce_sum((hidden @ module.weight) ** 2)
        module.weight.assign_sub(0.1 * tape.gradient(loss, module.weight))
        return {"loss": loss}

    module.train = train
    return module


def _stream(tf: ModuleType) -> Made:
    module = tf.Module()
    module.level = tf.Variable([1.0] * 4)

    def normalize(x: Any) -> Any:
        module.level.assign(0.9 * module.level + 0.1 * tf.reduce_mean(x, 0))
        return x / module.level

    module.serve = _function(tf, normalize)
    return module


def _collector(tf: ModuleType) -> Made:
    """Two signatures: one collects the mean that the other takes away."""
    module = tf.Module()
    module.mean = tf.Variable([1.0] * 4)

    def collect(x: Any) -> Any:
        mean = tf.reduce_mean(x, 0)
        module.mean.assign(0.9 * module.mean + 0.1 * mean)
        return x - mean

    module.collect = _function(tf, collect)
    module.serve = _function(tf, lambda x: x - module.mean)
    return module


def _two_modes(tf: ModuleType) -> Made:
    """A batch norm with a signature for each mode."""
    layer = importlib.import_module("tf_keras").layers.BatchNormalization()
    module = tf.Module()
    module.call_training = _function(tf, lambda x: layer(x, training=True), None, 4, 4, 3)
    module.serve = _function(tf, lambda x: layer(x, training=False), None, 4, 4, 3)
    return module


def _layer_norm(tf: ModuleType) -> Made:
    """A layer norm of Keras 2, which is a batch norm of another shape."""
    layer = importlib.import_module("tf_keras").layers.LayerNormalization()
    return _function(tf, layer, None, 6, 8)


@pytest.mark.parametrize("make", [_step, _stream, _collector, _two_modes, _layer_norm])
def test_updates_and_norms_on_purpose_are_not_mentioned(tf: ModuleType, make: Callable[[ModuleType], Made]) -> None:
    assert not _notes(make(tf))


def test_errors_come_with_the_warning(tf: ModuleType, tmp_path: Path) -> None:
    def draw(x: Any) -> Any:
        with tf.name_scope("dropout"):
            return tf.reduce_sum(tf.linalg.eigvalsh(tf.random.normal([2, 2]))) + x

    with pytest.raises(ConversionError) as caught:
        tfconvert.convert(_function(tf, draw))
    assert "training-mode" in [each.code for each in caught.value.diagnostics]
