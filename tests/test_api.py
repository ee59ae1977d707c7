"""`convert` and `Model`, as programs use them."""

from __future__ import annotations

import gc
import inspect
import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import tfconvert
from tests.support import sample_models
from tests.support.flat_settings import converted
from tests.support.litert import RunTFLite
from tfconvert.cli.main import main
from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb
from tfconvert.schema.tflite.reader import read_model


@pytest.fixture
def collector() -> Iterator[None]:
    """Restores the state of the cycle collector."""
    was_enabled = gc.isenabled()
    yield
    if was_enabled:
        gc.enable()
    else:
        gc.disable()


def _graph(*nodes: tuple[str, str, list[str]]) -> pb.GraphDef:
    """Returns a graph of float nodes: name, op, inputs."""
    graph = pb.GraphDef(versions=pb.VersionDef(producer=1882))
    for name, op, inputs in nodes:
        node = graph.node.add(name=name, op=op, input=inputs)
        node.attr["dtype" if op == "Placeholder" else "T"].type = pb.DT_FLOAT
        if op == "Placeholder":
            node.attr["shape"].shape.dim.add(size=2)
    return graph


@pytest.fixture
def difference(tmp_path: Path) -> Path:
    """Returns a GraphDef that computes b - a and its negation."""
    path = tmp_path / "difference.pb"
    nodes = [
        ("a", "Placeholder", []),
        ("b", "Placeholder", []),
        ("minus", "Sub", ["b", "a"]),
        ("neg", "Neg", ["minus"]),
    ]
    path.write_bytes(_graph(*nodes).SerializeToString())
    return path


def test_saved_bytes_are_the_model_s(digits_model: Path, tmp_path: Path) -> None:
    model = tfconvert.convert(digits_model)
    output = tmp_path / "digits.tflite"
    model.save(output)
    assert output.read_bytes() == bytes(model)
    assert len(model) == output.stat().st_size == model.report.size
    model.save(str(tmp_path / "again.tflite"))
    assert (tmp_path / "again.tflite").read_bytes() == bytes(model)


def test_saving_changes_nothing(digits_model: Path, tmp_path: Path) -> None:
    model = tfconvert.convert(digits_model)
    before = model.report.to_dict()
    for _ in range(3):
        model.save(tmp_path / "digits.tflite")
    assert model.report.to_dict() == before
    with pytest.raises(AttributeError):
        model.report = None  # type: ignore[misc, assignment]
    with pytest.raises(AttributeError):
        model.report.size = 0  # type: ignore[misc]


def test_a_model_describes_itself(digits_model: Path) -> None:
    model = tfconvert.convert(digits_model)
    assert repr(model) == f"<tfconvert.Model of {digits_model}: {len(model)} bytes>"
    json.dumps(model.report.to_dict())


def test_text_paths_do_too(digits_model: Path) -> None:
    wanted = bytes(tfconvert.convert(digits_model))
    assert bytes(tfconvert.convert(str(digits_model))) == wanted
    assert bytes(tfconvert.convert(digits_model / "saved_model.pb")) == wanted


def test_conversions_do_not_disturb_each_other(digits_model: Path, difference: Path) -> None:
    """Whatever was converted before, the same source yields the same bytes."""
    digits = bytes(tfconvert.convert(digits_model))
    graph = bytes(tfconvert.convert(difference))
    with pytest.raises(tfconvert.ConversionError):
        tfconvert.convert(digits_model, signatures=["nope"])
    assert bytes(tfconvert.convert(digits_model)) == digits
    assert bytes(tfconvert.convert(difference)) == graph


def test_threads_may_convert_at_once(digits_model: Path, difference: Path) -> None:
    sources = [digits_model, difference] * 3
    wanted = [bytes(tfconvert.convert(source)) for source in sources]
    with ThreadPoolExecutor(2) as pool:
        got = list(pool.map(lambda source: bytes(tfconvert.convert(source)), sources))
    assert got == wanted


@pytest.mark.usefixtures("collector")
@pytest.mark.parametrize("is_enabled", [True, False])
def test_the_cycle_collector_is_left_as_it_was(digits_model: Path, is_enabled: bool) -> None:
    if is_enabled:
        gc.enable()
    else:
        gc.disable()
    tfconvert.convert(digits_model)
    assert gc.isenabled() is is_enabled
    with pytest.raises(tfconvert.ConversionError):
        tfconvert.convert(digits_model, signatures=["nope"])
    assert gc.isenabled() is is_enabled


@pytest.mark.usefixtures("collector")
def test_the_cycle_collector_stays_on_while_threads_convert(digits_model: Path) -> None:
    """Garbage collection is a setting of the process, not of one of the many calls that may run in it."""
    gc.enable()
    seen = []
    with ThreadPoolExecutor(2) as pool:
        running = [pool.submit(tfconvert.convert, digits_model) for _ in range(20)]
        while not all(each.done() for each in running):
            seen.append(gc.isenabled())
            time.sleep(0.001)
    assert len(seen) > 10
    assert all(seen)
    assert all(len(each.result()) for each in running)


def test_a_model_outlives_its_source(digits_model: Path, tmp_path: Path) -> None:
    """Weights stay mapped until they are saved: the source may be deleted, though not overwritten."""
    source = tmp_path / "model"
    for file in [path for path in digits_model.rglob("*") if path.is_file()]:
        copy = source / file.relative_to(digits_model)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(file.read_bytes())
    wanted = bytes(tfconvert.convert(source))
    model = tfconvert.convert(source)
    for file in [path for path in source.rglob("*") if path.is_file()]:
        file.unlink()
    assert bytes(model) == wanted


