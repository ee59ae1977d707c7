"""Recurrent networks of Keras as users compile them: exported, through the command, and run at several sizes."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import pytest
from click.testing import CliRunner

import tfconvert
from tfconvert.cli.main import main

pytest.importorskip("iree.runtime")

# The batches and lengths that are tried.
SIZES = ((1, 1), (2, 7), (3, 4), (5, 2))


class Network(NamedTuple):
    """A stack of recurrent layers; each field's values are in `VALUES`."""

    cell: str
    returns: str
    head: str
    sizes: str
    layers: int
    direction: str


VALUES = (
    ("LSTM", "GRU", "SimpleRNN"),
    ("last step", "sequence"),
    ("bare", "dense head"),
    ("open", "fixed batch", "fixed length", "fixed"),
    (1, 2),
    ("forward", "bidirectional"),
)

# Networks among which each two values of different fields occur together.
NETWORKS = (
    Network("LSTM", "last step", "bare", "open", 1, "forward"),
    Network("LSTM", "sequence", "dense head", "fixed batch", 2, "bidirectional"),
    Network("LSTM", "last step", "dense head", "fixed length", 1, "bidirectional"),
    Network("LSTM", "sequence", "bare", "fixed", 2, "forward"),
    Network("GRU", "last step", "dense head", "open", 2, "bidirectional"),
    Network("GRU", "last step", "bare", "fixed batch", 1, "forward"),
    Network("GRU", "sequence", "bare", "fixed length", 2, "forward"),
    Network("GRU", "last step", "dense head", "fixed", 1, "bidirectional"),
    Network("SimpleRNN", "sequence", "bare", "open", 1, "bidirectional"),
    Network("SimpleRNN", "last step", "bare", "fixed batch", 2, "bidirectional"),
    Network("SimpleRNN", "last step", "dense head", "fixed length", 1, "forward"),
    Network("SimpleRNN", "sequence", "dense head", "fixed", 2, "forward"),
)


def test_each_pair_of_values_occurs() -> None:
    for one, other in itertools.combinations(range(len(VALUES)), 2):
        found = {(network[one], network[other]) for network in NETWORKS}
        assert found == set(itertools.product(VALUES[one], VALUES[other]))


def _check(tf: ModuleType, model: Any, folder: Path, inputs: Callable[[int, int], np.ndarray]) -> None:
    """Converts a model by the command, and compares what it computes with TensorFlow at all sizes."""
    saved, program = folder / "saved", folder / "model.vmfb"
    spec = tf.TensorSpec(model.inputs[0].shape, model.inputs[0].dtype, name="x")
    model.export(str(saved), verbose=False, input_signature=[spec])
    done = CliRunner().invoke(main, [str(saved), "-o", str(program), "--target", "iree", "--verify"])
    assert done.exit_code == 0, done.output
    assert "warning" not in done.output
    loaded = tfconvert.load(program)
    for batch, length in SIZES:
        x = inputs(spec.shape[0] or batch, spec.shape[1] or length)
        (found,) = loaded.run([x], "serving_default").values()
        expected = model(x).numpy()
        assert found.shape == expected.shape
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def _normal(batch: int, length: int) -> np.ndarray:
    return np.random.default_rng(batch).normal(size=(batch, length, 3)).astype(np.float32)


@pytest.mark.parametrize("network", NETWORKS, ids=["-".join(map(str, network)) for network in NETWORKS])
def test_recurrent_networks(tf: ModuleType, network: Network, tmp_path: Path) -> None:
    layers = tf.keras.layers
    tf.keras.utils.set_random_seed(5)
    batch = 2 if network.sizes in ("fixed", "fixed batch") else None
    length = 5 if network.sizes in ("fixed", "fixed length") else None
    x = y = tf.keras.Input(batch_shape=(batch, length, 3))
    for number in range(1, network.layers + 1):
        is_sequence = network.returns == "sequence" or number < network.layers
        layer = getattr(layers, network.cell)(4, return_sequences=is_sequence, bias_initializer="normal")
        y = (layers.Bidirectional(layer) if network.direction == "bidirectional" else layer)(y)
    if network.head == "dense head":
        y = layers.Dense(2, activation="softmax")(y)
    _check(tf, tf.keras.Model(x, y), tmp_path, _normal)


@pytest.mark.parametrize("returns", ["last step", "sequence"])
def test_padding_is_masked(tf: ModuleType, returns: str, tmp_path: Path) -> None:
    layers = tf.keras.layers
    tf.keras.utils.set_random_seed(5)
    x = tf.keras.Input((None,), dtype="int32")
    words = layers.Embedding(9, 3, mask_zero=True)(x)
    model = tf.keras.Model(x, layers.GRU(4, return_sequences=returns == "sequence")(words))
    _check(tf, model, tmp_path, lambda *shape: np.random.default_rng(1).integers(0, 3, shape).astype(np.int32))


def test_cells_are_stacked(tf: ModuleType, tmp_path: Path) -> None:
    layers = tf.keras.layers
    tf.keras.utils.set_random_seed(5)
    x = tf.keras.Input((None, 3))
    model = tf.keras.Model(x, layers.RNN([layers.LSTMCell(4), layers.LSTMCell(3)])(x))
    _check(tf, model, tmp_path, _normal)


def test_state_lasts_as_long_as_the_program(tf: ModuleType, tmp_path: Path) -> None:
    tf.keras.utils.set_random_seed(5)
    x = tf.keras.Input(batch_shape=(2, None, 3))
    layer = tf.keras.layers.LSTM(4, stateful=True)
    _check(tf, tf.keras.Model(x, layer(x)), tmp_path, _normal)
