"""Recurrent layers become what LiteRT is faster with."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import tfconvert
from tfconvert.converter.targets.litert.recurrent.replacement import FUSED, KEPT
from tfconvert.converter.targets.litert.recurrent.speed import LOOP, LOSS, TABLE, UNROLLED, Sizes, choose
from tfconvert.settings.quantization import Io


def saved_lstm(tf: ModuleType, folder: Path, units: int, batch: int | None, steps: int | None) -> Path:
    layer = tf.keras.layers.LSTM(units)
    layer.build((batch, steps, 3))
    module = tf.Module()
    module.layer = layer.variables
    spec = tf.TensorSpec((batch, steps, 3))
    module.run = tf.function(lambda x: {"y": layer(x)}, input_signature=[spec])
    tf.saved_model.save(module, str(folder), signatures=module.run)
    return folder


@pytest.mark.parametrize(
    ("units", "batch", "steps", "is_fused"),
    [
        (8, 1, 10, True),
        (8, None, None, True),
        (8, 32, 10, False),
        (128, 1, 10, False),
        (128, 1, 60, False),
        (128, None, None, False),
    ],
)
def test_the_faster_form_is_chosen(
    tf: ModuleType, tmp_path: Path, units: int, batch: int | None, steps: int | None, is_fused: bool
) -> None:
    path = saved_lstm(tf, tmp_path / "model", units, batch, steps)
    report = tfconvert.convert(path).report
    assert ("UNIDIRECTIONAL_SEQUENCE_LSTM" in report.operators) is is_fused
    (note,) = [note for note in report.notes if note.code in (FUSED, KEPT)]
    assert note.code == (FUSED if is_fused else KEPT)
    assert f"{units} units, {steps or 50} steps, batch {batch or 1}" in note.message
    for recurrent in ("fused", "loop"):
        report = tfconvert.convert(path, target=tfconvert.LiteRT(recurrent=recurrent)).report
        assert ("UNIDIRECTIONAL_SEQUENCE_LSTM" in report.operators) is (recurrent == "fused")
        assert not [note for note in report.notes if note.code in (FUSED, KEPT)]  # The user knows.


def test_integers_throughout_get_the_more_exact_form(tf: ModuleType, tmp_path: Path) -> None:
    path = saved_lstm(tf, tmp_path / "model", 128, 1, 5)
    samples = [{"x": np.random.default_rng(seed).normal(0, 1, (1, 5, 3)).astype(np.float32)} for seed in range(3)]
    forms: dict[Io, bool] = {"int8": True, "float32": False}
    for io, is_fused in forms.items():
        report = tfconvert.convert(path, quantize=tfconvert.Quantize("int8", samples=samples, io=io)).report
        assert ("UNIDIRECTIONAL_SEQUENCE_LSTM" in report.operators) is is_fused


def test_other_choices_are_refused(tmp_path: Path) -> None:
    with pytest.raises(tfconvert.ConversionError, match=r"recurrent can't be 'fast'\n.*auto, fused, loop"):
        tfconvert.convert(tmp_path, target=tfconvert.LiteRT(recurrent="fast"))  # type: ignore[arg-type]


def test_choices_are_those_of_the_nearest_row() -> None:
    rows = [line.split("\t") for line in TABLE.read_text().splitlines()[1:]]
    assert {row[1] for row in rows} == {LOOP, UNROLLED}
    for cell, form, *sizes, fused, kept in rows:
        exact = Sizes(cell, form, *map(int, sizes))
        assert choose([exact]).fuse is (float(fused) <= LOSS * float(kept))
    big = Sizes("lstm", LOOP, 1000, 1000, 100)
    assert choose([big]) == choose([big])
    assert not choose([big]).fuse


def test_layers_of_one_loop_are_chosen_for_together() -> None:
    small, large = Sizes("lstm", LOOP, 8, 50, 1), Sizes("lstm", LOOP, 512, 50, 32)
    assert choose([small]).fuse
    assert not choose([small, large]).fuse
