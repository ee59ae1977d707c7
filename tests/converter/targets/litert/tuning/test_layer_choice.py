"""Recurrent layers become what was measured to be faster."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import tfconvert
from tests.converter.targets.litert.recurrent.test_speed import saved_lstm
from tests.support.litert import RunTFLite
from tfconvert.converter.targets.litert.recurrent.replacement import FUSED, KEPT
from tfconvert.converter.targets.litert.tuning.form_timing import main, pairs_in, table
from tfconvert.converter.targets.litert.tuning.tuner import read_table

OPERATOR = "UNIDIRECTIONAL_SEQUENCE_LSTM"


def _saved(tf: ModuleType, folder: Path, cell: str, *, unroll: bool) -> Path:
    """Saves two layers with equal sizes, and a third with others."""
    layers = [getattr(tf.keras.layers, cell)(units, return_sequences=True, unroll=unroll) for units in (8, 8, 4)]
    for layer in layers:
        layer.build((1, 6, 8))
    module = tf.Module()
    module.layers = [layer.variables for layer in layers]

    def run(x: object) -> dict[str, object]:
        return {"y": layers[2](layers[1](layers[0](x)))}

    module.run = tf.function(run, input_signature=[tf.TensorSpec((1, 6, 8))])
    tf.saved_model.save(module, str(folder), signatures=module.run)
    return folder


def _tuned(path: Path, tune: str | Path) -> tfconvert.Model:
    return tfconvert.convert(path, target=tfconvert.LiteRT(tune=tune))


@pytest.mark.parametrize("cell", ["LSTM", "SimpleRNN"])
@pytest.mark.parametrize("unroll", [False, True], ids=["loop", "unrolled"])
def test_times_of_the_layers_decide(
    tf: ModuleType, tmp_path: Path, cell: str, unroll: bool, run_tflite: RunTFLite
) -> None:
    path = _saved(tf, tmp_path / "model", cell, unroll=unroll)
    forms = tmp_path / "forms"
    untuned = _tuned(path, f"{forms}/")
    assert bytes(untuned) == bytes(tfconvert.convert(path))
    assert main([str(forms), "--seconds", "0.05"]) == 0
    device, rows = read_table(forms / "table.tsv")
    kind = f"{'lstm' if cell == 'LSTM' else 'rnn'}-{'unrolled' if unroll else 'loop'}-as-operator."
    assert len([name for name in rows if name.startswith(kind)]) == 2  # Two layers have equal sizes.
    names = [name.split(".") for name in rows]
    x = np.random.default_rng(0).normal(0, 1, (1, 6, 8)).astype(np.float32)
    results = []
    for times, is_fused in ((("20", "10"), True), (("10", "20"), False)):
        chosen = tmp_path / "chosen.tsv"
        chosen.write_text(table(device, [[*name, *times] for name in names]))
        model = _tuned(path, chosen)
        assert any("SEQUENCE" in name for name in model.report.operators) is is_fused
        notes = [note for note in model.report.notes if note.code == (FUSED if is_fused else KEPT)]
        assert len(notes) == 3
        assert all("was measured to take" in note.message for note in notes)
        assert model.report.tuning is not None
        assert sorted(form.places for form in model.report.tuning.forms if kind.startswith(form.pattern)) == [1, 2]
        results.append(run_tflite(bytes(model), [x])[0])
    np.testing.assert_allclose(results[0], results[1], rtol=1e-5, atol=1e-5)


def test_measured_on_this_machine(tf: ModuleType, tmp_path: Path) -> None:
    """A small layer takes little more than half of the loop's time as an operator, so that no noise decides."""
    model = _tuned(saved_lstm(tf, tmp_path / "model", 4, 1, 40), "host")
    assert model.report.operators[OPERATOR] == 1
    assert model.report.tuning is not None
    (form,) = model.report.tuning.forms
    assert form.is_fast
    assert form.fast < form.usual
    assert OPERATOR.lower() in form.becomes


def test_open_lengths_are_not_measured(tf: ModuleType, tmp_path: Path) -> None:
    forms = tmp_path / "forms"
    path = saved_lstm(tf, tmp_path / "model", 8, 1, None)
    model = _tuned(path, f"{forms}/")
    assert not pairs_in(forms)
    assert bytes(model) == bytes(tfconvert.convert(path))
