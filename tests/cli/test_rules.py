"""`--patterns FILE.py` and `--composites FILE.py`: what a file defines is applied; its mistakes are told by line."""

from __future__ import annotations

import shlex
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from tests.support.litert import RunTFLite
from tests.support.sample_models import traced
from tfconvert.cli.main import main

RULES = """\
import numpy as np
from tfconvert.patterns import rule, tf, tfl, value

x = value("x")
_own = rule("not-for-others", tf.Sin(x), x)
double_negation = rule("double-negation", tf.Neg(tf.Neg(x)), x)
several = [double_negation, rule("cos-of-abs", tfl.cos(tfl.abs(x)), tfl.cos(x))]
"""
NEGATIONS = """\
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "tf.Neg"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "tf.Neg"(%0) : (tensor<4xf32>) -> tensor<4xf32>
  %2 = "tf.Abs"(%1) : (tensor<4xf32>) -> tensor<4xf32>
  %3 = "tf.Cos"(%2) : (tensor<4xf32>) -> tensor<4xf32>
  %4 = "tf.Sin"(%3) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %4 : tensor<4xf32>
}
"""
FUSIONS = """\
from tfconvert.composites import Fusion


def check(composite):
    return composite.counts(1, 1)


def rewrite(composite, body):
    return body.tf("Tanh", [body.arguments[0]], composite.results[0])


squash = Fusion("squash", "acme:squash", "(x) -> y: TANH", check, rewrite)
"""


def run(*arguments: str | Path, status: int = 0) -> Result:
    """Runs the command in this process."""
    result = CliRunner().invoke(main, list(map(str, arguments)), prog_name="tfconvert")
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert result.exit_code == status, result.output
    return result


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """Returns a model in a folder with a file of patterns."""
    (tmp_path / "rules.py").write_text(RULES)
    (tmp_path / "model.mlir").write_text(NEGATIONS)
    return tmp_path / "model.mlir"


def test_patterns_of_a_file_are_applied(model: Path, tmp_path: Path, run_tflite: RunTFLite) -> None:
    output = tmp_path / "x.tflite"
    shown = run(model, "-o", output, "--patterns", tmp_path / "rules.py", "-v").stdout
    assert "double-negation" in shown
    assert "cos-of-abs" in shown
    assert "not-for-others" not in shown
    x = np.array([-2, -0.5, 1, 3], np.float32)
    (result,) = run_tflite(output.read_bytes(), [x])
    np.testing.assert_allclose(result, np.sin(np.cos(x)), rtol=1e-6)
    assert not list(tmp_path.glob("**/__pycache__"))


def test_opt_applies_them_in_passes_and_pipelines(model: Path, tmp_path: Path) -> None:
    rules = tmp_path / "rules.py"
    assert "tf.Neg" in run("opt", model, "-p", "canonicalize").stdout
    assert "tf.Neg" not in run("opt", model, "-p", "canonicalize", "--patterns", rules).stdout
    assert (
        "tf.Neg"
        not in run(
            "opt",
            model,
            "--until",
            "shape-inference",
            "--pipeline",
            "tflite",
            "--patterns",
            rules,
            "-p",
            "canonicalize",
            status=2,
        ).stdout
    )
    whole = run("opt", model, "--pipeline", "tflite", "--patterns", rules).stdout
    assert "tfl.neg" not in whole
    assert "tfl.abs" not in whole
    legal = run("opt", model, "-p", "legalize,optimize", "--patterns", rules).stdout
    assert "tfl.abs" not in legal
    assert "add --pipeline tflite" in run("opt", model, "--patterns", rules, status=2).stderr


