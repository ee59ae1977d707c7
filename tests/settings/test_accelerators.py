"""Settings of quantization that follow from accelerators, and notes on those that don't suit them."""

from __future__ import annotations

from typing import Any

import pytest

from tfconvert.settings.quantization import Mode, Quantize
from tfconvert.settings.targets import LiteRT, target_of


def test_inputs_and_outputs_are_integers_for_ethos_u() -> None:
    target = target_of(LiteRT(accelerator=["ethos-u"]), "int8")
    assert isinstance(target, LiteRT)
    assert target.quantize is not None
    assert target.quantize.ends == ("int8", "int8")
    assert not target.notes


@pytest.mark.parametrize(
    ("accelerator", "quantize"),
    [
        ("micro", Quantize("int8")),
        ("ethos-u", Quantize("int8", io=("float32", "float32"))),
        ("ethos-u", Quantize("dynamic")),
    ],
)
def test_they_stay_floats_elsewhere(accelerator: Any, quantize: Quantize) -> None:
    target = LiteRT(accelerator=[accelerator], quantize=quantize)
    assert target.quantize is not None
    assert target.quantize.ends == ("float32", "float32")


@pytest.mark.parametrize(
    ("accelerator", "mode", "io", "hint"),
    [
        ("micro", "dynamic", "float32", "leave --quantize out, or choose --quantize int8 --samples FILE"),
        ("micro", "float16", "float32", "leave --quantize out, or choose --quantize int8 --samples FILE"),
        ("micro", "int8", "float32", ""),
        ("ethos-u", "weights", "float32", "choose --quantize int8 --samples FILE"),
        ("ethos-u", "int8", ("float32", "float32"), "choose --io int8"),
        ("ethos-u", "int8", "float32", ""),
        ("ethos-u", "int16", "int16", ""),
        ("gpu", "dynamic", "float32", ""),
    ],
)
def test_notes(accelerator: Any, mode: Mode, io: Any, hint: str) -> None:
    target = LiteRT(accelerator=[accelerator], quantize=Quantize(mode, io=io))
    assert [note.hint for note in target.notes] == [hint] * bool(hint)


def test_floats_are_noted_for_ethos_u() -> None:
    (note,) = LiteRT(accelerator=["ethos-u"]).notes
    assert note.code == "unsuitable-setting"
    assert note.message == "Ethos-U computes with integers only"
