"""The syntax by which passes and their options are written."""

from __future__ import annotations

import pytest

from tfconvert.converter.pipeline.pass_text import Value, parse_pass_text
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
