"""A quantized model that differs too much from the float model: who says so, where, and what is proposed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

import tfconvert
from tests.support import outlier
from tests.support.sample_models import traced, two_heads
from tests.support.saved_function import save_function
from tfconvert import Quantize, Verify
from tfconvert.batch.run_task import run_task
from tfconvert.batch.task import Task
from tfconvert.cli.main import main
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.fidelity import Exclusions, Fidelity, Limits, OutputFidelity


@pytest.fixture
def samples(outlier_model: Path) -> Path:
    return outlier_model.with_name("images.npy")


@pytest.fixture
def quantize(samples: Path) -> Quantize:
    return Quantize("int8", samples=str(samples), equalize="off")


def _convert(model: Path, output: Path, *arguments: object) -> Result:
    quantized = [str(model), "-o", str(output), "--quantize", "int8", "--samples", str(model.with_name("images.npy"))]
    quantized += ["--equalize", "off"]
    return CliRunner().invoke(main, [*quantized, *map(str, arguments)], catch_exceptions=False)


def test_the_command_warns_first_of_all(outlier_model: Path, tmp_path: Path) -> None:
    run = _convert(outlier_model, tmp_path / "x.tflite", "--verify")
    assert run.exit_code == 0
    head = run.stdout.splitlines()[2:5]
    assert head[0] == "  fidelity: 0.0 dB, the same largest element in 0.0%"
    assert head[1].startswith("  warning: the quantized model differs too much from the float model, on 24 samples")
    assert head[2].startswith("  hint: `compare_layers` (--compare-layers)")
    assert run.stdout.count("differs too much") == 1
    assert "[low-fidelity]" in run.stderr


@pytest.mark.parametrize("quiet", ["-q", "--json"])
def test_it_warns_where_no_text_is_printed(outlier_model: Path, tmp_path: Path, quiet: str) -> None:
    run = _convert(outlier_model, tmp_path / "x.tflite", "--verify", quiet)
    assert (run.exit_code, (tmp_path / "x.tflite").exists()) == (0, True)
    assert "tfconvert: warning: the quantized model differs too much" in run.stderr
    if quiet == "-q":
        assert run.stdout == ""
        return
    report = json.loads(run.stdout)
    assert [note["code"] for note in report["notes"] if note["severity"] == "warning"] == ["low-fidelity"]
    fidelity = report["quantization"]["fidelity"]
    assert (fidelity["is_low"], fidelity["agreement"]) == (True, 0.0)
    assert fidelity["snr"] < 1
    assert fidelity["limits"] == {"snr": 20.0, "agreement": 0.9}


@pytest.mark.parametrize("limit", [("--min-snr", "20"), ("--min-agreement", "50%"), ("--min-agreement", "0.5")])
def test_limits_are_errors_and_no_file_is_written(outlier_model: Path, tmp_path: Path, limit: tuple[str, str]) -> None:
    run = _convert(outlier_model, tmp_path / "x.tflite", *limit)
    assert run.exit_code == 1
    assert list(tmp_path.iterdir()) == []
    assert "tfconvert: error: the quantized model differs too much" in run.stderr
    assert "[low-fidelity]" in run.stderr


def test_explicit_settings_take_precedence(outlier_model: Path, quantize: Quantize) -> None:
    """A limit that is kept is no error, and no warning; the other one has its default."""
    kept = Verify(min_snr=-1, min_agreement=0)
    assert _low(tfconvert.convert(outlier_model, quantize=quantize, verify=kept)) == []
    (warning,) = _low(tfconvert.convert(outlier_model, quantize=quantize, verify=Verify(min_snr=-1)))
    assert (warning.severity, "the limits are -1 dB and 90%" in warning.message) == ("warning", True)


def _low(model: tfconvert.Model) -> list[tfconvert.Diagnostic]:
    return [note for note in model.report.notes if note.code == "low-fidelity"]


def test_layers_are_listed_and_the_culprits_found(outlier_model: Path, samples: Path) -> None:
    quantize = Quantize("int8", samples=str(samples), equalize="off")
    model = tfconvert.convert(outlier_model, quantize=quantize, verify=Verify(compare_layers=True))
    report = model.report
    assert report.quantization is not None
    fidelity = report.quantization.fidelity
    assert fidelity is not None
    first = fidelity.layers[0]
    # The whole tensor looks perfect, since what is left of it is the channel that is large.
    assert (first.node, first.op) == ("widened", "CONV_2D")
    assert first.snr > 40 > 1 > first.channel_snr
    assert first.used < 0.01
    assert first.lost > 0.8
    assert {each.node for each in fidelity.layers} == {*outlier.CULPRITS, "third", "mean", "scores"}
    found = fidelity.exclusions
    assert found is not None
    assert (sorted(found.exclude), found.ran_out) == (sorted(outlier.CULPRITS), False)
    text = report.to_text()
    assert "excluding these 2 gives 41.1 dB, the same largest element in 100.0%: --exclude" in text
    assert "worst channel" in text
    assert text.count("--compare-layers") == 0
    # What is promised is what one gets.
    better = Quantize("int8", samples=str(samples), exclude=found.exclude, equalize="off")
    after = tfconvert.convert(outlier_model, quantize=better, verify=True).report.quantization
    assert after is not None
    assert after.fidelity is not None
    assert after.fidelity.snr == pytest.approx(found.snr)
    assert not after.fidelity.is_low


@pytest.mark.parametrize("mode", ["dynamic", "weights"])
def test_weights_are_searched_too(tf: ModuleType, tmp_path: Path, mode: Any) -> None:
    """One scale for a matrix whose columns, or rows, differ leaves nothing of the smaller ones."""
    random = np.random.default_rng(1)
    scale = np.where(np.arange(64) == 9, 2000, 1).astype(np.float32)
    first = random.normal(size=(32, 64)).astype(np.float32) * scale
    second = random.normal(size=(64, 64)).astype(np.float32) / scale[:, None]
    last = random.normal(size=(64, 20)).astype(np.float32)

    @traced(tf, tf.TensorSpec([None, 32], tf.float32, name="x"))
    def call(x: Any) -> Any:
        x = tf.tanh(tf.matmul(tf.matmul(x, first, name="columns"), second, name="rows"))
        return {"y": tf.matmul(x, last, name="last")}

    save_function(tf, tmp_path, call.get_concrete_function())
    data = [[random.normal(size=(1, 32)).astype(np.float32)] for _ in range(8)]
    quantize = Quantize(mode, per_channel=False, equalize="off")
    report = tfconvert.convert(tmp_path, quantize=quantize, verify=Verify(data, compare_layers=True)).report
    assert report.quantization is not None
    fidelity = report.quantization.fidelity
    assert fidelity is not None
    assert fidelity.is_low
    assert fidelity.layers[0].node == "columns"
    assert fidelity.exclusions is not None
    assert sorted(fidelity.exclusions.exclude) == ["columns", "rows"]


def test_comparing_layers_changes_no_file(outlier_model: Path, quantize: Quantize) -> None:
    plain = bytes(tfconvert.convert(outlier_model, quantize=quantize))
    assert (
        bytes(tfconvert.convert(outlier_model, quantize=quantize, verify=tfconvert.Verify(compare_layers=True)))
        == plain
    )


def test_the_error_names_the_layers_and_the_proposal(outlier_model: Path, tmp_path: Path) -> None:
    run = _convert(outlier_model, tmp_path / "x.tflite", "--min-snr", 30, "--compare-layers", "-v")
    assert run.stderr.index("tfconvert: verify\n") < run.stderr.index("tfconvert: search-exclusions\n")
    assert (run.exit_code, list(tmp_path.iterdir())) == (1, [])
    assert "hint: excluding these 2 gives 41.1 dB" in run.stderr
    lines = run.stderr.splitlines()
    table = lines[next(index for index, line in enumerate(lines) if "the layers that lose most" in line) :]
    assert table[2].split()[:2] == ["widened", "CONV_2D"]
    assert "[worst-layers]" in run.stderr


def test_there_is_no_search_where_none_is_wanted(outlier_model: Path, tmp_path: Path) -> None:
    run = _convert(outlier_model, tmp_path / "x.tflite", "--compare-layers", "--search-seconds", "0", "--json")
    fidelity = json.loads(run.stdout)["quantization"]["fidelity"]
    assert fidelity["layers"]
    assert "exclusions" not in fidelity
    run = _convert(outlier_model, tmp_path / "x.tflite", "--search-seconds", "1")
    assert (run.exit_code, "--search-seconds goes with --compare-layers" in run.stderr) == (2, True)


def test_a_page_shows_the_verdict(outlier_model: Path, tmp_path: Path) -> None:
    _convert(outlier_model, tmp_path / "x.tflite", "--compare-layers", "--report", tmp_path / "x.html")
    page = (tmp_path / "x.html").read_text("utf-8")
    data = page[page.index('"fidelity":{') :]
    assert '"is_low":true' in data[: data.index('"outputs"')]
    assert 'tile("Fidelity"' in page


def test_a_generator_is_verified_on_its_samples(outlier_model: Path) -> None:
    images = outlier.images(40)

    def each() -> Iterator[dict[str, Any]]:
        for image in images:
            yield {"image": image[None]}

    for given in (each(), {"serving_default": each()}):
        report = tfconvert.convert(
            outlier_model, quantize=Quantize("int8", samples=given, equalize="off"), verify=True
        ).report
        assert report.quantization is not None
        assert report.quantization.fidelity is not None
        assert (report.quantization.fidelity.samples, report.quantization.fidelity.is_random) == (32, False)


@pytest.mark.parametrize("keys", [("embed", "classify"), ("classify", "embed")])
def test_every_signature_is_compared(tf: ModuleType, tmp_path: Path, keys: tuple[str, str]) -> None:
    """In whichever order their samples come."""
    module, signatures = two_heads(tf)
    tf.saved_model.save(module, str(tmp_path), signatures=signatures)
    random = np.random.default_rng(0)
    samples = {key: [{"features": random.normal(size=(2, 64)).astype(np.float32)} for _ in range(4)] for key in keys}
    report = tfconvert.convert(tmp_path, quantize=Quantize("int8", samples=samples), verify=True).report
    assert report.quantization is not None
    fidelity = report.quantization.fidelity
    assert fidelity is not None
    assert fidelity.samples == 8
    assert {each.signature for each in fidelity.outputs} == set(keys)
    assert all(each.snr > 25 for each in fidelity.outputs)


def test_no_time_is_spent_on_a_search_of_no_seconds(outlier_model: Path, quantize: Quantize, samples: Path) -> None:
    report = tfconvert.convert(
        outlier_model, quantize=quantize, verify=Verify(str(samples), compare_layers=True, search_seconds=0)
    ).report
    assert report.quantization is not None
    assert report.quantization.fidelity is not None
    assert report.quantization.fidelity.layers
    assert report.quantization.fidelity.exclusions is None


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"verify": "yes"}, "verify can't be 'yes'"),
        ({"verify": Verify(min_snr="high")}, "min_snr can't be 'high'"),  # type: ignore[arg-type]
        ({"verify": Verify(min_snr=float("nan"))}, "min_snr can't be nan"),
        ({"verify": Verify(min_agreement=90)}, "min_agreement can't be 90"),
        ({"verify": Verify(search_seconds=-1)}, "search_seconds can't be -1"),
        ({"verify": Verify(data=5)}, "verify.data can't be 5"),
        ({"verify": Verify(min_snr=20), "quantize": None}, "min_snr and min_agreement are for quantized models"),
    ],
)
def test_wrong_settings_are_refused(outlier_model: Path, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConversionError) as caught:
        tfconvert.convert(outlier_model, **{"quantize": "dynamic", **settings})
    assert caught.value.code == "wrong-option"
    assert message in str(caught.value)


@pytest.mark.parametrize("value", ["90", "-1%", "most"])
def test_invalid_shares_are_rejected(outlier_model: Path, tmp_path: Path, value: str) -> None:
    run = _convert(outlier_model, tmp_path / "x.tflite", f"--min-agreement={value}")
    assert (run.exit_code, "is not a share" in run.stderr) == (2, True)


def test_jobs_of_batches_and_of_the_service_report_it(outlier_model: Path, samples: Path, tmp_path: Path) -> None:
    quantize = {"mode": "int8", "samples": [str(samples)], "equalize": "off"}
    task = Task(str(outlier_model), str(tmp_path / "x.tflite"), {"quantize": quantize, "verify": True})
    fidelity = run_task(task, lambda _: None)["fidelity"]
    assert (fidelity["is_low"], fidelity["agreement"]) == (True, 0.0)
    with pytest.raises(ConversionError) as caught:
        run_task(task._replace(settings={"quantize": quantize, "verify": {"min_snr": 20}}), lambda _: None)
    assert caught.value.code == "low-fidelity"
    run = CliRunner().invoke(
        main,
        [
            "batch",
            str(outlier_model),
            "-o",
            str(tmp_path / "{name}.tflite"),
            "--set",
            f"quantize={json.dumps(quantize)}",
            "--set",
            "verify=true",
        ],
    )
    assert (run.exit_code, "low fidelity" in run.stdout) == (0, True), run.output


def test_a_project_sets_limits(outlier_model: Path, samples: Path, tmp_path: Path) -> None:
    text = (
        f'[[models]]\nmodel = "{outlier_model}"\noutput = "x.tflite"\n'
        f'settings.quantize = {{mode = "int8", samples = "{samples}", equalize = "off"}}\n'
        "settings.verify = {min_snr = 20, min_agreement = 0.9}\n"
    )
    (tmp_path / "tfconvert.toml").write_text(text)
    run = CliRunner().invoke(main, ["build", str(tmp_path / "tfconvert.toml"), "-q"])
    assert (run.exit_code, "[low-fidelity]" in run.stderr) == (1, True)
    assert not (tmp_path / "x.tflite").exists()


def test_outputs_that_are_no_numbers_are_low() -> None:
    nothing = OutputFidelity("y", -np.inf)
    assert Fidelity(1, (nothing,)).is_low
    assert not Fidelity(1, (OutputFidelity("y", np.inf, np.nan),)).is_low
    assert Fidelity(1, (OutputFidelity("classes", np.nan, 0.5),)).is_low
    assert not Fidelity(1, (OutputFidelity("y", 25.0, 0.95),), limits=Limits.of(None, None, required=True)).is_refused


def test_many_exclusions_are_cut_short() -> None:
    text = str(Exclusions(tuple(f"layer {number}" for number in range(20)), 30.0))
    assert text.startswith("excluding these 20 gives 30.0 dB: --exclude 'layer 0' ")
    assert text.endswith("and 12 more (--json lists all); another mode may suit it better")
