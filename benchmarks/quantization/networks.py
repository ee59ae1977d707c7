"""Builds, trains and saves one small reference model; `models.py` runs it in a process of its own.

Together they have most of what quantization has to deal with: convolutions of all kinds, recurrent layers, attention,
an embedding, resizing, concatenation, activations that quantize badly, and a network trained with FakeQuant ops. Each
learns in a few seconds to be right nearly always, since the answers of a network that knows nothing show little.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import keras
import numpy as np
import tensorflow as tf
import tf_keras

SEED: Final = 7
CLASSES: Final = 10
# How many of the digits the networks learn from; the others are for comparing.
TRAINED_ON: Final = 1297

BATCH: Final = 64
RATE: Final = 2e-3
LABELS: Final = "sparse_categorical_crossentropy"


@dataclass(frozen=True, slots=True)
class Data:
    """The training data of a network, and data that it has not seen."""

    inputs: np.ndarray
    answers: np.ndarray
    new_inputs: np.ndarray

    @staticmethod
    def split(inputs: np.ndarray, answers: np.ndarray, count: int) -> Data:
        """Returns data of which the first `count` are learned from."""
        return Data(inputs[:count], answers[:count], inputs[count:])


@dataclass(frozen=True, slots=True)
class Trained:
    """A network that has learned."""

    model: Any  # Of Keras 3 or tf_keras.
    data: Data  # What it has learned from.


def digits_data() -> Data:
    """Returns scikit-learn's digits, shuffled: 8 x 8 pixels from 0 to 1."""
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise SystemExit("the reference models learn scikit-learn's digits: pip install scikit-learn") from None
    digits = load_digits()
    order = np.random.RandomState(0).permutation(len(digits.target))
    pixels = (digits.images / 16).astype(np.float32)[..., None]
    return Data.split(pixels[order], digits.target[order], TRAINED_ON)


def rows_of_digits() -> Data:
    """Returns the digits as sequences of eight rows."""
    data = digits_data()
    return Data(data.inputs[..., 0], data.answers, data.new_inputs[..., 0])


def train(model: Any, data: Data, epochs: int, loss: Any = LABELS, library: Any = keras) -> Trained:
    """Trains a network."""
    model.compile(library.optimizers.Adam(RATE), loss)
    model.fit(data.inputs, data.answers, batch_size=BATCH, epochs=epochs, verbose=0)
    return Trained(model, data)


def _from_logits() -> Any:
    return keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def digits() -> Trained:
    """A convolutional net with a depthwise layer and four kinds of activation."""
    layers = keras.layers
    model = keras.Sequential(
        [
            keras.Input((8, 8, 1)),
            layers.Conv2D(16, 3, padding="same", use_bias=False),
            layers.BatchNormalization(),
            layers.ReLU(6.0),
            layers.DepthwiseConv2D(3, padding="same", use_bias=False),
            layers.BatchNormalization(),
            layers.ReLU(6.0),
            layers.Conv2D(32, 1, use_bias=False),
            layers.BatchNormalization(),
            layers.Activation("hard_swish"),
            layers.MaxPooling2D(2),
            layers.Conv2D(48, 3),
            layers.Activation("gelu"),
            layers.Flatten(),
            layers.Dense(64, activation="relu"),
            layers.Dense(CLASSES, activation="softmax"),
        ]
    )
    return train(model, digits_data(), 25)


def mlp() -> Trained:
    """Two wide dense layers, without a softmax at the end."""
    layers = keras.layers
    wide = [layers.Dense(512, activation="relu") for _ in range(2)]
    model = keras.Sequential([keras.Input((8, 8, 1)), layers.Flatten(), *wide, layers.Dense(CLASSES)])
    return train(model, digits_data(), 15, _from_logits())


def lstm() -> Trained:
    """Two LSTM layers of tf_keras, which become the fused operator."""
    layers = tf_keras.layers
    stack = [layers.LSTM(64, return_sequences=True), layers.LSTM(64), layers.Dense(CLASSES, activation="softmax")]
    return train(tf_keras.Sequential([layers.Input((8, 8)), *stack]), rows_of_digits(), 30, library=tf_keras)


