"""The verdicts of the quantization benchmark, its figures, and its models' samples."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import flatbuffers
import numpy as np
import pytest
from ai_edge_litert import schema_py_generated

import tfconvert
from benchmarks.architectures import ARCHITECTURES
from benchmarks.comparison import PACKAGES
from benchmarks.litert import operators
from benchmarks.measure import Run
from benchmarks.quantization import __main__ as quantization
from benchmarks.quantization import results as quantization_results
from benchmarks.quantization.convert import MODES, our_settings, samples
from benchmarks.quantization.models import RECIPES, Reference, select, write_images
from benchmarks.quantization.results import MAX_SNR, Figures, Officials, agreement, look, said, signal_to_noise
from benchmarks.quantization.run import (
    Network,
    answers,
    dequantized,
    operators_on_constants,
    quantized,
    reduced_tensors,
    show_logits,
)
from benchmarks.quantization.table import EXACT, Row, line, markdown, modes_of
from benchmarks.samples import Sample, save_samples
from benchmarks.zoo import Entry

CACHE = Path("cache")
# The input of the example's network.
INPUT = "pixels"

GOOD = Figures(
    size=900,
    operators=10,
    reduced=4,
    cost=Run(0.5, 60_000_000, 0.4),
    snr={"xnnpack": 40.0, "builtin": 39.0},
    agreement=0.99,
)
CRASHED = Figures("died of signal 11")


def row(ours: Figures = GOOD, official: Figures = GOOD, mode: str = "int8", model: str = "digits") -> Row:
    """Returns a comparison."""
    return Row(RECIPES[model], MODES[mode], ours, official)


@pytest.mark.parametrize(
    ("answer", "expected", "ratio"),
    [
        ([[3.0, 4.0]], [[3.0, 4.0]], MAX_SNR),
        ([[3.0, 4.5]], [[3.0, 4.0]], 20.0),
        ([[0.0, 0.0]], [[3.0, 4.0]], 0.0),
        ([[1.0, 0.0]], [[0.0, 0.0]], -MAX_SNR),
        ([[np.nan, 4.0]], [[3.0, 4.0]], -MAX_SNR),
        ([[3.0]], [[3.0, 4.0]], -MAX_SNR),
    ],
    ids=["exact", "close", "silent", "nothing expected", "nan", "shape"],
)
def test_signal_to_noise(answer: list[Any], expected: list[Any], ratio: float) -> None:
    assert signal_to_noise(np.array(answer, "f4"), np.array(expected, "f4")) == pytest.approx(ratio)


def test_agreement_is_on_the_first_choice() -> None:
    expected = np.array([[0.1, 0.9], [0.8, 0.2], [0.6, 0.4], [0.5, 0.6]])
    assert agreement(expected * 100 - 50, expected) == 1
    assert agreement(expected[:, ::-1], expected) == 0
    assert agreement(np.zeros_like(expected), expected) == 0.5
    assert agreement(expected[:2], expected) == 0
    yes = np.array([[[0.6], [0.4]], [[0.3], [0.9]]])
    assert agreement(np.where(yes > 0.5, 0.51, 0.1), yes) == 1
    assert agreement(np.zeros_like(yes), yes) == 0.5


@pytest.mark.parametrize(
    ("made", "found"),
    [
        (row(), []),
        (row(CRASHED), ["no file"]),
        (row(CRASHED, CRASHED), ["no file"]),
        (row(replace(GOOD, size=901)), ["bytes"]),
        (row(replace(GOOD, reduced=0), CRASHED), ["nothing is quantized"]),
        (row(replace(GOOD, reduced=0, snr={"xnnpack": EXACT}), mode="float"), []),
        (row(replace(GOOD, operators=11)), ["operators"]),
        (row(replace(GOOD, operators=11, folded=1)), ["operators"]),
        (row(replace(GOOD, operators=11, folded=1), mode="dynamic"), []),
        (row(replace(GOOD, operators=11, folded=1), replace(GOOD, operators=10, folded=1), "dynamic"), ["operators"]),
        (row(replace(GOOD, snr={"xnnpack": 39.1, "builtin": 38.1})), []),
        (row(replace(GOOD, snr={"xnnpack": 40.0, "builtin": 37.9})), ["builtin 37.9 dB < 39.0"]),
        (row(replace(GOOD, snr={"builtin": 39.0}, failures={"xnnpack": "x"})), ["xnnpack doesn't run it"]),
        (row(replace(GOOD, agreement=0.985)), []),
        (row(replace(GOOD, agreement=0.97)), ["top-1"]),
        (row(replace(GOOD, agreement=0.5), model="ResNet50"), []),
        (row(replace(GOOD, size=999), CRASHED), []),
        (row(GOOD, CRASHED, model="gru"), []),
        (row(replace(GOOD, snr={"xnnpack": 38.0}), CRASHED, model="gru"), ["xnnpack 38.0 dB < 40.0"]),
        (row(replace(GOOD, snr={"xnnpack": EXACT - 0.5}), mode="float"), [f"xnnpack {EXACT - 0.5} dB < {EXACT}"]),
        (row(replace(GOOD, snr={"xnnpack": EXACT}), replace(GOOD, snr={"xnnpack": MAX_SNR}), "float"), []),
    ],
)
def test_verdicts(made: Row, found: list[str]) -> None:
    assert made.shortcomings() == found
    assert line(made).endswith(found[-1] if found else "ok")


def test_an_official_file_that_runs_nowhere_is_no_bar() -> None:
    dead = Figures(size=1, operators=1, failures={"xnnpack": "no", "builtin": "no"})
    assert not dead.runs
    made = row(replace(GOOD, snr={"xnnpack": 44.5, "builtin": 43.0}), dead, "int16", "transformer")
    assert made.shortcomings() == ["builtin 43.0 dB < 45.0"]


def test_the_table_shows_figures_aims_and_faults() -> None:
    setup = dict.fromkeys(("processor", "cores", *PACKAGES), "1")
    mixed = replace(GOOD, size=12345, folded=2, is_mixed=True, latency=0.0015)
    text = markdown([row(GOOD, mixed), row(GOOD, CRASHED, model="gru")], setup)
    rows = [each for each in text.splitlines() if each.startswith("|")]
    assert len({each.count("|") for each in rows}) == 1
    assert "| 900 | 12,345 | 10 | 10 (2 folded) | 40.0 | 40.0 | 39.0 | 39.0 | 0.990 | 0.990 |  | 1.500 | 0.4 |" in text
    assert "| 40.0 | aim 40 |" in rows[-1]
    assert "gru int8: the official converter: died of signal 11" in text
    assert "digits int8: the official converter needs floats in between" in text
    assert "2 of 2 are good enough" in text


def test_models_have_their_modes() -> None:
    assert [mode.name for mode in modes_of(RECIPES["mlp"])] == ["float", "dynamic", "float16", "int8", "int16"]
    assert [mode.name for mode in modes_of(RECIPES["qat"])] == ["float", "int8", "qat"]
    assert [mode.name for mode in modes_of(RECIPES["mlp"], ["qat", "int8-io"])] == ["int8-io"]
    with pytest.raises(ValueError, match="int7"):
        modes_of(RECIPES["mlp"], ["int7"])


def test_names_choose_models(capsys: pytest.CaptureFixture[str]) -> None:
    assert [reference.recipe.name for reference in select(CACHE)] == list(RECIPES)
    assert len(RECIPES) == 13
    digits, large = select(CACHE, ["MobileNetV2", " digits "])
    assert digits.saved_model == CACHE / "quantization" / "digits" / "saved_model"
    assert large.saved_model == CACHE / "k3" / "MobileNetV2" / "saved_model"
    with pytest.raises(ValueError, match="LeNet"):
        select(CACHE, ["LeNet"])
    for wrong in (["--only", "LeNet"], ["--modes", "int7"]):
        with pytest.raises(SystemExit):
            quantization.main(wrong)
        assert wrong[1] in capsys.readouterr().err


def test_large_networks_get_images_of_their_range(tmp_path: Path) -> None:
    (reference,) = select(tmp_path, ["ResNet50"])
    reference.folder.mkdir(parents=True)
    entry = Entry(ARCHITECTURES["ResNet50"], "k3", tmp_path)
    assert reference.entry == entry
    entry.folder.mkdir(parents=True)
    save_samples(entry.io, {1: Sample({"picture": np.zeros((1, 2))}, {})})
    write_images(reference, entry)
    for path, count in ((reference.calibration, 20), (reference.test, 8)):
        with np.load(path) as stored:
            assert stored.files == ["picture"]
            assert stored["picture"].shape == (count, 224, 224, 3)
            assert -124 <= stored["picture"].min() < -100 < 100 < stored["picture"].max() <= 151


def test_samples_are_batches_of_one(tmp_path: Path) -> None:
    path = tmp_path / "calibration.npz"
    np.savez(path, x=np.arange(6).reshape(3, 2), y=np.arange(4))
    found = list(samples(path))
    assert [{name: array.tolist() for name, array in each.items()} for each in found] == [
        {"x": [[0, 1]], "y": [0]},
        {"x": [[2, 3]], "y": [1]},
        {"x": [[4, 5]], "y": [2]},
    ]


def test_our_settings_are_valid(tmp_path: Path) -> None:
    for mode in MODES.values():
        settings = our_settings(mode, tmp_path)
        assert (settings is None) is (mode.name == "float")
        if settings is not None:
            settings.check()
            assert (settings.samples is not None) is mode.is_calibrated
            assert settings.io == mode.io


def test_inputs_and_outputs_are_quantized() -> None:
    detail = {"dtype": np.int8, "quantization": (0.5, 3)}
    stored = quantized(np.array([-100.0, 0.0, 0.6, 100.0]), detail)
    assert stored.tolist() == [-128, 3, 4, 127]
    assert stored.dtype == np.int8
    assert dequantized(stored, detail).tolist() == [-65.5, 0, 0.5, 62]
    plain = {"dtype": np.int32, "quantization": (0.0, 0)}
    assert quantized(np.array([7]), plain).tolist() == dequantized(np.array([7]), plain).tolist() == [7]


def test_the_error_is_shown_without_its_hint() -> None:
    output = "Traceback\ntfconvert.ConversionError: quantize: no\n  hint: perhaps\n"
    assert said(output) == "tfconvert.ConversionError: quantize: no"
    assert said("converter failed:\ndied of signal 11\n") == "died of signal 11"


@pytest.fixture
def reference(tmp_path: Path, digits_model: Path) -> Reference:
    """Returns the example's network as a reference model."""
    made = Reference(RECIPES["digits"], tmp_path)
    made.folder.mkdir(parents=True)
    made.saved_model.symlink_to(digits_model)
    random = np.random.default_rng(3)
    for path in (made.calibration, made.test):
        np.savez(path, **{INPUT: random.random((4, 8, 8, 1), np.float32)})  # type: ignore[arg-type]
    made.manifest.write_text(json.dumps({"settings": made.settings()}))
    return made


