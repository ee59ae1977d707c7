"""Definitions of custom ops from a file: text or binary, and what is not one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from google.protobuf import text_format

from tfconvert.api import convert
from tfconvert.importers.graph.protos import read_op_defs
from tfconvert.importers.source import Source
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb
from tfconvert.settings.targets import LiteRT

_OPS = """
op { name: "AcmeScale" input_arg { name: "x" type_attr: "T" } output_arg { name: "y" type_attr: "T" }
     attr { name: "T" type: "type" } attr { name: "factor" type: "float" default_value { f: 1 } } }
"""
_GRAPH = """
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
       attr { key: "shape" value { shape { dim { size: 2 } } } } }
node { name: "y" op: "AcmeScale" input: "x" attr { key: "factor" value { f: 2.5 } }
       attr { key: "T" value { type: DT_FLOAT } } }
"""


def _code(run: Callable[[], object]) -> str:
    with pytest.raises(ConversionError) as refused:
        run()
    return refused.value.diagnostics[0].code


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    path = tmp_path / "graph.pbtxt"
    path.write_text(_GRAPH)
    return path


def test_a_graph_with_custom_ops_needs_their_definitions(graph: Path, tmp_path: Path) -> None:
    assert _code(lambda: Source(graph).open()) == "unknown-op"
    text, binary = tmp_path / "ops.pbtxt", tmp_path / "ops.pb"
    text.write_text(_OPS)
    message = text_format.Parse(_OPS, pb.OpList())
    binary.write_bytes(message.SerializeToString())
    texts = {str(Source(graph, op_defs=given).open()) for given in (text, str(binary), message)}
    assert len(texts) == 1
    assert '"tf.AcmeScale"' in texts.pop()
    assert convert(Source(graph, op_defs=text), target=LiteRT(allow_custom_ops=True)).report.operators["AcmeScale"] == 1


@pytest.mark.parametrize("data", [b"", b"\xff\xfe", b"node { name: 'x' }", b"op { }"])
def test_invalid_lists_of_ops_are_rejected(graph: Path, tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "ops.pbtxt"
    path.write_bytes(data)
    assert _code(lambda: Source(graph, op_defs=path).open()) == "bad-op-list"


def test_other_failures_have_codes(tmp_path: Path) -> None:
    assert _code(lambda: read_op_defs(tmp_path / "nowhere.pbtxt")) == "unreadable-file"
    assert _code(lambda: read_op_defs(7)) == "bad-op-list"
    (tmp_path / "a.mlir").write_text("module {}")
    assert _code(lambda: Source(tmp_path / "a.mlir", op_defs="ops.pbtxt").open()) == "wrong-option"
