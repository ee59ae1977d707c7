"""Recurrent layers in both directions, and reads of their shapes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.converter.targets.litert.layers import FEATURES, UNITS, Array, Layer, run_all, zeros
from tests.converter.targets.litert.optimize.graph import Graph, random
from tfconvert.converter.targets.litert.optimize.optimizations import patterns
from tfconvert.schema.dialects import types
from tfconvert.schema.ir.values import Value

MASKS = dict.fromkeys((f"{name}_mask" for name in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")), 0)


def _reversed(graph: Graph, value: Value, time_major: bool) -> Value:
    return graph.op("reverse_v2", value, [0 if time_major else 1])


def _joined(graph: Graph, *values: Value, axis: int = 2) -> Value:
    shape = list(values[0].shape or ())
    shape[axis] = 2 * UNITS
    return graph.op("concatenation", *values, shape=shape, axis=axis, fused_activation_function="NONE")


def _last(graph: Graph, sequence: Value, time_major: bool) -> Value:
    axis = 0 if time_major else 1
    begin, ones = [0, 0, 0], [1, 1, 1]
    begin[axis] = -1
    masks: dict[str, Any] = {
        **MASKS,
        "begin_mask": 7 & ~(1 << axis),
        "end_mask": 7 & ~(1 << axis),
        "shrink_axis_mask": 1 << axis,
    }
    return graph.op("strided_slice", sequence, begin, [0, 0, 0], ones, shape=(-1, UNITS), **masks)


def _names(graph: Graph) -> list[str]:
    """Returns the names of the ops without those that compute states or shapes."""
    made = ("fill", "shape", "strided_slice", "concatenation")
    names = [name.partition("{")[0] for name in graph.names]
    first = next(index for index, name in enumerate(names) if "sequence" in name)
    return [name for name in names[:first] if name not in made] + names[first:]


Ends = Callable[[Graph, Value, Value, bool], list[Value]]
"""Returns a graph's results from those of a forward layer and a backward layer, which is not reversed yet."""

ENDS: dict[str, Ends] = {
    "joined": lambda g, f, b, tm: [_joined(g, f, _reversed(g, b, tm))],
    "apart": lambda g, f, b, tm: [f, _reversed(g, b, tm)],
    "added": lambda g, f, b, tm: [g.op("add", f, _reversed(g, b, tm), fused_activation_function="NONE")],
    "last": lambda g, f, b, tm: [_joined(g, _last(g, f, tm), _last(g, b, tm), axis=1)],
}


def _expected(end: str, time_major: bool, there: Array, back: Array) -> list[Array]:
    if end == "joined":
        return [np.concatenate([there, back], -1)]
    if end == "last":
        last = [there[-1], back[0]] if time_major else [there[:, -1], back[:, 0]]
        return [np.concatenate(last, -1)]
    return [there, back] if end == "apart" else [there + back]


@pytest.mark.parametrize("kind", ["lstm", "rnn"])
@pytest.mark.parametrize("time_major", [False, True])
@pytest.mark.parametrize(
    ("end", "after"),
    [("joined", []), ("apart", []), ("added", ["add"]), ("last", ["strided_slice", "strided_slice", "concatenation"])],
)
def test_both_directions_are_one_operator(kind: str, time_major: bool, end: str, after: list[str]) -> None:
    layers = [Layer(kind, 0), Layer(kind, 1)]
    graph = Graph((-1, -1, FEATURES))
    (x,) = graph.inputs
    begin = zeros(graph, x, time_major=time_major)
    there, back = (
        layer.op(graph, each, *[begin] * layer.states, time_major=time_major)
        for layer, each in zip(layers, (x, _reversed(graph, x, time_major)), strict=True)
    )
    graph.returns(*ENDS[end](graph, there, back, time_major))
    graph.optimize()
    if end == "joined" and kind == "lstm" and not time_major:
        after = ["concatenation"]  # The kernel would mix up the batch.
    assert _names(graph) == [f"bidirectional_sequence_{kind}", *after]
    inputs = [
        [random(*((time, batch) if time_major else (batch, time)), FEATURES)]
        for batch, time in ((1, 8), (3, 20), (64, 3), (1, 1))
    ]
    for (steps,), runs in zip(inputs, run_all(graph.content, inputs), strict=True):
        state = np.zeros((steps.shape[1 if time_major else 0], UNITS), np.float32)
        outputs = [
            layer.compute(steps, *[state] * layer.states, time_major=time_major, backwards=backwards)
            for layer, backwards in zip(layers, (False, True), strict=True)
        ]
        for results in runs:
            for result, wanted in zip(results, _expected(end, time_major, *outputs), strict=True):
                np.testing.assert_allclose(result, wanted, atol=1e-5)