def test_manifests_must_fit(reference: Reference) -> None:
    assert reference.exists()
    reference.manifest.write_text(json.dumps({"settings": "other"}))
    assert not reference.exists()


def test_our_file_is_converted_run_and_judged(reference: Reference, tmp_path: Path) -> None:
    target = tmp_path / "ours.tflite"
    tfconvert.convert(reference.saved_model).save(target)
    figures = Figures()
    answer = look(figures, target, reference, None, tmp_path)
    assert answer.shape == (4, 10)
    assert figures.snr["xnnpack"] == MAX_SNR
    assert figures.snr["builtin"] > EXACT
    assert figures.size == target.stat().st_size
    assert (figures.folded, figures.reduced, figures.agreement) == (0, 0, 1)
    assert figures.operators > 3
    logits = answers(target, reference.test, "builtin", True, tmp_path / "logits.npy")
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    np.testing.assert_allclose(powers / powers.sum(axis=1, keepdims=True), answer, atol=1e-5)
    assert list(Network(show_logits(target.read_bytes()), "builtin").inputs) == [INPUT]


def test_operators_on_constants_and_reduced_tensors_are_counted(digits_model: Path, tmp_path: Path) -> None:
    target = tmp_path / "model.tflite"
    tfconvert.convert(digits_model).save(target)
    assert operators_on_constants(target, "FULLY_CONNECTED") == 0
    model = schema_py_generated.ModelT.InitFromPackedBuf(target.read_bytes(), 0)
    for operator in model.subgraphs[0].operators:
        code = model.operatorCodes[operator.opcodeIndex].builtinCode
        if code == schema_py_generated.BuiltinOperator.FULLY_CONNECTED:
            operator.inputs = operator.inputs[::-1]
    weight, other = model.subgraphs[0].tensors[:2]
    weight.quantization = schema_py_generated.QuantizationParametersT(scale=[0.5], zeroPoint=[0])
    other.type = schema_py_generated.TensorType.FLOAT16
    builder = flatbuffers.Builder(0)
    builder.Finish(model.Pack(builder), b"TFL3")
    target.write_bytes(builder.Output())
    assert operators_on_constants(target, "FULLY_CONNECTED") == operators(target)["FULLY_CONNECTED"] > 0
    assert operators_on_constants(target, "CONV_2D") == 0
    assert reduced_tensors(target) == 2


