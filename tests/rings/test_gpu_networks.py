"""Networks on LiteRT's GPU accelerator, with the numbers of the CPU: whole with `accelerator=["gpu"]`, some without."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tfconvert
from tfconvert.converter.validation.runtimes_check import is_available, outcomes, swiftshader

keras = pytest.importorskip("keras")
layers, ops = keras.layers, keras.ops

pytestmark = [
    pytest.mark.skipif(not swiftshader(), reason="SwiftShader is not installed"),
    pytest.mark.skipif(not is_available("gpu"), reason="ai_edge_litert is not installed"),
]

# By which part of the largest number results may be off.
_TOLERANCE = 1e-3


def _windows() -> Any:
    """Attention in windows that are shifted, as in Swin."""
    image = layers.Input((8, 8, 12))
    x = ops.roll(layers.LayerNormalization()(image), (-2, -2), (1, 2))
    x = ops.transpose(ops.reshape(x, (-1, 2, 4, 2, 4, 12)), (0, 1, 3, 2, 4, 5))
    x = ops.reshape(x, (-1, 16, 12))
    x = layers.MultiHeadAttention(2, 6)(x, x)
    x = ops.transpose(ops.reshape(x, (-1, 2, 2, 4, 4, 12)), (0, 1, 3, 2, 4, 5))
    x = ops.roll(ops.reshape(x, (-1, 8, 8, 12)), (2, 2), (1, 2))
    return keras.Model(image, image + x)


def _patches() -> Any:
    """Attention among the pixels of patches, as in MobileViT."""
    image = layers.Input((8, 8, 8))
    x = ops.transpose(ops.reshape(image, (-1, 4, 2, 4, 2, 8)), (0, 2, 4, 1, 3, 5))
    x = ops.reshape(x, (-1, 4, 16, 8))
    x = layers.MultiHeadAttention(2, 4, attention_axes=2)(x, x)
    x = ops.transpose(ops.reshape(x, (-1, 2, 2, 4, 4, 8)), (0, 3, 1, 4, 2, 5))
    return keras.Model(image, layers.Conv2D(4, 1)(ops.reshape(x, (-1, 8, 8, 8))))


def _decoder() -> Any:
    """A decoder with rotated positions, shared key heads and a causal mask, as in Llama."""
    ids = layers.Input((8,), dtype="int32")
    x = layers.Embedding(30, 16)(ids)
    angles = np.arange(8)[:, None] / 100 ** (np.arange(2) / 2)
    cos, sin = (np.concatenate([f(angles)] * 2, -1).astype("float32")[None, :, None] for f in (np.cos, np.sin))
    y = layers.RMSNormalization()(x)
    q, k, v = (ops.reshape(layers.Dense(heads * 4)(y), (-1, 8, heads, 4)) for heads in (4, 2, 2))
    q, k = (each * cos + ops.concatenate([-each[..., 2:], each[..., :2]], -1) * sin for each in (q, k))
    k, v = (ops.repeat(each, 2, axis=2) for each in (k, v))
    scores = ops.where(np.tril(np.ones((8, 8), bool)), ops.einsum("bqhd,bkhd->bhqk", q, k), -1e9)
    y = ops.einsum("bhqk,bkhd->bqhd", ops.softmax(scores), v)
    return keras.Model(ids, x + layers.Dense(16)(ops.reshape(y, (-1, 8, 16))))


def _recurrent() -> Any:
    sequence = layers.Input((6, 5))
    x = layers.Bidirectional(layers.GRU(6, return_sequences=True))(sequence)
    return keras.Model(sequence, layers.Dense(3)(layers.LSTM(7)(x)))


def _volume() -> Any:
    """Convolutions in three dimensions between images."""
    image = layers.Input((8, 8, 12))
    x = ops.reshape(image, (-1, 8, 8, 4, 3))
    x = layers.Conv3D(4, 3, padding="same", activation="relu")(x)
    x = layers.Conv3D(4, 3, (2, 1, 1), activation="tanh")(x)
    return keras.Model(image, layers.GlobalAveragePooling3D()(x))


def _decoded() -> Any:
    """Groups, group normalization, transposed convolutions with odd sizes, and classes."""
    image = layers.Input((9, 9, 3))
    x = layers.Conv2D(12, 3, 2, padding="same")(image)
    x = layers.GroupNormalization(3)(layers.Conv2D(12, 3, padding="same", groups=4)(x))
    x = layers.PReLU(shared_axes=[1, 2])(x)
    x = layers.Conv2DTranspose(8, 3, strides=2, padding="same", activation="relu")(x)
    return keras.Model(image, [x, ops.argmax(layers.Conv2D(6, 1, bias_initializer="normal")(x), -1)])


_NETWORKS: dict[str, Callable[[], Any]] = {
    "decoded": _decoded,
    "decoder": _decoder,
    "patches": _patches,
    "recurrent": _recurrent,
    "volume": _volume,
    "windows": _windows,
}


@pytest.mark.parametrize("mode", ["float32", "float16", "dynamic", "weights"])
@pytest.mark.parametrize("name", _NETWORKS)
def test_whole_and_right(name: str, mode: Any) -> None:
    keras.utils.set_random_seed(0)
    quantize = None if mode == "float32" else tfconvert.Quantize(mode)
    target = tfconvert.LiteRT(accelerator=["gpu"], quantize=quantize)
    model = tfconvert.convert(_NETWORKS[name](), batch=1, target=target)
    (acceptance,) = model.report.acceptances
    assert acceptance.is_whole, acceptance.lines()
    (outcome,) = outcomes(bytes(model), ["gpu"])
    assert outcome.is_whole
    if mode in ("float32", "float16"):  # The CPU rounds activations where it multiplies integers.
        assert outcome.error < _TOLERANCE


def _normalized() -> Any:
    """Groups of channels, borders that mirror pixels, and pixels that are repeated."""
    image = layers.Input((8, 8, 3))
    x = layers.Conv2D(64, 3)(ops.pad(image[..., ::-1], ((0, 0), (1, 1), (1, 1), (0, 0)), mode="reflect"))
    x = layers.GroupNormalization(16)(x)
    return keras.Model(image, layers.Conv2D(3, 1)(layers.UpSampling2D()(x)))


def _last_step() -> Any:
    sequence = layers.Input((12, 4))
    x = layers.Conv1D(8, 3, dilation_rate=2, padding="causal", activation="relu")(sequence)
    return keras.Model(sequence, layers.Dense(3)(x[:, -1]))


def _classes() -> Any:
    """The class of each pixel."""
    image = layers.Input((8, 8, 3))
    return keras.Model(image, ops.argmax(layers.Conv2D(8, 3, bias_initializer="normal")(image), -1))


_BY_DEFAULT: dict[str, Callable[[], Any]] = {
    "classes": _classes,
    "last-step": _last_step,
    "normalized": _normalized,
    "windows": _windows,
}


@pytest.mark.parametrize("name", _BY_DEFAULT)
def test_whole_and_right_by_default(name: str) -> None:
    keras.utils.set_random_seed(0)
    (outcome,) = outcomes(bytes(tfconvert.convert(_BY_DEFAULT[name](), batch=1)), ["gpu"])
    assert outcome.is_whole, outcome.refused or outcome.problem
    assert outcome.error < _TOLERANCE


def _keywords() -> Any:
    sequence = layers.Input((12, 6))
    return keras.Model(sequence, layers.Dense(4)(layers.GRU(16)(layers.GRU(16, return_sequences=True)(sequence))))


def _both_ways() -> Any:
    sequence = layers.Input((10, 6))
    x = layers.Bidirectional(layers.GRU(6, return_sequences=True))(layers.Masking()(sequence))
    return keras.Model(sequence, layers.Dense(3)(x))


def _backwards() -> Any:
    sequence = layers.Input((10, 6))
    return keras.Model(sequence, layers.GRU(7, return_sequences=True, return_state=True, go_backwards=True)(sequence))


def _cells() -> Any:
    sequence = layers.Input((10, 6))
    cells = [layers.GRUCell(8), layers.LSTMCell(5)]
    return keras.Model(sequence, layers.RNN(cells, return_sequences=True)(sequence))


def _frames() -> Any:
    video = layers.Input((4, 6, 6, 2))
    return keras.Model(video, layers.ConvLSTM2D(3, 3, padding="same", return_sequences=True)(video))


_LOOPS: dict[str, Callable[[], Any]] = {
    "backwards": _backwards,
    "both-ways": _both_ways,
    "cells": _cells,
    "frames": _frames,
    "keywords": _keywords,
}


@pytest.mark.parametrize("batch", [1, 4])
@pytest.mark.parametrize("name", _LOOPS)
def test_loops_are_right_by_default(name: str, batch: int) -> None:
    """The GPU runs what is inside of loops, and the CPU the loops themselves."""
    keras.utils.set_random_seed(0)
    content = bytes(tfconvert.convert(_LOOPS[name](), batch=batch))
    (outcome,) = outcomes(content, ["gpu"])
    assert outcome.taken > outcome.operators // 2, outcome.problem
    assert outcome.error < _TOLERANCE
