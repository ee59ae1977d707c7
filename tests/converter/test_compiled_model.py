"""The note about files that LiteRT's `CompiledModel` doesn't load is there exactly where it refuses them."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ai_edge_litert.compiled_model import CompiledModel
from click.testing import CliRunner

import tfconvert
from tests.converter.targets.litert.recurrent.loops import FEATURES, UNITS, lstm_loop, rnn_loop
from tests.support.flat_settings import converted
from tfconvert.cli.main import main
from tfconvert.exporters.tflite.file import TFLiteFile
from tfconvert.schema.tflite.compiled_model import NO_COMPILED_MODEL, compiled_model_note
from tfconvert.tools.litert_file import read_file

STATEFUL = """
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %v = "tf.VarHandleOp"() <{container = "", shared_name = "v"}> : () -> tensor<!tf_type.resource<tensor<2xf32>>>
  %0 = "tf.ReadVariableOp"(%v) : (tensor<!tf_type.resource<tensor<2xf32>>>) -> tensor<2xf32>
  %1 = "tf.AddV2"(%x, %0) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  "tf.AssignVariableOp"(%v, %1) : (tensor<!tf_type.resource<tensor<2xf32>>>, tensor<2xf32>) -> ()
  func.return %1 : tensor<2xf32>
}
"tf_saved_model.global_tensor"() <{sym_name = "v", is_mutable, type = tensor<2xf32>,
  value = dense<1.0> : tensor<2xf32>}> : () -> ()
"""


def _loads(content: bytes) -> bool:
    try:
        CompiledModel.from_buffer(content)
    except RuntimeError:
        return False
    return True


def _int8(steps: int) -> tfconvert.Quantize:
    rng = np.random.default_rng(0)
    shapes = [(steps, 2, FEATURES), (2, UNITS), (2, UNITS)]
    samples = [[rng.normal(size=shape).astype(np.float32) for shape in shapes] for _ in range(3)]
    return tfconvert.Quantize("int8", samples=samples, io="int8")


ZEROS = '%z = "tf.Const"() <{value = dense<0.0> : tensor<2x2xf32>}> : () -> tensor<2x2xf32>'
# An LSTM whose states begin with zeros, as the kernel of integers needs it.
FROM_ZEROS = lstm_loop().replace("%0:6 =", f"{ZEROS}\n%0:6 =").replace("%x, %s0, %s1) <{cond", "%x, %z, %z) <{cond")

CASES: dict[str, tuple[str, dict[str, Any], list[str]]] = {
    "lstm": (lstm_loop(), {"recurrent": "fused"}, ["variable tensors", "UNIDIRECTIONAL_SEQUENCE_LSTM"]),
    "rnn": (rnn_loop(), {"recurrent": "fused"}, ["variable tensors", "UNIDIRECTIONAL_SEQUENCE_RNN"]),
    "integer lstm": (
        FROM_ZEROS,
        {"recurrent": "fused", "quantize": _int8(4)},
        ["intermediate tensors and variable tensors", "UNIDIRECTIONAL_SEQUENCE_LSTM"],
    ),
    "loop": (lstm_loop(), {"recurrent": "loop"}, []),
    "steps": (lstm_loop(), {"recurrent": "unrolled"}, []),
    "variables": (STATEFUL, {}, []),
}


@pytest.mark.parametrize("name", CASES)
def test_conversions_and_files_tell(name: str, tmp_path: Path) -> None:
    source, settings, words = CASES[name]
    (tmp_path / "model.mlir").write_text(source)
    model = converted(tmp_path / "model.mlir", **settings)
    target = tmp_path / "model.tflite"
    model.save(target)
    notes = [note for note in model.report.notes if note.code == NO_COMPILED_MODEL]
    assert bool(notes) is bool(words) is not _loads(bytes(model))
    assert (NO_COMPILED_MODEL in model.report.to_html()) is bool(words)
    text = CliRunner().invoke(main, ["inspect", str(target)]).stdout
    data = json.loads(CliRunner().invoke(main, ["inspect", str(target), "--json"]).stdout)
    assert [note["code"] for note in data["notes"]] == [NO_COMPILED_MODEL] * bool(words)
    for note in notes:
        assert all(word in note.message for word in words)
        assert "--recurrent loop" in note.hint
        assert "unrolled" in note.hint
        assert str(note).splitlines()[0] in text


PLAIN = {
    "version": 3,
    "operator_codes": [{"deprecated_builtin_code": 47, "builtin_code": "EXP", "version": 1}],
    "subgraphs": [
        {
            "tensors": [{"shape": (2,), "type": "FLOAT32", "name": name} for name in ("x", "y", "z")],
            "inputs": (0,),
            "outputs": (1,),
            "operators": [{"opcode_index": 0, "inputs": (0,), "outputs": (1,)}],
        }
    ],
}


def _tensor(**fields: Any) -> Callable[[dict[str, Any]], None]:
    return lambda subgraph: subgraph["tensors"][2].update(fields)


def _operator(**fields: Any) -> Callable[[dict[str, Any]], None]:
    return lambda subgraph: subgraph["operators"][0].update(fields)


def _used_by_nothing(subgraph: dict[str, Any]) -> None:
    """Makes a tensor a variable beside an operator without operands."""
    subgraph["tensors"][2]["is_variable"] = True
    subgraph["operators"].append({"opcode_index": 0})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda subgraph: None, ""),
        (_tensor(is_variable=True), "variable tensors"),
        (_tensor(type="VARIANT"), "variant tensors"),
        (_tensor(variant_tensors=[{"shape": (2,), "type": "FLOAT32", "has_rank": True}]), "variant tensors"),
        (_tensor(type="RESOURCE"), ""),
        (_operator(intermediates=(2,)), "intermediate tensors (EXP)"),
        (_operator(mutating_variable_inputs=(True,)), "inputs that are marked as mutable (EXP)"),
        (_operator(intermediates=()), ""),
        (_used_by_nothing, "variable tensors"),
    ],
    ids=[
        "plain",
        "variable",
        "variant",
        "variants",
        "resource",
        "intermediates",
        "mutable",
        "no intermediates",
        "unused",
    ],
)
def test_invalid_models_are_rejected(change: Callable[[dict[str, Any]], None], words: str, tmp_path: Path) -> None:
    tables: dict[str, Any] = copy.deepcopy(PLAIN)
    change(tables["subgraphs"][0])
    content = TFLiteFile(tables, []).to_bytes()
    note = compiled_model_note(tables["subgraphs"], ["EXP"])
    assert (note is None) is (not words) is _loads(content)
    path = tmp_path / "model.tflite"
    path.write_bytes(content)
    assert read_file(str(path)).notes == (() if note is None else (note,))
    if note is not None:
        assert note.message.endswith(words)
        assert "recurrent" not in note.hint
