"""Graphs that no conversion takes as they are shown, and functions' bodies as graphs."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from tfconvert.cli.main import main
from tfconvert.importers.source import Source
from tfconvert.schema.diagnostics import ConversionError

_ARGUMENT = """
node {{ name: "{0}" op: "_Arg" attr {{ key: "T" value {{ type: DT_FLOAT }} }}
       attr {{ key: "index" value {{ i: {1} }} }} }}
"""
_FUNCTION = (
    _ARGUMENT.format("b", 1)
    + _ARGUMENT.format("a", 0)
    + """
node { name: "s" op: "Sub" input: "a" input: "b" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "r" op: "_Retval" input: "s" attr { key: "T" value { type: DT_FLOAT } } }
"""
)
_NO_RESULTS = """
node { name: "c" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
       attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { } int_val: 3 } } } }
node { name: "p" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "n" op: "NoOp" input: "^p" }
"""
_VARIABLE = """
node { name: "v" op: "VariableV2" attr { key: "dtype" value { type: DT_FLOAT } }
       attr { key: "shape" value { shape { dim { size: 2 } } } } }
node { name: "i" op: "Identity" input: "v" attr { key: "T" value { type: DT_FLOAT } } }
"""
_GRADIENT = """
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "g" op: "SymbolicGradient" input: "x" input: "x" attr { key: "f" value { func { name: "Sin" } } }
       attr { key: "Tin" value { list { type: DT_FLOAT type: DT_FLOAT } } }
       attr { key: "Tout" value { list { type: DT_FLOAT } } } }
"""


def _write(folder: Path, text: str) -> str:
    path = folder / "graph.pbtxt"
    path.write_text(text)
    return str(path)


def _code(path: str) -> str:
    with pytest.raises(ConversionError) as refused:
        Source(path).open()
    return refused.value.diagnostics[0].code


@pytest.mark.parametrize(
    ("graph", "code", "ops"),
    [
        (_NO_RESULTS, "no-outputs", ("tf.Const", "tf.Placeholder", "tf.NoOp")),
        (_VARIABLE, "no-checkpoint", ("tf.VariableV2", "tf.Identity")),
        (_GRADIENT, "missing-function", ("tf.SymbolicGradient",)),
    ],
)
def test_opt_shows_unconvertible_graphs(tmp_path: Path, graph: str, code: str, ops: tuple[str, ...]) -> None:
    path = _write(tmp_path, graph)
    assert _code(path) == code
    shown = CliRunner().invoke(main, ["opt", path, "--verify-each"])
    assert shown.exit_code == 0
    assert all(f'"{op}"' in shown.stdout for op in ops)
    assert code in shown.stderr


def test_a_functions_body_has_its_arguments_and_results_in_order(tmp_path: Path) -> None:
    text = str(Source(_write(tmp_path, _FUNCTION)).open(functional=True))
    assert 'inputs = "a,b", outputs = "s"' in text
    assert "_Arg" not in text
    assert "_Retval" not in text


def test_a_function_without_results_has_its_ends(tmp_path: Path) -> None:
    body = _FUNCTION.partition('node { name: "r"')[0]
    assert 'outputs = "s"' in str(Source(_write(tmp_path, body)).open())


def test_a_result_without_a_value_is_refused(tmp_path: Path) -> None:
    assert _code(_write(tmp_path, _FUNCTION.replace('"_Retval" input: "s"', '"_Retval"'))) == "bad-input"


def test_a_damaged_graph_is_not_shown(tmp_path: Path) -> None:
    path = _write(tmp_path, _NO_RESULTS.replace('"^p"', '"^nobody"'))
    shown = CliRunner().invoke(main, ["opt", path])
    assert shown.exit_code == 1
    assert "Traceback" not in shown.stderr
