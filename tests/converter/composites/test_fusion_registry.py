"""Fusions of the user, of installed packages and of the target are found in this order."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import tfconvert
from tests.converter.composites.modules import LSTM, LSTM_RESULTS, branching, keras, looped, mark, module, text
from tests.support.run_text import parse
from tfconvert.composites import Body, Composite, Fusion
from tfconvert.converter.composites import fusion_registry
from tfconvert.converter.passes.inline import Inline
from tfconvert.converter.targets.litert.passes.prepare_composite_functions import PrepareCompositeFunctions
from tfconvert.ops.verification import verify
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.ir.values import Value

INPUTS = f"tensor<{LSTM[0]}>"
LOOK_UP = mark("embedding_matmul"), ("7x3xf32", "4xi32"), ("4x3xf32",)
SOURCE = text(*LOOK_UP)


def _one_result(composite: Composite, body: Body) -> Sequence[Value]:
    return body.tf("Gather", body.arguments, *composite.results)


OWN = Fusion("own", "embedding_*", "rows", lambda composite: None, _one_result)


def test_the_user_s_fusions_come_first() -> None:
    assert PrepareCompositeFunctions(composites=(OWN,)).apply(module(SOURCE)).counts == {"own": 1}


def test_recurrent_fusions_are_left_out_where_loops_are_to_stay() -> None:
    run = PrepareCompositeFunctions(composites=(replace(OWN, is_recurrent=True),), fuses_recurrent=False)
    result = run.apply(module(SOURCE))
    assert result.counts == {"embedding-matmul": 1}
    assert "unused-fusion" not in {note.code for note in result.notes}


@pytest.mark.parametrize(
    "source",
    [
        SOURCE.replace("PartitionedCall", "StatefulPartitionedCall"),
        SOURCE.replace('"tf.Mystery"(%a0, %a1)', '"tf.PartitionedCall"(%a0, %a1) <{f = @f}>'),
        SOURCE.replace("func.func private @f", "func.func @f"),
        branching(*LOOK_UP),
        looped(*LOOK_UP),
    ],
    ids=["stateful", "recursive", "public", "branch", "loop"],
)
def test_it_does_not_matter_who_runs_a_function(source: str) -> None:
    parsed = module(source)
    assert PrepareCompositeFunctions().apply(parsed).counts == {"embedding-matmul": 1}
    verify(parsed)


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Returns a function that makes Python find a package with an entry point: its module's code, and what it names."""

    def install_(code: str, names: str) -> None:
        (tmp_path / "acme_fusions.py").write_text(code)
        folder = tmp_path / "acme-1.0.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n")
        (folder / "entry_points.txt").write_text(f"[{fusion_registry.ENTRY_POINTS}]\nacme = acme_fusions:{names}\n")
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.delitem(sys.modules, "acme_fusions", raising=False)

    return install_


PACKAGE = """
from tfconvert.composites import Fusion

def rewrite(composite, body):
    return body.tf("Gather", body.arguments, *composite.results)

FUSIONS = (Fusion("acme", "embedding_*", "rows", lambda composite: None, rewrite),)
"""


def test_installed_packages_add_fusions(tmp_path: Path, install: Callable[[str, str], None]) -> None:
    install(PACKAGE, "FUSIONS")
    path = tmp_path / "model.mlir"
    path.write_text(SOURCE)
    report = tfconvert.convert(path).report
    assert report.rewrites["prepare-composite-functions"] == {"acme": 1}
    assert dict(report.operators) == {"GATHER": 1}


@pytest.mark.parametrize(
    ("code", "names", "message"),
    [
        (PACKAGE, "MISSING", "'acme' of tfconvert.composites, acme_fusions:MISSING, fails with AttributeError"),
        ("1 / 0", "FUSIONS", r"fails with ZeroDivisionError: division by zero"),
        ("FUSIONS = 7", "FUSIONS", "is 7, which is not a sequence of fusions"),
        ("FUSIONS = [7]", "FUSIONS", "holds 7, which is not a fusion"),
    ],
)
def test_a_package_that_is_wrong_is_named(
    install: Callable[[str, str], None], code: str, names: str, message: str
) -> None:
    install(code, names)
    with pytest.raises(ConversionError, match=message):
        fusion_registry.all_fusions()


def test_an_insisting_fusion_makes_an_error() -> None:
    strict = replace(OWN, check=lambda composite: "it is Monday", on_misfit="error")
    with pytest.raises(ConversionError, match="it is Monday") as caught:
        PrepareCompositeFunctions(composites=(strict,)).apply(module(SOURCE))
    assert caught.value.code == "composite-misfit"


@pytest.mark.parametrize(("given", "message"), [([7], "not a fusion"), (OWN, "use a list of fusions")])
def test_what_is_no_fusion_is_refused(tmp_path: Path, given: Any, message: str) -> None:
    path = tmp_path / "model.mlir"
    path.write_text(SOURCE)
    with pytest.raises(ConversionError, match=message) as caught:
        tfconvert.convert(path, target=tfconvert.LiteRT(composites=given))
    assert caught.value.code == "wrong-option"


def test_a_given_fusion_that_nothing_asks_for_is_told(tmp_path: Path) -> None:
    path = tmp_path / "model.mlir"
    path.write_text(SOURCE.replace('tf._implements = "embedding_matmul"', "").replace("tf.Mystery", "tf.Gather"))
    notes = tfconvert.convert(path, target=tfconvert.LiteRT(composites=[OWN])).report.notes
    assert [note.code for note in notes] == ["unused-fusion"]
    assert "'embedding_*'" in notes[0].message


def test_the_report_tells_what_was_fused_and_what_was_not(tmp_path: Path) -> None:
    path = tmp_path / "model.mlir"
    path.write_text(SOURCE)
    report = tfconvert.convert(path).report
    assert report.rewrites["prepare-composite-functions"] == {"embedding-matmul": 1}
    body = '"tf.Mystery"(%a0) : (tensor<2xf32>)'
    marked = text(mark("x", tfl_fusable_op=True), ("2xf32",), ("2xf32",))
    path.write_text(marked.replace(body, body.replace("Mystery", "Relu")))
    report = tfconvert.convert(path).report
    assert [note.code for note in report.notes] == ["composite-kept"]
    assert dict(report.operators) == {"RELU": 1}


def test_a_call_that_does_not_fit_is_left_to_inlining(tmp_path: Path) -> None:
    source = text(keras("lstm_1", time_major=False), LSTM, LSTM_RESULTS)
    state = ", tensor<1x5xf32>"
    source = source.replace("(%a0, %a1, ", "(%a0, ", 1).replace(f"({INPUTS}{state}", f"({INPUTS}", 1)
    module = parse(source, with_relations=False)
    PrepareCompositeFunctions().apply(module)
    with pytest.raises(ConversionError) as caught:
        Inline().apply(module)
    assert caught.value.code == "bad-call"


def test_attributes_that_python_does_not_know_are_no_options() -> None:
    source = text(mark("x", tfl_fusable_op=True, a=1).replace("1 : i64", "{b = unit}"), ("2xf32",), ("2xf32",))
    result = PrepareCompositeFunctions(allow_custom_ops=True).apply(module(source))
    assert not result.counts
    assert "'a' is not a number" in result.notes[0].message
