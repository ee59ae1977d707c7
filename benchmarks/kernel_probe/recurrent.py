"""Calls of operators that compute a sequence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.kernel_probe.case import Case, random
from benchmarks.kernel_probe.tensors import Array, Tensor, bias, like, scaled, weights, within

_FEATURES, _UNITS, _TIMES = 8, 16, 4
_LSTM: Mapping[str, Any] = {
    "fused_activation_function": "TANH",
    "cell_clip": 10.0,
    "proj_clip": 0.0,
    "time_major": False,
    "diagonal_recurrent_tensors": False,
}
_RNN = {"fused_activation_function": "TANH", "time_major": False}

# Indices of operands: biases, and the weights and the bias of the input gate.
_LSTM_BIASES, _RNN_BIAS, _INPUT_GATE = (12, 13, 14, 15), 3, (1, 5, 12)

# The scale of an LSTM's cell state, which must be a power of two.
CELL_SCALE = 2.0**-11


def _state(kind: str, like_result: Tensor | None = None) -> Tensor:
    zeros = like((1, _UNITS))
    if kind == "f32":
        return Tensor("f32", zeros, is_variable=True)
    scales = like_result.scales if like_result is not None else (CELL_SCALE,)
    zero_points = like_result.zero_points if like_result is not None else (0,)
    return Tensor(kind, zeros, scales, zero_points, is_variable=True)


def _lstm(x: Tensor, form: str, axis: int | None, arrays: Sequence[Array], *, asymmetric: bool = False) -> Case:
    result = within(x.type, like((1, _TIMES, _UNITS)), -1, 0.95)
    w = [weights(form, array, axis) for array in arrays[:8]]
    kind = {"f32": "f32", "i16": "i64"}.get(x.type, "i32")
    biases = [bias(kind, array, x, gate) for array, gate in zip(arrays[8:], w, strict=False)]
    states = (_state("f32"), _state("f32")) if x.type == "f32" else (_state(x.type, result), _state("i16"))
    operands = [x, *w, None, None, None, *biases, None, None, *states, None, None, None, None]
    own: list[Tensor] = []
    if x.type != "f32":
        # The kernel writes the gates before the last step there; without normalization it does not read them again.
        own = [Tensor("f32", np.zeros(0, np.float32))] * 4
        own.append(scaled(x.type, np.zeros(0, np.float32), result.scales[0], result.zero_points[0]))
    options = {**_LSTM, "asymmetric_quantize_inputs": asymmetric}
    return Case("UNIDIRECTIONAL_SEQUENCE_LSTM", operands, [result], options, own)


def _rnn(x: Tensor, form: str, axis: int | None, arrays: Sequence[Array], *, asymmetric: bool = False) -> Case:
    result = within(x.type, like((1, _TIMES, _UNITS)), -1, 0.95)
    w = [weights(form, array, axis) for array in (arrays[0], arrays[4])]
    kind = "f32" if x.type == "f32" else "i32"
    state = _state(x.type, result if x.type != "f32" else None)
    operands = [x, *w, bias(kind, arrays[8], x, w[0]), state]
    options = {**_RNN, "asymmetric_quantize_inputs": asymmetric}
    return Case("UNIDIRECTIONAL_SEQUENCE_RNN", operands, [result], options)


def _without(case: Case, *absent: int) -> Case:
    """Returns the same call without some operands."""
    operands = [None if index in absent else operand for index, operand in enumerate(case.operands)]
    return replace(case, operands=operands)


def cases() -> Iterator[Case]:
    """Yields all calls."""
    draw = random(3000)
    value = draw.uniform(-1, 1, (1, _TIMES, _FEATURES))
    shapes = [(_UNITS, _FEATURES)] * 4 + [(_UNITS, _UNITS)] * 4 + [(_UNITS,)] * 4
    arrays = [draw.normal(0, 0.3, shape) for shape in shapes]
    for build in (_lstm, _rnn):
        for kind in ("f32", "i8", "i16"):
            x = within(kind, value, -1, 0.9)
            for form in ("i8", "u8", "i4", "i2"):
                for axis in (None, 0) if form != "u8" else (None,):
                    yield build(x, form, axis, arrays)
                    if kind == "f32":
                        yield build(x, form, axis, arrays, asymmetric=True)
    for kind in ("f32", "i8"):
        x = within(kind, value, -1, 0.9)
        layer = _lstm(x, "i8", None, arrays)
        yield _without(layer, *_INPUT_GATE)  # follows from the forget gate
        for gates in (*((index,) for index in _LSTM_BIASES), _LSTM_BIASES):
            yield _without(layer, *gates)
        yield _without(_rnn(x, "i8", None, arrays), _RNN_BIAS)