def test_an_lstm_of_a_single_sequence_joins_its_outputs_itself() -> None:
    layers = [Layer("lstm", 0), Layer("lstm", 1)]
    graph = Graph((1, 5, FEATURES), *[(1, UNITS)] * 4)
    x, *states = graph.inputs
    there = layers[0].op(graph, x, *states[:2])
    back = layers[1].op(graph, _reversed(graph, x, False), *states[2:])
    graph.returns(_joined(graph, there, _reversed(graph, back, False)))
    graph.optimize()
    assert graph.names == ["bidirectional_sequence_lstm{TANH}"]
    inputs = [[random(1, 5, FEATURES), *(random(1, UNITS, seed=seed) for seed in range(4))]]
    expected = [
        layers[0].compute(inputs[0][0], *inputs[0][1:3]),
        layers[1].compute(inputs[0][0], *inputs[0][3:], backwards=True),
    ]
    for (result,) in run_all(graph.content, inputs)[0]:
        np.testing.assert_allclose(result, np.concatenate(expected, -1), atol=1e-5)


def _two(
    graph: Graph,
    *,
    kind: str = "rnn",
    units: int = UNITS,
    axis: int = 1,
    other: int = 0,
    is_reversed: bool = True,
    **options: Any,
) -> None:
    """Finishes a graph with two layers; the second one's options and its input can differ."""
    x, state, *others = graph.inputs
    layers = [Layer(kind, 0), Layer(kind, 1, units=units)]
    there = layers[0].op(graph, x, *[state] * layers[0].states)
    source = graph.op("reverse_v2", [x, *others][other], [axis])
    begin = graph.op("neg", there, shape=(2, UNITS)) if options.pop("later", False) else state
    back = layers[1].op(graph, source, *[begin] * layers[1].states, **options)
    graph.returns(there, graph.op("reverse_v2", back, [axis]) if is_reversed else back)


@pytest.mark.parametrize(
    ("reason", "options"),
    [
        ("no layer goes through the same sequence", {"other": 1}),
        ("doesn't go through a sequence backwards", {"axis": 2}),
        ("doesn't go through a sequence backwards", {"time_major": True}),
        ("isn't reversed again", {"is_reversed": False}),
        ("options differ", {"fused_activation_function": "RELU"}),
        ("options differ", {"time_major": True, "axis": 0}),
        ("options differ", {"kind": "lstm", "cell_clip": 1.0}),
        ("weights are diagonal", {"kind": "lstm", "diagonal_recurrent_tensors": True}),
        ("layer is normalized", {"kind": "lstm", "is_normalized": True}),
        ("wider than its state", {"kind": "lstm", "is_wide": True}),
        ("aren't 32-bit floats", {"element": types.from_dtype(np.dtype(np.float16)).mlir}),
        ("weights differ in shape", {"units": UNITS + 1}),
        ("uses a value that is computed between", {"later": True}),
    ],
)
def test_other_layers_stay_two(reason: str, options: dict[str, Any]) -> None:
    options = {**options}
    shapes = (2, 5, FEATURES), (2, UNITS), (2, 5, FEATURES), (UNITS, UNITS - 1)
    graph = Graph(*shapes, element=options.pop("element", types.F32))
    is_normalized, is_wide = options.pop("is_normalized", False), options.pop("is_wide", False)
    _two(graph, **options)
    (*_, layer) = (op for op in graph.ops if "sequence" in op.name)
    if is_wide:
        layer.set_operand(16, graph.inputs[3])
    if is_normalized:
        layer.set_operand(20, graph.inputs[1])
    assert [each for each in patterns().reasons(layer) if reason in each]
    graph.optimize()
    assert sum("unidirectional" in name for name in graph.names) == 2


def test_a_layer_and_a_join_keep_the_batch() -> None:
    graph = Graph((-1, -1, FEATURES))
    (x,) = graph.inputs
    first, second, third = Layer("rnn", 0), Layer("rnn", 1), Layer("rnn", 2, features=2 * UNITS)
    begin = zeros(graph, x)
    both = _joined(graph, first.op(graph, x, begin), second.op(graph, x, begin))
    graph.returns(third.op(graph, both, zeros(graph, both)))
    graph.optimize()
    assert [op.operands[0] for op in graph.ops if op.name == "tfl.shape"] == [x, x]


@pytest.mark.parametrize("at", [(2, 3), (0, 2), (-1, 0)])
def test_other_sizes_are_asked_where_they_were(at: tuple[int, int]) -> None:
    graph = Graph((-1, -1, FEATURES))
    (x,) = graph.inputs
    outputs = Layer("rnn").op(graph, x, zeros(graph, x))
    sizes = graph.op("shape", outputs, shape=(3,), element=types.I32, out_type="INT32")
    taken: dict[str, Any] = MASKS
    graph.returns(outputs, graph.op("strided_slice", sizes, [at[0]], [at[1]], [1], shape=(-1,), **taken))
    graph.optimize()
    assert [op.operands[0] for op in graph.ops if op.name == "tfl.shape"] == [x, outputs]
