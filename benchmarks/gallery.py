"""Writes docs/gallery.md: what some networks become, with the official converter's results beside ours.

    python -m benchmarks.gallery

The networks have random weights and are made in memory, by Keras and JAX, which must be installed.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

import tfconvert
from benchmarks.commands import REPOSITORY
from benchmarks.comparison import table
from benchmarks.in_memory import NETWORKS
from benchmarks.litert import operators_of
from benchmarks.zoo import QUIET_TENSORFLOW

PAGE = REPOSITORY / "docs" / "gallery.md"

_HEAD = """# Gallery

What some networks become. The ops before are those of TensorFlow or JAX without constants; the official converter's
results are from `tf.lite.TFLiteConverter` with the same settings. Weights are random. `python -m benchmarks.gallery`
writes this page.
"""
_LISTED = 8


class Exhibit(NamedTuple):
    """A network of the gallery."""

    title: str  # Its title.
    text: str  # What is worth a look.
    build: Callable[[Any], Any]  # Makes the model; it gets Keras.
    code: str  # The call that converts it, as a user writes it.
    settings: Callable[[], Mapping[str, Any]]  # Makes the arguments of `tfconvert.convert`.
    is_jax: bool = False  # Whether it is a function of JAX, which the official class takes by another way.


def _images() -> list[np.ndarray[Any, Any]]:
    random = np.random.default_rng(0)
    return [random.random((1, 224, 224, 3), np.float32) for _ in range(8)]


def _attention(keras: Any) -> Any:
    import jax
    import jax.export
    import jax.numpy as jnp

    random = np.random.default_rng(0)
    query, key, value = (random.normal(size=(64, 64)).astype(np.float32) for _ in range(3))

    def attention(tokens: Any) -> Any:
        normal = (tokens - tokens.mean(-1, keepdims=True)) / jnp.sqrt(tokens.var(-1, keepdims=True) + 1e-5)
        scores = (normal @ query) @ (normal @ key).swapaxes(-1, -2) / 8
        return jax.nn.gelu(tokens + jax.nn.softmax(scores) @ (normal @ value), approximate=False)

    (batch,) = jax.export.symbolic_shape("batch")
    return jax.export.export(jax.jit(attention))(jax.ShapeDtypeStruct((batch, 16, 64), "float32"))


def _bidirectional(keras: Any) -> Any:
    layers = keras.layers
    masked = layers.Masking()(given := keras.Input((None, 16)))
    hidden = layers.Bidirectional(layers.LSTM(32, return_sequences=True))(masked)
    return keras.Model(given, layers.Dense(5)(layers.GRU(16)(hidden)))


EXHIBITS = (
    Exhibit(
        "An image classifier",
        "Batch norms become a part of the filters before them, activations of the operators.",
        NETWORKS["MobileNetV2"],
        "tfconvert.convert(model, batch=1)",
        lambda: {"batch": 1},
    ),
    Exhibit(
        "The same with integers",
        "Eight random images as samples; inputs and outputs stay float.",
        NETWORKS["MobileNetV2"],
        'tfconvert.convert(model, quantize=tfconvert.Quantize("int8", samples=images))',
        lambda: {"quantize": tfconvert.Quantize("int8", samples=[(each,) for each in _images()])},
    ),
    Exhibit(
        "Weights as integers",
        "Squeeze-and-excitation blocks and swish.",
        NETWORKS["EfficientNetB0"],
        'tfconvert.convert(model, quantize="dynamic")',
        lambda: {"quantize": "dynamic"},
    ),
    Exhibit(
        "A transformer",
        "Four encoder layers of Keras: attention in `einsum`s, layer normalization, GELU.",
        NETWORKS["transformer"],
        "tfconvert.convert(model)",
        dict,
    ),
    Exhibit(
        "Recurrent layers with a mask",
        "A bidirectional LSTM and a GRU over sequences of any length. The official converter writes TensorFlow's own"
        " operators, which need the Flex delegate.",
        _bidirectional,
        "tfconvert.convert(model)",
        dict,
    ),
    Exhibit(
        "A function of JAX",
        "Attention with normalization and GELU, written in `jax.numpy` and exported with a symbolic batch.",
        _attention,
        "tfconvert.convert(exported)",
        dict,
        is_jax=True,
    ),
)


def _official(exhibit: Exhibit, model: Any) -> bytes | None:
    """Returns the official converter's result, or nothing if it has none."""
    import tensorflow as tf

    if exhibit.is_jax:
        return None
    settings = exhibit.settings()
    converter = tf.lite.TFLiteConverter.from_keras_model(model)
    quantize = settings.get("quantize")
    if quantize is not None:
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
    if isinstance(quantize, tfconvert.Quantize):
        converter.representative_dataset = lambda: ([each] for each in _images())
    if any("Bidirectional" in type(layer).__name__ for layer in model.layers):
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS, tf.lite.OpsSet.SELECT_TF_OPS]
        converter._experimental_lower_tensor_list_ops = False  # noqa: SLF001  # as its own error message advises
    with contextlib.redirect_stdout(io.StringIO()):  # Keras prints all signatures.
        return bytes(converter.convert())


def _listed(counts: Mapping[str, int]) -> str:
    """Returns the most frequent names with their numbers."""
    ordered = sorted(counts.items(), key=lambda each: (-each[1], each[0]))
    rest = sum(count for _, count in ordered[_LISTED:])
    names = ", ".join(f"{name} {count}" for name, count in ordered[:_LISTED])
    return f"{names}, {rest} others" if rest else names


def section(exhibit: Exhibit, keras: Any) -> str:
    """Converts a network; returns its section of the page."""
    model = exhibit.build(keras)
    converted = tfconvert.convert(model, **exhibit.settings())
    report, official = converted.report, _official(exhibit, model)
    before = report.operations_before
    rows = [
        ["model", f"{sum(before.values())}", "", _listed(before)],
        ["tfconvert", f"{sum(report.operators.values())}", f"{report.size:,}", _listed(report.operators)],
    ]
    if official is not None:
        operators = operators_of(official)
        rows.append(["official", f"{operators.total()}", f"{len(official):,}", _listed(operators)])
    lines = table("| operators | bytes | kinds", rows)
    lines[1] = lines[1].removesuffix(" ---: |") + " --- |"
    code = f"```py\n{exhibit.code}\n```"
    return "\n".join((f"## {exhibit.title}\n", f"{exhibit.text}\n", f"{code}\n", *lines, ""))


def main() -> int:
    """Writes the page; returns the exit status."""
    os.environ.update(QUIET_TENSORFLOW)
    import keras

    sections = []
    for exhibit in EXHIBITS:
        keras.utils.set_random_seed(0)
        sections.append(section(exhibit, keras))
    PAGE.write_text("\n".join((_HEAD, *sections)), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
