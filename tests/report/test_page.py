"""The page of a report: complete, closed against hostile names, without anything from elsewhere."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import tfconvert
from tests.cli.test_main import tfconvert as run
from tfconvert.report.page import render
from tfconvert.report.report import Report, StageTime
from tfconvert.schema.diagnostics import ConversionError, Diagnostic
from tfconvert.schema.fidelity import OutputError

HOSTILE = "</script><script>alert(1)</script><!--<img src=x onerror=alert(2)>\u0000\u202e\u2028&lt;\ud800"


class _Page(HTMLParser):
    """The elements of a page, and the texts of its scripts and styles."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, dict[str, str | None], str]] = []
        self.is_open = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self.is_open = tag in ("script", "style", "title")

    def handle_data(self, data: str) -> None:
        if self.is_open:
            self.texts.append((*self.elements[-1], data))

    def handle_endtag(self, tag: str) -> None:
        self.is_open = False

    def text(self, tag: str, identity: str | None = None) -> str:
        return "".join(text for name, attributes, text in self.texts if (name, attributes.get("id")) == (tag, identity))

    def data(self, identity: str) -> Any:
        return json.loads(self.text("script", identity))


@pytest.fixture(scope="module")
def digits(digits_model: Path) -> Report:
    return tfconvert.convert(digits_model, keep_graphs=True).report


def test_the_page_has_the_report_and_the_graphs(digits: Report) -> None:
    page = _Page(digits.to_html({"CONV_2D": 0.5}))
    times = page.data("times")
    assert page.data("report") | times == digits.to_dict()
    assert set(times) == {"seconds", "stages"}
    assert page.data("graphs") == digits.graphs
    assert page.data("latency") == {"CONV_2D": 0.5}


def test_a_report_of_long_ago_gives_the_same_page(digits: Report) -> None:
    saved = json.loads(json.dumps(digits.to_dict()))
    assert render(saved, digits.graphs) == digits.to_html()
    assert _Page(render({"source": "model"})).data("graphs") is None


def test_pages_differ_in_times_only(digits: Report, digits_model: Path) -> None:
    again = tfconvert.convert(digits_model, keep_graphs=True).report
    times = re.compile(r'<script type="application/json" id="times">.*?</script>', re.DOTALL)
    first, second = (times.subn("", report.to_html()) for report in (digits, again))
    assert first == second
    assert first[1] == 1


def test_nothing_is_loaded_from_elsewhere(digits: Report) -> None:
    page = _Page(digits.to_html())
    loaded = [value for _, attributes in page.elements for name, value in attributes.items() if name in ("src", "href")]
    assert {str(value)[:1] for value in loaded} <= {"#", "d"}
    assert "data:," in loaded
    assert not re.search(
        r"@import|url\(|\bfetch\(|XMLHttpRequest|innerHTML|\beval\(", page.text("script") + page.text("style")
    )


def test_the_policy_allows_this_script_and_this_style_alone(digits: Report) -> None:
    page = _Page(digits.to_html())
    policy = next(a["content"] for _, a in page.elements if a.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    for tag in ("script", "style"):
        digest = base64.b64encode(hashlib.sha256(page.text(tag).encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy


def test_hostile_names_stay_text() -> None:
    note = Diagnostic("code", HOSTILE, op=HOSTILE, node=HOSTILE)
    report = Report(HOSTILE, stages=(StageTime("import", 1.0),), notes=(note,))
    nodes = [{"op": HOSTILE, "name": HOSTILE, "attributes": {HOSTILE: HOSTILE}}]
    graphs = {
        "before": [],
        "after": [{"name": HOSTILE, "keys": [HOSTILE], "live_bytes": 0, "nodes": nodes}],
        "stages": [],
    }
    text = render(report.to_dict(), graphs, {HOSTILE: 1.0})
    page, plain = _Page(text), _Page(render(Report("m").to_dict()))
    assert [tag for tag, _ in page.elements] == [tag for tag, _ in plain.elements]
    assert page.data("report")["notes"][0]["node"] == HOSTILE
    assert page.data("graphs")["after"][0]["nodes"][0]["name"] == HOSTILE
    assert "\\u{202e}" in page.text("title")
    text.encode()  # A lone surrogate could not be written.


def test_contents_that_look_like_the_template_are_left_alone() -> None:
    assert _Page(render({"source": "{{script}}"})).data("report") == {"source": "{{script}}"}


def test_numbers_that_json_does_not_have() -> None:
    report = Report("m", verification=(OutputError("main", "y", float("nan"), float("inf")),))
    text = _Page(render(report.to_dict(), {"value": float("inf")})).text("script", "report")
    (verification,) = json.loads(text, parse_constant=pytest.fail)["verification"]
    assert (verification["max_absolute"], verification["max_relative"]) == (None, None)
    assert verification["why_null"] == {"max_absolute": "undefined", "max_relative": "infinite"}


def test_saved_whole_or_not_at_all(digits: Report, tmp_path: Path) -> None:
    digits.save(tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text("utf-8") == digits.to_html()
    with pytest.raises(ConversionError) as caught:
        digits.save(tmp_path / "missing" / "report.html")
    assert caught.value.code == "output-not-writable"


def test_the_command_writes_both_files(digits_model: Path, tmp_path: Path) -> None:
    page, explorer = tmp_path / "report.html", tmp_path / "graphs.json"
    done = run(digits_model, "-o", tmp_path / "m.tflite", "-q", "--report", page, "--model-explorer", explorer)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    shown = _Page(page.read_text("utf-8"))
    assert shown.data("report")["size"] == (tmp_path / "m.tflite").stat().st_size
    assert shown.data("times")["stages"][-1]["name"] == "write"
    assert len(shown.data("graphs")["after"]) == len(json.loads(explorer.read_text("utf-8"))["graphs"]) / 2


def test_the_command_reports_what_it_can_not_write(digits_model: Path, tmp_path: Path) -> None:
    done = run(digits_model, "-o", tmp_path / "m.tflite", "--report", tmp_path / "missing" / "report.html")
    assert done.returncode == 1
    assert "can't write" in done.stderr
    assert "Traceback" not in done.stderr
