"""The code on the page about rewriting runs, and prints what the page says."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

from tests.converter.rewrite.ir import names, parse, rewrite
from tfconvert.converter.rewrite.pattern import Failure
from tfconvert.converter.rewrite.pattern_set import PatternSet

PAGE = (Path(__file__).parents[3] / "docs" / "rewriting.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def page(root: Path) -> dict[str, object]:
    """Runs the page's Python as it is, in order and in one namespace, and returns what it defined."""
    with contextlib.chdir(root):
        return _run()


def _run() -> dict[str, object]:
    scope: dict[str, object] = {}
    blocks = re.findall(r"```(\w+)\n(.*?)```", PAGE, re.DOTALL)
    printed = ""
    for language, text in blocks:
        if language == "python":
            with contextlib.redirect_stdout(io.StringIO()) as stream:
                exec(compile(text, "docs/rewriting.md", "exec"), scope)  # noqa: S102  # our own page
            printed = stream.getvalue()
        elif language == "output":
            assert printed == text
    return scope


def test_the_user_s_pattern_was_applied(page: dict[str, object]) -> None:
    report = page["model"].report  # type: ignore[attr-defined]
    assert report.rewrites["canonicalize"]["bounded-relu"] >= 1


@pytest.mark.parametrize(
    ("pattern", "body", "expected"),
    [
        ("double_negation", "%0 = tfl.neg %x\n%1 = tfl.neg %0\n%r = tfl.abs %1", ["abs"]),
        ("reciprocal", "%c = constant 1.0\n%0 = tfl.exp %x\n%r = tfl.div %c, %0", ["neg", "exp"]),
        ("shared", "%c = constant 1.0\n%0 = tfl.exp %x\n%1 = tfl.add %c, %0\n%r = tfl.div %0, %1", ["logistic"]),
    ],
)
def test_examples_do_what_they_say(page: dict[str, object], pattern: str, body: str, expected: list[str]) -> None:
    module, region = parse(body, "%r")
    rewrite(module, region, page[pattern])  # type: ignore[arg-type]
    assert names(region) == expected


def test_the_page_quotes_reasons_as_they_are(page: dict[str, object]) -> None:
    pattern = page["factor_out"]
    constants = "".join(
        f'%{name} = "tfl.pseudo_const"() <{{value = dense<{value}> : tensor<f32>}}> : () -> tensor<f32>\n'
        for name, value in (("c", 1.0), ("d", 2.0))
    )
    scaled = '%{0} = "tfl.mul"(%{1}, %{2}) : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>\n'
    two = constants + scaled.format(0, "x", "c") + scaled.format(1, "y", "d")
    for body in (
        "%0 = tfl.relu %x\n%r = tfl.add %0, %y",
        two + "%r = tfl.add %0, %1\n%s = tfl.sub %0, %1",
        two + "%r = tfl.add %0, %1",
    ):
        _, region = parse(body, "%r")
        root = next(op for op in region.block.ops if op.name == "tfl.add")
        answer = pattern.match(root)  # type: ignore[attr-defined]
        assert isinstance(answer, Failure)
        assert f"\n{answer.reason}\n" in PAGE
        assert PatternSet([pattern]).reasons(root) == [f"factor-out: {answer.reason}"]  # type: ignore[list-item]
