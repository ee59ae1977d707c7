"""Patterns that the user gives to `convert`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import tfconvert
from tfconvert.converter.pipeline.instruments import blamed
from tfconvert.converter.targets.litert.stages import STAGES
from tfconvert.patterns import Failure, Pattern, check, computed, op, rule, tf, tfl, value
from tfconvert.schema.diagnostics import error
from tfconvert.schema.dialects.parsing import IRParser
from tfconvert.settings.options import Options

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
        ([7], "7, which is not a pattern"),
        (BOUNDED, "patterns holds 'bounded-relu', which is not a pattern"),
        ([Pattern("p", "func.return", nothing, nothing)], "starts at func.return"),
        ([BOUNDED, BOUNDED], "two patterns are named 'bounded-relu'"),
        ([Pattern("no-reshape", "tfl.reshape", nothing, nothing)], "two patterns are named 'no-reshape'"),
    ],
)
def test_useless_patterns_are_rejected(digits_model: Path, patterns: list[Any], expected: str) -> None:
    with pytest.raises(tfconvert.ConversionError, match=expected) as caught:
        tfconvert.convert(digits_model, patterns=patterns)
    assert caught.value.code == "wrong-option"


def test_a_user_s_patterns_that_cycle_are_named(digits_model: Path) -> None:
    back = rule("unbounded-relu", tf.Relu6(X), tf.Relu(X))
    with pytest.raises(tfconvert.ConversionError, match="bounded-relu -> unbounded-relu") as caught:
        tfconvert.convert(digits_model, patterns=[BOUNDED, back])
    assert caught.value.code == "rewrite-cycle"
    assert caught.value.diagnostics[0].node


def _notes(model: tfconvert.Model) -> list[str]:
    return [note.message for note in model.report.notes if note.code == "unused-pattern"]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (rule("none", tfl.cumsum(X, value("y")), X), ["'none' never matched: there is no tfl.cumsum at that stage"]),
        (
            rule("far", tfl.gelu(tfl.add(tfl.mul(X, value("y")), value("z"))), X),
            [
                "'far' never matched, nearest: at digits",
                "operand 0 of tfl.add is defined by tfl.fully_connected, not "
                "defined by tfl.mul (3 of 5 conditions on its form hold)",
            ],
        ),
        (
            rule("never", tfl.gelu(X), X, where=[check("it is never wanted", lambda x: False)]),
            ["'never' never matched, nearest: at ", ", it is never wanted"],
        ),
        (
            Pattern("by-hand", "tfl.gelu", lambda op: Failure("it isn't mine"), lambda *_: None),
            ["'by-hand' never matched, nearest: at ", "it isn't mine"],
        ),
        (rule("late", tfl.gelu(X), tfl.relu(X), benefit=0), ["'late' never matched; another pattern went first"]),
    ],
)
def test_patterns_that_never_match_are_reported(digits_model: Path, pattern: Any, expected: list[str]) -> None:
    first = rule("first", tfl.gelu(X), tfl.tanh(X))
    patterns = [pattern, first] if pattern.name == "late" else [pattern]
    (note,) = _notes(tfconvert.convert(digits_model, patterns=patterns))
    assert all(text in note for text in expected), note


def test_patterns_that_match_give_no_note(digits_model: Path) -> None:
    assert _notes(tfconvert.convert(digits_model, patterns=[BOUNDED])) == []


def _zero(x: Any) -> Any:
    return 1 // 0


@pytest.mark.parametrize(
    "pattern",
    [
        rule("wrong", tf.Relu(X), X, where=[check("no", _zero)]),
        rule("wrong", tf.Relu(X), tf.Minimum(X, computed(_zero))),
        rule("wrong", tf.Relu(X), lambda rewriter, x: _zero(x)),
        Pattern("wrong", "tf.Relu", _zero, nothing),
        Pattern("wrong", "tf.Relu", lambda op: None, lambda op, match, rewriter: _zero(op)),
    ],
)
def test_exceptions_name_the_pattern_and_the_line(digits_model: Path, pattern: Any) -> None:
    with pytest.raises(tfconvert.ConversionError) as caught:
        tfconvert.convert(digits_model, patterns=[BOUNDED._replace(root="tf.Elu"), pattern])
    (problem,) = caught.value.diagnostics
    line = _zero.__code__.co_firstlineno + 1
    assert problem.code == "bad-pattern"
    assert "the pattern 'wrong' fails with ZeroDivisionError" in problem.message
    assert f"{Path(__file__).name}:{line})" in problem.message
    assert (problem.op, bool(problem.node)) == ("tf.Relu", True)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


@pytest.mark.parametrize("wrong", [rule("wrong", tf.Relu(X), tf.Neg(X)), rule("wrong", tfl.gelu(X), tfl.neg(X))])
def test_checking_passes_blames_the_pattern(digits_model: Path, wrong: Any) -> None:
    right = rule("right", tfl.softmax(X), tfl.softmax(X, beta=1.0), where=[check("never", lambda x: False)])
    with pytest.raises(tfconvert.ConversionError) as caught:
        tfconvert.convert(digits_model, patterns=[right, wrong], check_passes=True)
    problem = caught.value.diagnostics[0]
    assert problem.code == "pass-changed-results"
    assert problem.message.startswith("the pattern 'wrong' changes what the model computes: ")
    assert "correct the pattern" in problem.hint
    assert "report" not in problem.hint


def test_a_bug_of_the_pass_is_not_blamed_on_the_user(digits_model: Path) -> None:
    def broken(before: Any, after: Any, name: str) -> list[Any]:
        raise error("pass-changed-results", f"{name} is wrong")

    module = IRParser("func.func @main() { func.return }").parse_module()
    (stage,) = (stage for stage in STAGES if stage.run == "optimize")
    problem = error("pass-changed-results", "optimize is wrong")
    assert blamed(stage, module, problem, Options(patterns=[BOUNDED]), broken) is problem
