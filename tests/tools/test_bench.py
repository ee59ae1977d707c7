"""The verb `bench`: every operator is measured that can be, whoever made the file."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from click.testing import CliRunner, Result

import tfconvert
from tests.converter.validation.test_valid_inputs import MODELS, save
from tfconvert.cli.main import main
from tfconvert.importers.tflite.outline import outline
from tfconvert.tools.bench import Latency, measure


def _bench(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["bench", *map(str, arguments)], catch_exceptions=False)


def test_figures_are_those_of_the_runs() -> None:
    found = Latency.of([1_000_000] * 98 + [5_000_000] * 2)
    assert (found.median, found.least, found.p90, found.p99) == (1, 1, 1, 5)
    assert found.mean == pytest.approx(1.08)


def test_each_operator_is_measured(right: Path) -> None:
    run = _bench(right, "--runs", 3, "--json", "--input-shape", "pixels=4,8,8,1")
    assert run.exit_code == 0, run.output
    found = json.loads(run.stdout)
    assert [each["operator"] for each in found["operators"]] == [
        each.name for each in outline(right.read_bytes()).subgraphs[0]
    ]
    assert all(each["milliseconds"] > 0 for each in found["operators"])
    assert found["inputs"] == ["pixels float32[4,8,8,1]"]
    assert found["latency"]["least"] <= found["latency"]["median"] <= found["latency"]["p99"]


def test_the_text_names_nodes(right: Path) -> None:
    run = _bench(right, "--runs", 2)
    assert run.exit_code == 0, run.output
    assert "latency: median" in run.output
    assert "digits_1/pool_1/Mean" in run.output
    assert "operators" not in _bench(right, "--runs", 2, "--whole").output


@pytest.mark.parametrize("name", ["embedding", "in_a_loop"])
def test_indices_and_loops_are_measured(name: str, tf: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    tfconvert.convert(save(tf, MODELS[name], tmp_path / "model")).save(path)
    found = measure(path, runs=2)
    assert found.operators
    assert all(each.milliseconds for each in found.operators)


def test_operators_on_variables_are_reported(tf: ModuleType, tmp_path: Path) -> None:
    class Counter(tf.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            self.total = tf.Variable([0.0, 0.0])

        def add(self, x: Any) -> Any:
            return self.total.assign_add(x) * 2.0

    module = Counter()
    concrete = tf.function(module.add, input_signature=[tf.TensorSpec([2], tf.float32, "x")]).get_concrete_function()
    tf.saved_model.save(module, tmp_path / "model", signatures=concrete)
    tfconvert.convert(tmp_path / "model").save(tmp_path / "model.tflite")
    run = _bench(tmp_path / "model.tflite", "--runs", 2)
    assert run.exit_code == 0, run.output
    assert "not measured" in run.output
    assert "READ_VARIABLE" in run.output


def test_weights_that_become_floats_once_belong_to_the_operators_that_use_them(
    digits_model: Path, tmp_path: Path
) -> None:
    model = tfconvert.convert(digits_model, quantize="weights")
    model.save(tmp_path / "weights.tflite")
    assert model.report.operators["DEQUANTIZE"]
    times = {each.operator: each.milliseconds for each in measure(tmp_path / "weights.tflite", runs=3).operators}
    assert "DEQUANTIZE" not in times
    assert "FULLY_CONNECTED" in times
    assert None not in times.values()


def test_the_official_converters_file_is_measured(tf: ModuleType, digits_model: Path, tmp_path: Path) -> None:
    path = tmp_path / "official.tflite"
    path.write_bytes(tf.lite.TFLiteConverter.from_saved_model(str(digits_model)).convert())
    assert all(each.milliseconds for each in measure(path, runs=2).operators)


def test_invalid_files_are_rejected(tmp_path: Path) -> None:
    assert _bench(tmp_path / "none.tflite").exit_code == 2
    (tmp_path / "text.tflite").write_text("hello" * 100)
    assert _bench(tmp_path / "text.tflite").exit_code == 1
