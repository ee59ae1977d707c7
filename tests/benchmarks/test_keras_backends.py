"""The figures of networks from both of Keras' backends, and their limits."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from benchmarks import keras_backends
from benchmarks.keras_backends import Figures, Row
from benchmarks.measure import Run

FIGURES = Figures(
    Counter({"ADD": 2, "CONV_2D": 3}), 1000, 0.01, [Run(5.0, 100, 2.0), Run(4.0, 100, 3.0), Run(9.0, 100, 9.0)], 4000
)


@pytest.mark.parametrize(
    ("jax", "exceeded"),
    [
        ({}, []),
        ({"operators": Counter({"ADD": 3, "CONV_2D": 3}), "size": 1010, "latency": 0.0105}, []),
        ({"operators": Counter({"ADD": 4, "CONV_2D": 3})}, ["2 more operators"]),
        ({"size": 1011}, ["bytes 1.011"]),
        ({"latency": 0.011}, ["inference 1.100"]),
        ({"runs": [Run(9.0, 121, 3.1)]}, ["time 1.550", "memory 1.210"]),
    ],
)
def test_limits(jax: dict[str, object], exceeded: list[str]) -> None:
    assert Row("small", replace(FIGURES, **jax), FIGURES, 0.0).exceeded() == exceeded  # type: ignore[arg-type]


def test_operators_in_different_numbers_are_listed() -> None:
    row = Row("small", replace(FIGURES, operators=Counter({"ADD": 2, "MUL": 1})), FIGURES, 0.0)
    assert [line.split() for line in row.operator_lines()] == [["CONV_2D", "0", "3"], ["MUL", "1", "0"]]


def test_the_tables_have_a_row_for_each_network() -> None:
    rows = [
        Row("one", replace(FIGURES, instructions=5000), FIGURES, 1e-6),
        Row("two", replace(FIGURES, size=4000, instructions=0), FIGURES, 0.0),
    ]
    lines = keras_backends.markdown(rows).splitlines()
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if line.startswith("|")]
    assert {len(each) for each in cells} == {10}
    one, two = ([each for each in cells if each[0] == name] for name in ("one", "two"))
    assert one[0][4:7] == ["0 M", "0 M", "**1.25**"]
    assert two[0][4:7] == ["", "", ""]
    assert two[1][3:6] == ["4,000", "1,000", "**4.000**"]
    assert "bytes 2.000" in lines[-1]


def test_unknown_networks_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        keras_backends.main(["--only", "MobileNetV2,LeNet", "--no-instructions"])
    assert "LeNet" in capsys.readouterr().err
