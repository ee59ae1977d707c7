"""Every command on every kind of wrong path: one exit status for each, a message, no traceback, no partial file."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

import tfconvert
from tfconvert.cli.failure import FAILED, WRONG
from tfconvert.cli.help_page import COMMANDS
from tfconvert.cli.main import main

# Commands that take models, by a name for each argument; `MODEL` is replaced by the example.
READERS = {
    "convert": ["{}", "-o", "new.tflite"],
    "convert and report": ["{}", "-o", "new.tflite", "--report", "new.html", "--json"],
    "inspect": ["inspect", "{}"],
    "opt": ["opt", "{}", "-o", "new.mlir"],
    "view": ["view", "{}", "--no-open", "-o", "new.html"],
    "view two": ["view", "good.tflite", "{}", "--no-open", "-o", "new.html"],
    "bench": ["bench", "{}", "--runs", "1"],
    "diff first": ["diff", "{}", "good.tflite"],
    "diff second": ["diff", "good.tflite", "{}"],
    "verify": ["verify", "{}", "--against", "MODEL"],
    "verify against": ["verify", "good.tflite", "--against", "{}"],
    "verify on": ["verify", "{}", "--on", "micro"],
    "build": ["build", "{}"],
    "batch list": ["batch", "--list", "{}"],
    "batch manifest": ["batch", "--manifest", "{}"],
    "build one": ["build", "one.json"],
}

# Here 1 is a difference, so that a file that can't be compared has another status.
COMPARING = ("diff", "verify")

# These read a list of models, which is a file of settings.
LISTING = ("build", "batch")

# Paths that can't be opened.
UNOPENED = {
    "missing": "missing.tflite",
    "missing directory": "missing",
    "missing keras": "missing.keras",
    "missing pb": "missing.pb",
    "missing mlir": "missing.mlir",
    "missing list": "missing.toml",
    "in a missing directory": "missing/model.tflite",
    "below a file": "good.tflite/model.tflite",
    "dangling link": "dangling.tflite",
    "circular link": "circle.tflite",
    "pipe": "pipe.tflite",
    "endless device": "/dev/zero",
    "long name": f"{'m' * 300}.tflite",
    "long word": "m" * 300,
    "not UTF-8": os.fsdecode(b"m\xff.tflite"),
    "line break": "m\nn.tflite",
    "empty": "",
}

# Paths of something else than a model.
OTHER_KINDS = {
    "empty file": "empty.tflite",
    "text of no known extension": "text.txt",
    "ONNX": "model.onnx",
    "HTML": "page.tflite",
    "other graph": "text.pb",
    "empty directory": "folder",
    "damaged archive": "damaged.keras",
}

# Paths of .tflite files that are damaged.
DAMAGED = {
    "text": "text.tflite",
    "half a file": "half.tflite",
    "absolute path": "{here}/half.tflite",
    "link": "link.tflite",
    "spaces": "half of it.tflite",
}


@pytest.fixture(scope="module")
def good(digits_model: Path) -> bytes:
    """Returns a .tflite file."""
    return bytes(tfconvert.convert(digits_model))


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, good: bytes) -> Path:
    """Returns the current directory, with all the wrong files."""
    monkeypatch.chdir(tmp_path)
    half = good[: len(good) // 2]
    contents = {
        "good.tflite": good,
        "empty.tflite": b"",
        "text.tflite": b"hello\n" * 9,
        "text.txt": b"hello\n",
        "text.pb": b"hello\n",
        "page.tflite": b"<!DOCTYPE html><html><body>Not found</body></html>",
        "model.onnx": b"\x08\x07\x12\x07pytorch",
        "half.tflite": half,
        "half of it.tflite": half,
        "damaged.keras": b"PK\x03\x04" + b"rubbish" * 9,
    }
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe.tflite")
    (tmp_path / "dangling.tflite").symlink_to("nowhere.tflite")
    (tmp_path / "circle.tflite").symlink_to("circle.tflite")
    (tmp_path / "link.tflite").symlink_to("half.tflite")
    return tmp_path


def _names(here: Path) -> set[str]:
    return {each.name for each in here.iterdir()}


def _run(here: Path, arguments: list[str], status: int, left: frozenset[str] = frozenset()) -> str:
    """Runs a command, checks how it ends and what it leaves, and returns its errors."""
    before = _names(here)
    result = CliRunner().invoke(main, arguments, prog_name="tfconvert")
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert result.exit_code == status, result.output
    assert "rror" in result.stderr
    assert "internal-error" not in result.stderr
    assert "Errno" not in result.stderr
    assert _names(here) - before <= left, "something was written"
    return result.stderr


def _filled(arguments: list[str], path: str, model: Path) -> list[str]:
    return [str(model) if each == "MODEL" else each.replace("{}", path) for each in arguments]


def _list(command: str, path: str, here: Path) -> None:
    """Writes the file that names a model, for the command that reads one."""
    if command == "build one":
        name = path.encode(errors="surrogateescape").decode(errors="replace")
        text = f'{{"models": [{{"model": {json.dumps(name)}, "output": "new.tflite"}}]}}'
        (here / "one.json").write_text(text, "utf-8")


def test_the_table_has_every_command_that_reads_models() -> None:
    others = {"completion", "explain", "ops", "serve"}
    assert {name.split()[0] for name in READERS} == {*COMMANDS, "convert"} - others


@pytest.mark.parametrize("name", UNOPENED)
@pytest.mark.parametrize("command", READERS)
def test_a_path_that_cant_be_opened_is_an_error_of_the_command_line(
    command: str, name: str, here: Path, digits_model: Path
) -> None:
    path = UNOPENED[name]
    if command == "build one" and not path:
        pytest.skip("an empty path in a list is the list's directory")
    _list(command, path, here)
    # A conversion that fails has a page, and one that can't begin has no result.
    left = frozenset({"new.html"}) if "report" in command else frozenset[str]()
    _run(here, _filled(READERS[command], path, digits_model), WRONG, left)


# `bench` and `verify --on` read .tflite files alone: other contents that they don't recognize are a damaged file.
_TFLITE_ONLY = ("text of no known extension", "other graph", "empty directory", "damaged archive")


@pytest.mark.parametrize("name", OTHER_KINDS)
@pytest.mark.parametrize("command", READERS)
def test_a_path_of_another_kind_is_an_error_of_the_command_line(
    command: str, name: str, here: Path, digits_model: Path
) -> None:
    path = OTHER_KINDS[name]
    _list(command, path, here)
    status = FAILED if command == "bench" and name in _TFLITE_ONLY else WRONG
    left = frozenset({"new.html"}) if "report" in command else frozenset[str]()
    _run(here, _filled(READERS[command], path, digits_model), status, left)


@pytest.mark.parametrize("name", DAMAGED)
@pytest.mark.parametrize("command", READERS)
def test_a_damaged_file_is_a_failure(command: str, name: str, here: Path, digits_model: Path) -> None:
    path = DAMAGED[name].replace("{here}", str(here))
    _list(command, path, here)
    is_listing = command.startswith(LISTING) and command != "build one"
    status = WRONG if is_listing or command.startswith(COMPARING) else FAILED
    left = frozenset({"new.html"}) if "report" in command else frozenset[str]()
    _run(here, _filled(READERS[command], path, digits_model), status, left)


# Commands that write files, by what they write.
WRITERS = {
    "model": ["MODEL", "-o", "{}"],
    "C array": ["MODEL", "-o", "{}.cc"],
    "StableHLO": ["MODEL", "-o", "{}", "--target", "stablehlo"],
    "report": ["MODEL", "-o", "new.tflite", "--report", "{}"],
    "depfile": ["MODEL", "-o", "new.tflite", "--depfile", "{}"],
    "model explorer": ["MODEL", "-o", "new.tflite", "--model-explorer", "{}"],
    "view": ["view", "good.tflite", "--no-open", "-o", "{}"],
    "opt": ["opt", "good.tflite", "-o", "{}"],
    "state of a batch": ["batch", "MODEL", "-o", "new.tflite", "--state", "{}"],
}


def _directory(here: Path) -> str:
    (here / "taken.cc").mkdir()
    (here / "taken").mkdir()
    return "taken"


PLACES: dict[str, Callable[[Path], str]] = {
    "missing directory": lambda here: "missing/new",
    "below a file": lambda here: "good.tflite/new",
    "directory": _directory,
    "long name": lambda here: "n" * 300,
}


@pytest.mark.parametrize("name", PLACES)
@pytest.mark.parametrize("command", WRITERS)
def test_what_cant_be_written_leaves_nothing(command: str, name: str, here: Path, digits_model: Path) -> None:
    place = PLACES[name](here)
    # The name's length is only known when the file is made, and the state is also read.
    late = frozenset({"new.tflite"}) if name == "long name" else frozenset[str]()
    is_read = command == "state of a batch" and name in ("long name", "directory")
    errors = _run(here, _filled(WRITERS[command], place, digits_model), WRONG if is_read else FAILED, late)
    assert is_read or "output-not-writable" in errors


@pytest.mark.parametrize("command", [each for each in WRITERS if each not in ("C array", "state of a batch", "view")])
def test_an_empty_path_to_write_is_an_error_of_the_command_line(command: str, here: Path, digits_model: Path) -> None:
    assert "the path of the output is empty" in _run(here, _filled(WRITERS[command], "", digits_model), WRONG)


FILES = {
    "samples": ["MODEL", "-o", "new.tflite", "--quantize", "int8", "--samples", "{}"],
    "verify data": ["MODEL", "-o", "new.tflite", "--verify-data", "{}"],
    "patterns": ["MODEL", "-o", "new.tflite", "--patterns", "{}"],
    "composites": ["MODEL", "-o", "new.tflite", "--composites", "{}"],
    "op definitions": ["MODEL", "-o", "new.tflite", "--op-defs", "{}"],
    "metadata": ["MODEL", "-o", "new.tflite", "--metadata", "{}"],
    "labels": ["MODEL", "-o", "new.tflite", "--metadata", "output_0={}"],
    "token": ["MODEL", "-o", "new.tflite", "--server", "http://127.0.0.1:9", "--token-file", "{}"],
    "import": ["missing.keras", "-o", "new.tflite", "--import", "{}"],
    "data to verify": ["verify", "good.tflite", "--against", "MODEL", "--data", "{}"],
    "data to compare": ["diff", "good.tflite", "good.tflite", "--data", "{}"],
}


@pytest.mark.parametrize(
    "path", ["missing.json", "missing.npz", "missing.py", "circle.tflite", "pipe.tflite", "/dev/zero", "n" * 300]
)
@pytest.mark.parametrize("option", FILES)
def test_other_files_that_are_missing(option: str, path: str, here: Path, digits_model: Path) -> None:
    _run(here, _filled(FILES[option], path, digits_model), WRONG)
