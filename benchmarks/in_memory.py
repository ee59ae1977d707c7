"""Compares the conversion of Keras models in memory with the official converter's, in one process.

    python -m benchmarks.in_memory --runs 5

Both converters take their turn in each run. The first conversion of each is not counted: it loads modules. A network
with recurrent layers is converted by the official one with TensorFlow's own operators, without which it refuses an open
batch. Exit status 1 if the results of ours differ from Keras'.
"""

from __future__ import annotations

import contextlib
import io
import math
import os
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from benchmarks.commands import parser_of
from benchmarks.comparison import table

_TOLERANCE = 1e-4


def _transformer(keras: Any) -> Any:
    given = x = keras.Input((64,), dtype="int32")
    x = keras.layers.Embedding(1000, 128)(x)
    for _ in range(4):
        attended = keras.layers.MultiHeadAttention(4, 32)(x, x)
        x = keras.layers.LayerNormalization()(x + attended)
        hidden = keras.layers.Dense(512, activation="gelu")(x)
        x = keras.layers.LayerNormalization()(x + keras.layers.Dense(128)(hidden))
    return keras.Model(given, keras.layers.Dense(5)(x[:, 0]))


def _lstm(keras: Any) -> Any:
    layers = keras.layers
    return keras.Sequential(
        [keras.Input((32, 16)), layers.LSTM(64, return_sequences=True), layers.LSTM(32), layers.Dense(10)]
    )


NETWORKS: Mapping[str, Callable[[Any], Any]] = {
    "MobileNetV2": lambda keras: keras.applications.MobileNetV2(weights=None),
    "EfficientNetB0": lambda keras: keras.applications.EfficientNetB0(weights=None),
    "ResNet50": lambda keras: keras.applications.ResNet50(weights=None),
    "transformer": _transformer,
    "LSTM": _lstm,
}


def _ours(model: Any) -> bytes:
    import tfconvert

    return bytes(tfconvert.convert(model))


def _official(model: Any) -> bytes:
    import tensorflow as tf

    converter = tf.lite.TFLiteConverter.from_keras_model(model)
    if any("LSTM" in type(layer).__name__ for layer in model.layers):
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS, tf.lite.OpsSet.SELECT_TF_OPS]
        converter._experimental_lower_tensor_list_ops = False  # noqa: SLF001  # as its own error message advises
    with contextlib.redirect_stdout(io.StringIO()):  # Keras prints all signatures.
        return bytes(converter.convert())


def _seconds(convert: Callable[[Any], bytes], model: Any) -> float:
    start = time.perf_counter()
    convert(model)
    return time.perf_counter() - start


def _error(model: Any) -> float:
    """Returns the largest difference between our file and the model, relative to the largest result."""
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(model_content=_ours(model))
    interpreter.allocate_tensors()
    (given,), (result,) = interpreter.get_input_details(), interpreter.get_output_details()
    random = np.random.default_rng(0)
    is_integer = np.issubdtype(given["dtype"], np.integer)
    value = random.integers(0, 1000, given["shape"]) if is_integer else random.random(given["shape"])
    value = value.astype(given["dtype"])
    interpreter.set_tensor(given["index"], value)
    interpreter.invoke()
    expected = np.asarray(model(value))
    return float(np.max(np.abs(interpreter.get_tensor(result["index"]) - expected)) / np.max(np.abs(expected)))


def main() -> int:
    """Runs the command line, and returns the exit status."""
    parser = parser_of("in_memory", __doc__)
    parser.add_argument("--runs", type=int, default=5, help="conversions of each network by each converter")
    runs = parser.parse_args().runs
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
    import keras

    rows, ratios, is_right = [], [], True
    for name, build in NETWORKS.items():
        model = build(keras)
        error = _error(model)
        _official(model)
        pairs = [(_seconds(_ours, model), _seconds(_official, model)) for _ in range(runs)]
        ours, official = (min(each) for each in zip(*pairs, strict=True))
        ratios.append(official / ours)
        is_right &= error <= _TOLERANCE
        rows.append([name, f"{ours:.2f} s", f"{official:.2f} s", f"{official / ours:.1f}", f"{error:.0e}"])
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    header = "network | ours | official | times faster | largest error"
    sys.stdout.write("\n".join([*table(header, rows), "", f"geometric mean: {mean:.1f} times faster", ""]))
    return 0 if is_right else 1


if __name__ == "__main__":
    raise SystemExit(main())