def test_fusions_of_a_file_are_applied(tf: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "fusions.py").write_text(FUSIONS)
    module = tf.Module()

    @tf.function(experimental_implements="acme:squash")  # type: ignore[untyped-decorator]
    def squash(x: Any) -> Any:
        return x / (1 + tf.abs(x))

    @traced(tf, tf.TensorSpec([3], tf.float32, name="x"))
    def call(x: Any) -> Any:
        return {"y": squash(x)}

    module.call = call
    tf.saved_model.save(module, str(tmp_path / "model"), signatures=call)
    plain = run(tmp_path / "model", "-o", tmp_path / "a.tflite").stdout
    fused = run(tmp_path / "model", "-o", tmp_path / "b.tflite", "--composites", tmp_path / "fusions.py").stdout
    assert "TANH" not in plain
    assert "TANH" in fused
    shown = run("opt", tmp_path / "model", "--pipeline", "tflite", "--composites", tmp_path / "fusions.py").stdout
    assert "tfl.tanh" in shown


@pytest.mark.parametrize(
    ("text", "line", "told"),
    [
        ("x = 1\nif x\n", 2, "SyntaxError: expected ':'"),
        ("import no_such_module_at_all\n", 1, "ModuleNotFoundError: No module named 'no_such_module_at_all'"),
        ("def f():\n    return 1 / 0\n\n\nf()\n", 2, "ZeroDivisionError: division by zero"),
        (
            "from tfconvert.patterns import rule, tf, value\n\nx = value('x')\nr = rule('r', tf.Negg(x), x)\n",
            4,
            "PatternError",
        ),
    ],
)
def test_mistakes_are_told_by_line(model: Path, tmp_path: Path, text: str, line: int, told: str) -> None:
    rules = tmp_path / "wrong.py"
    rules.write_text(text)
    for message in (
        run(model, "-o", tmp_path / "x.tflite", "--patterns", rules, status=1).stderr,
        run("opt", model, "-p", "canonicalize", "--patterns", rules, status=1).stderr,
    ):
        assert f"fails with {told}" in message
        assert f"({rules}:{line})" in message
        assert "[bad-plugin]" in message


def test_files_without_patterns_and_missing_ones_are_errors(model: Path, tmp_path: Path) -> None:
    (tmp_path / "empty.py").write_text("x = 1\n")
    for name, told in (("empty.py", "there are no patterns in"), ("none.py", "there is no file")):
        assert told in run(model, "-o", tmp_path / "x.tflite", "--patterns", tmp_path / name, status=2).stderr


def _examples(help_text: str) -> list[list[str]]:
    """Returns the commands under `Examples:` in a help text, without what they explain beside them."""
    lines = help_text.partition("Examples:\n")[2].splitlines()
    commands = [line.partition("    the ")[0].strip() for line in lines if line.strip().startswith("tfconvert ")]
    return [shlex.split(command)[1:] for command in commands]


@pytest.mark.parametrize("verb", ["opt", "inspect", "ops"])
def test_the_examples_in_help_do_what_they_say(
    tf: ModuleType, verb: str, digits_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "saved_model").symlink_to(digits_model)
    (tmp_path / "rules.py").write_text(RULES)
    (tmp_path / "tests.mlir").write_text(NEGATIONS + "// -----\n" + NEGATIONS)
    run("saved_model/", "-o", "model.tflite")
    (tmp_path / "frozen.pb").write_bytes(_frozen_graph(tf))
    commands = _examples(run(verb, "--help").stdout)
    assert len(commands) >= 3
    results = {" ".join(command): run(*command) for command in commands}
    if verb == "opt":
        frozen = (tmp_path / "frozen.mlir").read_text()
        assert "tf.VarHandleOp" not in frozen
        assert "tf.PartitionedCall" not in frozen
        assert "tf.StatefulPartitionedCall" not in frozen
        legal = next(result.stdout for command, result in results.items() if "legalize{" in command)
        assert "tfl.conv_2d" in legal
        assert '"tf.' not in legal
        assert "tfl.custom" not in legal


def _frozen_graph(tf: ModuleType) -> bytes:
    """Returns a graph `x -> scores`."""
    with tf.Graph().as_default() as graph:
        tf.nn.softmax(tf.compat.v1.placeholder(tf.float32, [None, 3], "x"), name="scores")
    data: bytes = graph.as_graph_def().SerializeToString()
    return data
