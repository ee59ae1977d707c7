"""The pages of files, of models before their conversion, of failures, and of two files side by side."""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfconvert
from tests.cli.test_main import tfconvert as run
from tfconvert.importers.source import Source
from tfconvert.report.graph import MAX_NUMBERS, MAX_TENSORS, histogram
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.settings.options import Options
from tfconvert.settings.targets import LiteRT
from tfconvert.tools import view as job
from tfconvert.tools.bench import measure
from tfconvert.tools.view import view, view_page

FAILS = """
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> attributes {
    tf.entry_function = {inputs = "x", outputs = "y"}} {
  %0 = "tf.Tanh"(%x) : (tensor<4xf32>) -> tensor<4xf32> loc("squash")
  %1 = "tf.BesselK0"(%0) : (tensor<4xf32>) -> tensor<4xf32> loc("gamma")
  %2 = "tf.BesselK0"(%1) : (tensor<4xf32>) -> tensor<4xf32> loc("again")
  return %2 : tensor<4xf32>
}"""

ADDS = """
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> attributes {{
    tf.entry_function = {{inputs = "x", outputs = "y"}}}} {{
  %0 = "tf.Const"() {{value = dense<{value}> : tensor<f32>}} : () -> tensor<f32>
  %1 = "tf.Tanh"(%x) : (tensor<4xf32>) -> tensor<4xf32> loc("squash")
  %2 = "tf.AddV2"({read}, %0) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32> loc("sum")
  %3 = "tf.Cos"(%2) : (tensor<4xf32>) -> tensor<4xf32> loc("wave")
  return %3 : tensor<4xf32>
}}"""


def two_files() -> tuple[bytes, bytes]:
    """Returns two files: the second lacks the operator TANH, and adds another number."""
    texts = (ADDS.format(value="1.0", read="%1"), ADDS.format(value="2.0", read="%x"))
    return bytes(_converted(texts[0])), bytes(_converted(texts[1]))


def _converted(text: str) -> tfconvert.Model:
    with tempfile.NamedTemporaryFile(suffix=".mlir", mode="w") as file:
        file.write(text)
        file.flush()
        return tfconvert.convert(file.name)


@pytest.fixture
def failing(tmp_path: Path) -> Path:
    path = tmp_path / "gamma.mlir"
    path.write_text(FAILS)
    return path


