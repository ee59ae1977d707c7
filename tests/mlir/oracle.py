"""TensorFlow's MLIR as a judge of texts, in a process of its own: some texts make it end the process."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Mapping

from tfconvert.schema.dialects.printing import print_module
from tfconvert.schema.ir.builtin import ModuleOp

_JUDGE = """
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


def whole_text(module: ModuleOp) -> str:
    """Returns a module's text with every constant in it."""
    text = io.StringIO()
    print_module(module, text, elide=None)
    return text.getvalue()


def problems(texts: Mapping[str, str]) -> dict[str, str]:
    """Returns TensorFlow's MLIR's errors for texts, by name; none for one that it parses and verifies."""
    done = subprocess.run(
        [sys.executable, "-c", _JUDGE], input=json.dumps(texts), capture_output=True, text=True, check=False,
        timeout=120, env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, str] = json.loads(done.stdout.partition("RESULT")[2])
    return found
