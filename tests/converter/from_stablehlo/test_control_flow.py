"""Conditionals and loops of StableHLO, and recurrent layers that JAX scans."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pytest

import tfconvert
from tests.converter.from_stablehlo.programs import convert, operators, program, results
from tests.support.litert import run

X = np.array([[-1.5, 0.5, 2.0]], np.float32)
KIND = "tensor<1x3xf32>"

BRANCHES = f"""    %c0 = stablehlo.constant dense<2.0> : {KIND}
    %0 = "stablehlo.case"(%b) ({{
      %1 = stablehlo.multiply %a, %c0 : {KIND}
      stablehlo.return %1 : {KIND}
    }}, {{
      %1 = stablehlo.negate %a : {KIND}
      stablehlo.return %1 : {KIND}
    }}, {{
      %1 = stablehlo.tanh %a : {KIND}
      stablehlo.return %1 : {KIND}
    }}) : (tensor<i32>) -> {KIND}
    return %0 : {KIND}"""


@pytest.mark.parametrize("index", [-1, 0, 1, 2, 7])
def test_a_choice_by_number_takes_the_last_branch_for_others(index: int) -> None:
    text = program(BRANCHES, [KIND, "tensor<i32>"], [KIND])
    expected = {0: X * 2, 1: -X}.get(index, np.tanh(X))
    assert np.allclose(results(text, X, np.array(index, np.int32))[0], expected)


@pytest.mark.parametrize("index", [-5, 0, 1, 2, 7])
@pytest.mark.parametrize("count", [3, 4, 5])
def test_a_choice_by_a_limited_number_compares_it(index: int, count: int) -> None:
    more = "".join(
        f""", {{
      %c{number} = stablehlo.constant dense<{number}.0> : {KIND}
      %1 = stablehlo.add %a, %c{number} : {KIND}
      stablehlo.return %1 : {KIND}
    }}"""
        for number in range(3, count)
    )
    limits = f"""    %low = stablehlo.constant dense<0> : tensor<i32>
    %high = stablehlo.constant dense<{count - 1}> : tensor<i32>
    %index = stablehlo.clamp %low, %b, %high : tensor<i32>
"""
    body = BRANCHES.replace('"(%b)', '"(%index)').replace("}) : (tensor<i32>)", f"}}{more}) : (tensor<i32>)")
    text = program(limits + body, [KIND, "tensor<i32>"], [KIND])
    assert operators(convert(text))["LESS"] == count - 1
    chosen = min(max(index, 0), count - 1)
    expected = (X * 2, -X, np.tanh(X), X + 3, X + 4)[chosen]
    assert np.allclose(results(text, X, np.array(index, np.int32))[0], expected)


def test_a_known_number_leaves_one_branch() -> None:
    body = BRANCHES.replace("%c0 =", "%b = stablehlo.constant dense<1> : tensor<i32>\n    %c0 =")
    assert operators(convert(program(body, [KIND], [KIND]))) == {"MUL": 1}


@pytest.mark.parametrize("flag", [False, True])
def test_a_choice_by_a_flag(flag: bool) -> None:
    body = f"""    %0 = "stablehlo.if"(%b) ({{
      %1 = stablehlo.sine %a : {KIND}
      %2 = "stablehlo.if"(%b) ({{
        stablehlo.return %1 : {KIND}
      }}, {{
        stablehlo.return %a : {KIND}
      }}) : (tensor<i1>) -> {KIND}
      stablehlo.return %2 : {KIND}
    }}, {{
      stablehlo.return %a : {KIND}
    }}) : (tensor<i1>) -> {KIND}
    return %0 : {KIND}"""
    text = program(body, [KIND, "tensor<i1>"], [KIND])
    assert np.allclose(results(text, X, np.array(flag))[0], np.sin(X) if flag else X)


def test_a_loop_counts_and_reads_values_around_it() -> None:
    body = f"""    %zero = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %five = stablehlo.constant dense<5> : tensor<i32>
    %0:3 = stablehlo.while(%i = %zero, %x = %a, %same = %a) : tensor<i32>, {KIND}, {KIND}
    cond {{
      %1 = stablehlo.compare LT, %i, %five, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    }} do {{
      %1 = stablehlo.convert %i : (tensor<i32>) -> tensor<f32>
      %2 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<f32>) -> {KIND}
      %3 = stablehlo.multiply %x, %2 : {KIND}
      %4 = stablehlo.add %3, %same : {KIND}
      %5 = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %5, %4, %same : tensor<i32>, {KIND}, {KIND}
    }}
    return %0#1 : {KIND}"""
    expected = X
    for index in range(5):
        expected = expected * index + X
    assert np.allclose(results(program(body, [KIND], [KIND]), X)[0], expected)