@pytest.fixture(scope="module")
def digits_file(digits_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("file") / "digits.tflite"
    tfconvert.convert(digits_model, signatures="serving_default").save(path)
    return path


def _nodes(graphs: Any, side: str) -> dict[str, Any]:
    return {node["name"]: node for function in graphs[side] for node in function["nodes"]}


def test_the_page_of_a_file_says_what_the_report_of_its_conversion_does(digits_model: Path, digits_file: Path) -> None:
    shown = view(digits_file)
    made = tfconvert.convert(digits_model, signatures="serving_default", keep_graphs=True).report
    known = made.to_dict()
    for name in ("size", "operators", "bytes_by_operator", "operator_versions", "min_runtime_version", "arena"):
        assert shown.report[name] == known[name], name
    assert (shown.kind, shown.report["kind"], shown.report["source"]) == ("file", "file", str(digits_file))
    assert shown.graphs is not None
    assert made.graphs is not None
    assert shown.graphs["before"] == []
    ours, theirs = (graphs["after"][0]["nodes"] for graphs in (shown.graphs, made.graphs))
    assert [node["op"] for node in ours] == [node["op"] for node in theirs]
    assert [node.get("macs") for node in ours] == [node.get("macs") for node in theirs]
    assert {each["accelerator"] for each in shown.report["accelerators"]} == {"gpu", "npu", "micro", "ethos-u"}
    assert shown.report["file"]["constants"] == sum(node.get("bytes", 0) for node in ours)


def test_bytes_are_a_file_too(digits_file: Path) -> None:
    assert view(digits_file.read_bytes()).graphs == view(digits_file).graphs


def test_the_same_file_gives_the_same_page(digits_file: Path) -> None:
    assert view_page(digits_file) == view_page(digits_file)


def test_a_model_is_shown_with_its_conversion(digits_model: Path) -> None:
    shown = view(digits_model, options=Options(keep_graphs=False))
    assert shown.kind == "conversion"
    assert shown.graphs is not None
    assert len(shown.graphs["before"]) == len(shown.graphs["after"]) == 1
    assert len(shown.graphs["accelerators"]) == 4
    assert shown.failure is None


def test_a_model_that_fails_is_shown_with_what_it_fails_on(failing: Path) -> None:
    shown = view(failing)
    assert shown.kind == "failed"
    assert shown.failure is not None
    assert [each.op for each in shown.failure.diagnostics] == ["tf.BesselK0"]
    assert shown.report["failure"]["errors"] == [each.to_dict() for each in shown.failure.diagnostics]
    nodes = _nodes(shown.graphs, "before")
    assert {name: node.get("problems") for name, node in nodes.items() if node["op"] not in ("Input", "Output")} == {
        "squash": None,
        "gamma": [0],
        "again": [0],
    }


def test_the_settings_of_the_conversion_count(failing: Path) -> None:
    shown = view(failing, options=Options(target=LiteRT(allow_custom_ops=True)))
    assert shown.kind == "conversion"
    assert shown.report["custom_operators"] == {"BesselK0": 2}


def test_errors_before_there_is_a_graph_have_a_page_without_one(tmp_path: Path) -> None:
    shown = view(tmp_path / "nothing")
    assert (shown.kind, shown.graphs) == ("failed", None)
    assert shown.report["failure"]["errors"][0]["code"] == "model-not-found"
    with pytest.raises(ConversionError) as caught:
        view(tmp_path / "nothing.tflite")
    assert caught.value.code == "model-not-found"


def test_two_files_are_matched_and_their_differences_named() -> None:
    first, second = two_files()
    shown = view(first, second)
    assert shown.kind == "comparison"
    before, after = (_nodes(shown.graphs, side) for side in ("before", "after"))
    assert before["squash"]["change"] == "removed"
    assert before["sum"]["changes"] == after["sum"]["changes"] == ["input 1: f32[] 1 -> f32[] 2"]
    assert {name for name, node in after.items() if "change" in node} == {"sum"}
    assert shown.report["changes"] == {"changed": 2, "removed": 1}
    assert shown.graphs is not None
    (function,) = shown.graphs["after"]
    pairs = {
        function["nodes"][int(index)]["name"]: shown.graphs["before"][number]["nodes"][place]["name"]
        for index, links in function["links"].items()
        for number, place in links["from"]
    }
    assert pairs == {name: name for name in ("x", "sum", "y")}


def test_a_file_does_not_differ_from_itself(digits_model: Path, digits_file: Path) -> None:
    assert view(digits_file, digits_file).report["changes"] == {}
    assert view(Source(digits_model, signatures=["serving_default"]), digits_file).report["changes"] == {}


def test_other_weights_are_a_difference(digits_file: Path) -> None:
    content = bytearray(digits_file.read_bytes())
    weights = np.frombuffer(content, np.float32, offset=len(content) // 2 // 4 * 4, count=64)
    weights[:] = 0.25
    changes = view(digits_file, content).report["changes"]
    assert changes.get("changed", 0) >= 2


def test_latency_is_that_of_the_operators(digits_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job, "measure", lambda path: measure(path, runs=1))
    shown = view(digits_file, bench=True)
    assert shown.graphs is not None
    ops = [node for node in shown.graphs["after"][0]["nodes"] if node["op"] not in ("Input", "Output")]
    assert len(shown.latency) == len(ops)
    assert all(each is not None and each > 0 for each in shown.latency)


def test_histograms_count_what_is_there() -> None:
    found = histogram(np.array([0.0, 0.0, 1.0, 2.0, np.inf], np.float32))
    assert found is not None
    assert (found["low"], found["high"], found["mean"], found["zeros"], found["not_finite"]) == (0, 2, 0.75, 2, 1)
    assert sum(found["bins"]) == 4
    many = histogram(np.arange(MAX_NUMBERS * 3 + 1, dtype=np.int32))
    assert many is not None
    assert many["numbers"] == MAX_NUMBERS * 3 + 1
    assert many["looked_at"] <= MAX_NUMBERS
    assert histogram(np.zeros(0, np.float32)) is None
    assert "bins" not in (histogram(np.zeros(20, np.float32)) or {})


def test_few_tensors_have_histograms(digits_file: Path) -> None:
    shown = view(digits_file)
    assert shown.graphs is not None
    operands = [each for node in shown.graphs["after"][0]["nodes"] for each in node.get("operands", ())]
    found = [each for each in operands if isinstance(each, dict) and "histogram" in each]
    assert 0 < len(found) <= MAX_TENSORS


def _page(path: Path) -> Any:
    found = re.search(r'<script type="application/json" id="report">(.*?)</script>', path.read_text("utf-8"), re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def test_the_command_writes_the_page_and_opens_it(digits_file: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    done = run("view", digits_file, "-o", page, "--no-open")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{page}\n", "")
    assert _page(page)["kind"] == "file"
    opened = run("view", digits_file, BROWSER="echo opened %s", TMPDIR=str(tmp_path))
    assert opened.returncode == 0
    path, shown = opened.stdout.splitlines()
    assert shown == f"opened {Path(path).as_uri()}"
    assert Path(path).name == "digits.html"


def test_the_command_shows_failures_and_says_them(failing: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    done = run("view", failing, "-o", page, "--no-open")
    assert done.returncode == 0
    assert "tf.BesselK0" in done.stderr
    assert _page(page)["kind"] == "failed"
    missing = run("view", tmp_path / "nothing", "-o", tmp_path / "none.html", "--no-open")
    assert missing.returncode == 2
    assert "doesn't exist" in missing.stderr
    assert not (tmp_path / "none.html").exists()


def test_a_conversion_that_fails_writes_its_page(failing: Path, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    done = run(failing, "-o", tmp_path / "x.tflite", "--report", page)
    assert done.returncode == 1
    assert not (tmp_path / "x.tflite").exists()
    assert _page(page)["failure"]["errors"][0]["code"] == "unsupported-op"


def test_a_conversion_opens_its_report(digits_model: Path, tmp_path: Path) -> None:
    done = run(digits_model, "-o", tmp_path / "d.tflite", "-q", "--open", BROWSER="echo %s", TMPDIR=str(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("file://")
    assert done.stdout.endswith("/d.html\n")


def test_measuring_is_for_a_page(digits_model: Path, tmp_path: Path) -> None:
    done = run(digits_model, "-o", tmp_path / "d.tflite", "--bench")
    assert done.returncode == 2
    assert "--bench goes with --report or --open" in done.stderr
