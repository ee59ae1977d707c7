"""Recurrent layers are left as they are, if the user says so."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import tfconvert
from converter.cli import main
from converter.passes import fuse_unrolled_layers
from tests.converter.recurrence.loops import lstm_loop, rnn_loop

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
    report = tfconvert.convert(path, fuse_recurrent=False).report
    assert kept in report.operators
    assert not any("SEQUENCE" in name for name in report.operators)
    assert not report.notes  # The user knows.
    arguments = [str(path), "-o", str(tmp_path / "model.tflite"), "--keep-recurrent-loops", "--json"]
    assert json.loads(CliRunner().invoke(main, arguments).stdout)["operators"] == dict(report.operators)
