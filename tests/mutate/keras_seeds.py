"""The Keras models that mutants are made of: layers of most kinds, in the files of Keras 3 and of tf_keras."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any


def _dense(keras: ModuleType) -> Any:
    layers = keras.layers
    return keras.Sequential(
        [keras.Input((4,)), layers.Dense(3, activation="relu"), layers.Dropout(0.5), layers.Dense(2)]
    )


def _vision(keras: ModuleType) -> Any:
    layers, image = keras.layers, keras.Input((8, 8, 3), name="image")
    x = layers.Rescaling(1 / 255)(image)
    x = layers.Conv2D(4, 3, padding="same", use_bias=False)(x)
    x = layers.ReLU(max_value=6.0)(layers.BatchNormalization()(x))
    x = layers.Add()([layers.DepthwiseConv2D(3, padding="same")(x), x])
    x = layers.SeparableConv2D(4, 3, strides=2)(layers.ZeroPadding2D(1)(x))
    x = layers.Conv2DTranspose(2, 2, strides=2)(layers.MaxPooling2D(2)(x))
    return keras.Model(image, layers.Dense(2, activation="softmax")(layers.GlobalAveragePooling2D()(x)))


def _text(keras: ModuleType) -> Any:
    layers, words = keras.layers, keras.Input((6,), dtype="int32", name="words")
    x = layers.Embedding(12, 4)(words)
    x = layers.LSTM(3)(layers.Bidirectional(layers.GRU(3, return_sequences=True))(x))
    return keras.Model(words, layers.LayerNormalization()(x))


def _heads(keras: ModuleType) -> Any:
    layers = keras.layers
    inner = keras.Sequential([keras.Input((4,)), layers.Dense(4, activation="gelu")], name="inner")
    a, b = keras.Input((4,), name="a"), keras.Input((4,), name="b")
    x = layers.Concatenate()([inner(a), layers.PReLU()(b)])
    attended = layers.MultiHeadAttention(2, 2)(layers.Reshape((2, 4))(x), layers.Reshape((2, 4))(x))
    return keras.Model({"a": a, "b": b}, [layers.Flatten()(attended), inner(b)])


def _prepared(keras: ModuleType) -> Any:
    layers, number = keras.layers, keras.Input((2,), name="number")
    scaled = layers.Normalization(mean=[1.0, 2.0], variance=[1.0, 4.0])(number)
    bins = layers.Discretization(bin_boundaries=[0.0, 1.0])(number)
    return keras.Model(number, [scaled, layers.CategoryEncoding(3, output_mode="multi_hot")(bins)])


_MODELS: dict[str, Callable[[ModuleType], Any]] = {
    build.__name__.strip("_"): build for build in (_dense, _vision, _text, _heads, _prepared)
}


def write(folder: Path) -> None:
    """Writes the models: `folder/keras/<name>/model.keras` and `folder/hdf5/<name>/model.h5`."""
    import keras
    import tf_keras

    for library in (keras, tf_keras):
        library.utils.set_random_seed(5)
        for name, build in _MODELS.items():
            model = build(library)
            for kind, ending in (("keras", "keras"), ("hdf5", "h5")):
                place = folder / kind / f"{library.__name__}_{name}"
                place.mkdir(parents=True)
                model.save(place / f"model.{ending}")
