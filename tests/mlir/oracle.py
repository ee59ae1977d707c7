"""TensorFlow's MLIR as a judge of texts, in a process of its own: some texts make it end the process."""

from __future__ import annotations

import atexit
import functools
import io
import json
import os
import subprocess
import sys
import threading
from collections.abc import Mapping

from tfconvert.schema.dialects.printing import print_module
from tfconvert.schema.ir.builtin import ModuleOp

_JUDGE = """
import json, sys
import tensorflow as tf
for line in sys.stdin:
    printed, problems = {}, {}
    for name, text in json.loads(line).items():
        try:
            printed[name] = tf.mlir.experimental.run_pass_pipeline(text, "", False)
        except tf.errors.OpError as problem:
            problems[name] = problem.message
    print("RESULT" + json.dumps([printed, problems]), flush=True)
"""

# Seconds that it may take.
_TIME_LIMIT = 120


def whole_text(module: ModuleOp) -> str:
    """Returns a module's text with every constant in it."""
    text = io.StringIO()
    print_module(module, text, elide=None)
    return text.getvalue()


@functools.cache
def _judge() -> subprocess.Popen[str]:
    """Returns the process, which stays for further questions: starting it takes longer than most of them."""
    process = subprocess.Popen(
        [sys.executable, "-c", _JUDGE],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
    )

    def end() -> None:
        process.kill()
        process.communicate()

    atexit.register(end)
    return process


def problems(texts: Mapping[str, str]) -> dict[str, str]:
    """Returns TensorFlow's MLIR's errors for texts, by name; none for one that it parses and verifies."""
    return _answer(texts)[1]


def printed(texts: Mapping[str, str]) -> dict[str, str]:
    """Returns texts as TensorFlow's MLIR parses and prints them, by name."""
    found, errors = _answer(texts)
    assert errors == {}
    return found


def _answer(texts: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    process = _judge()
    assert process.stdin is not None
    assert process.stdout is not None
    timer = threading.Timer(_TIME_LIMIT, process.kill)
    timer.start()
    try:
        process.stdin.write(json.dumps(texts) + "\n")
        process.stdin.flush()
        line = next((line for line in process.stdout if line.startswith("RESULT")), None)
    finally:
        timer.cancel()
    if line is None:
        _judge.cache_clear()
        raise AssertionError(f"TensorFlow's MLIR ended with status {process.wait()} over {', '.join(texts)}")
    shown, errors = json.loads(line.removeprefix("RESULT"))
    return shown, errors