def gru() -> Trained:
    """A GRU layer of tf_keras, which is a loop."""
    layers = tf_keras.layers
    stack = [layers.GRU(64), layers.Dense(CLASSES, activation="softmax")]
    return train(tf_keras.Sequential([layers.Input((8, 8)), *stack]), rows_of_digits(), 30, library=tf_keras)


def transformer() -> Trained:
    """Two blocks of attention and dense layers, each behind a norm."""
    layers = keras.layers
    rows = keras.Input((8, 8))
    state = layers.Dense(64)(rows)
    state = state + layers.Embedding(8, 64)(keras.ops.arange(8))
    for _ in range(2):
        seen = layers.LayerNormalization(epsilon=1e-6)(state)
        state = state + layers.MultiHeadAttention(4, 16)(seen, seen)
        seen = layers.LayerNormalization(epsilon=1e-6)(state)
        # The inner layer is made last.
        outer = layers.Dense(64)
        state = state + outer(layers.Dense(128, activation="gelu")(seen))
    state = layers.GlobalAveragePooling1D()(layers.LayerNormalization(epsilon=1e-6)(state))
    return train(keras.Model(rows, layers.Dense(CLASSES, activation="softmax")(state)), rows_of_digits(), 40)


def embed() -> Trained:
    """A table of 4000 words, averaged; texts belong to the topic that their words have most of."""
    random = np.random.RandomState(1)
    words, topics = 4000, 6
    weights = random.randn(words, topics)
    texts = random.randint(0, words, (6000, 24)).astype(np.int32)
    layers = keras.layers
    model = keras.Sequential(
        [
            keras.Input((24,), dtype="int32"),
            layers.Embedding(words, 48),
            layers.GlobalAveragePooling1D(),
            layers.Dense(64, activation="relu"),
            layers.Dense(topics, activation="softmax"),
        ]
    )
    return train(model, Data.split(texts, weights[texts].sum(1).argmax(1), 5500), 25)


def audio() -> Trained:
    """Convolutions over time that tell six tones in noise from each other."""
    random = np.random.RandomState(2)
    count, length, tones = 2000, 512, np.array([3, 5, 8, 12, 17, 23])
    answers = random.randint(0, len(tones), count)
    phases = 2 * np.pi * (tones[answers][:, None] * (np.arange(length) / length) + random.rand(count, 1))
    waves = np.sin(phases) * random.uniform(0.4, 1, (count, 1)) + 0.7 * random.randn(count, length)
    layers = keras.layers
    model = keras.Sequential(
        [
            keras.Input((length, 1)),
            layers.Conv1D(16, 9, strides=2, padding="same", activation="relu"),
            layers.Conv1D(32, 9, strides=4, padding="same"),
            layers.BatchNormalization(),
            layers.ReLU(),
            layers.SeparableConv1D(48, 5, padding="same", activation="tanh"),
            layers.AveragePooling1D(4),
            layers.Conv1D(64, 3, dilation_rate=2, activation="sigmoid"),
            layers.GlobalAveragePooling1D(),
            layers.Dense(len(tones), activation="softmax"),
        ]
    )
    return train(model, Data.split(waves[..., None].astype(np.float32), answers, 1700), 12)


