"""Passes with options as text are read, and wrong ones are rejected with reasons."""

from __future__ import annotations

from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfconvert.converter.passes.cse import CommonSubexpressions
from tfconvert.converter.pipeline import pass_options, pass_registry
from tfconvert.converter.pipeline.pass_options import Value, parse_pass_text
from tfconvert.converter.targets.litert.passes.legalize import Legalize
from tfconvert.schema.diagnostics import ConversionError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("cse", [("cse", {})]),
        ("cse,", [("cse", {})]),
        ("cse,2d-slice", [("cse", {}), ("2d-slice", {})]),
        ("a{}", [("a", {})]),
        ("a{x}", [("a", {"x": ()})]),
        ("a{x=1 y=-2.5 z=+3}", [("a", {"x": (1,), "y": (-2.5,), "z": (3,)})]),
        ("a{x=1.5e3,2. }", [("a", {"x": (1500.0, 2.0)})]),
        ("a{x=true,false,truth}", [("a", {"x": (True, False, "truth")})]),
        ("a{x=1\n  y}", [("a", {"x": (1,), "y": ()})]),
        (r'a{x="b, {c}","\n\\\""}', [("a", {"x": ("b, {c}", '\n\\"')})]),
        ("a{x=1 x=2},b", [("a", {"x": (2,)}), ("b", {})]),
    ],
)
def test_passes_and_options_are_read(text: str, expected: list[tuple[str, dict[str, tuple[Value, ...]]]]) -> None:
    found = [(each.name, each.options) for each in parse_pass_text(text)]
    assert found == expected
    values = [value for _, options in found for given in options.values() for value in given]
    wanted = [value for _, options in expected for given in options.values() for value in given]
    assert [type(value) for value in values] == [type(value) for value in wanted]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (",", "expected a pass's name at column 1"),
        ("-1", "expected a pass's name at column 1"),
        ("a,,b", "expected a pass's name at column 3"),
        ("a b", "expected a comma, or options in braces at column 2"),
        ("a {x}", "expected a comma, or options in braces at column 2"),
        ("a;b", "unexpected ';' at column 2"),
        ("a[b]", "unexpected '[' at column 2"),
        ("a{", "expected an option's name at column 3"),
        ("a{ x}", "expected an option's name at column 3"),
        ("a{x=}", "expected a value"),
        ("a{x= 1}", "expected a value"),
        ("a{x=1,}", "expected a value"),
        ("a{x=1", "expected a space or a closing brace at column 6"),
        ("a{x,y}", "expected a space or a closing brace at column 4"),
        (r'a{x="\q"}', "unexpected"),
    ],
)
def test_mistakes_are_reported_with_their_place(text: str, message: str) -> None:
    with pytest.raises(ConversionError) as caught:
        parse_pass_text(text)
    (problem,) = caught.value.diagnostics
    assert problem.code == "malformed-pipeline"
    assert message in problem.message
    assert repr(text) in problem.message


def test_every_pass_says_what_it_does_and_can_be_made() -> None:
    for name, row in ((name, pass_registry.pass_class(name)) for name in pass_registry.pass_names()):
        assert len(pass_options.summary_of(row).split()) > 2, name
        assert [run.name for run in pass_options.parse_passes(name)] == [name]


def test_options_are_read() -> None:
    plain, custom, switched, last = pass_options.parse_passes(
        "legalize,legalize{allow_custom_ops=true},legalize{allow-custom-ops},cse"
    )
    runs = (plain, custom, switched)
    assert [each.allow_custom_ops for each in runs if isinstance(each, Legalize)] == [False, True, True]
    assert isinstance(last, CommonSubexpressions)


@pytest.mark.parametrize(
    ("hint", "given_values", "value"),
    [
        (bool, (False,), False),
        (int, (3,), 3),
        (float, (3,), 3.0),
        (str, ("x",), "x"),
        (str | None, ("x",), "x"),
        (bool | Literal["some"], ("some",), "some"),
        (bool | Literal["some"], (False,), False),
        (tuple[int, ...], (1, 2), (1, 2)),
        (tuple[int, ...], (1,), (1,)),
        (tuple[str, ...] | None, ("a", "b"), ("a", "b")),
    ],
)
def test_values_have_the_fields_type(
    hint: object, given_values: tuple[bool | int | float | str, ...], value: object
) -> None:
    made = pass_options.Option("x", hint, None).value(given_values)
    assert made == value
    assert type(made) is type(value)


@pytest.mark.parametrize(
    ("hint", "given_values"),
    [
        (bool, (3,)),
        (int, ("x",)),
        (int, (1, 2)),
        (int, (True,)),
        (int, ()),
        (str, ()),
        (bool | Literal["some"], ("none",)),
    ],
)
def test_values_of_another_type_are_refused(hint: object, given_values: tuple[int | str, ...]) -> None:
    with pytest.raises(ValueError, match="is not"):
        pass_options.Option("x", hint, None).value(given_values)


@pytest.mark.parametrize(
    ("text", "codes", "hint"),
    [
        ("inlin", ["unknown-pass"], "did you mean inline"),
        ("zzzzz", ["unknown-pass"], "there are: "),
        ("legalize{allow_custom=true}", ["unknown-option"], "allow_custom_ops"),
        ("legalize{allow_custom_ops=3}", ["wrong-option"], ""),
        ("cse{x=1},nope", ["unknown-option", "unknown-pass"], ""),
        ("cse{", ["malformed-pipeline"], "option=value"),
        ("cse;inline", ["malformed-pipeline"], ""),
    ],
)
def test_mistakes_are_reported_together(text: str, codes: list[str], hint: str) -> None:
    with pytest.raises(ConversionError) as caught:
        pass_options.parse_passes(text)
    assert [one.code for one in caught.value.diagnostics] == codes
    assert hint in caught.value.diagnostics[0].hint


@given(st.text('acse-{}=,1 "[].;\\\n', max_size=30))
def test_any_text_is_a_pipeline_or_refused(text: str) -> None:
    try:
        found = {run.name for run in pass_options.parse_passes(text)}
    except ConversionError as problem:
        found = {one.code for one in problem.diagnostics}
    codes = {"malformed-pipeline", "unknown-pass", "unknown-option", "wrong-option"}
    assert found <= codes or found <= set(pass_registry.pass_names())