OPEN, ROW = "tensor<6x?x3xf32>", "tensor<?x3xf32>"
STATES = "tensor<?x2xf32>"
COLLECTED = "tensor<6x?x2xf32>"


def _scanned(cell: str, states: int) -> str:
    """Returns a scan over `%a`, as JAX exports it with an open batch: one state is the output, all begin with zeros."""
    names = [f"%s{index}" for index in range(states)]
    news = [f"%t{index}" for index in range(states)]
    kinds = ["tensor<i32>", *[STATES] * states, COLLECTED]
    carried = ", ".join(f"{name} = %init" for name in names)
    body = f"""    %zero = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %six = stablehlo.constant dense<6> : tensor<i32>
    %none = stablehlo.constant dense<0.0> : tensor<f32>
    %n = stablehlo.get_dimension_size %a, dim = 1 : ({OPEN}) -> tensor<i32>
    %n1 = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
    %units = stablehlo.constant dense<2> : tensor<1xi32>
    %steps = stablehlo.constant dense<6> : tensor<1xi32>
    %features = stablehlo.constant dense<3> : tensor<1xi32>
    %first = stablehlo.constant dense<1> : tensor<1xi32>
    %begin = stablehlo.constant dense<0> : tensor<1xi32>
    %s = stablehlo.concatenate %n1, %units, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %c = stablehlo.concatenate %steps, %n1, %units, dim = 0
        : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %init = stablehlo.dynamic_broadcast_in_dim %none, %s, dims = [] : (tensor<f32>, tensor<2xi32>) -> {STATES}
    %rows = stablehlo.dynamic_broadcast_in_dim %none, %c, dims = [] : (tensor<f32>, tensor<3xi32>) -> {COLLECTED}
    %last:{states + 2} = stablehlo.while(%i = %zero, {carried}, %ys = %rows) : {", ".join(kinds)}
    cond {{
      %go = stablehlo.compare LT, %i, %six, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %go : tensor<i1>
    }} do {{
      %i1 = stablehlo.reshape %i : (tensor<i32>) -> tensor<1xi32>
      %starts = stablehlo.concatenate %i1, %begin, %begin, dim = 0
          : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
      %sizes = stablehlo.concatenate %first, %n1, %features, dim = 0
          : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
      %all = stablehlo.concatenate %steps, %n1, %features, dim = 0
          : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
      %lasts = stablehlo.subtract %all, %sizes : tensor<3xi32>
      %least = stablehlo.constant dense<0> : tensor<3xi32>
      %at = stablehlo.clamp %least, %starts, %lasts : tensor<3xi32>
      %to = stablehlo.add %at, %sizes : tensor<3xi32>
      %by = stablehlo.constant dense<1> : tensor<3xi32>
      %read = stablehlo.real_dynamic_slice %a, %at, %to, %by
          : ({OPEN}, tensor<3xi32>, tensor<3xi32>, tensor<3xi32>) -> tensor<1x?x3xf32>
      %r = stablehlo.concatenate %n1, %features, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
      %x = stablehlo.dynamic_reshape %read, %r : (tensor<1x?x3xf32>, tensor<2xi32>) -> {ROW}
{cell}
      %w = stablehlo.concatenate %first, %n1, %units, dim = 0
          : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
      %row = stablehlo.dynamic_broadcast_in_dim %t0, %w, dims = [1, 2]
          : ({STATES}, tensor<3xi32>) -> tensor<1x?x2xf32>
      %new = stablehlo.dynamic_update_slice %ys, %row, %i, %zero, %zero
          : ({COLLECTED}, tensor<1x?x2xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> {COLLECTED}
      %next = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %next, {", ".join(news)}, %new : {", ".join(kinds)}
    }}
    return %last#{states + 1} : {COLLECTED}"""
    return program(body, [OPEN], [COLLECTED])


RNN = f"""      %k = stablehlo.constant dense<[[0.1, -0.2], [0.3, 0.4], [-0.5, 0.6]]> : tensor<3x2xf32>
      %u = stablehlo.constant dense<[[0.7, 0.1], [-0.3, 0.2]]> : tensor<2x2xf32>
      %0 = stablehlo.dot_general %x, %k, contracting_dims = [1] x [0] : ({ROW}, tensor<3x2xf32>) -> {STATES}
      %1 = stablehlo.dot_general %s0, %u, contracting_dims = [1] x [0] : ({STATES}, tensor<2x2xf32>) -> {STATES}
      %2 = stablehlo.add %0, %1 : {STATES}
      %t0 = stablehlo.tanh %2 : {STATES}"""

