"""Builds the recurrent zoo's graphs of TensorFlow 1: cells, and unrolled or looped calls of them."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.recurrent_table import UNITS, Case
from benchmarks.samples import Arrays

PROJECTED = 3


def build(case: Case) -> tuple[Callable[[Arrays], Arrays], Callable[[Path], None]]:
    """Returns functions that run a graph, and that save it."""
    import tensorflow as tf

    v1 = tf.compat.v1
    random = np.random.default_rng(case.seed)
    graph = tf.Graph()
    if "v2" not in case:
        v1.disable_control_flow_v2()
    try:
        with graph.as_default(), warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # The cells are deprecated, which is why they are here.
            inputs = {name: v1.placeholder(dtype, shape, name) for name, (shape, dtype) in case.specs().items()}
            answers = _apply(v1, case, dict(inputs))
            results = tf.nest.flatten(answers if "states" in case else answers[0])
            outputs = {f"y{index}": tf.identity(result, f"y{index}") for index, result in enumerate(results)}
            variables = v1.global_variables()
    finally:
        v1.enable_control_flow_v2()
    session = v1.Session(graph=graph)
    with graph.as_default():
        for variable in variables:
            variable.load(random.normal(0, 0.4, variable.shape).astype(np.float32), session)

    def run(arrays: Arrays) -> Arrays:
        answers: Arrays = session.run(outputs, {inputs[name]: array for name, array in arrays.items()})
        return answers

    def save(folder: Path) -> None:
        with graph.as_default():
            v1.saved_model.simple_save(session, str(folder), inputs, outputs)

    return run, save


def _cell(case: Case) -> Any:
    cells = importlib.import_module("tf_keras.src.layers.rnn.legacy_cells")
    if case.cell == "lstm":
        return cells.LSTMCell(
            UNITS,
            use_peepholes="peep" in case,
            num_proj=PROJECTED if "project" in case else None,
            cell_clip=0.5 if "clip" in case else None,
        )
    kinds = {"basic-lstm": cells.BasicLSTMCell, "gru": cells.GRUCell, "rnn": cells.BasicRNNCell}
    if "stacked" in case:
        return cells.MultiRNNCell([kinds[case.cell](UNITS) for _ in range(2)])
    return kinds[case.cell](UNITS)


def _apply(v1: Any, case: Case, inputs: dict[str, Any]) -> tuple[Any, ...]:
    """Returns the outputs and the last state."""
    nn = v1.nn
    x, lengths = inputs.pop("x"), inputs.pop("lengths", None)
    common = {"dtype": v1.float32, "sequence_length": lengths}
    if "static" in case:
        return tuple(nn.static_rnn(_cell(case), v1.unstack(x, axis=1), **common))
    if case.merge:
        return tuple(nn.bidirectional_dynamic_rnn(_cell(case), _cell(case), x, **common))
    state = None
    if inputs:
        h, c = inputs["h"], inputs["c"]
        state = importlib.import_module("tf_keras.src.layers.rnn.legacy_cells").LSTMStateTuple(c, h)
    return tuple(nn.dynamic_rnn(_cell(case), x, initial_state=state, time_major="major" in case, **common))
