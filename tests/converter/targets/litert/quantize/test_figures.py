"""The sums by which tensors are compared, channel by channel."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tfconvert.converter.targets.litert.quantize.figures import (
    DIVISORS,
    Figures,
    Measured,
    OutputFigures,
    Step,
    layers,
    stored_range,
)


def _measured(*runs: tuple[object, object]) -> Measured:
    figures = Figures()
    for expected, got in runs:
        figures.add(np.asarray(expected, np.float32), np.asarray(got, np.float32))
    found = figures.measured()
    assert found is not None
    return found


def test_a_large_channel_does_not_hide_the_others() -> None:
    found = _measured(([[1000, 1, 2]], [[1000, 0, 0]]))
    assert found.snr > 50
    assert found.channel_snr == pytest.approx(0)
    assert found.lost == pytest.approx(2 / 3)


def test_a_channel_that_was_divided_loses_what_is_left_after_a_factor() -> None:
    random = np.random.default_rng(0)
    exact = random.normal(size=(2, 4, 50, 8))
    divisors = np.exp2(random.integers(-4 * DIVISORS, 4 * DIVISORS, (4, 1, 8)) / DIVISORS)
    noise = 0.01 * random.normal(size=exact.shape)
    whole, divided = _measured((exact, exact + noise)), _measured((exact, (exact + noise) / divisors))
    assert divided.snr == pytest.approx(whole.snr, abs=0.3) == pytest.approx(40, abs=0.5)
    assert divided.lost == pytest.approx(whole.lost, rel=0.3)
    assert divided.high == pytest.approx((exact / divisors).max(), rel=1e-2)
    figures = OutputFigures()
    figures.add(exact, exact * 2)
    found = figures.fidelity("y")
    assert found is not None
    assert found.snr == pytest.approx(0)


@pytest.mark.parametrize("got", [[[0.5, 0.0, 0.5, 0.5]], [[1.0, 1.0, 1.0, 1.0]], [[0.1, 2.0, -0.1, 1.0]]])
def test_no_factor_excuses_what_is_lost(got: object) -> None:
    exact = np.array([[0.2, 0.8, 0.4, 0.9]]).T
    other = np.array(got).T
    assert _measured((exact, other)).snr == pytest.approx(
        10 * np.log10(np.square(exact).sum() / np.square(exact - other).sum()), abs=1e-4
    )


def test_channels_of_zeros_do_not_count() -> None:
    found = _measured(([[0, 2]], [[0.5, 2]]))
    assert (found.channel_snr, found.lost) == (math.inf, 0)
    assert math.isfinite(found.snr)


def test_the_typical_channel_counts() -> None:
    found = _measured(([[0, 0, 0], [100, 1, 1]],) * 2)
    assert (found.low, found.high, found.span, found.snr) == (0, 100, 1, math.inf)


def test_no_number_is_no_fidelity() -> None:
    assert _measured(([[1, 2]], [[1, np.nan]])).snr == -math.inf
    assert _measured(([[1, 2]], [[1, np.inf]])).snr == -math.inf
    # Values that the float model also has are right.
    assert _measured(([[np.nan, np.inf]], [[np.nan, np.inf]])).snr == math.inf


def test_channels_may_vary() -> None:
    found = _measured(([[1, 1]], [[1, 1]]), ([[1, 1, 1]], [[1, 1, 0]]))
    assert found.snr == pytest.approx(10 * math.log10(5))


def test_outputs_of_integers_agree_or_not() -> None:
    figures = OutputFigures()
    figures.add(np.array([1, 2, 3]), np.array([1, 2, 4]))
    found = figures.fidelity("classes")
    assert found is not None
    assert math.isnan(found.snr)
    assert found.agreement == pytest.approx(2 / 3)
    assert str(found) == "classes: equal in 66.7%"


def test_any_of_equal_elements_is_the_largest() -> None:
    figures = OutputFigures()
    figures.add(np.array([[1, 1, 0], [0, 1, 2]], np.float32), np.array([[1, 1.1, 0], [0, 2, 1]], np.float32))
    found = figures.fidelity("y")
    assert found is not None
    assert found.agreement == 0.5


def test_losses_are_those_of_the_layer_itself() -> None:
    good = Measured(60, 60, 0, 1, 1, 0.0, 0.1)
    bad = good._replace(snr=0, lost=0.9)
    worse = bad._replace(lost=1.0)
    steps = [
        Step("a", "CONV_2D", (0,), (1,)),
        Step("b", "CONV_2D", (1,), (2,)),
        Step("c", "RESHAPE", (2,), (3,)),
        Step("d", "CONV_2D", (3,), (4,)),
    ]
    rows = layers(steps, {1: good, 2: bad, 4: worse}, {2: (-2.0, 2.0)})
    assert [(row.node, round(row.lost, 3)) for row in rows] == [("b", 0.9), ("d", 0.1), ("a", 0.0)]
    assert (rows[0].low, rows[0].high, rows[0].used) == (-2.0, 2.0, 0.25)


def test_ranges_of_integers() -> None:
    assert stored_range({"quantization": (0.5, -128), "dtype": np.int8}) == (0.0, 127.5)
    assert stored_range({"quantization": (0.5, 0), "dtype": np.uint8}) == (0.0, 127.5)
    assert stored_range({"quantization": (0.0, 0), "dtype": np.int32}) is None
    assert stored_range({"quantization": (0.5, 0), "dtype": np.float32}) is None
