"""Patterns that the user gives to `convert`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import tfconvert
from tfconvert.patterns import Pattern, check, op, rule, tf, tfl, value

X = value("x")
BOUNDED = rule("bounded-relu", tf.Relu(X), tf.Relu6(X))


def test_patterns_on_tf_ops_see_shapes_and_are_counted(digits_model: Path) -> None:
    shapes = []
    seen = check("never", lambda x: shapes.append(str(x.type)))
    watching = rule("watch", tf.Relu(X), X, where=[seen], benefit=9)
    model = tfconvert.convert(digits_model, patterns=[BOUNDED, watching])
    assert model.report.rewrites["canonicalize"]["bounded-relu"] == len(shapes) > 0
    assert not any("*" in shape for shape in shapes)
    assert bytes(model) != bytes(tfconvert.convert(digits_model))


def test_patterns_on_tfl_ops_compete_with_the_converter_s_own(digits_model: Path) -> None:
    """A fusion that comes too late or too early is a matter of benefit alone."""
    slower = rule("slower", tfl.relu(op("tfl.conv_2d", X, value("w"), value("b"))), tfl.relu6(X), benefit=0)
    report = tfconvert.convert(digits_model, patterns=[slower]).report
    assert not report.rewrites["optimize"]["slower"]
    bounded = rule("bounded-relu", tfl.relu(X), tfl.relu6(X), benefit=100)
    report = tfconvert.convert(digits_model, patterns=[bounded]).report
    assert report.rewrites["optimize"]["bounded-relu"]
    assert not report.rewrites["optimize"]["fuse-relu"]


def nothing(*arguments: Any) -> None:
    """Neither matches nor rewrites."""


@pytest.mark.parametrize(
    ("patterns", "expected"),
    [
        (["relu"], "'relu', which is not a pattern"),
        ([Pattern("p", "func.return", nothing, nothing)], "starts at func.return"),
        ([BOUNDED, BOUNDED], "two patterns are named 'bounded-relu'"),
        ([Pattern("no-reshape", "tfl.reshape", nothing, nothing)], "two patterns are named 'no-reshape'"),
    ],
)
def test_what_is_no_use_is_refused(digits_model: Path, patterns: list[Any], expected: str) -> None:
    with pytest.raises(tfconvert.ConversionError, match=expected) as caught:
        tfconvert.convert(digits_model, patterns=patterns)
    assert caught.value.code == "wrong-option"


def test_a_user_s_patterns_that_cycle_are_named(digits_model: Path) -> None:
    back = rule("unbounded-relu", tf.Relu6(X), tf.Relu(X))
    with pytest.raises(tfconvert.ConversionError, match="bounded-relu -> unbounded-relu") as caught:
        tfconvert.convert(digits_model, patterns=[BOUNDED, back])
    assert caught.value.code == "rewrite-cycle"
    assert caught.value.diagnostics[0].node
