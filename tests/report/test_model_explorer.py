"""The graphs in the format of Google's Model Explorer."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import tfconvert
from tfconvert.report.report import Report
from tfconvert.schema.diagnostics import ConversionError

# The fields of the viewer's data classes, and of what they hold.
FIELDS = {
    "node": {"id", "label", "namespace", "subgraphIds", "attrs", "incomingEdges", "outputsMetadata"},
    "edge": {"sourceNodeId", "sourceNodeOutputId", "targetNodeInputId"},
    "pair": {"key", "value"},
    "item": {"id", "attrs"},
}


@pytest.fixture(scope="module")
def report(digits_model: Path) -> Report:
    return tfconvert.convert(digits_model, signatures="serving_default", keep_graphs=True).report


@pytest.fixture(scope="module")
def written(report: Report) -> Any:
    return json.loads(report.to_model_explorer())


def test_the_shape_is_that_of_the_viewer(written: Any) -> None:
    assert set(written) == {"label", "graphs"}
    assert [graph["id"].partition(" ")[2] for graph in written["graphs"]] == ["(after)", "(before)"]
    for graph in written["graphs"]:
        assert set(graph) == {"id", "nodes"}
        ids = Counter(node["id"] for node in graph["nodes"])
        assert set(ids.values()) == {1}
        for node in graph["nodes"]:
            assert {"id", "label", "namespace"} <= set(node) <= FIELDS["node"]
            assert all(set(edge) == FIELDS["edge"] for edge in node["incomingEdges"])
            assert all(edge["sourceNodeId"] in ids for edge in node["incomingEdges"])
            assert all(set(item) == FIELDS["item"] for item in node["outputsMetadata"])
            pairs = [*node["attrs"], *(pair for item in node["outputsMetadata"] for pair in item["attrs"])]
            assert all(set(pair) == FIELDS["pair"] and isinstance(pair["value"], str) for pair in pairs)


def test_nodes_are_in_their_layers_and_say_what_they_replace(written: Any, report: Report) -> None:
    after = written["graphs"][0]["nodes"]
    convolution = next(node for node in after if node["label"] == "CONV_2D")
    attributes = {pair["key"]: pair["value"] for pair in convolution["attrs"]}
    assert convolution["namespace"].endswith("stem_1")
    assert attributes["came from"].startswith("Conv2D ")
    assert attributes["operand 1"] == "f32[24,3,3,1]"
    assert convolution["outputsMetadata"][0]["attrs"] == [{"key": "tensor_shape", "value": "f32[?,8,8,24]"}]
    labels = Counter(node["label"] for node in after)
    assert {name: labels[name] for name in report.operators} == report.operators


def test_branches_lead_to_their_graphs(tmp_path: Path) -> None:
    path = tmp_path / "branch.mlir"
    path.write_text("""
      module {
        func.func @main(%c: tensor<i1>, %x: tensor<4xf32>) -> tensor<4xf32> attributes {
            tf.entry_function = {inputs = "c,x", outputs = "y"}} {
          %0 = "tf.If"(%c, %x) {then_branch = @then, else_branch = @else, is_stateless = true} :
              (tensor<i1>, tensor<4xf32>) -> tensor<4xf32>
          return %0 : tensor<4xf32>
        }
        func.func private @then(%x: tensor<4xf32>) -> tensor<4xf32> {
          %0 = "tf.Tanh"(%x) : (tensor<4xf32>) -> tensor<4xf32>
          return %0 : tensor<4xf32>
        }
        func.func private @else(%x: tensor<4xf32>) -> tensor<4xf32> {
          %0 = "tf.Exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>
          return %0 : tensor<4xf32>
        }
      }""")
    graphs = json.loads(tfconvert.convert(path, keep_graphs=True).report.to_model_explorer())["graphs"]
    branch = next(node for graph in graphs for node in graph["nodes"] if node["label"] == "IF")
    named = {graph["id"]: {node["label"] for node in graph["nodes"]} for graph in graphs}
    assert [next(iter(named[name] & {"TANH", "EXP"})) for name in branch["subgraphIds"]] == ["TANH", "EXP"]


def test_graphs_must_have_been_kept(digits_model: Path, tmp_path: Path) -> None:
    with pytest.raises(ConversionError) as caught:
        tfconvert.convert(digits_model).report.save_model_explorer(tmp_path / "graphs.json")
    assert caught.value.code == "wrong-option"
    assert list(tmp_path.iterdir()) == []
