"""Builds the networks of the recurrent zoo that are layers or functions; `recurrent_graphs.py` builds those of TF1."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import recurrent_graphs
from benchmarks.recurrent_table import FEATURES, UNITS, WORDS, Case
from benchmarks.samples import Arrays

FILTERS = 3

Call = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Network:
    """A network that can be run and saved."""

    run: Callable[[Arrays], Arrays]  # Returns TensorFlow's answers; a stateful network's differ from call to call.
    save: Callable[[Path], None]  # Writes it as a SavedModel into a folder. Has to be called before `run`.


def build(case: Case) -> Network:
    """Returns a network with random weights and biases."""
    if case.library == "tf1":
        return Network(*recurrent_graphs.build(case))
    import tensorflow as tf

    random = np.random.default_rng(case.seed)
    call = _function(tf, case, random) if case.library == "tf" else _layers(tf, case, random)
    specs = [tf.TensorSpec(shape, dtype, name=name) for name, (shape, dtype) in case.specs().items()]
    function = tf.function(call, input_signature=specs, autograph=case.cell == "autograph")
    concrete = function.get_concrete_function()
    module = tf.Module()  # Without the function, which would be traced again.
    module.variables_of_call = concrete.variables
    for variable in concrete.variables:
        if not variable.trainable:  # The state, in which the first call has left something.
            variable.assign(tf.zeros_like(variable))
    return Network(
        lambda inputs: {name: value.numpy() for name, value in function(**inputs).items()},
        lambda folder: tf.saved_model.save(module, str(folder), signatures=concrete),
    )


def _layers(tf: Any, case: Case, random: np.random.Generator) -> Call:
    """Returns Keras layers, one after the other, as a function."""
    library = importlib.import_module("keras" if case.library == "k3" else "tf_keras")
    library.utils.set_random_seed(case.seed)
    layers = _stack(tf, library, case)

    def call(x: Any, h: Any = None, c: Any = None) -> dict[str, Any]:
        for layer in layers:
            x = layer(x, initial_state=[h] if c is None else [h, c]) if h is not None else layer(x)
        return {f"y{index}": result for index, result in enumerate(tf.nest.flatten(x))}

    # Layers make their weights when they are first called, which tf.function doesn't like.
    call(**{name: tf.constant(array) for name, array in next(case.inputs()).items()})
    for weight in (weight for layer in layers for weight in layer.trainable_weights):
        weight.assign(np.asarray(weight) + random.normal(0, 0.3, weight.shape))
    return call


def _stack(tf: Any, library: Any, case: Case) -> list[Any]:
    layers = library.layers
    stack = []
    if "embed" in case:
        stack.append(layers.Embedding(WORDS, FEATURES, mask_zero=True))
    if "mask" in case:
        stack.append(layers.Masking())
    if "stacked" in case:
        stack.append(_recurrent(tf, library, case, return_sequences=True))
    stack.append(_recurrent(tf, library, case, return_sequences="seq" in case))
    if "dense" in case:
        stack += [layers.Dense(FEATURES, activation="relu"), layers.Dense(3, activation="softmax")]
    return stack


# The constructor arguments of each option.
SWITCHES = {
    "states": ("return_state", True),
    "back": ("go_backwards", True),
    "stateful": ("stateful", True),
    "unroll": ("unroll", True),
    "major": ("time_major", True),
    "nobias": ("use_bias", False),
    "relu": ("activation", "relu"),
    "hard": ("recurrent_activation", "hard_sigmoid"),
    "impl1": ("implementation", 1),
    "before": ("reset_after", False),
    "dropout": ("dropout", 0.5),
    "same": ("padding", "same"),
}


def _recurrent(tf: Any, library: Any, case: Case, **settings: Any) -> Any:
    """Returns a recurrent layer, and its wrapper."""
    settings |= dict(SWITCHES[option] for option in case.options if option in SWITCHES)
    layers = library.layers
    plain = {"lstm": "LSTM", "gru": "GRU", "rnn": "SimpleRNN"}
    if case.cell in plain:
        layer = getattr(layers, plain[case.cell])(UNITS, **settings)
    elif case.cell == "conv":
        layer = layers.ConvLSTM2D(FILTERS, 3, **settings)
    elif case.cell == "lstm-cell":
        layer = layers.RNN(layers.LSTMCell(UNITS), **settings)
    elif case.cell == "cells":
        layer = layers.RNN([layers.LSTMCell(UNITS), layers.GRUCell(UNITS + 1)], **settings)
    else:
        layer = layers.RNN(_own_cell(tf, library), **settings)
    merge = case.merge
    if merge is None:
        return layer
    return layers.Bidirectional(layer, merge_mode=None if merge == "none" else merge)


def _own_cell(tf: Any, library: Any) -> Any:
    @library.saving.register_keras_serializable("zoo")  # Bidirectional copies its layer.
    class Highway(library.layers.Layer):  # type: ignore[misc]
        """A cell as users write them: one gate between the old state and a new one."""

        state_size = UNITS
        output_size = UNITS

        def build(self, input_shape: Any) -> None:
            self.kernel = self.add_weight(shape=(FEATURES, 2 * UNITS), name="kernel")
            self.recurrent = self.add_weight(shape=(UNITS, UNITS), name="recurrent")

        def call(self, inputs: Any, states: Any, training: bool = False) -> Any:
            gate, new = tf.split(tf.matmul(inputs, self.kernel), 2, axis=-1)
            gate = tf.sigmoid(gate + tf.matmul(states[0], self.recurrent))
            state = gate * states[0] + (1.0 - gate) * tf.nn.softsign(new)
            return state, [state]

        def get_config(self) -> dict[str, Any]:
            return {}

        @classmethod
        def from_config(cls, config: dict[str, Any]) -> Any:
            return cls()

    return Highway()


def _function(tf: Any, case: Case, random: np.random.Generator) -> Call:
    """Returns a loop that is written without layers."""
    kernel, recurrent, bias = (
        tf.Variable(random.normal(0, 0.4, shape).astype(np.float32))
        for shape in ((FEATURES, UNITS), (UNITS, UNITS), (UNITS,))
    )
    back = tf.constant(random.normal(0, 1, (UNITS, FEATURES)).astype(np.float32))

    def step(h: Any, x: Any) -> Any:
        return tf.tanh(tf.matmul(x, kernel) + tf.matmul(h, recurrent) + bias)

    def speak(h: Any) -> Any:
        return tf.one_hot(tf.argmax(tf.matmul(h, back), axis=-1), FEATURES)

    def call(x: Any) -> dict[str, Any]:
        h = tf.ensure_shape(tf.zeros([tf.shape(x)[0], UNITS]), [case.batch, UNITS])
        if case.cell == "decoder":
            return {"y0": _decoder(tf, case, step, speak, x, h)}
        return {"y0": LOOPS[case.cell](tf, step, tf.transpose(x, [1, 0, 2]), h)}

    return call


def _while_loop(tf: Any, step: Call, x: Any, h: Any) -> Any:
    outputs = tf.TensorArray(tf.float32, tf.shape(x)[0], element_shape=h.shape)

    def body(time: Any, h: Any, outputs: Any) -> Any:
        h = step(h, x[time])
        return time + 1, h, outputs.write(time, h)

    _, _, outputs = tf.while_loop(lambda time, *_: time < tf.shape(x)[0], body, (0, h, outputs))
    return outputs.stack()


def _for_loop(tf: Any, step: Call, x: Any, h: Any) -> Any:
    outputs = tf.TensorArray(tf.float32, tf.shape(x)[0])
    for time in tf.range(tf.shape(x)[0]):
        h = step(h, x[time])
        outputs = outputs.write(time, h)
    return outputs.stack()


def _decoder(tf: Any, case: Case, step: Call, speak: Call, x: Any, h: Any) -> Any:
    """Feeds its output back to itself."""

    def body(time: Any, h: Any, word: Any, outputs: Any) -> Any:
        h = step(h, word)
        word = speak(h)
        return time + 1, h, word, outputs.write(time, word)

    outputs = tf.TensorArray(tf.float32, case.time, element_shape=[case.batch, FEATURES])
    *_, outputs = tf.while_loop(lambda time, *_: time < case.time, body, (0, h, x[:, 0], outputs))
    return outputs.stack()


LOOPS: dict[str, Call] = {
    "while": _while_loop,
    "autograph": _for_loop,
    "scan": lambda tf, step, x, h: tf.scan(step, x, h),
    "foldl": lambda tf, step, x, h: tf.foldl(step, x, h),
}
