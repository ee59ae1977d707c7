"""The options of the command that say how to quantize."""

from __future__ import annotations

import json
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from tfconvert.cli.main import main
from tfconvert.cli.options import setting_options, to_settings
from tfconvert.cli.progress import with_progress
from tfconvert.settings.data import from_data
from tfconvert.settings.options import Options
from tfconvert.settings.quantization import Quantize
from tfconvert.settings.selection import Selection
from tfconvert.settings.setting import settings_of
from tfconvert.settings.targets import Iree, LiteRT, StableHLO
from tfconvert.settings.verify_options import Verify


def _parsed(*arguments: str) -> Quantize | None:
    """Returns the settings of a command line."""
    found: list[Quantize | None] = []

    @click.command()
    @setting_options
    def command(**values: Any) -> None:
        _, options = from_data(to_settings(values))
        assert not values
        found.append(with_progress(options, quiet=False).quantize)

    command.main(list(arguments), standalone_mode=False)
    return found[0]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((), None),
        (("--quantize", "dynamic"), Quantize("dynamic")),
        (("--quantize", "weights", "--weights", "4", "--per-tensor"), Quantize("weights", 4, per_channel=False)),
        (("--quantize", "dynamic", "--per-tensor-dense"), Quantize("dynamic", per_channel="not-dense")),
        (("--quantize", "dynamic", "--per-tensor", "--per-tensor-dense"), Quantize("dynamic", per_channel=False)),
        (
            ("--quantize", "dynamic", "--hybrid-only", "--exclude", "*/logits", "--exclude", "SOFTMAX"),
            Quantize("dynamic", exclude=["*/logits", "SOFTMAX"], hybrid_only=True),
        ),
        (
            ("--quantize", "int8", "--io", "float32,int8", "--default-range", "-1,6"),
            Quantize("int8", io=("float32", "int8"), default_range=(-1, 6)),
        ),
        (
            ("--quantize", "int8", "--slow-integers", "--default-range", "-1,6"),
            Quantize("int8", slow_integers=True, default_range=(-1, 6)),
        ),
        (
            (
                "--quantize",
                "int8",
                "--samples",
                "a.npz",
                "--samples",
                "b",
                "--io",
                "uint8",
                "--ranges",
                "mse",
                "--strict",
                "--calibration",
                "c.json",
            ),
            Quantize("int8", samples=["a.npz", "b"], calibration="c.json", io="uint8", strict=True, ranges="mse"),
        ),
        (
            ("--quantize", "int16", "--variables", "integers", "--recurrent-state", "kept", "--bias", "int32"),
            Quantize("int16", variables="integers", recurrent_state="kept", bias="int32"),
        ),
        (("--quantize", "dynamic", "--trained-only"), Quantize("dynamic", trained_only=True)),
        (("--quantize", "float16", "--accumulation", "float16"), Quantize("float16", accumulation="float16")),
    ],
)
def test_settings(arguments: tuple[str, ...], expected: Quantize | None) -> None:
    assert _parsed(*arguments) == expected


def test_every_setting_has_an_option() -> None:
    rows = settings_of(Quantize)
    assert {name for name, row in rows.items() if not row.flag} == {"per_channel"}
    flags = {flag for param in main.params for flag in param.opts}
    assert {"--per-tensor", "--per-tensor-dense", "--quantize"} <= flags
    assert {field.name for field in fields(Quantize)} - set(rows) == {"progress"}
    for cls in (Selection, Options, LiteRT, StableHLO, Iree, Quantize, Verify):
        assert {row.flag for row in settings_of(cls).values() if row.flag} <= flags


@pytest.mark.parametrize("arguments", [("--weights", "4"), ("--strict",), ("--samples", "a.npz")])
def test_options_without_a_mode_are_a_mistake(arguments: tuple[str, ...]) -> None:
    with pytest.raises(click.UsageError, match="--quantize MODE"):
        _parsed(*arguments)


def test_progress_is_shown_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    settings = _parsed("--quantize", "int8")
    assert settings is not None
    assert settings.progress is None
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("CI", raising=False)
    settings = _parsed("--quantize", "int8")
    assert settings is not None
    assert settings.progress is not None
    for done, total in ((1, None), (1, 2), (2, 2)):
        settings.progress(done, total)
    assert capsys.readouterr().err == (
        "\r\033[Ktfconvert: calibrate, 1 samples\r\033[Ktfconvert: calibrate, 1 of 2 samples\r\033[K"
    )


def test_the_command_quantizes(digits_model: Path, tmp_path: Path) -> None:
    sizes = []
    for arguments in ([], ["--quantize", "dynamic"], ["--quantize", "dynamic", "--exclude", "CONV_2D"]):
        output = tmp_path / "model.tflite"
        run = CliRunner().invoke(main, [str(digits_model), "-o", str(output), "--json", *arguments])
        assert run.exit_code == 0, run.output
        assert ("quantize-weights" in json.loads(run.output)["rewrites"]) == bool(arguments)
        sizes.append(output.stat().st_size)
    assert sizes[1] < sizes[2] < sizes[0]


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["--quantize", "int7"], 2, "'int7' is not one of"),
        (["--weights", "4"], 2, "--quantize MODE"),
        (["--quantize", "dynamic", "--samples", "a.npz"], 2, "takes no samples"),
        (["--quantize", "float16", "--weights", "4"], 2, "wrong-option"),
    ],
)
def test_mistakes_are_reported(
    digits_model: Path, tmp_path: Path, arguments: list[str], status: int, message: str
) -> None:
    run = CliRunner().invoke(main, [str(digits_model), "-o", str(tmp_path / "model.tflite"), *arguments])
    assert run.exit_code == status
    assert message in run.output
    assert not list(tmp_path.iterdir())