def test_official_files_are_made_once(reference: Reference, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    float_file = tmp_path / "float.tflite"
    tfconvert.convert(reference.saved_model).save(float_file)
    asked: list[list[str]] = []

    def convert(words: list[str], folder: Path) -> Run:
        asked.append(words)
        place = Path(words[words.index("int16" if "int16" in words else "float") + 1])
        place.write_bytes(float_file.read_bytes())
        if "int16" in words and words[-1] != "--mixed":
            raise RuntimeError("converter failed:\nHARD_SWISH isn't supported")
        return Run(9.0, 600_000_000, 8.0)

    monkeypatch.setattr(quantization_results, "measure", convert)
    officials = Officials(reference, tmp_path / "official")
    made = [officials.figures(MODES[name], 0.01) for name in ("float", "int16")]
    assert [figures.is_mixed for figures in made] == [False, True]
    assert all(figures.cost.processor == 8.0 and figures.runs and figures.latency > 0 for figures in made)
    assert made[1].snr["xnnpack"] == MAX_SNR
    assert officials.expected().shape == (4, 10)
    assert len(asked) == 3
    assert [officials.figures(MODES[name], 0.01) for name in ("float", "int16")] == made
    assert len(asked) == 3
    changed = Reference(replace(reference.recipe, calibration=3), reference.cache)
    assert Officials(changed, tmp_path / "official").kept(MODES["int16"]) is None


def test_an_official_failure_is_kept_too(reference: Reference, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def convert(words: list[str], folder: Path) -> Run:
        raise RuntimeError(f"failed:\n{'second' if words[-1] == '--mixed' else 'first'} reason")

    monkeypatch.setattr(quantization_results, "measure", convert)
    officials = Officials(reference, tmp_path)
    made = officials.figures(MODES["int8"], 0.0)
    assert (made.problem, made.fault, made.runs) == ("first reason", "first reason", False)
    assert officials.kept(MODES["int8"]) == made
    assert asdict(made)["cost"]["processor"] == 0
    with pytest.raises(RuntimeError, match="float file: first reason"):
        quantization.compare(reference, MODES["int8"], officials, tmp_path, 0.0)
