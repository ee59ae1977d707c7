"""Loops that became operators compute the same in LiteRT as before."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.converter.targets.litert.recurrent.compare import LSTM, RNN, compare
from tests.converter.targets.litert.recurrent.loops import (
    FEATURES,
    UNITS,
    Block,
    joined,
    loop,
    lstm_loop,
    rnn,
    rnn_loop,
    separate,
    stacked,
)
from tfconvert.converter.targets.litert.passes import fuse_recurrent_loops, fuse_unrolled_layers


def _check(folder: Path, source: str, states: int, *sizes: tuple[int, int], axis: int = 0, **fused: int) -> None:
    """Compares a loop at batches and times."""
    shapes = [
        [(time, batch, FEATURES) if axis == 0 else (batch, time, FEATURES), *[(batch, UNITS)] * states]
        for batch, time in sizes
    ]
    compare(folder, source, *shapes, **fused)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"sums": joined},
        {"sums": separate},
        {"activation": "Relu"},
        {"activation": "Relu6"},
        {"is_coupled": True},
        {"is_tied": True},
        {"looks": True},
        {"looks": True, "is_coupled": True},
        {"clip": 0.25},
        {"projects": True, "looks": True, "clip": 0.5},
        {"results": (1,)},
        {"results": (1, 0), "axis": 1},
    ],
)
def test_lstms(tmp_path: Path, options: dict[str, Any]) -> None:
    _check(tmp_path, lstm_loop(**options), 2, (2, 4), axis=options.get("axis", 0), **{LSTM: 1})


@pytest.mark.parametrize("activation", ["Tanh", "Relu", "Relu6", ""])
def test_simple_rnns(tmp_path: Path, activation: str) -> None:
    _check(tmp_path, rnn_loop(activation=activation), 1, (2, 4), **{RNN: 1})


@pytest.mark.parametrize("axis", [0, 1])
def test_open_batch_and_time(tmp_path: Path, axis: int) -> None:
    shapes = [(1, 1), (3, 20), (2, 2), (1, 5), (40, 3)]
    _check(tmp_path, lstm_loop(batch=-1, time=-1, axis=axis, results=(0, 1)), 2, *shapes, axis=axis, **{LSTM: 1})
    _check(tmp_path, rnn_loop(batch=-1, time=-1, axis=axis), 1, *shapes, axis=axis, **{RNN: 1})


def test_a_sequence_without_steps_leaves_the_state_as_it_was(tmp_path: Path) -> None:
    _check(tmp_path, rnn_loop(time=-1, results=(1,)), 1, (2, 3), (2, 0), (2, 1), **{RNN: 1})


def test_how_often_a_loop_has_run_is_known_without_it(tmp_path: Path) -> None:
    _check(tmp_path, rnn_loop(results=(-3, 0, -2)), 1, (2, 4), **{RNN: 1})
    _check(tmp_path, rnn_loop(time=-1, batch=-1, results=(-3, 1, -2)), 1, (2, 3), (1, 0), (4, 1), **{RNN: 1})


def test_the_shape_of_a_transposed_sequence_is_that_of_the_sequence(tmp_path: Path) -> None:
    source = rnn_loop(time=-1, batch=-1, results=(1,))
    turned = """{
        %order = "tf.Const"() <{value = dense<[1, 0, 2]> : tensor<3xi32>}> : () -> tensor<3xi32>
        %x = "tf.Transpose"(%batches, %order) : (tensor<?x?x3xf32>, tensor<3xi32>) -> tensor<?x?x3xf32>
        %whole = "tf.Shape"(%x) : (tensor<?x?x3xf32>) -> tensor<3xi32>"""
    source = source.replace("@main(%x:", "@main(%batches:", 1).replace('"y0"}} {', f'"y0,y1"}}}} {turned}', 1)
    source = re.sub(r"-> \((.*?)\)\n", r"-> (\1, tensor<3xi32>)\n", source, count=1)
    source = re.sub(r"func.return (%0#\d) : (.*)", r"func.return \1, %whole : \2, tensor<3xi32>", source, count=1)
    model = compare(
        tmp_path, source, *([(batch, time, FEATURES), (batch, UNITS)] for batch, time in ((2, 3), (1, 4))), **{RNN: 1}
    )
    assert model.report.operators["TRANSPOSE"] == 0


def test_layers_upon_layers_in_one_loop(tmp_path: Path) -> None:
    _check(tmp_path, loop(stacked, 3, results=(0, 1, 2)), 3, (2, 4), **{LSTM: 1, RNN: 1})


def test_layers_side_by_side_in_one_loop(tmp_path: Path) -> None:
    def step(block: Block, x: str, states: list[str]) -> list[str]:
        return [rnn(block, x, state) for state in states]

    _check(tmp_path, loop(step, 2, results=(1, 2)), 2, (2, 4), **{RNN: 2})


def test_two_loops_one_after_another(tmp_path: Path) -> None:
    def step(block: Block, x: str, states: list[str]) -> list[str]:
        return [rnn(block, x, states[0])]

    source = loop(step, 1)
    # The second loop takes the last state of the first.
    call = source[source.index("        %0:5 =") : source.index("        func.return %0#2")]
    again = call.replace("%0:5", "%1:5").replace("%s0)", "%0#4)")
    source = source.replace(call, call + again).replace("func.return %0#2", "func.return %1#2", 1)
    _check(tmp_path, source, 1, (2, 4), **{RNN: 2})


def test_a_layer_in_a_loop_begins_anew_each_time(tmp_path: Path) -> None:
    layer = re.sub("@(cond|body)", r"@inner_\1", rnn_loop(results=(1,)).replace("@main", "private @layer"))

    def step(block: Block, x: str, states: list[str]) -> list[str]:
        return [block.op("PartitionedCall", ("%x", states[0]), block.kinds[states[0]], "f = @layer")]

    compare(tmp_path, loop(step, 1, results=(0, 1)) + layer, [(4, 2, 3), (2, 2)], loops=1, **{RNN: 1})


@pytest.mark.parametrize("described", [fuse_recurrent_loops, fuse_unrolled_layers], ids=["loop", "unrolled"])
def test_a_state_may_be_one_row_for_the_whole_batch(tmp_path: Path, described: ModuleType) -> None:
    before = (described.__doc__ or "").partition("Before:")[2].partition("After:")[0]
    time = 3 if described is fuse_recurrent_loops else 2
    shapes = [[(time, batch, 2), (rows, 2)] for batch, rows in ((1, 1), (3, 1), (3, 3), (7, 1))]
    compare(tmp_path, before.replace("1x2xf32", "?x2xf32"), *shapes, **{RNN: 1})
