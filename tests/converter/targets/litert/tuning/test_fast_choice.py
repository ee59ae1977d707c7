"""Fast forms are applied where times say that they are faster, and both forms can be run by themselves."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.converter.targets.litert.forms.cases import FAST_CASES, FastCase
from tests.converter.targets.litert.optimize.graph import Graph, i32, random
from tests.support.litert import RunTFLite
from tfconvert.converter.pipeline.tuning_report import TunedForm
from tfconvert.converter.targets.litert.passes.fast_forms import FastForms
from tfconvert.converter.targets.litert.tuning import form_timing
from tfconvert.converter.targets.litert.tuning.form_timing import FAST, USUAL, main, pairs_in
from tfconvert.converter.targets.litert.tuning.tuner import SCRIPT, read_table
from tfconvert.ops.verification import verify
from tfconvert.schema.dialects import types
from tfconvert.schema.dialects.quant import Uniform, UniformType
from tfconvert.schema.ir.values import Value
from tfconvert.settings.quantization import Quantize

CASES = {case.name: case for case in reversed(FAST_CASES)}
SOFTMAX = next(case for case in FAST_CASES if case.pattern == "softmax-by-steps")


def _graph(case: FastCase) -> Graph:
    graph = Graph(case.shape)
    return graph.returns(case.make(graph, graph.inputs[0]))


def _forms(case: FastCase, tune: str | Path) -> tuple[TunedForm, ...]:
    report = FastForms(tune=tune).apply(_graph(case).module).tuning
    assert report is not None
    return report.forms


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a directory with both forms of each case, and the table that the script there has written."""
    found = tmp_path_factory.mktemp("tuning") / "forms"
    for case in CASES.values():
        _forms(case, f"{found}/")
    # As on a device, which has no tfconvert.
    command = [sys.executable, "-P", SCRIPT, "--seconds", "0.01"]
    done = subprocess.run(command, cwd=found, env={}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "table.tsv" in done.stdout
    return found


@pytest.fixture(scope="module")
def table(directory: Path) -> Path:
    return directory / "table.tsv"


def _with_times(table: Path, place: Path, usual: float, fast: float) -> Path:
    """Writes a table whose rows all have the same times."""
    rows = [[*name.split("."), str(usual), str(fast)] for name in read_table(table)[1]]
    place.write_text(form_timing.table("a board", rows))
    return place


@pytest.mark.parametrize("name", CASES)
def test_each_form_was_measured(name: str, table: Path) -> None:
    """Those that another form makes possible are not in the table."""
    case = CASES[name]
    forms = _forms(case, table)
    measured = [form for form in forms if form.is_measured]
    assert case.pattern in {form.pattern for form in measured}
    assert all(min(form.usual, form.fast) > 0 for form in measured)
    assert all(form.is_fast == (form.fast <= 0.97 * form.usual) for form in measured)
    assert all(form.is_default for form in forms if not form.is_measured)


@pytest.mark.parametrize("name", CASES)
def test_the_usual_form_stays_where_it_is_as_fast(name: str, table: Path, tmp_path: Path) -> None:
    graph = _graph(CASES[name])
    before = graph.names
    slow = _with_times(table, tmp_path / "slow.tsv", usual=100, fast=98)
    result = FastForms(tune=slow).apply(graph.module)
    assert CASES[name].pattern not in result.counts
    assert graph.names == before
    assert result.tuning is not None
    assert result.tuning.gain == pytest.approx(-2 * sum(form.places for form in result.tuning.forms))


@pytest.mark.parametrize("name", CASES)
def test_faster_forms_are_those_of_the_pass(name: str, table: Path, tmp_path: Path, run_tflite: RunTFLite) -> None:
    case = CASES[name]
    graph, untuned, x = _graph(case), _graph(case), random(*case.shape)
    before = graph.run(run_tflite, [x])
    quick = _with_times(table, tmp_path / "quick.tsv", usual=100, fast=50)
    tuned = FastForms(tune=quick).apply(graph.module)
    verify(graph.module, with_relations=False)
    assert tuned.counts >= FastForms().apply(untuned.module).counts
    for old, new in zip(before, graph.run(run_tflite, [x]), strict=True):
        np.testing.assert_allclose(new, old, rtol=1e-5, atol=1e-5)
    assert tuned.tuning is not None
    assert tuned.tuning.device == "a board"
    others = sum(form.places for form in tuned.tuning.forms if not form.is_default)
    assert tuned.tuning.gain_over_default == 50 * others


def _inputs(content: bytes) -> list[Mapping[str, Any]]:
    details: list[Mapping[str, Any]] = form_timing.interpreter_of(content).get_input_details()
    return details


def test_both_forms_compute_the_same(directory: Path, run_tflite: RunTFLite) -> None:
    compared = 0
    for pair in pairs_in(directory):
        contents = [path.read_bytes() for path in pair]
        shapes = [[given["shape"] for given in _inputs(content)] for content in contents]
        if [len(each) for each in shapes] != [1, 1]:
            continue  # The forms may have their inputs in different orders.
        x = random(*shapes[0][0])
        for old, new in zip(*(run_tflite(content, [x]) for content in contents), strict=True):
            np.testing.assert_allclose(new, old, rtol=1e-5, atol=1e-5)
        compared += 1
    assert compared > 20


def test_measured_on_this_machine() -> None:
    """This form takes a tenth of the time, so that no noise decides."""
    (form,) = _forms(SOFTMAX, "HOST")
    assert form.is_fast
    assert form.fast < form.usual
    assert form.becomes == SOFTMAX.expected


OTHER_SIZES: dict[str, tuple[tuple[int, ...], Callable[[Graph, Value], Value]]] = {
    "softmax-by-steps": ((1, 8, 50, 50), lambda g, x: g.op("softmax", x, beta=1.0)),
    "log-softmax-by-steps": ((1, 10, 100), lambda g, x: g.op("log_softmax", x)),
    "reduce-in-steps-mean": (
        (1, 16, 16, 8, 40),
        lambda g, x: g.op("mean", x, [1, 2, 4], shape=(1, 1, 1, 8, 1), keep_dims=True),
    ),
    "broadcast-in-full-mul": (
        (1, 16, 16, 8, 40),
        lambda g, x: g.op("mul", x, g.op("mean", x, [1, 2, 4], shape=(1, 1, 1, 8, 1), keep_dims=True)),
    ),
    "resize-by-rows": (
        (1, 16, 16, 144),
        lambda g, x: g.op("resize_nearest_neighbor", x, [32, 32], shape=(1, 32, 32, 144), align_corners=False),
    ),
    "tile-by-copies": ((1, 64, 1, 300), lambda g, x: g.op("tile", x, [1, 1, 2, 1], shape=(1, 64, 2, 300))),
    "split-by-slices": ((1, 16, 16, 48), lambda g, x: g.op("add", *g.split(x, [8] * 6, 3)[4:])),
}
"""Sizes for which the table of the package doesn't say that a form is faster."""


@pytest.mark.parametrize("pattern", OTHER_SIZES)
def test_times_decide_on_sizes_that_no_figures_are_known_for(
    pattern: str, tmp_path: Path, run_tflite: RunTFLite
) -> None:
    shape, make = OTHER_SIZES[pattern]

    def built() -> Graph:
        graph = Graph(shape)
        return graph.returns(make(graph, graph.inputs[0]))

    before, x = built(), random(*shape)
    assert pattern not in FastForms(tune=f"{tmp_path}/").apply(built().module).counts
    assert main([str(tmp_path), "--seconds", "0.01"]) == 0
    table = tmp_path / "table.tsv"
    after = built()
    result = FastForms(tune=_with_times(table, tmp_path / "quick.tsv", usual=20, fast=10)).apply(after.module)
    verify(after.module, with_relations=False)
    assert result.counts[pattern]
    assert result.tuning is not None
    assert result.tuning.gain_over_default >= 10
    for old, new in zip(before.run(run_tflite, [x]), after.run(run_tflite, [x]), strict=True):
        np.testing.assert_allclose(new, old, rtol=1e-5, atol=1e-5)
    slow = FastForms(tune=_with_times(table, tmp_path / "slow.tsv", usual=10, fast=20)).apply(built().module)
    assert pattern not in slow.counts
    assert slow.tuning is not None
    assert slow.tuning.gain_over_default == 0


def test_equal_places_are_measured_once(tmp_path: Path) -> None:
    graph = Graph((1, 64, 64, 5))
    (x,) = graph.inputs
    graph.returns(graph.op("add", *(graph.op("softmax", graph.op(name, x), beta=1.0) for name in ("neg", "exp"))))
    report = FastForms(tune=f"{tmp_path}/").apply(graph.module).tuning
    assert report is not None
    assert [form.places for form in report.forms] == [2]
    (pair,) = pairs_in(tmp_path)
    assert pair[0].name == f"softmax-by-steps.1x64x64x5.{report.forms[0].form}{USUAL}"
    assert pair[1].name.endswith(FAST)
    assert pair[1].exists()


def test_weights_do_not_change_the_name_of_a_form(tmp_path: Path) -> None:
    for seed in (1, 2):
        graph = Graph((1, 16, 16, 64))
        options: dict[str, Any] = {"padding": "SAME", "stride_h": 2, "stride_w": 2, "fused_activation_function": "NONE"}
        shape = (1, 32, 32, 32)
        weights = random(32, 2, 2, 64, seed=seed)
        graph.returns(
            graph.op("transpose_conv", list(shape), weights, graph.inputs[0], random(32), shape=shape, **options)
        )
        FastForms(tune=f"{tmp_path}/").apply(graph.module)
    assert len(pairs_in(tmp_path)) == 1


def test_integers_are_measured_as_integers_whatever_their_scales(tmp_path: Path) -> None:
    for scale in (0.5, 0.25):
        graph = Graph((1, 32, 32, 32))
        element = UniformType.get(Uniform(types.I8, (scale,), (3,)))
        x = graph.op("quantize", graph.inputs[0], element=element, shape=(1, 32, 32, 32))
        pads = i32([[0, 0], [1, 1], [1, 1], [0, 0]])
        y = graph.op("mirror_pad", x, pads, shape=(1, 34, 34, 32), element=element, mode="REFLECT")
        graph.returns(graph.op("dequantize", y, element=types.F32, shape=(1, 34, 34, 32)))
        result = FastForms(tune=f"{tmp_path}/").apply(graph.module)
        assert result.counts["mirror-by-rows"]
    (pair,) = pairs_in(tmp_path)
    (given,) = _inputs(pair[0].read_bytes())
    assert given["dtype"] is np.int8
    assert min(form_timing.microseconds_of_files([path.read_bytes() for path in pair], 0.01)) > 0


def test_forms_that_will_be_of_integers_are_not_measured_as_floats(tmp_path: Path) -> None:
    case = next(case for case in FAST_CASES if case.pattern == "every-nth")
    result = FastForms(Quantize("int8"), f"{tmp_path}/").apply(_graph(case).module)
    assert result.counts[case.pattern]
    assert result.tuning is None
