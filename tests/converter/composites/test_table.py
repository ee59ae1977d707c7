"""Which fusion a function gets: the user's, an installed package's, or one of ours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from typing import Any

import pytest
from xdsl.ir import SSAValue

import tfconvert
from converter.composites import table
from converter.passes.prepare_composite_functions import PrepareCompositeFunctions
from schema.diagnostics import ConversionError
from tests.converter.composites.modules import LSTM, LSTM_RESULTS, keras, mark, module, text
from tfconvert.composites import Body, Composite, Fusion

INPUTS = f"tensor<{LSTM[0]}>"
SOURCE = text(mark("embedding_matmul"), ("7x3xf32", "4xi32"), ("4x3xf32",))


def _one_result(composite: Composite, body: Body) -> Sequence[SSAValue]:
    return body.tf("Gather", body.arguments, *composite.results)


OWN = Fusion("own", "embedding_*", "rows", lambda composite: None, _one_result)
PACKAGED: Any = (OWN,)


def test_the_user_s_fusions_come_first() -> None:
    assert PrepareCompositeFunctions(composites=(OWN,)).apply(module(SOURCE)) == {"own": 1}


def test_installed_packages_add_fusions(monkeypatch: pytest.MonkeyPatch) -> None:
    point = EntryPoint("ours", f"{__name__}:PACKAGED", table.ENTRY_POINTS)
    monkeypatch.setattr(table, "entry_points", lambda group: EntryPoints([point]).select(group=group))
    monkeypatch.setattr(EntryPoint, "load", lambda self: PACKAGED)
    assert table.all_fusions()[0] is OWN


def test_an_insisting_fusion_makes_an_error() -> None:
    strict = replace(OWN, check=lambda composite: "it is Monday", on_misfit="error")
    with pytest.raises(ConversionError, match="it is Monday") as caught:
        PrepareCompositeFunctions(composites=(strict,)).apply(module(SOURCE))
    assert caught.value.code == "composite-misfit"


def test_what_is_no_fusion_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.mlir"
    path.write_text(SOURCE)
    with pytest.raises(ConversionError, match="no fusion") as caught:
        tfconvert.convert(path, composites=["embedding"])  # type: ignore[list-item]
    assert caught.value.code == "wrong-option"


@pytest.mark.parametrize(
    ("rewrite", "message"),
    [
        (lambda composite, body: body.arguments, "gives 2 results, not 1"),
        (lambda composite, body: body.arguments[1:], "gives i32 as result 0, not f32"),
    ],
)
def test_a_fusion_must_give_what_the_function_gives(rewrite: Any, message: str) -> None:
    wrong = replace(OWN, rewrite=rewrite)
    with pytest.raises(ConversionError, match=message) as caught:
        PrepareCompositeFunctions(composites=(wrong,)).apply(module(SOURCE))
    assert caught.value.code == "bad-fusion"


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
    path = tmp_path / "model.mlir"
    source = text(keras("lstm_1", time_major=False), LSTM, LSTM_RESULTS)
    state = ", tensor<1x5xf32>"
    path.write_text(source.replace("(%a0, %a1, ", "(%a0, ", 1).replace(f"({INPUTS}{state}", f"({INPUTS}", 1))
    with pytest.raises(ConversionError) as caught:
        tfconvert.convert(path)
    assert caught.value.code == "bad-call"


def test_attributes_that_python_does_not_know_are_no_options() -> None:
    source = text(mark("x", tfl_fusable_op=True, a=1).replace("1 : i64", "{b = unit}"), ("2xf32",), ("2xf32",))
    run = PrepareCompositeFunctions(allow_custom_ops=True)
    assert not run.apply(module(source))
    assert "'a' is no number" in run.notes[0].message
