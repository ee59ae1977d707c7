"""Recurrent layers as ops of a graph under construction, and their reference implementation in numpy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tests.converter.targets.litert.optimize.graph import Graph
from tfconvert.schema.dialects import types
from tfconvert.schema.ir.values import Value

Array = np.ndarray[Any, np.dtype[Any]]

FEATURES, UNITS = 3, 4

FUNCTIONS: Mapping[str, Callable[[Array], Array]] = {
    "TANH": np.tanh,
    "RELU": lambda x: np.maximum(x, 0),
    "RELU6": lambda x: np.clip(x, 0, 6),
    "RELU_N1_TO_1": lambda x: np.clip(x, -1, 1),
    "NONE": lambda x: x,
}


def _sigmoid(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-x)))


class Layer:
    """A layer with weights of its own.

    Attributes:
        kind: `lstm` or `rnn`.
        states: How many states it has.

    Args:
        kind: The kind.
        seed: The seed of the weights.
        features: The number of its inputs.
        units: The number of its outputs.
    """

    def __init__(self, kind: str, seed: int = 0, features: int = FEATURES, units: int = UNITS) -> None:
        self.kind = kind
        self.states = 2 if kind == "lstm" else 1
        self._units = units
        gates = (4,) if kind == "lstm" else ()
        random = np.random.default_rng(seed)
        shapes = ((*gates, units, features), (*gates, units, units), (*gates, units))
        self._weights = [random.normal(0, 0.6, shape).astype(np.float32) for shape in shapes]

    def op(self, graph: Graph, x: Value, *states: Value, **options: Any) -> Value:
        """Adds the operator."""
        kernel, recurrent, bias = self._weights
        shape = (*(x.shape or ())[:2], self._units)
        attributes = {"time_major": False, "fused_activation_function": "TANH", **options}
        name = f"unidirectional_sequence_{self.kind}"
        if self.kind == "rnn":
            return graph.op(name, x, kernel, recurrent, bias, *states, shape=shape, **attributes)
        gates = [*kernel, *recurrent, *[None] * 3, *bias, None, None]
        return graph.op(
            name, x, *gates, *states, *[None] * 4, shape=shape, **{"cell_clip": 0.0, "proj_clip": 0.0, **attributes}
        )

    def compute(
        self, x: Array, *states: Array, time_major: bool = False, backwards: bool = False, activation: str = "TANH"
    ) -> Array:
        """Returns the outputs, in the order of the sequence whichever way the layer goes through it."""
        steps = x if time_major else x.swapaxes(0, 1)
        kernel, recurrent, bias = self._weights
        function, outputs = FUNCTIONS[activation], []
        past, cell = (*states, states[0])[:2]
        for step in steps[::-1] if backwards else steps:
            sums = step @ kernel.swapaxes(-1, -2) + past @ recurrent.swapaxes(-1, -2) + np.expand_dims(bias, -2)
            if self.kind == "rnn":
                past = function(sums)
            else:
                cell = _sigmoid(sums[1]) * cell + _sigmoid(sums[0]) * function(sums[2])
                past = _sigmoid(sums[3]) * function(cell)
            outputs.append(past)
        outputs = outputs[::-1] if backwards else outputs
        return np.stack(outputs, 0 if time_major else 1)


def zeros(graph: Graph, x: Value, *, time_major: bool = False, units: int = UNITS) -> Value:
    """Adds zeros for the batch of a sequence, of a shape that LiteRT computes before it runs anything."""
    at = 1 if time_major else 0
    sizes = graph.op("shape", x, shape=(3,), element=types.I32, out_type="INT32")
    masks: dict[str, Any] = dict.fromkeys(
        (f"{name}_mask" for name in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")), 0
    )
    batch = graph.op("strided_slice", sizes, [at], [at + 1], [1], shape=(1,), **masks)
    shape = graph.op("concatenation", batch, [units], shape=(2,), axis=0, fused_activation_function="NONE")
    return graph.op("fill", shape, 0.0, shape=(-1, units), element=types.F32)


def run_all(content: bytes, inputs: Sequence[Sequence[Array]], **options: Any) -> list[list[list[Array]]]:
    """Runs a model on several inputs one after another in one interpreter, each three times; `options` are its own.

    Returns:
        The results by input and by run.
    """
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(model_content=content, **options)
    details = sorted(interpreter.get_input_details(), key=lambda detail: int(detail["index"]))
    results = []
    for arrays in inputs:
        for detail, array in zip(details, arrays, strict=True):
            interpreter.resize_tensor_input(detail["index"], array.shape)
        interpreter.allocate_tensors()
        runs = []
        for _ in range(3):
            for detail, array in zip(details, arrays, strict=True):
                interpreter.set_tensor(detail["index"], array)
            interpreter.invoke()
            runs.append([interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()])
        results.append(runs)
    return results
