"""Trains the example model: a small convolutional network that reads handwritten digits.

The data are the 1797 images of 8x8 pixels that come inside scikit-learn, so nothing is downloaded. The net is
small but has the parts that a converter meets in larger ones: a strided convolution, batch norms, a depthwise
separable block with a residual connection, a hard-swish, global pooling, and dense layers.

Run as `python examples/digits/train.py`; needs the `test` extra (TensorFlow and scikit-learn). Writes
`saved_model/`, in the format that Keras 3 `model.export` writes, and `held_out.npz`, the digits that the net has
never seen, for `show.py`.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
import tensorflow as tf
from keras import layers
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

HERE = Path(__file__).parent
SEED = 20
EPOCHS = 40
HELD_OUT = 360
REQUIRED_ACCURACY = 0.95


def load_data() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Returns training images and labels, then held-out images and labels. Pixels are in 0..1."""
    digits = load_digits()
    images = (digits.images / 16.0).astype(np.float32)[..., np.newaxis]
    labels = digits.target.astype(np.int32)
    train_images, test_images, train_labels, test_labels = train_test_split(
        images, labels, test_size=HELD_OUT, random_state=SEED, stratify=labels
    )
    return train_images, train_labels, test_images, test_labels


def build_model() -> keras.Model:
    """Returns the untrained network: the inputs are 8x8 pixels, the outputs ten probabilities."""
    pixels = keras.Input(shape=(8, 8, 1), name="pixels")
    stem = layers.Conv2D(24, 3, padding="same", use_bias=False, name="stem")(pixels)
    stem = layers.BatchNormalization(name="stem_norm")(stem)
    stem = layers.Activation("hard_swish", name="stem_swish")(stem)

    block = layers.DepthwiseConv2D(3, padding="same", use_bias=False, name="depthwise")(stem)
    block = layers.BatchNormalization(name="depthwise_norm")(block)
    block = layers.ReLU(max_value=6.0, name="depthwise_relu6")(block)
    block = layers.Conv2D(24, 1, use_bias=False, name="project")(block)
    block = layers.BatchNormalization(name="project_norm")(block)
    block = layers.Add(name="residual")([stem, block])

    down = layers.ZeroPadding2D(1, name="pad")(block)
    down = layers.Conv2D(40, 3, strides=2, padding="valid", name="down")(down)
    down = layers.BatchNormalization(name="down_norm")(down)
    down = layers.ReLU(name="down_relu")(down)

    summary = layers.GlobalAveragePooling2D(name="pool")(down)
    summary = layers.Dense(32, activation="gelu", name="hidden")(summary)
    digit = layers.Dense(10, activation="softmax", name="digit")(summary)
    return keras.Model(pixels, digit, name="digits")


def train(model: keras.Model, images: np.ndarray, labels: np.ndarray) -> None:
    """Trains the network. With the seed and deterministic kernels, the weights are reproducible on the same machine.

    Only the order in which Keras writes them to the file differs from run to run.
    """
    steps = EPOCHS * -(-len(images) // 32)
    rate = keras.optimizers.schedules.CosineDecay(initial_learning_rate=4e-3, decay_steps=steps)
    model.compile(optimizer=keras.optimizers.Adam(rate), loss="sparse_categorical_crossentropy")
    model.fit(images, labels, batch_size=32, epochs=EPOCHS, verbose=0)


def main() -> None:
    """Trains, checks the accuracy on the held-out digits, and writes the model beside this file."""
    keras.utils.set_random_seed(SEED)
    tf.config.experimental.enable_op_determinism()
    train_images, train_labels, test_images, test_labels = load_data()
    model = build_model()
    train(model, train_images, train_labels)
    accuracy = float(np.mean(np.argmax(model.predict(test_images, verbose=0), axis=1) == test_labels))
    print(f"{model.count_params()} parameters, accuracy on {len(test_labels)} held-out digits: {accuracy:.1%}")
    if accuracy < REQUIRED_ACCURACY:
        raise SystemExit(f"accuracy below {REQUIRED_ACCURACY:.0%}: not exported")
    target = HERE / "saved_model"
    shutil.rmtree(target, ignore_errors=True)
    model.export(target, verbose=False)
    pixels = (test_images[..., 0] * 16).astype(np.uint8)
    np.savez_compressed(HERE / "held_out.npz", pixels=pixels, labels=test_labels.astype(np.uint8))
    size = sum(file.stat().st_size for file in target.rglob("*") if file.is_file())
    print(f"wrote {target.name}: {size / 1024:.0f} KiB")


if __name__ == "__main__":
    main()
