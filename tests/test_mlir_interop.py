"""What we print must parse and verify in TensorFlow's own MLIR, at every stage that is in TensorFlow's dialects."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from converter import pipeline
from converter.options import Options
from tests import sample_models

# In a process of its own: some texts make MLIR end the process instead of refusing them.
_ORACLE = """
import json, sys
import tensorflow as tf
problems = {}
for name, text in json.load(sys.stdin).items():
    try:
        tf.mlir.experimental.run_pass_pipeline(text, "", False)
    except tf.errors.OpError as problem:
        problems[name] = problem.message
print("RESULT" + json.dumps(problems))
"""

# The control text must be refused, or the oracle judges nothing.
_WRONG = "func.func @f(%x: tensor<2xf32>) -> tensor<3xf32> { func.return %x : tensor<2xf32> }"

_BUILDS = sample_models.MODELS | sample_models.UNSUPPORTED


def _texts(model: Path) -> dict[str, str]:
    """Returns the module as imported and after each pass before the dialect is LiteRT's, by pass."""
    module = pipeline.import_model(model, Options())
    texts = {"import": str(module)}
    for step in pipeline.steps(Options()):
        if step.run.name == "legalize":
            break
        step.run.apply(module)
        texts[step.run.name] = str(module)
    return texts


@pytest.fixture(scope="module")
def problems(tf: ModuleType, digits_model: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Returns what TensorFlow's MLIR says against our texts, by `model/pass`."""
    folder = tmp_path_factory.mktemp("models")
    models = {"digits": digits_model}
    models |= {name: sample_models.save(tf, build, folder / name) for name, build in _BUILDS.items()}
    texts = {f"{name}/{stage}": text for name, model in models.items() for stage, text in _texts(model).items()}
    done = subprocess.run(
        [sys.executable, "-c", _ORACLE], input=json.dumps({"wrong": _WRONG, **texts}), capture_output=True, text=True,
        check=False, timeout=120, env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, str] = json.loads(done.stdout.partition("RESULT")[2])
    return found


def test_the_oracle_refuses_what_is_wrong(problems: dict[str, str]) -> None:
    assert "wrong" in problems


@pytest.mark.parametrize("model", ["digits", *_BUILDS])
def test_tensorflow_takes_every_stage(problems: dict[str, str], model: str) -> None:
    assert {name: text for name, text in problems.items() if name.startswith(f"{model}/")} == {}
