"""Layers without a loop: which become operators, their numbers, and which stay as they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.converter.targets.litert.recurrent.compare import LSTM, RNN, compare
from tests.converter.targets.litert.recurrent.loops import FEATURES, UNITS, Block, joined, kind, lstm, rnn, stacked
from tests.support.run_text import parse
from tests.support.work import check_linear
from tfconvert.converter.targets.litert.passes.fuse_unrolled_layers import FuseUnrolledLayers

BATCH, TIME = 2, 4
Step = Callable[[Block, str, list[str]], list[str]]
"""Adds a step; takes the input and the states, returns the states, of which the first is the output."""


def _lstm(block: Block, x: str, states: list[str]) -> list[str]:
    return list(lstm(block, x, *states))


def _rnn(block: Block, x: str, states: list[str]) -> list[str]:
    return [rnn(block, x, states[0])]


def _unrolled(
    step: Step,
    states: int,
    *,
    batch: int = BATCH,
    axis: int = 0,
    time: int = TIME,
    order: Sequence[int] = (),
    returned: Callable[[Block, list[list[str]]], list[str]] = lambda block, after: [after[-1][0]],
    are_zeros: bool = False,
    again: Callable[[Block], None] = Block.repeat,
) -> str:
    """Returns a module whose `main` takes a sequence, and initial states unless they are zeros.

    Args:
        step: The step.
        states: How many states there are.
        batch: The batch.
        axis: Along which axis of the sequence the steps lie.
        time: The sequence's length.
        order: Which steps of the sequence are read, if not all.
        returned: The results of `main`, from the states after each step.
        are_zeros: Whether the initial states are zeros.
        again: Called before each step.
    """
    shape = (time, batch, FEATURES) if axis == 0 else (batch, time, FEATURES)
    state = kind((batch, UNITS))
    kinds = {"x": kind(shape)} | {f"s{index}": state for index in range(0 if are_zeros else states)}
    block = Block(**kinds)
    row = kind((batch, FEATURES))
    block.lines.append(
        f'%rows:{time} = "tf.Unpack"(%x) <{{axis = {axis} : i64}}> : ({kind(shape)}) -> ({", ".join([row] * time)})'
    )
    block.kinds |= {f"%rows#{index}": row for index in range(time)}
    values = [block.constant([[0.0] * UNITS] * BATCH) if are_zeros else f"%s{index}" for index in range(states)]
    after = []
    for index in order or range(time):
        again(block)
        values = step(block, f"%rows#{index}", values)
        after.append(values)
    results = returned(block, after)
    outputs = ", ".join(block.kinds[value] for value in results)
    names = ",".join(kinds), ",".join(f"y{index}" for index, _ in enumerate(results))
    newline = "\n"
    return f"""
      func.func @main({", ".join(f"%{name}: {text}" for name, text in kinds.items())}) -> ({outputs})
          attributes {{tf.entry_function = {{inputs = "{names[0]}", outputs = "{names[1]}"}}}} {{
        {newline.join(block.lines)}
        func.return {", ".join(results)} : {outputs}
      }}
    """


def _packed(axis: int, batch: int = BATCH) -> Callable[[Block, list[list[str]]], list[str]]:
    shape = (TIME, batch, UNITS) if axis == 0 else (batch, TIME, UNITS)
    return lambda block, after: [block.op("Pack", [values[0] for values in after], kind(shape), f"axis = {axis} : i64")]


@pytest.mark.parametrize("are_zeros", [False, True])
@pytest.mark.parametrize(
    ("step", "states", "fused"),
    [
        (_lstm, 2, LSTM),
        (_rnn, 1, RNN),
        (lambda block, x, states: list(lstm(block, x, *states, sums=joined)), 2, LSTM),
        (lambda block, x, states: list(lstm(block, x, *states, looks=True, clip=0.3)), 2, LSTM),
    ],
)
def test_cells(tmp_path: Path, step: Step, states: int, fused: str, are_zeros: bool) -> None:
    source = _unrolled(step, states, are_zeros=are_zeros)
    shapes = [(TIME, BATCH, FEATURES), *[(BATCH, UNITS)] * (0 if are_zeros else states)]
    model = compare(tmp_path, source, shapes, **{fused: 1})
    assert "FULLY_CONNECTED" not in model.report.operators


@pytest.mark.parametrize(
    "options",
    [
        {"axis": 1},
        {"order": range(TIME)[::-1]},
        {"order": [1, 2]},
        {"order": [3, 2, 1], "axis": 1},
        {"returned": _packed(0)},
        {"returned": _packed(1), "axis": 1},
        {"returned": lambda block, after: [after[1][0], after[-1][0]]},
    ],
)
def test_what_is_taken_of_sequences(tmp_path: Path, options: dict[str, Any]) -> None:
    shape = (BATCH, TIME, FEATURES) if options.get("axis") else (TIME, BATCH, FEATURES)
    compare(tmp_path, _unrolled(_lstm, 2, **options), [shape, (BATCH, UNITS), (BATCH, UNITS)], **{LSTM: 1})


def test_an_open_batch(tmp_path: Path) -> None:
    source = _unrolled(_rnn, 1, batch=-1, axis=1, returned=_packed(1, -1))
    compare(tmp_path, source, *([(batch, TIME, FEATURES), (batch, UNITS)] for batch in (1, 30, 2)), **{RNN: 1})


def test_layers_upon_layers(tmp_path: Path) -> None:
    shapes = [(TIME, BATCH, FEATURES), *[(BATCH, UNITS)] * 3]
    compare(tmp_path, _unrolled(stacked, 3), shapes, **{LSTM: 1, RNN: 1})


def _mixed(block: Block, x: str, states: list[str]) -> list[str]:
    return [block.binary("AddV2", rnn(block, x, states[0]), states[0])]


DECLINED = {
    "other weights each step": _unrolled(_rnn, 1, again=lambda block: None),
    "steps out of order": _unrolled(_rnn, 1, order=[0, 2, 1, 3]),
    "a step too few": _unrolled(_rnn, 1, order=[0]),
    "another cell": _unrolled(_mixed, 1),
    "a cell state that is used": _unrolled(_lstm, 2, returned=lambda block, after: [after[-1][0], after[2][1]]),
    "an input that is computed": _unrolled(lambda block, x, states: [rnn(block, block.unary("Exp", x), states[0])], 1),
}


@pytest.mark.parametrize("case", DECLINED)
def test_what_stays(case: str) -> None:
    module = parse(DECLINED[case])
    assert not FuseUnrolledLayers().apply(module).counts
    assert not any(op.name.startswith("tfl.") for op in module.walk())


def test_a_long_chain_takes_no_more_work_a_step() -> None:
    few, many = (_unrolled(_lstm, 2, batch=-1, time=time) for time in (10, 100))
    assert FuseUnrolledLayers().apply(parse(few)).counts == {"lstm": 1}
    check_linear(FuseUnrolledLayers(), few, many, 10)
