"""Passes with their options, read from text."""

from __future__ import annotations

from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfconvert.converter.passes.cse import CommonSubexpressions
from tfconvert.converter.pipeline import pass_options, registry
from tfconvert.converter.targets.litert.passes.legalize import Legalize
from tfconvert.schema.diagnostics import ConversionError


def test_every_pass_says_what_it_does_and_can_be_made() -> None:
    for name, row in ((name, registry.pass_class(name)) for name in registry.pass_names()):
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
    assert found <= codes or found <= set(registry.pass_names())