@pytest.mark.parametrize("inputs", [["a", "b"], ["b", "a"], ["b:0", "a:0"]])
@pytest.mark.parametrize("outputs", [["minus", "neg"], ["neg", "minus"], ["neg:0"]])
def test_a_graph_keeps_the_order_that_is_asked_for(
    difference: Path, run_tflite: RunTFLite, inputs: list[str], outputs: list[str]
) -> None:
    content = bytes(tfconvert.convert(difference, inputs=inputs, outputs=outputs))
    values = {"a": np.array([1, 2], np.float32), "b": np.array([10, 30], np.float32)}
    answers = {"minus": values["b"] - values["a"], "neg": values["a"] - values["b"]}
    got = run_tflite(content, [values[name[0]] for name in inputs])
    assert len(got) == len(outputs)
    for name, value in zip(outputs, got, strict=True):
        np.testing.assert_array_equal(value, answers[name.partition(":")[0]])


def test_a_graph_s_tensors_are_called_as_its_nodes(difference: Path) -> None:
    (subgraph,) = read_model(bytes(tfconvert.convert(difference)))["subgraphs"]
    names = [tensor["name"] for tensor in subgraph["tensors"]]
    assert [names[index] for index in subgraph["inputs"]] == ["a", "b"]
    assert [names[index] for index in subgraph["outputs"]] == ["neg"]


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"signatures": ["nope"]}, "unknown-signature"),
        ({"inputs": ["nope"]}, "unknown-tensor"),
        ({"input_shapes": {"pixels": [1, 8, 8, 3]}}, "shape-mismatch"),
        ({"input_shapes": {"pixels": [1, 8]}}, "shape-mismatch"),
        ({"tags": []}, "unknown-tags"),
    ],
)
def test_errors_are_reported_to_machines_too(digits_model: Path, options: dict[str, Any], code: str) -> None:
    with pytest.raises(tfconvert.ConversionError) as caught:
        converted(digits_model, **options)
    report = caught.value.to_dict()
    assert json.loads(json.dumps(report)) == report
    (problem,) = report["errors"]
    assert (problem["code"], problem["severity"]) == (code, "error")
    assert problem["message"] in str(caught.value)


def test_all_unsupported_ops_are_reported_at_once_with_their_nodes(tmp_path: Path) -> None:
    path = tmp_path / "graph.pb"
    nodes = [
        ("x", "Placeholder", []),
        ("one", "BesselJ0", ["x"]),
        ("two", "BesselK0", ["one"]),
        ("three", "BesselJ0", ["two"]),
    ]
    path.write_bytes(_graph(*nodes).SerializeToString())
    with pytest.raises(tfconvert.ConversionError) as caught:
        tfconvert.convert(path)
    by_op = {problem.op: problem for problem in caught.value.diagnostics}
    assert by_op.keys() == {"tf.BesselJ0", "tf.BesselK0"}
    assert {problem.code for problem in by_op.values()} == {"unsupported-op"}
    assert by_op["tf.BesselJ0"].node == "one"
    assert "also at three" in by_op["tf.BesselJ0"].message
    converted = tfconvert.convert(path, target=tfconvert.LiteRT(allow_custom_ops=True))
    assert converted.report.operators == {"BesselJ0": 2, "BesselK0": 1}
    (note,) = [note for note in converted.report.notes if note.code == "custom-operators"]
    assert note.severity == "warning"
    assert "must register 2 custom operators: BesselJ0 (2 times), BesselK0" in note.message
    assert "runs in TensorFlow Lite, with these registered: BesselJ0, BesselK0" in converted.report.to_text()
    assert converted.report.to_dict()["custom_operators"] == {"BesselJ0": 2, "BesselK0": 1}
    file = tmp_path / "x.tflite"
    converted.save(file)
    told = CliRunner().invoke(main, ["inspect", str(file)]).stdout
    assert "runtime: any or later, with these registered: BesselJ0, BesselK0" in told


def _unsupported(tf: ModuleType) -> tuple[Any, dict[str, Any]]:
    module = tf.Module()

    @sample_models.traced(tf)
    def helper(x: Any) -> Any:
        return tf.math.special.bessel_j0(x)

    @sample_models.traced(tf, tf.TensorSpec([2], tf.float32, name="x"))
    def call(x: Any) -> Any:
        return helper(x) + helper(x + 1.0)

    module.call = call
    return module, {"serving_default": call}


def test_an_unsupported_op_is_found_in_the_user_s_source(tf: ModuleType, tmp_path: Path) -> None:
    folder = sample_models.save(tf, _unsupported, tmp_path / "model", debug_info=True)
    with pytest.raises(tfconvert.ConversionError) as caught:
        tfconvert.convert(folder)
    (problem,) = caught.value.diagnostics
    lines, first = inspect.getsourcelines(_unsupported)
    line = first + next(index for index, text in enumerate(lines) if "bessel_j0" in text)
    assert problem.op == "tf.BesselJ0"
    assert problem.location.startswith(f"{__file__}:{line}")
    assert "called from" in problem.location, "of a function with two callers the caller is reported"
