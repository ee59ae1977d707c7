"""The same model gives the same texts, files and reports in every process."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import tfconvert

# Prints a digest of each text and file that a model becomes.
_SCRIPT = """
import hashlib, json, sys
import tfconvert
from click.testing import CliRunner
from tfconvert.cli.main import main

model = sys.argv[1]
found = {}
for options in ([], ["--until", "inline"], ["--pipeline", "tflite"], ["--pipeline", "tf-standard"]):
    done = CliRunner().invoke(main, ["opt", model, "--locations", *options])
    assert done.exit_code == 0, done.output
    found["opt " + " ".join(options)] = done.stdout.encode()
settings = {
    "float": {},
    "dynamic": {"quantize": "dynamic"},
    "stablehlo": {"target": "stablehlo", "input_shapes": {"x": (2, 4)}},
}
for name, each in settings.items():
    made = tfconvert.convert(model, **each)
    found[name] = bytes(made)
    report = made.report.to_dict()
    kept = {key: value for key, value in report.items() if key not in ("seconds", "stages")}
    found[name + " report"] = json.dumps(kept).encode()
print(json.dumps({name: hashlib.sha256(data).hexdigest() for name, data in found.items()}))
"""


@pytest.fixture(scope="module")
def functions(tf: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a SavedModel with loops, branches, functions and variables."""
    module = tf.Module()
    module.weights = [tf.Variable(tf.ones((4, 4)) * index) for index in range(3)]

    @tf.function
    def layer(x):  # type: ignore[no-untyped-def]
        return tf.nn.relu(x @ module.weights[0]) * 0.5

    @tf.function(input_signature=[tf.TensorSpec([None, 4], name="x"), tf.TensorSpec([], tf.int32, name="n")])
    def run(x, n):  # type: ignore[no-untyped-def]
        total = tf.zeros_like(x)
        for step in tf.range(n):
            total += x * tf.cast(step, tf.float32)
            total = total - 1.0 if tf.reduce_sum(total) > 3.0 else layer(total) @ module.weights[1]
        _, last = tf.while_loop(
            lambda k, r: k < n, lambda k, r: (k + 1, tf.cond(k > 2, lambda: r * 2.0, lambda: layer(r))), [0, total]
        )
        cases = tf.switch_case(n, [lambda: last, lambda: last + 1.0, lambda: last @ module.weights[2]])
        return {"total": total, "last": last, "cases": cases}

    folder = tmp_path_factory.mktemp("functions") / "model"
    tf.saved_model.save(module, str(folder), signatures={"serving_default": run})
    return folder


@pytest.fixture(scope="module")
def frames(tf: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a GraphDef with a loop and a branch of TensorFlow 1: frames, Switch and Merge."""
    v1 = tf.compat.v1
    used_v2 = v1.control_flow_v2_enabled()
    v1.disable_control_flow_v2()
    try:
        with tf.Graph().as_default() as graph:
            x = v1.placeholder(tf.float32, [None, 4], name="x")
            n = v1.placeholder(tf.int32, [], name="n")
            _, last = v1.while_loop(
                lambda k, r: k < n, lambda k, r: (k + 1, v1.cond(k > 2, lambda: r * 2.0, lambda: r + 1.0)), [0, x]
            )
            tf.identity(last, name="last")
    finally:
        if used_v2:
            v1.enable_control_flow_v2()
    path = tmp_path_factory.mktemp("frames") / "model.pb"
    path.write_bytes(graph.as_graph_def().SerializeToString())
    return path


def _digests(model: Path, seed: str) -> dict[str, str]:
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT, str(model)],
        env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(Path(tfconvert.__file__).parents[1])},
        capture_output=True,
        check=False,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    digests: dict[str, str] = json.loads(done.stdout)
    assert len(digests) == 10
    assert hashlib.sha256(b"").hexdigest() not in digests.values()
    return digests


# The order of sets depends on the seed, that of protobuf maps on the addresses in each process.
@pytest.mark.parametrize("kind", ["functions", "frames"])
def test_all_processes_agree(kind: str, request: pytest.FixtureRequest) -> None:
    model = request.getfixturevalue(kind)
    first = _digests(model, "0")
    for seed in ("1", "2", "3"):
        assert _digests(model, seed) == first
