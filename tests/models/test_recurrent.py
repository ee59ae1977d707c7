"""A part of the recurrent zoo: converted, run in LiteRT on several batches and times, compared with TensorFlow.

`python -m benchmarks.recurrent` runs the whole of it, and the official converter too.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from benchmarks.recurrent import Worker, check
from benchmarks.recurrent_table import cases

# Networks, and how many operators each may have: no more than the official converter's file, if that is right, and one
# for each step that is a slice and a reshape, which accelerators take, instead of a slice that drops a dimension.
MAX_OPERATORS = {
    "k3/lstm/last/dynamic": 8,
    "k3/lstm/seq/static": 2,
    "k3/lstm/seq+states/dynamic": 31,
    "k3/lstm/seq+init/dynamic": 7,
    "k3/lstm/seq+embed/dynamic": 41,
    "k3/lstm/back/dynamic": 9,
    "k3/lstm/seq+bidi/dynamic": 10,
    "k3/lstm/bidi-none/batch": 13,
    "k3/lstm/seq+bidi-mul/dynamic": 10,
    "k3/lstm/stacked+mask/batch": 62,
    "k3/lstm/stacked+bidi/dynamic": 19,
    "k3/lstm/seq+nobias/dynamic": 7,
    "k3/lstm/seq+relu/static": 2,
    "k3/lstm/seq+unroll/batch": 120,  # One operator for the sequence would be slower.
    "k3/lstm/stateful+mask/static": 41,
    "k3/lstm/seq+long/dynamic": 7,
    "k3/gru/last/time": 25,
    "k3/gru/seq+before/dynamic": 33,
    "k3/gru/seq+bidi/static": 52,
    "k3/gru/bidi-sum+mask/batch": 62,
    "k3/gru/unroll/static": 124,
    "k3/gru/seq+stateful/static": 31,
    "k3/rnn/seq/dynamic": 6,
    "k3/rnn/seq+mask/static": 20,
    "k3/rnn/stacked/dynamic": 9,
    "k3/conv/last/batch": 35,
    "k3/conv/seq+mask+same/static": 40,
    "k3/custom/bidi/static": 41,
    "k3/cells/mask/batch": 53,
    "tfk/lstm/seq/dynamic": 7,
    "tfk/lstm/seq+mask/static": 32,
    "tfk/lstm/bidi-sum/batch": 14,
    "tfk/lstm/seq+stateful/static": 35,
    "tfk/gru/seq+major/batch": 29,
    "tfk/rnn/seq+bidi/static": 2,
    "tf1/basic-lstm/dynamic+lengths/dynamic": 39,
    "tf1/basic-lstm/dynamic+states/dynamic": 30,
    "tf1/basic-lstm/dynamic+init/batch": 7,
    "tf1/basic-lstm/static+lengths/static": 165,
    "tf1/lstm/dynamic+peep/dynamic": 7,
    "tf1/lstm/static+project+peep/static": 153,
    "tf1/gru/dynamic+lengths/batch": 37,
    "tf1/rnn/dynamic+lengths+v2/batch": 27,
    "tf/autograph/seq/dynamic": 7,
    "tf/while/seq/dynamic": 7,
    "tf/decoder/seq/batch": 23,
}

# Networks of at most 64 steps, and how many operators they have without loops.
UNROLLED = {
    "k3/lstm/seq+mask/static": 121,
    "k3/gru/seq+bidi/static": 225,
    "tfk/lstm/seq+stacked/static": 208,
    "tfk/rnn/seq+mask/batch": 44,
    "tf1/gru/dynamic/static": 96,
    "tf/autograph/seq/static": 33,
}

CASES = {case.name: case for case in cases()}


@pytest.fixture(scope="module")
def runtime() -> Iterator[Worker]:
    """Yields a process for LiteRT, which an invalid file may crash."""
    with Worker() as worker:
        yield worker


@pytest.mark.parametrize("name", MAX_OPERATORS)
def test_networks_convert_and_match(name: str, runtime: Worker, tf: ModuleType, tmp_path: Path) -> None:
    outcome = check(CASES[name], tmp_path, runtime)
    assert not outcome.ours.problem
    assert outcome.ours.count <= MAX_OPERATORS[name]


@pytest.mark.parametrize("name", UNROLLED)
def test_networks_match_without_loops(name: str, runtime: Worker, tf: ModuleType, tmp_path: Path) -> None:
    outcome = check(CASES[name], tmp_path, runtime, recurrent="unrolled")
    assert not outcome.ours.problem
    assert outcome.form == "plain"
    assert outcome.ours.count <= UNROLLED[name]
