"""The public names of `tfconvert`, and the cost of importing it."""

from __future__ import annotations

import ast
import importlib.metadata
import importlib.resources
import json
import subprocess
import sys
from pathlib import Path

import pytest

import tfconvert

HEAVY = {
    "tensorflow",
    "keras",
    "numpy",
    "tfconvert.schema.ir",
    "google.protobuf",
    "flatbuffers",
    "ml_dtypes",
    "ai_edge_litert",
    "httpx",
    "rich",
}


def _imported_by(code: str) -> set[str]:
    """Returns the modules that a fresh interpreter has after running some code."""
    program = f"{code}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"
    process = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(json.loads(process.stdout.splitlines()[-1]))


def test_type_checkers_see_the_public_names() -> None:
    statements = ast.parse(Path(tfconvert.__file__).read_text("utf-8")).body
    block = next(each for each in statements if isinstance(each, ast.If))
    imported = [alias for each in block.body if isinstance(each, ast.Import | ast.ImportFrom) for alias in each.names]
    seen = {alias.asname or alias.name for alias in imported}
    assert sorted(seen | {"__version__"}) == sorted(tfconvert.__all__)


@pytest.mark.parametrize("name", tfconvert.__all__)
def test_public_names_exist(name: str) -> None:
    assert getattr(tfconvert, name) is not None
    assert name in dir(tfconvert)


def test_other_names_do_not() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        getattr(tfconvert, "no_such_" + "name")


def test_public_things_say_what_they_are() -> None:
    for name in ("convert", "Model", "ConversionError", "Diagnostic"):
        assert getattr(tfconvert, name).__doc__


def test_version_is_the_distribution_s() -> None:
    assert tfconvert.__version__ == importlib.metadata.version("tfconvert")


def test_typed() -> None:
    files = importlib.resources.files("tfconvert")
    assert files.joinpath("py.typed").is_file()


def test_import_is_light() -> None:
    assert "tfconvert" in (modules := _imported_by("import tfconvert"))
    assert not HEAVY & modules


@pytest.mark.parametrize("arguments", [["--help"], ["--version"]])
def test_help_is_light(arguments: list[str]) -> None:
    code = f"""
import sys
from tfconvert.__main__ import main
sys.argv = ["tfconvert", *{arguments!r}]
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
"""
    assert "tfconvert.cli.main" in (modules := _imported_by(code))
    assert not HEAVY & modules


def test_the_command_leaves_numpy_complete() -> None:
    code = """
import sys
from tfconvert.__main__ import main
sys.argv = ["tfconvert", "--version"]
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
import numpy
print(bool(numpy.ndarray.transpose.__doc__), numpy.arange(6).reshape(2, 3).transpose().shape)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "True (3, 2)"


# Profilers print what they have seen at the end.
_WATCH = "sys.setprofile(lambda *event: None)"


@pytest.mark.parametrize(("before", "at_the_end"), [("pass", ["registered", "at once"]), (_WATCH, ["registered"])])
def test_the_command_ends_at_once_unless_somebody_watches(before: str, at_the_end: list[str]) -> None:
    code = f"""
import atexit, os, sys
from tfconvert.__main__ import run

os._exit = lambda status: print("at once")
atexit.register(print, "registered")
sys.argv = ["tfconvert", "explain", "unsupported-op"]
{before}
run()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert lines[lines.index("registered") :] == at_the_end


def test_command_and_module_are_one() -> None:
    """`tfconvert` and `python -m tfconvert` are the same program."""
    script = str(Path(sys.executable).parent / "tfconvert")
    outputs = [
        subprocess.run([*command, "--version"], capture_output=True, text=True, check=True).stdout
        for command in ([sys.executable, "-m", "tfconvert"], [script])
    ]
    assert outputs[0] == outputs[1]
    assert tfconvert.__version__ in outputs[0]
