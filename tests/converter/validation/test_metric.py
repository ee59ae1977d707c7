"""The user's metric of a quantized model, on a trained net in LiteRT, and its figures beside those of textbooks."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

import tfconvert
from tests.support.sample_models import traced
from tests.support.saved_function import save_function
from tfconvert import Quantize, Verify
from tfconvert.batch.run_task import run_task
from tfconvert.batch.task import Task
from tfconvert.cli.main import main
from tfconvert.converter.validation.metric import Metric
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.fidelity import MetricFidelity
from tfconvert.settings.data import check_data, to_data, uncached
from tfconvert.settings.options import Options
from tfconvert.settings.selection import Selection
from tfconvert.settings.targets import LiteRT

Array = np.ndarray[Any, Any]
Held = tuple[Array, Array]


@pytest.fixture(scope="module")
def held(digits_model: Path) -> Held:
    """Returns the digits that the net has never seen, and what they are."""
    with np.load(digits_model.parent / "held_out.npz") as found:
        return (found["pixels"] / 16).astype(np.float32)[..., np.newaxis], found["labels"]


@pytest.fixture(scope="module")
def clipped(held: Held) -> Array:
    """Returns samples that are far too small: integers of their ranges clip nearly everything."""
    return held[0][:50] * np.float32(0.02)


def accuracy(outputs: Array, labels: Array) -> float:
    return float((outputs.argmax(-1) == labels).mean())


def _metric(model: tfconvert.Model) -> MetricFidelity:
    quantization = model.report.quantization
    assert quantization is not None
    assert quantization.fidelity is not None
    assert quantization.fidelity.metric is not None
    return quantization.fidelity.metric


@pytest.mark.parametrize("mode", ["int8", "dynamic", "float16"])
def test_it_is_what_running_both_files_tells(digits_model: Path, held: Held, mode: Any) -> None:
    """Of all samples, not only the first 32: a named metric and the same as a function."""
    images, labels = held
    quantize = Quantize(mode, samples=images, metric="top1", labels=labels)
    model = tfconvert.convert(digits_model, quantize=quantize)
    found = _metric(model)
    files = tfconvert.convert(digits_model), model
    assert [found.floats, found.quantized] == [accuracy(file.predict(images), labels) for file in files]
    assert (found.name, found.samples, found.low < found.difference < found.high) == ("top1", 360, True)
    own = Quantize(mode, samples=images, metric=accuracy, labels=list(labels))
    again = _metric(tfconvert.convert(digits_model, quantize=own))
    assert (again.name, again.floats, again.quantized) == ("accuracy", found.floats, found.quantized)


def test_limits_refuse_a_file_and_the_search_keeps_them(digits_model: Path, held: Held, clipped: Array) -> None:
    images, labels = held
    quantize = Quantize("int8", samples=clipped, metric="top1", labels=labels, max_loss=0.01)
    with pytest.raises(ConversionError) as caught:
        tfconvert.convert(digits_model, quantize=quantize, verify=Verify(images, compare_layers=True))
    problem = caught.value.diagnostics[0]
    assert problem.code == "low-fidelity"
    assert problem.message.startswith("the quantized model is not good enough, on 360 samples: top1: float 0.9861, ")
    assert problem.message.endswith("; required is a loss of at most 0.01")
    assert "gives a metric of 0.9" in problem.hint
    # What is promised is what one gets: the excluded layers are enough.
    exclude = problem.hint.partition(": ")[2].split("; ")[0].replace("--exclude ", "").replace("'", "").split()
    better = Quantize("int8", samples=clipped, exclude=exclude, metric="top1", labels=labels, max_loss=0.01)
    model = tfconvert.convert(digits_model, quantize=better, verify=Verify(images))
    found = _metric(model)
    assert found.loss <= 0.01
    assert f"a metric of {found.quantized:.4f}" in problem.hint
    # The default limits of outputs don't count beside those of the metric; without these they do.
    assert "low-fidelity" not in [note.code for note in model.report.notes]


def test_default_limits_warn_where_the_metric_has_none(digits_model: Path, held: Held, clipped: Array) -> None:
    quantize = Quantize("int8", samples=clipped, metric="top1", labels=held[1])
    model = tfconvert.convert(digits_model, quantize=quantize, verify=Verify(held[0]))
    assert _metric(model).loss > 0.05
    assert "low-fidelity" in [note.code for note in model.report.notes]


def test_a_minimum_that_the_float_model_lacks_is_named(digits_model: Path, held: Held) -> None:
    quantize = Quantize("dynamic", samples=held[0], metric="top1", labels=held[1], min_metric=0.99)
    with pytest.raises(ConversionError, match=r"required is top1 of at least 0\.99") as caught:
        tfconvert.convert(digits_model, quantize=quantize, verify=Verify(compare_layers=True))
    assert caught.value.diagnostics[0].hint.startswith("the float model doesn't reach that either")


def _run(model: Path, folder: Path, *arguments: str) -> Result:
    files = [f"--verify-data={folder / 'x.npy'}", f"--labels={folder / 'y.npy'}"]
    command = [str(model), "-o", str(folder / "out.tflite"), "--quantize", "dynamic", *files, *arguments]
    return CliRunner().invoke(main, command, catch_exceptions=False)


@pytest.fixture
def folder(held: Held, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns a working directory with samples, labels and a module with a metric."""
    np.save(tmp_path / "x.npy", held[0][:64])
    np.save(tmp_path / "y.npy", held[1][:64])
    (tmp_path / "own_metric.py").write_text(
        "def share(outputs, labels):\n    return (outputs.argmax(-1) == labels).mean()\n\n\nnumber = 3\n"
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(("given", "name"), [("top1", "top1"), ("top5", "top5"), ("own_metric:share", "share")])
def test_the_command_reports_it(digits_model: Path, folder: Path, given: str, name: str) -> None:
    run = _run(digits_model, folder, "--metric", given, "--max-loss", "0.05")
    assert run.exit_code == 0, run.output
    assert f"{name}: float " in run.stdout
    data = json.loads(_run(digits_model, folder, "--metric", given, "--min-metric", "0.5", "--json").stdout)
    found = data["quantization"]["fidelity"]["metric"]
    assert found["name"] == name
    assert (found["samples"], found["is_low"], found["limits"]) == (64, False, {"min_metric": 0.5})
    assert found["difference"] == found["quantized"] - found["float"]


def test_the_command_writes_nothing_if_it_is_too_low(digits_model: Path, folder: Path) -> None:
    np.save(folder / "y.npy", (np.load(folder / "y.npy") + 1) % 10)
    run = _run(digits_model, folder, "--metric", "top1", "--min-metric", "0.5")
    assert (run.exit_code, (folder / "out.tflite").exists()) == (1, False)
    assert "the quantized model is not good enough, on 64 samples" in run.stderr
    assert "[low-fidelity]" in run.stderr


def _fails(outputs: Array, labels: Array) -> float:
    raise KeyError("no such class")


WRONG: Mapping[str, tuple[dict[str, Any], str]] = {
    "fails": ({"metric": _fails}, "the metric _fails fails with KeyError: 'no such class' .*test_metric.py"),
    "nan": ({"metric": lambda outputs, labels: math.nan}, "is nan"),
    "text": ({"metric": lambda outputs, labels: "good"}, "fails with ValueError"),
    "several": ({"metric": lambda outputs, labels: labels * 1.0}, "fails with TypeError"),
    "count": ({"labels": np.arange(7)}, "labels of 7 samples, and the output 'output_0' has results of 10"),
    "range": ({"labels": np.arange(1, 11)}, "has 10 scores, and labels are from 1 to 10"),
    "kind": ({"labels": ["one"] * 10}, "doesn't go with labels of <U3"),
    "mae": ({"metric": "mae"}, r"mae of the output 'output_0', \[10, 10\], doesn't go with labels of int64 \[10\]"),
    "other": ({"labels": {"y": np.arange(10)}}, "is about one output, and there are 'output_0'"),
    "scalar": ({"labels": 3}, "the labels are not arrays"),
    "nothing": ({"samples": np.zeros((0, 8, 8, 1), np.float32)}, "there are no samples of the first signature"),
    "no file": ({"labels": "none.npy"}, "the labels can't be read"),
    "no module": ({"metric": "no_such_module:share"}, "'no_such_module:share' fails with ModuleNotFoundError"),
    "no function": ({"metric": "math:pi"}, "the metric 'math:pi' is not a function"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_cannot_be_measured_is_an_error_in_words(digits_model: Path, held: Held, case: str) -> None:
    settings, message = WRONG[case]
    given = {"metric": "top1", "labels": np.arange(10), "samples": held[0][:10], **settings}
    with pytest.raises(ConversionError, match=message) as caught:
        tfconvert.convert(digits_model, quantize=Quantize("dynamic", **given))
    assert caught.value.code == "wrong-metric"
    assert caught.value.diagnostics[0].hint


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"metric": "top2", "labels": [1]}, "there is no metric 'top2'"),
        ({"metric": "top1"}, "a metric needs labels"),
        ({"labels": [1]}, "labels goes with a metric"),
        ({"max_loss": 0.1}, "max_loss goes with a metric"),
        ({"metric": "mae", "labels": [1], "min_metric": 1}, "mae is better if it is lower, and has no minimum"),
        ({"metric": 3, "labels": [1]}, "quantize.metric can't be 3"),
        ({"metric": "top1", "labels": [1], "max_loss": -1}, "quantize.max_loss can't be -1"),
        ({"metric": "top1", "labels": [1]}, "a metric needs the inputs that the labels belong to"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(
    digits_model: Path, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConversionError, match=message) as caught:
        tfconvert.convert(digits_model, quantize=Quantize("dynamic", **settings))
    assert caught.value.code == "wrong-option"


def test_samples_that_can_be_read_once_are_measured_all(digits_model: Path, held: Held) -> None:
    images, labels = held[0][:50], held[1][:50]
    for verify, samples in ((False, iter(images[:, None])), (Verify(iter(images[:, None])), images[:3])):
        quantize = Quantize("int8", samples=samples, metric="top1", labels=labels)
        assert _metric(tfconvert.convert(digits_model, quantize=quantize, verify=verify)).samples == 50


def test_several_outputs_and_batches(tf: ModuleType, tmp_path: Path) -> None:
    """Batches of a fixed size count as rows; labels by name choose an output; a function gets all."""
    weights = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)

    @traced(tf, tf.TensorSpec([None, 4], tf.float32, name="x"))
    def call(x: Any) -> Any:
        return {"scores": tf.matmul(x, weights), "sizes": tf.reduce_sum(x * x, 1)}

    save_function(tf, tmp_path, call.get_concrete_function())
    floats = tfconvert.convert(tmp_path)
    names = [each.name for each in floats.outputs]
    inputs = {"x": np.random.default_rng(1).normal(size=(12, 4)).astype(np.float32)}
    truth = {name: value + np.float32(0.25) for name, value in zip(names, floats.predict(inputs), strict=True)}

    def error(outputs: Mapping[str, Array], labels: Mapping[str, Array]) -> float:
        return -float(np.mean([np.abs(outputs[name] - labels[name]).mean() for name in labels]))

    for metric, labels, value in (("mae", {names[1]: truth[names[1]]}, 0.25), (error, truth, -0.25)):
        quantize = Quantize("float16", samples=inputs, metric=metric, labels=labels)
        found = _metric(tfconvert.convert(tmp_path, quantize=quantize, batch=4))
        assert found.floats == pytest.approx(value, abs=1e-5)
        assert found.is_loss == (metric == "mae")
    quantize = Quantize("float16", samples=inputs, metric="mae", labels=truth[names[0]])
    with pytest.raises(ConversionError, match="is about one output, and there are 'scores', 'sizes'"):
        tfconvert.convert(tmp_path, quantize=quantize)


def _measured(floats: Array, quantized: Array, labels: Array, **settings: Any) -> MetricFidelity:
    metric = Metric(Quantize("dynamic", labels=labels, **settings))
    return metric.measured([({"y": one}, {"y": other}) for one, other in zip(floats, quantized, strict=True)])


def test_the_largest_scores_are_those_of_numpy() -> None:
    """Equal scores count as in `argmax`; labels may be numbers, columns of them, or rows with a one."""
    random = np.random.default_rng(1)
    scores = random.integers(0, 4, (200, 1, 8)).astype(np.float32)  # Many are equal.
    labels = random.integers(0, 8, 200)
    first = (scores[:, 0].argmax(-1) == labels).mean()
    five = np.mean([label in np.argsort(-row[0], kind="stable")[:5] for row, label in zip(scores, labels, strict=True)])
    for given in (labels, labels[:, None], np.eye(8)[labels]):
        assert _measured(scores, scores, given, metric="top1").quantized == first
        assert _measured(scores, scores, given, metric="top5").quantized == five
    nothing = np.full_like(scores, np.nan)
    assert _measured(scores, nothing, labels, metric="top5").quantized == 0


def test_intervals_are_those_of_the_books() -> None:
    """Agresti and Min's of two shares: 40 samples of which 8 only the float model has right, and 2 the other one."""
    floats = np.repeat([[[1.0, 0]], [[1.0, 0]], [[0, 1.0]]], [30, 8, 2], 0)
    quantized = np.repeat([[[1.0, 0]], [[0, 1.0]], [[1.0, 0]]], [30, 8, 2], 0)
    found = _measured(floats, quantized, np.zeros(40, int), metric="top1")
    n, b, c = 42, 2.5, 8.5
    middle, half = (b - c) / n, 1.96 * math.sqrt(b + c - (b - c) ** 2 / n) / n
    assert (found.low, found.high) == pytest.approx((middle - half, middle + half), abs=1e-4)
    assert found.difference == pytest.approx(-0.15)


def test_intervals_hold_the_difference_as_often_as_they_say() -> None:
    """Of 400 draws of 80 samples, 95% of the intervals have the true difference, but for chance."""
    held = {"top1": 0, "mae": 0, "own": 0}
    own = lambda outputs, labels: float((outputs[:, 0] > outputs[:, 1]).mean())  # noqa: E731
    for draw in range(400):
        random = np.random.default_rng(draw)
        right = random.random(80) < 0.9
        lost, won = right & (random.random(80) < 0.1), ~right & (random.random(80) < 0.2)
        floats, after = ([[one, 1 - one]] for one in (right, (right & ~lost) | won))
        scores = [np.stack([each[0][0], each[0][1]], -1)[:, None].astype(np.float32) for each in (floats, after)]
        truth = -0.9 * 0.1 + 0.1 * 0.2
        found = _measured(scores[0], scores[1], np.zeros(80, int), metric="top1")
        held["top1"] += found.low <= truth <= found.high
        numbers = [random.normal(size=(80, 1, 3)) * scale for scale in (1, 1.2)]
        found = _measured(numbers[0], numbers[1], np.zeros((80, 3)), metric="mae")
        held["mae"] += found.low <= 0.2 * math.sqrt(2 / math.pi) <= found.high
        if draw < 40:
            found = _measured(scores[0], scores[1], np.zeros(80, int), metric=own)
            held["own"] += found.low <= truth <= found.high
    assert 0.92 <= held["top1"] / 400 <= 0.985
    assert 0.92 <= held["mae"] / 400 <= 0.985
    assert held["own"] / 40 >= 0.8


def test_a_function_that_needs_all_samples_has_no_interval() -> None:
    def whole(outputs: Array, labels: Array) -> float:
        assert len(set(labels.tolist())) == 20, "draws have some samples twice"
        return float(outputs.mean())

    found = _measured(np.zeros((20, 1, 2)), np.ones((20, 1, 2)), np.arange(20), metric=whole)
    assert (found.quantized, math.isnan(found.low)) == (1.0, True)
    assert found.to_dict()["interval"] is None
    assert "interval" not in str(found)


def test_a_difference_of_shares_may_be_the_limit() -> None:
    assert not MetricFidelity("top1", 0.98, 0.97, 100, max_loss=0.01).is_low
    assert MetricFidelity("top1", 0.98, 0.9699, 100, max_loss=0.01).is_low
    assert MetricFidelity("mae", 0.5, 0.7, 100, is_loss=True, max_loss=0.1).is_low
    assert not MetricFidelity("mae", 0.7, 0.5, 100, is_loss=True, max_loss=0).is_low


def test_manifests_name_it_and_requests_cannot(digits_model: Path, folder: Path) -> None:
    quantize = {"mode": "dynamic", "metric": "top1", "labels": str(folder / "y.npy"), "min_metric": 1.5}
    settings = {"quantize": quantize, "verify_data": [str(folder / "x.npy")]}
    check_data(settings)
    with pytest.raises(ConversionError, match=r"required is top1 of at least 1\.5"):
        run_task(Task(str(digits_model), str(folder / "out.tflite"), settings), lambda _: None)
    words = "'metric' needs a file of labels, or runs code of yours, which is not allowed here"
    with pytest.raises(ConversionError, match=words):
        check_data({"quantize": quantize}, allow_paths=False)
    with pytest.raises(ConversionError, match="metric can't be sent to a server"):
        to_data(Selection(), Options(target=LiteRT(quantize=Quantize("dynamic", metric=accuracy, labels=[1]))))


def test_results_are_cached_unless_code_decides() -> None:
    def why(metric: str) -> str:
        return uncached(
            Selection(), Options(target=LiteRT(quantize=Quantize("dynamic", metric=metric, labels="y.npy")))
        )

    assert why("top1") == ""
    assert why("own_metric:share") == "--metric: it runs code of yours"
