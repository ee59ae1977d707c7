"""Verdicts on measured figures, and their output."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

import pytest

import tfconvert
from benchmarks import commands, comparison, litert, scaling
from benchmarks.check import Outcome
from benchmarks.comparison import Comparison, Side
from benchmarks.litert import Measured
from benchmarks.measure import Run, measure
from benchmarks.scaling import Point
from benchmarks.zoo import select

MEASURED = Measured(1000, Counter({"ADD": 2, "CONV_2D": 3}), {1: 1e-6, 2: 3e-6}, 0.01)


def _side(seconds: list[float], peak: int, latency: float) -> Side:
    return Side([Run(each, peak) for each in seconds], Measured(1000, Counter({"ADD": 2}), {1: 1e-6}, latency))


@pytest.fixture
def rows() -> list[Comparison]:
    """Returns two models: one converted 4 times faster, one 9 times."""
    official = _side([8.0, 8.0, 80.0], 900_000_000, 0.02)
    return [
        Comparison("one", _side([2.0, 1.0, 50.0], 100_000_000, 0.01), official),
        Comparison("two", _side([8 / 9], 100_000_000, 0.04), official),
    ]


def test_measured_figures_survive_json() -> None:
    assert Measured.from_dict(json.loads(json.dumps(MEASURED.to_dict()))) == MEASURED
    assert (MEASURED.count, MEASURED.error) == (5, 3e-6)


def test_ratios_are_of_medians(rows: list[Comparison]) -> None:
    assert [row.faster for row in rows] == pytest.approx([4, 9])
    assert [row.lighter for row in rows] == pytest.approx([9, 9])
    assert [row.inference for row in rows] == pytest.approx([0.5, 2])


def test_tables_hold_geometric_means(rows: list[Comparison]) -> None:
    setup = dict.fromkeys(("runs", "processor", "cores", "python", *comparison.PACKAGES), "1")
    text = comparison.markdown(rows, setup, {"three": "it broke"})
    assert "| geometric mean |  |  | **6.0x** |" in text
    assert "three failed: it broke" in text
    tables = [line for line in text.splitlines() if line.startswith("|")]
    assert {line.count("|") for line in tables if "one" in line or "two" in line} == {8, 11}
    means = comparison.as_dict(rows, setup, {})["geometric_means"]
    assert means == pytest.approx({"faster": 6, "lighter": 9, "inference": 1})
    assert comparison.as_dict([], setup, {})["geometric_means"] == {}


def _outcome() -> Outcome:
    (entry,) = select(Path("cache"), ["k3/MobileNetV2"])
    return Outcome(entry, 0.5, ours=MEASURED, official_operators=Counter({"ADD": 5}), official_size=1000)


def test_an_outcome_that_is_no_worse_is_fine() -> None:
    outcome = _outcome()
    outcome.compare(1e-4)
    assert outcome.problems == []
    assert outcome.line().startswith("ok")
    assert [line.split() for line in outcome.differences()] == [["ADD", "2", "5", "-3"], ["CONV_2D", "3", "0", "+3"]]


@pytest.mark.parametrize(
    ("tolerance", "official", "size", "problems"),
    [
        (2e-6, Counter({"ADD": 5}), 1000, ["wrong at batch 2"]),
        (1e-7, Counter({"ADD": 5}), 1000, ["wrong at batch 1 and 2"]),
        (1e-4, Counter({"ADD": 4}), 1000, ["more operators"]),
        (1e-4, Counter({"ADD": 4}), 999, ["more operators", "more bytes"]),
    ],
)
def test_worse_figures_are_reported(tolerance: float, official: Counter[str], size: int, problems: list[str]) -> None:
    outcome = _outcome()
    outcome.official_operators, outcome.official_size = official, size
    outcome.compare(tolerance)
    assert outcome.problems == problems
    assert outcome.line().startswith("FAIL")


def test_growth_may_be_a_tenth_faster_than_the_nodes() -> None:
    small = Point("deep", 1000, 0.5, 0.5, 1e8, {"import": 0.25})
    for seconds, is_slow in ((5.0, False), (5.4, False), (5.6, True)):
        assert Point("deep", 10_000, seconds, 1.0, 1e8, {}).too_slow(small) is is_slow
    assert not small.too_slow(None)
    assert "10.0x nodes, 8.0x time" in Point("deep", 10_000, 4.0, 1.0, 1e8, {}).row(small)


def test_the_official_converter_is_compared_in_wall_and_cpu_time() -> None:
    row = Point("deep", 1000, 2.0, 1.0, 1e8, {}, (10.0, 8.0)).row(None)
    assert "| 2.00 s | 1.00 s | 10.00 s | 5.0x | 8.00 s | 8.0x |" in row
    alone = Point("deep", 1000, 2.0, 1.0, 1e8, {}).row(None)
    assert alone.count("|") == row.count("|")


def test_the_stage_table_has_a_column_a_size() -> None:
    points = [
        Point("deep", 10, 1, 1, 1, {"import": 0.25}),
        Point("deep", 100, 1, 1, 1, {"import": 1.5, "optimize": 2.0}),
    ]
    assert scaling.stage_table(points) == [
        "| stage | deep 10 | deep 100 |",
        "| --- | ---: | ---: |",
        "| import | 0.250 | 1.500 |",
        "| optimize | 0.000 | 2.000 |",
    ]


def test_a_process_is_weighed_and_not_its_parent(tmp_path: Path) -> None:
    small = measure([sys.executable, "-S", "-c", "pass"], tmp_path)
    large = measure([sys.executable, "-S", "-c", "x = b'1' * 100_000_000"], tmp_path)
    assert small.seconds > 0
    assert small.peak < 60_000_000
    assert 80_000_000 < large.peak - small.peak < 130_000_000


def test_a_process_is_charged_for_its_work_and_not_for_waiting(tmp_path: Path) -> None:
    work = "import time\nwhile time.process_time() < 0.2: pass"
    assert measure([sys.executable, "-S", "-c", work], tmp_path).processor >= 0.19
    waited = measure([sys.executable, "-S", "-c", "import time; time.sleep(0.5)"], tmp_path)
    assert 0 < waited.processor < waited.seconds


def test_a_failed_process_is_reported(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="it broke"):
        measure([sys.executable, "-c", "raise SystemExit('it broke')"], tmp_path)
    with pytest.raises(RuntimeError, match="died of signal 6"):
        measure([sys.executable, "-S", "-c", "import os; os.abort()"], tmp_path)


def test_operators_are_counted_in_the_file(digits_model: Path, tmp_path: Path) -> None:
    model = tfconvert.convert(digits_model)
    model.save(tmp_path / "digits.tflite")
    assert litert.operators(tmp_path / "digits.tflite") == model.report.operators


@pytest.mark.parametrize(("text", "line"), [("a\nb\n\n", "b"), ("", "no message"), (" x ", "x")])
def test_the_last_line_is_the_reason(text: str, line: str) -> None:
    assert commands.last_line(text) == line
