"""The graphs that a report keeps: what is in them, and how those before and after belong together."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import tfconvert
from tests.converter.targets.litert.recurrent.loops import lstm_loop
from tests.support.run_text import parse
from tfconvert.report.graph import macs
from tfconvert.report.report import Report
from tfconvert.schema.dialects.func import FuncOp

LOOP = """
module {
  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> attributes {
      tf.entry_function = {inputs = "x", outputs = "y"}} {
    %0 = "tf.Const"() {value = dense<2.0> : tensor<f32>} : () -> tensor<f32>
    %1 = "tf.Const"() {value = dense<3> : tensor<i32>} : () -> tensor<i32>
    %2:2 = "tf.While"(%1, %x) {cond = @cond, body = @body, is_stateless = true} :
        (tensor<i32>, tensor<4xf32>) -> (tensor<i32>, tensor<4xf32>)
    %3 = "tf.Mul"(%2#1, %0) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32> loc("scaled"("model.py":7:3))
    return %3 : tensor<4xf32>
  }
  func.func private @cond(%i: tensor<i32>, %x: tensor<4xf32>) -> tensor<i1> {
    %0 = "tf.Const"() {value = dense<0> : tensor<i32>} : () -> tensor<i32>
    %1 = "tf.Greater"(%i, %0) : (tensor<i32>, tensor<i32>) -> tensor<i1>
    return %1 : tensor<i1>
  }
  func.func private @body(%i: tensor<i32>, %x: tensor<4xf32>) -> (tensor<i32>, tensor<4xf32>) {
    %0 = "tf.Const"() {value = dense<1> : tensor<i32>} : () -> tensor<i32>
    %1 = "tf.Sub"(%i, %0) : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %2 = "tf.Tanh"(%x) : (tensor<4xf32>) -> tensor<4xf32> loc("cell/tanh")
    return %1, %2 : tensor<i32>, tensor<4xf32>
  }
}
"""


@pytest.fixture(scope="module")
def digits(digits_model: Path) -> Report:
    return tfconvert.convert(digits_model, signatures="serving_default", keep_graphs=True).report


def _graphs(report: Report) -> Any:
    assert report.graphs is not None
    return report.graphs


def _named(function: Any, op: str) -> Any:
    return next(node for node in function["nodes"] if node["op"] == op)


def test_graphs_are_kept_on_request_only(digits_model: Path) -> None:
    assert tfconvert.convert(digits_model).report.graphs is None


def test_nothing_is_loaded_for_graphs_that_nobody_wants(digits_model: Path) -> None:
    program = (
        f"import sys, tfconvert\nbytes(tfconvert.convert({str(digits_model)!r}))\n"
        "print([name for name in sys.modules if 'report_page' in name])"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_graphs_are_plain_data_and_the_same_every_time(digits: Report, digits_model: Path) -> None:
    graphs = _graphs(digits)
    again = tfconvert.convert(digits_model, signatures="serving_default", keep_graphs=True).report
    assert json.loads(json.dumps(graphs)) == graphs
    assert json.dumps(_graphs(again)) == json.dumps(graphs)


def test_nodes_are_the_ops_that_the_report_counts(digits: Report) -> None:
    graphs = _graphs(digits)
    for side, counts in (("before", digits.operations_before), ("after", digits.operators)):
        nodes = [node["op"] for function in graphs[side] for node in function["nodes"]]
        found = {op: nodes.count(op) for op in nodes if op not in ("Input", "Output", "Identity")}
        assert found == {op: count for op, count in counts.items() if op != "Identity"}


def test_operands_are_nodes_or_constants(digits: Report) -> None:
    (function,) = _graphs(digits)["after"]
    nodes = function["nodes"]
    convolution = _named(function, "CONV_2D")
    (source, result), weights, bias = convolution["operands"]
    assert (nodes[source]["op"], nodes[source]["name"], result) == ("Input", "pixels", 0)
    assert weights["type"] == "f32[24,3,3,1]"
    assert weights["bytes"] == 24 * 3 * 3 * 4
    assert convolution["bytes"] == weights["bytes"] + bias["bytes"]
    assert convolution["attributes"]["padding"] == "SAME"
    assert convolution["attributes"]["stride_h"] == "1"
    assert convolution["types"] == ["f32[?,8,8,24]"]
    assert sum(node.get("bytes", 0) for node in nodes) == sum(digits.bytes_by_operator.values())


def test_a_fused_operator_is_in_the_layer_of_its_weights_and_leads_to_what_it_replaces(digits: Report) -> None:
    graphs = _graphs(digits)
    (function,), (before,) = graphs["after"], graphs["before"]
    convolution = _named(function, "CONV_2D")
    links = function["links"][str(function["nodes"].index(convolution))]
    assert [before["nodes"][index]["op"] for _, index in links["from"]] == ["Conv2D", "Mul", "AddV2"]
    assert convolution["scope"].endswith("stem_1/convolution")
    assert any(before["nodes"][index]["op"] == "Sub" for _, index in links["folded"])


def test_weights_are_operands_before(digits: Report) -> None:
    (before,) = _graphs(digits)["before"]
    convolution = _named(before, "Conv2D")
    assert convolution["operands"][1] == {"type": "f32[3,3,1,24]", "name": "stem/kernel_1", "bytes": 864}
    assert convolution["attributes"]["strides"] == "[1, 1, 1, 1]"
    assert not {"ReadVariableOp", "VarHandleOp", "Const"} & {node["op"] for node in before["nodes"]}


def test_functions_of_loops_and_source_lines(tmp_path: Path) -> None:
    path = tmp_path / "loop.mlir"
    path.write_text(LOOP)
    graphs = _graphs(tfconvert.convert(path, keep_graphs=True).report)
    assert len(graphs["before"]) == 3
    assert len(graphs["after"]) == 3
    loop = _named(graphs["after"][0], "WHILE")
    assert loop["calls"] == [function["name"] for function in graphs["after"][1:]]
    scaled = _named(graphs["after"][0], "MUL")
    assert scaled["sources"] == ["model.py:7"]
    assert scaled["operands"][1]["value"] == "2"
    assert _named(graphs["after"][2], "TANH")["name"] == "cell/tanh"


def test_custom_operators_have_their_own_names(tmp_path: Path) -> None:
    path = tmp_path / "custom.mlir"
    path.write_text("""
      func.func @main(%x: tensor<2x4xf32>) -> tensor<2x4xf32> attributes {
          tf.entry_function = {inputs = "x", outputs = "y"}} {
        %0 = "tf.Mystery"(%x) {rate = 0.5 : f32} : (tensor<2x4xf32>) -> tensor<2x4xf32>
        return %0 : tensor<2x4xf32>
      }""")
    report = tfconvert.convert(path, keep_graphs=True, target=tfconvert.LiteRT(allow_custom_ops=True)).report
    assert _named(_graphs(report)["after"][0], "Mystery")["types"] == ["f32[2,4]"]


def test_operands_that_are_left_out_are_none(tmp_path: Path) -> None:
    path = tmp_path / "lstm.mlir"
    path.write_text(lstm_loop())
    (function,) = _graphs(tfconvert.convert(path, keep_graphs=True).report)["after"]
    peepholes = _named(function, "UNIDIRECTIONAL_SEQUENCE_LSTM")["operands"][9:12]
    assert [each["value"] for each in peepholes] == ["none"] * 3


def test_memory_is_that_of_the_tensors_which_live_at_one_time(tmp_path: Path) -> None:
    path = tmp_path / "chain.mlir"
    path.write_text("""
      func.func @main(%x: tensor<?x10xf32>) -> tensor<?x10xf32> attributes {
          tf.entry_function = {inputs = "x", outputs = "y"}} {
        %0 = "tf.Tanh"(%x) : (tensor<?x10xf32>) -> tensor<?x10xf32>
        %1 = "tf.Cos"(%0) : (tensor<?x10xf32>) -> tensor<?x10xf32>
        %2 = "tf.Sin"(%1) : (tensor<?x10xf32>) -> tensor<?x10xf32>
        %3 = "tf.Exp"(%2) : (tensor<?x10xf32>) -> tensor<?x10xf32>
        return %3 : tensor<?x10xf32>
      }""")
    (function,) = _graphs(tfconvert.convert(path, keep_graphs=True).report)["after"]
    assert function["live_bytes"] == 2 * 10 * 4


def test_each_stage_has_its_number_of_ops(digits: Report) -> None:
    stages = _graphs(digits)["stages"]
    assert [stage["name"] for stage in stages] == [
        stage.name for stage in digits.stages if stage.name not in ("load", "import", "export")
    ]
    assert stages[-1]["ops"] == sum(digits.operators.values())
    assert stages[0]["ops"] > stages[-1]["ops"]


def test_a_failure_has_the_report_up_to_it_if_graphs_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "custom.mlir"
    path.write_text("""
      func.func @main(%x: tensor<2x4xf32>) -> tensor<2x4xf32> attributes {
          tf.entry_function = {inputs = "x", outputs = "y"}} {
        %0 = "tf.BesselK0"(%x) : (tensor<2x4xf32>) -> tensor<2x4xf32> loc("gamma")
        return %0 : tensor<2x4xf32>
      }""")
    with pytest.raises(tfconvert.ConversionError) as caught:
        tfconvert.convert(path)
    assert caught.value.report is None
    with pytest.raises(tfconvert.ConversionError) as caught:
        tfconvert.convert(path, keep_graphs=True)
    report = caught.value.report
    assert report.to_dict()["failure"] == caught.value.to_dict()
    assert _named(_graphs(report)["before"][0], "BesselK0")["problems"] == [0]
    copy = pickle.loads(pickle.dumps(caught.value))  # noqa: S301  # our own
    assert (copy.to_dict(), str(copy), copy.report) == (caught.value.to_dict(), str(caught.value), None)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('"tf.MatMul"(%x, %c) : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>', 2 * 4 * 3),
        ('"tf.MatMul"(%t, %c) {transpose_a = true} : (tensor<4x2xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>', 2 * 4 * 3),
        ('"tf.Relu"(%x) : (tensor<2x4xf32>) -> tensor<2x4xf32>', 0),
        (
            '"tf.Conv2D"(%i, %f) {padding = "SAME", strides = [1, 1, 1, 1]} : '
            "(tensor<?x8x8x2xf32>, tensor<3x3x1x6xf32>) -> tensor<?x8x8x6xf32>",
            8 * 8 * 6 * 3 * 3 * 1,
        ),
        (
            '"tf.Conv2D"(%n, %f) {padding = "SAME", strides = [1, 1, 1, 1], data_format = "NCHW"} : '
            "(tensor<5x1x8x8xf32>, tensor<3x3x1x6xf32>) -> tensor<5x6x8x8xf32>",
            5 * 8 * 8 * 6 * 3 * 3 * 1,
        ),
        (
            '"tfl.depthwise_conv_2d"(%i, %d, %b) {padding = "SAME", stride_h = 1 : i32, stride_w = 1 : i32, '
            'depth_multiplier = 1 : i32, fused_activation_function = "NONE"} : '
            "(tensor<?x8x8x2xf32>, tensor<1x3x3x2xf32>, tensor<2xf32>) -> tensor<?x8x8x2xf32>",
            8 * 8 * 2 * 3 * 3,
        ),
    ],
)
def test_products_are_counted(text: str, expected: int) -> None:
    module = parse(f"""
      func.func @main(%x: tensor<2x4xf32>, %t: tensor<4x2xf32>, %c: tensor<4x3xf32>, %i: tensor<?x8x8x2xf32>,
          %n: tensor<5x1x8x8xf32>, %f: tensor<3x3x1x6xf32>, %d: tensor<1x3x3x2xf32>, %b: tensor<2xf32>) {{
        %0 = {text}
        return
      }}""")
    (function,) = (op for op in module.ops if isinstance(op, FuncOp))
    assert macs(next(iter(function.body.block.ops))) == expected
