"""The report, as data and as text."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from tfconvert.converter.ir.interface import Interface, Tensor, interfaces
from tfconvert.converter.pipeline.pass_result import FLOAT, NOTHING_DONE, LayerReport, PassResult, QuantizationReport
from tfconvert.importers.mlir import import_mlir
from tfconvert.report.report import Recorder, Report, StageTime, ranked
from tfconvert.schema.diagnostics import WARNING, Diagnostic
from tfconvert.schema.fidelity import OutputError


@pytest.fixture
def report() -> Report:
    """Returns a report that has everything."""
    return Report(
        "model",
        stages=(StageTime("import", 0.25), StageTime("legalize", 0.5), StageTime("export", 0.0125)),
        operations_before=Counter({"Conv2D": 2, "BiasAdd": 2, "Relu": 1}),
        operators=Counter({"CONV_2D": 2, "ADD": 7}),
        bytes_by_operator=Counter({"CONV_2D": 1_500_000, "ADD": 40}),
        rewrites={"freeze-variables": Counter({"frozen": 4}), "optimize": Counter({"fold-bias": 2})},
        headings={"optimize": "fused and folded"},
        frozen_variables=4,
        interfaces=(Interface("f", ("a", "b"), (Tensor("x", "f32[?,3]"),), (Tensor("y", "f32[?]"),)),),
        size=1_502_000,
        verification=(OutputError("a", "y", 1e-5, 2e-6),),
        notes=(Diagnostic("dropped", "an assertion is gone", op="tf.Assert", severity=WARNING),),
        operator_versions={"CONV_2D": 3, "ADD": 1},
        min_runtime_version="2.3.0",
    )


def test_data_is_plain_and_complete(report: Report) -> None:
    data = report.to_dict()
    assert json.loads(json.dumps(data)) == data
    assert data["frozen_variables"] == 4
    assert data["seconds"] == pytest.approx(0.7625)
    assert data["functions"][0]["inputs"] == {"x": "f32[?,3]"}
    assert data["verification"][0]["max_relative"] == 2e-6
    assert data["notes"][0]["severity"] == "warning"
    assert list(data["operators"]) == ["ADD", "CONV_2D"]
    assert data["operator_versions"] == {"ADD": 1, "CONV_2D": 3}
    assert data["min_runtime_version"] == "2.3.0"
    assert data["headings"] == {"optimize": "fused and folded"}


def test_types_are_taken_apart_for_programs() -> None:
    text = """
    func.func @main(%x: tensor<?x3x!quant.uniform<i8:f32, 0.5:-3>>, %s: tensor<*x!tf_type.string>) -> tensor<2xbf16>
        attributes {tf.entry_function = {inputs = "x,s", outputs = "y"}} {
      %y = "tf.Const"() <{value = dense<1.0> : tensor<2xbf16>}> : () -> tensor<2xbf16>
      func.return %y : tensor<2xbf16>
    }
    """
    (function,) = (interface.to_dict() for interface in interfaces(import_mlir(text)))
    assert function["arguments"] == [
        {"name": "x", "dtype": "int8", "shape": [None, 3], "scale": 0.5, "zero_point": -3},
        {"name": "s", "dtype": "string", "shape": None},
    ]
    assert function["results"] == [{"name": "y", "dtype": "bfloat16", "shape": [2]}]
    assert function["inputs"] == {"x": "i8[?,3] (scale 0.5, zero point -3)", "s": "string[...]"}


def test_text_tells_the_main_things(report: Report) -> None:
    text = report.to_text("model.tflite")
    for part in (
        "model -> model.tflite",
        "1.50 MB",
        "9 operators from 5 TensorFlow ops, 0.76 s",
        "a, b: x f32[?,3] -> y f32[?]",
        "CONV_2D",
        "fold-bias",
        "verified a/y",
        "warning: tf.Assert: an assertion is gone",
    ):
        assert part in text, part
    assert str(report) == report.to_text()
    assert repr(report) == str(report)


def test_it_says_what_the_model_is_made_of_and_names_all_files(report: Report) -> None:
    report = report._replace(
        operations_before=Counter({"add": 1}), operations_kind="StableHLO op", beside=(".safetensors", ".mlir")
    )
    lines = report.to_text("out.d/m.vmfb").splitlines()
    assert lines[0] == "model -> out.d/m.vmfb, out.d/m.safetensors, out.d/m.mlir"
    assert lines[1] == "  1.50 MB, 9 operators from 1 StableHLO op, 0.76 s"
    assert "StableHLO ops:" in report.to_text(verbose=True)
    assert report.to_dict()["beside"] == [".safetensors", ".mlir"]


def test_times_are_for_the_verbose_text(report: Report) -> None:
    assert "legalize" not in report.to_text()
    assert "500.0 ms" in report.to_text(verbose=True)


def test_operators_come_largest_first(report: Report) -> None:
    lines = report.to_text().splitlines()
    rows = [line for line in lines if "CONV_2D" in line or "ADD" in line]
    assert "CONV_2D" in rows[0]
    assert "1.50 MB" in rows[0]
    assert "40 B" in rows[1]


def test_only_verbose_text_lists_everything(report: Report) -> None:
    report = report._replace(operators=Counter({f"OP_{index:02}": index + 1 for index in range(30)}))
    short, long = report.to_text(), report.to_text(verbose=True)
    assert "and 22 more" in short
    assert "OP_00" not in short
    assert all(name in long for name in report.operators)
    assert "BiasAdd" in long
    assert "BiasAdd" not in short
    assert "import" in long


def test_only_verbose_text_lists_layers() -> None:
    layers = (
        LayerReport("a", "Conv2D", "int8", low=-1.5, high=0.30004, weight_snr=41.26),
        LayerReport("b", "MatMul", "dynamic", reason="its range is not known"),
        *(LayerReport(f"c{index}", "Tanh", FLOAT, "left out") for index in range(9)),
    )
    report = QuantizationReport(layers)
    rows = report.lines(None)
    assert rows[rows.index("  layers:") + 1 :] == [
        "    Conv2D a: int8, -1.5 to 0.3, weight 41.3 dB",
        "    MatMul b: dynamic, its range is not known",
    ]
    assert "    Tanh c8: left out" in rows
    assert not {"  layers:", "    Tanh c8: left out"} & set(report.lines(3))


def test_counts_of_one_pass_are_added_up() -> None:
    recorder = Recorder()
    note = Diagnostic("a", "b", severity=WARNING)
    recorder.add("cse", PassResult.of({"cse": 2, "none": 0}))
    recorder.add("optimize", PassResult(Counter(a=1), [note], "fused", 3))
    recorder.add("cse", PassResult(Counter(cse=1), [note], frozen_variables=1, operations=Counter(Relu=1)))
    recorder.add("inline", NOTHING_DONE)
    report = recorder.report("model")
    assert report.rewrites == {"cse": {"cse": 3}, "optimize": {"a": 1}}
    assert (report.notes, report.frozen_variables, report.operations_before) == ((note,), 4, {"Relu": 1})
    assert "fused:" in report.to_text()
    assert "cse:" not in report.to_text()


def test_an_empty_report_is_printed() -> None:
    empty = Report("nothing")
    assert empty.frozen_variables == 0
    assert empty.seconds == 0
    assert "0 operators" in empty.to_text()
    assert empty.to_dict()["verification"] == []


def test_equal_counts_are_in_the_order_of_their_names() -> None:
    assert list(ranked(Counter({"b": 1, "a": 1, "c": 2}))) == ["c", "a", "b"]
