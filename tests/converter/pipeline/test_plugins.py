"""Patterns and fusions from files and from entry points."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import tfconvert
import tfconvert.patterns
from tfconvert.composites import Fusion
from tfconvert.converter.pipeline import plugins

RULES = """
from tfconvert.composites import Fusion
from tfconvert.patterns import rule, tf, value
x = value("x")
first = rule("first", tf.Relu(x), tf.Relu6(x))
PATTERNS = [first, rule("second", tf.Elu(x), tf.Relu(x))]
FUSIONS = [Fusion("acme", "acme:*", "", lambda composite: None, lambda composite, body: ())]
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installed package that declares patterns and fusions."""
    (tmp_path / "acme_rules.py").write_text(RULES, "utf-8")
    info = tmp_path / "acme_rules-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-rules\nVersion: 1.0\n", "utf-8")
    (info / "entry_points.txt").write_text(
        "[tfconvert.patterns]\nacme = acme_rules:PATTERNS\nacme-first = acme_rules:first\nbroken = acme_gone:X\n"
        "nothing = acme_rules:x\n[tfconvert.composites]\nacme = acme_rules:FUSIONS\n",
        "utf-8",
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    rules = tmp_path / "rules.py"
    rules.write_text(RULES, "utf-8")
    monkeypatch.delitem(sys.modules, "acme_rules", raising=False)
    return rules


@pytest.mark.parametrize(
    ("name", "expected"), [("acme", ["first", "second"]), ("acme-first", ["first"]), ("acme*", ["first", "second"])]
)
def test_patterns_of_packages(package: Path, name: str, expected: list[str]) -> None:
    found = plugins.resolved([name], plugins.PATTERNS, tfconvert.patterns.Pattern, "patterns")
    assert [pattern.name for pattern in found] == expected


def test_everything_in_a_file_is_taken_once(package: Path) -> None:
    found = plugins.resolved([package], plugins.PATTERNS, tfconvert.patterns.Pattern, "patterns")
    assert [pattern.name for pattern in found] == ["first", "second"]
    (fusion,) = plugins.resolved([str(package)], plugins.COMPOSITES, Fusion, "fusions")
    assert fusion.name == "acme"


@pytest.mark.parametrize("as_path", [False, True])
def test_convert_takes_names(package: Path, digits_model: Path, as_path: bool) -> None:
    report = tfconvert.convert(
        digits_model, patterns=[package if as_path else "acme-first"], target=tfconvert.LiteRT(composites=["acme"])
    ).report
    assert report.rewrites["canonicalize"]["first"] == 1
    assert "unused-fusion" in [note.code for note in report.notes]


@pytest.mark.parametrize(
    ("name", "group", "code", "expected"),
    [
        ("nobody", plugins.PATTERNS, "wrong-option", "no installed package declares patterns named 'nobody'"),
        ("gone.py", plugins.PATTERNS, "wrong-option", "there is no file gone.py"),
        ("broken", plugins.PATTERNS, "bad-plugin", "'broken' of tfconvert.patterns, acme_gone:X, fails with"),
        ("nothing", plugins.PATTERNS, "wrong-option", "there are no patterns in the entry point 'nothing'"),
    ],
)
def test_names_that_stand_for_nothing(package: Path, name: str, group: str, code: str, expected: str) -> None:
    with pytest.raises(tfconvert.ConversionError) as caught:
        plugins.resolved([name], group, tfconvert.patterns.Pattern, "patterns")
    assert caught.value.code == code
    assert expected in str(caught.value)
    if name == "nobody":
        assert "acme, acme-first, broken" in caught.value.diagnostics[0].hint


@pytest.mark.parametrize(("text", "line"), [("\n\nx = 1 / 0\n", 3), ("def f(:\n", 0)])
def test_a_file_that_fails_names_the_line(tmp_path: Path, digits_model: Path, text: str, line: int) -> None:
    path = tmp_path / "wrong.py"
    path.write_text(text, "utf-8")
    with pytest.raises(tfconvert.ConversionError, match="wrong") as caught:
        tfconvert.convert(digits_model, patterns=[path])
    assert caught.value.code == "bad-plugin"
    assert f"wrong.py{f':{line}' if line else ''}" in str(caught.value)


def test_nothing_is_loaded_where_there_are_no_names(digits_model: Path) -> None:
    code = (
        f"import sys, tfconvert; tfconvert.convert({str(digits_model)!r}); "
        "names = ('importlib.metadata', 'tfconvert.converter.pipeline.plugins'); "
        "print([name for name in names if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