GATES = "tensor<?x8xf32>"
RNG = np.random.default_rng(1)
KERNEL = RNG.normal(size=(3, 8)).astype(np.float32)
RECURRENT = RNG.normal(size=(2, 8)).astype(np.float32)


def _sigmoid(name: str, of: str) -> str:
    """Returns a sigmoid as JAX writes it out."""
    return f"""      %{name}a = stablehlo.negate %{of} : {STATES}
      %{name}b = stablehlo.exponential %{name}a : {STATES}
      %{name}c = stablehlo.dynamic_broadcast_in_dim %unit, %s, dims = [] : (tensor<f32>, tensor<2xi32>) -> {STATES}
      %{name}d = stablehlo.add %{name}c, %{name}b : {STATES}
      %{name} = stablehlo.divide %{name}c, %{name}d : {STATES}
"""


def _gate(index: int) -> str:
    return f"""      %low{index} = stablehlo.constant dense<[0, {2 * index}]> : tensor<2xi32>
      %edge{index} = stablehlo.constant dense<{2 * index + 2}> : tensor<1xi32>
      %high{index} = stablehlo.concatenate %n1, %edge{index}, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
      %step{index} = stablehlo.constant dense<1> : tensor<2xi32>
      %z{index} = stablehlo.real_dynamic_slice %sum, %low{index}, %high{index}, %step{index}
          : ({GATES}, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> {STATES}
"""


LSTM = f"""      %unit = stablehlo.constant dense<1.0> : tensor<f32>
      %k = stablehlo.constant dense<{KERNEL.tolist()}> : tensor<3x8xf32>
      %u = stablehlo.constant dense<{RECURRENT.tolist()}> : tensor<2x8xf32>
      %0 = stablehlo.dot_general %x, %k, contracting_dims = [1] x [0] : ({ROW}, tensor<3x8xf32>) -> {GATES}
      %1 = stablehlo.dot_general %s0, %u, contracting_dims = [1] x [0] : ({STATES}, tensor<2x8xf32>) -> {GATES}
      %sum = stablehlo.add %0, %1 : {GATES}
{"".join(map(_gate, range(4)))}{_sigmoid("in", "z0")}{_sigmoid("forget", "z1")}{_sigmoid("out", "z3")}
      %cell = stablehlo.tanh %z2 : {STATES}
      %old = stablehlo.multiply %forget, %s1 : {STATES}
      %more = stablehlo.multiply %in, %cell : {STATES}
      %t1 = stablehlo.add %old, %more : {STATES}
      %active = stablehlo.tanh %t1 : {STATES}
      %t0 = stablehlo.multiply %out, %active : {STATES}"""


def _lstm(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    output = state = np.zeros((x.shape[1], 2))
    found = []
    for row in x:
        gates = np.split(row @ KERNEL + output @ RECURRENT, 4, -1)
        entered, kept, given = (1 / (1 + np.exp(-gates[index])) for index in (0, 1, 3))
        state = kept * state + entered * np.tanh(gates[2])
        output = given * np.tanh(state)
        found.append(output)
    return np.array(found)


def _rnn(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    output = np.zeros((x.shape[1], 2))
    found = []
    for row in x:
        output = np.tanh(
            row @ np.array([[0.1, -0.2], [0.3, 0.4], [-0.5, 0.6]]) + output @ np.array([[0.7, 0.1], [-0.3, 0.2]])
        )
        found.append(output)
    return np.array(found)


@pytest.mark.parametrize(("cell", "states"), [(RNN, 1), (LSTM, 2)], ids=["rnn", "lstm"])
@pytest.mark.parametrize("recurrent", ["fused", "loop"])
def test_scans_are_recurrent_layers(cell: str, states: int, recurrent: Literal["fused", "loop"]) -> None:
    target = tfconvert.LiteRT(recurrent=recurrent)
    content = convert(_scanned(cell, states), target=target)
    found = operators(content)
    operator = "UNIDIRECTIONAL_SEQUENCE_LSTM" if states == 2 else "UNIDIRECTIONAL_SEQUENCE_RNN"
    assert (operator in found, "WHILE" in found) == (recurrent == "fused", recurrent == "loop")
    for batch in (1, 4):
        x = np.random.default_rng(0).normal(size=(6, batch, 3)).astype(np.float32)
        expected = _lstm(x) if states == 2 else _rnn(x)
        assert np.allclose(run(content, [x])[0], expected, atol=1e-6)
