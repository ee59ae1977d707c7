"""Keras files on the command line: the user's own layers, and no log of TensorFlow."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import click
import pytest
from click.testing import CliRunner

from tfconvert.cli.keras_files import prepare_for_keras
from tfconvert.cli.main import main
from tfconvert.importers.graph.debug_info import Sources
from tfconvert.schema.ir.locations import UNKNOWN_LOC, FileLineColLoc
from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb

LAYERS = """
import keras


class Twice(keras.layers.Layer):
    def call(self, x):
        return x + x
"""


pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")


@pytest.fixture(scope="module")
def folder(tf: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a folder with models that have a layer of the user's, and with the file that defines it."""
    import keras

    folder = tmp_path_factory.mktemp("keras")
    (folder / "own_layers.py").write_text(LAYERS)
    spec = importlib.util.spec_from_file_location("own_layers", folder / "own_layers.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    network = keras.Sequential([keras.Input((4,)), module.Twice(), keras.layers.Dense(3)])
    for name in ("net.keras", "net.h5"):
        network.save(folder / name)
    return folder


@pytest.mark.parametrize("name", ["net.keras", "net.h5"])
def test_a_missing_class_is_named_and_no_more(folder: Path, name: str) -> None:
    done = CliRunner().invoke(main, [str(folder / name), "-o", str(folder / "x.tflite")])
    assert done.exit_code == 1
    first, hint, *_ = done.stderr.splitlines()
    assert first.endswith((": Could not locate class 'Twice' [load-failed]", ": Unknown layer: 'Twice' [load-failed]"))
    assert "--import FILE.py" in hint


def test_nothing_is_printed_and_own_layers_are_found(folder: Path) -> None:
    command = [sys.executable, "-m", "tfconvert", "net.keras", "x.tflite", "-q", "--import", "own_layers.py"]
    done = subprocess.run(
        [*command, "--depfile", "x.d"], cwd=folder, capture_output=True, text=True, timeout=300, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert "own_layers.py:" in (folder / "x.d").read_text()
    command[3:] = ["verify", "x.tflite", "--against", "net.keras", "--import", "own_layers.py"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "largest error" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["net", "--import", "a.py"], "--import is for Keras files"),
        (["net.keras", "--import", "a.py", "--cache-dir", "d"], "neither with --server nor with --cache-dir"),
        (["net.keras", "--import", "missing.py"], "there is no Python file missing.py"),
        (["net.keras", "--import", "text"], "there is no Python file text"),
        (["net.keras", "--import", "bad.py"], "division by zero"),
    ],
)
def test_wrong_imports(arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.py").write_text("1 / 0")
    (tmp_path / "text").write_text("")
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code in (1, 2)
    assert message in done.stderr


@pytest.mark.parametrize("shows_log", [False, True])
def test_what_libraries_write_is_hidden_until_the_command_ends(
    shows_log: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    with click.Context(click.Command("x")):
        prepare_for_keras("net.keras", (), shows_log=shows_log)
        os.write(2, b"a library's\n")
    os.write(2, b"after\n")
    assert capfd.readouterr().err == ("a library's\n" if shows_log else "") + "after\n"


def test_the_callers_of_this_package_are_not_where_a_node_comes_from() -> None:
    package = str(Path(sys.modules["tfconvert"].__file__ or "").parent / "importers" / "keras.py")
    files = ["/bin/tfconvert", package, "/lib/site-packages/keras/x.py", "/me/layers.py"]
    info = pb.GraphDebugInfo(files=files)
    for name, numbers in {"own": (0, 1, 2, 3, 2), "library": (0, 1, 2), "ours": (0, 1), "elsewhere": (0, 2)}.items():
        for number in numbers:
            info.traces[name].file_line_cols.add(file_index=number, line=7)
    places = {name: Sources(info).find(name) for name in info.traces}
    assert places == {
        "own": FileLineColLoc.get(files[3], 7, 0),
        "library": FileLineColLoc.get(files[2], 7, 0),
        "ours": UNKNOWN_LOC,
        "elsewhere": FileLineColLoc.get(files[0], 7, 0),
    }
