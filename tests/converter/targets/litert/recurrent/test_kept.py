"""Recurrent layers are left as they are, if the user says so."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from click.testing import CliRunner

import tfconvert
from tests.converter.targets.litert.recurrent.loops import lstm_loop, rnn_loop
from tfconvert.cli.main import main
from tfconvert.converter.recurrence.cells import WIDE_PROJECTION
from tfconvert.converter.targets.litert.passes import fuse_unrolled_layers
from tfconvert.converter.targets.litert.recurrent.replacement import KEPT

UNROLLED = (fuse_unrolled_layers.__doc__ or "").partition("Before:")[2].partition("After:")[0]


@pytest.mark.parametrize(
    ("source", "fused", "kept"),
    [
        (lstm_loop(), "UNIDIRECTIONAL_SEQUENCE_LSTM", "WHILE"),
        (rnn_loop(), "UNIDIRECTIONAL_SEQUENCE_RNN", "WHILE"),
        (UNROLLED, "UNIDIRECTIONAL_SEQUENCE_RNN", "FULLY_CONNECTED"),
    ],
    ids=["lstm", "rnn", "unrolled"],
)
def test_loops_stay_where_they_are_to(tmp_path: Path, source: str, fused: str, kept: str) -> None:
    path = tmp_path / "model.mlir"
    path.write_text(source)
    assert fused in tfconvert.convert(path).report.operators
    report = tfconvert.convert(path, target=tfconvert.LiteRT(recurrent="loop")).report
    assert kept in report.operators
    assert not any("SEQUENCE" in name for name in report.operators)
    assert "recurrence-kept" not in {note.code for note in report.notes}  # The user knows.
    arguments = [str(path), "-o", str(tmp_path / "model.tflite"), "--recurrent", "loop", "--json"]
    assert json.loads(CliRunner().invoke(main, arguments).stdout)["operators"] == dict(report.operators)


@pytest.mark.parametrize("outputs", [1, 2, 3])
def test_kernels_have_no_room_for_a_projection_wider_than_the_state(
    tf: ModuleType, tmp_path: Path, outputs: int
) -> None:
    def step(states: Any, x: Any) -> Any:
        h, c = states
        i, f, g, o = tf.split(x @ tf.ones([3, 8]) + h @ tf.ones([outputs, 8]), 4, 1)
        c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(g)
        return (tf.sigmoid(o) * tf.tanh(c)) @ tf.ones([2, outputs]), c

    with tf.Graph().as_default() as graph:
        x = tf.compat.v1.placeholder(tf.float32, [4, 2, 3], "x")
        result = tf.identity(tf.scan(step, x, (tf.zeros([2, outputs]), tf.zeros([2, 2])))[0])
        (tmp_path / "model.pb").write_bytes(graph.as_graph_def().SerializeToString())
    report = tfconvert.convert(
        tmp_path / "model.pb", inputs=["x"], outputs=[result.op.name], target=tfconvert.LiteRT(recurrent="fused")
    ).report
    assert ("UNIDIRECTIONAL_SEQUENCE_LSTM" in report.operators) is (outputs <= 2)
    kept = [note for note in report.notes if note.code == KEPT]
    assert [WIDE_PROJECTION in note.message for note in kept] == [True] * (outputs > 2)