def seg() -> Trained:
    """Finds the strokes of noisy, enlarged digits: pixels in, pixels out, over several resolutions."""
    pixels = digits_data()
    shapes = np.concatenate([pixels.inputs, pixels.new_inputs])
    large = shapes.repeat(4, axis=1).repeat(4, axis=2)
    noise = 0.3 * np.random.RandomState(3).randn(len(large), 32, 32, 3)
    data = Data.split((large.repeat(3, axis=-1) + noise).astype(np.float32), (large > 0.5).astype(np.float32), 1297)
    layers = keras.layers
    image = keras.Input((32, 32, 3))
    fine = layers.Conv2D(16, 3, padding="same", activation="relu")(image)
    half = layers.Conv2D(32, 3, strides=2, padding="same", activation="relu")(fine)
    quarter = layers.Conv2D(48, 3, strides=2, padding="same")(half)
    quarter = layers.PReLU(shared_axes=[1, 2])(layers.LeakyReLU(negative_slope=0.1)(quarter))
    up = layers.Conv2DTranspose(32, 3, strides=2, padding="same", activation="relu")(quarter)
    up = layers.UpSampling2D(2, interpolation="bilinear")(layers.Concatenate()([up, half]))
    full = layers.Add()([layers.Conv2D(16, 1)(up), fine])
    full = layers.UpSampling2D(2, interpolation="nearest")(layers.AveragePooling2D(2)(full))
    strokes = layers.Conv2D(1, 3, padding="same", activation="sigmoid")(full)
    return train(keras.Model(image, strokes), data, 4, "binary_crossentropy")


def _fake_quantized(lowest: float, highest: float) -> Any:
    fake = tf.quantization.fake_quant_with_min_max_args
    return keras.layers.Lambda(lambda values: fake(values, lowest, highest))


class _QuantizedConv(keras.layers.Conv2D):  # type: ignore[misc]
    """A convolution that is trained with the filters that it will have: a scale for each output channel."""

    def convolution_op(self, inputs: Any, kernel: Any) -> Any:
        most = tf.stop_gradient(tf.reduce_max(tf.abs(kernel), [0, 1, 2]))
        fake = tf.quantization.fake_quant_with_min_max_vars_per_channel
        return super().convolution_op(inputs, fake(kernel, -most, most, narrow_range=True))


class _QuantizedDense(keras.layers.Dense):  # type: ignore[misc]
    """A dense layer that is trained with the matrix that it will have: one scale."""

    def call(self, inputs: Any) -> Any:
        most = tf.stop_gradient(tf.reduce_max(tf.abs(self.kernel)))
        kernel = tf.quantization.fake_quant_with_min_max_vars(self.kernel, -most, most, narrow_range=True)
        return self.activation(tf.matmul(inputs, kernel) + self.bias)


def qat() -> Trained:
    """A small net that is trained with FakeQuant ops of all three kinds."""
    layers = keras.layers
    model = keras.Sequential(
        [
            keras.Input((8, 8, 1)),
            _fake_quantized(0, 1),
            _QuantizedConv(16, 3, padding="same", activation="relu"),
            _fake_quantized(0, 4),
            layers.MaxPooling2D(2),
            _QuantizedConv(32, 3, padding="same", activation="relu"),
            _fake_quantized(0, 6),
            layers.Flatten(),
            _QuantizedDense(CLASSES),
            _fake_quantized(-20, 20),
        ]
    )
    return train(model, digits_data(), 20, _from_logits())


NETWORKS: Final[dict[str, Callable[[], Trained]]] = {
    network.__name__: network for network in (digits, mlp, lstm, gru, transformer, embed, audio, seg, qat)
}


def save(trained: Trained, folder: Path) -> None:
    """Saves a network for batches of one, with `x` as its input and `y` as its output."""
    inputs = trained.data.inputs
    spec = tf.TensorSpec((1, *inputs.shape[1:]), inputs.dtype, name="x")
    call = tf.function(lambda x: {"y": trained.model(x, training=False)}, input_signature=[spec])
    module = tf.Module()
    concrete = call.get_concrete_function()
    module.call, module.variables_of_call = call, concrete.variables
    tf.saved_model.save(module, str(folder), signatures=concrete)


def main() -> None:
    """Runs the command line: NAME CALIBRATION TEST FOLDER, the second and third being numbers of samples."""
    name, calibration, test, target = sys.argv[1:]
    folder = Path(target)
    keras.utils.set_random_seed(SEED)
    tf_keras.utils.set_random_seed(SEED)
    trained = NETWORKS[name]()
    save(trained, folder / "saved_model")
    np.savez(folder / "calibration.npz", x=trained.data.inputs[: int(calibration)])
    np.savez(folder / "test.npz", x=trained.data.new_inputs[: int(test)])


if __name__ == "__main__":
    main()
