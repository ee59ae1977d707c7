"""Compiled modules: which they are, that none is used that is older than its source, and that results are the same."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Sequence
from importlib.machinery import EXTENSION_SUFFIXES, PathFinder
from pathlib import Path

import pytest

from tests.support.sources import ROOT, SourceFile
from tfconvert.schema.compiled_form import RECORD, SWITCH, SourceFinder, form, is_out_of_date, state_of

LIST = (ROOT / "native" / "modules.txt").read_text(encoding="utf-8")
MODULES = [line for line in LIST.splitlines() if line and not line.startswith("#")]


def _record(folder: Path) -> Path:
    """Returns the only source in a folder, beside a record that is up to date."""
    source = folder / "source.py"
    source.write_text("VALUE = 1\n")
    (folder / RECORD).write_text(json.dumps({source.name: state_of(source)}))
    return source


def _names(nodes: Iterable[ast.expr]) -> set[str]:
    """Returns the last parts of the names that bases or decorators have."""
    return {re.split(r"[.\[]", ast.unparse(node).removesuffix("]"))[-1] for node in nodes}


def _is_open(node: ast.ClassDef) -> bool:
    """Returns whether classes that are not compiled may derive from a compiled class."""
    return any("allow_interpreted_subclasses=True" in ast.unparse(each) for each in node.decorator_list)


def _is_native(node: ast.ClassDef) -> bool:
    """Returns whether mypyc makes a C type of a class."""
    pythons = _names(node.bases) & {"NamedTuple", "TypedDict", "Protocol", "Enum", "IntEnum", "Exception", "ValueError"}
    return not pythons and not any("native_class=False" in ast.unparse(each) for each in node.decorator_list)


def _convert(model: Path, result: Path, compiled: str) -> bytes:
    command = [sys.executable, "-m", "tfconvert", str(model), "-o", str(result), "--quiet"]
    subprocess.run(command, cwd=ROOT, env={**os.environ, SWITCH: compiled}, check=True)
    return result.read_bytes()


def test_the_list_names_modules_once_and_in_order() -> None:
    assert sorted(set(MODULES)) == MODULES
    assert [path for path in MODULES if not (ROOT / path).is_file()] == []


def test_compiled_modules_do_not_ask_where_they_are() -> None:
    """Mypyc gets the place of a module wrong where its library is inside the package; so it would that of a package."""
    assert [path for path in MODULES if path.endswith("__init__.py")] == []
    for path in MODULES:
        names = {node.id for node in ast.walk(ast.parse((ROOT / path).read_bytes())) if isinstance(node, ast.Name)}
        assert not names & {"__file__", "__path__", "__spec__"}, path


def test_classes_can_be_derived_from(source_files: Sequence[SourceFile]) -> None:
    """A class that allows it has only such subclasses, or constructors run twice; others have compiled subclasses."""
    classes = [(file, node) for file in source_files for node in file.tree.body if isinstance(node, ast.ClassDef)]
    compiled = [node for file, node in classes if str(file.path) in MODULES and _is_native(node)]
    plain = [node for file, node in classes if str(file.path) not in MODULES]
    open_names = {node.name for node in compiled if _is_open(node)}
    closed = {node.name for node in compiled if not _is_open(node)} - {node.name for node in plain} - open_names
    assert "Operation" in open_names
    assert [node.name for node in compiled if _names(node.bases) & open_names and not _is_open(node)] == []
    assert [node.name for node in plain if _names(node.bases) & closed] == []


def test_without_a_record_nothing_is_out_of_date(tmp_path: Path) -> None:
    assert not is_out_of_date(tmp_path)


def test_what_has_not_changed_is_not_out_of_date(tmp_path: Path) -> None:
    _record(tmp_path)
    assert not is_out_of_date(tmp_path)


def test_an_edited_source_is_noticed(tmp_path: Path) -> None:
    source = _record(tmp_path)
    source.write_text("VALUE = 12\n")
    assert is_out_of_date(tmp_path)


def test_an_edit_of_the_same_length_is_noticed(tmp_path: Path) -> None:
    source = _record(tmp_path)
    before = source.stat()
    source.write_text("VALUE = 2\n")
    os.utime(source, ns=(before.st_atime_ns, before.st_mtime_ns + 1))
    assert is_out_of_date(tmp_path)


def test_a_removed_source_is_noticed(tmp_path: Path) -> None:
    _record(tmp_path).unlink()
    assert is_out_of_date(tmp_path)


def test_an_unfinished_build_counts_as_out_of_date(tmp_path: Path) -> None:
    (tmp_path / RECORD).write_text('{".": []}')
    assert is_out_of_date(tmp_path)


def test_sources_hide_extension_modules(tmp_path: Path) -> None:
    source = _record(tmp_path)
    (tmp_path / f"source{EXTENSION_SUFFIXES[0]}").touch()
    name, path = "tfconvert.source", [str(tmp_path)]
    plain = PathFinder.find_spec(name, path)
    assert plain is not None
    assert plain.origin != str(source), "Python prefers the extension module"
    found = SourceFinder.find_spec(name, path)
    assert found is not None
    assert found.origin == str(source)


@pytest.mark.parametrize("name", ["json.decoder", "tfconvert.nothing", "tfconvert.folder"])
def test_what_has_no_source_of_ours_is_left_to_python(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "decoder.py").touch()
    assert SourceFinder.find_spec(name, [str(tmp_path)]) is None


def test_the_switch_leaves_compiled_modules_aside() -> None:
    command = [sys.executable, "-m", "tfconvert", "--version"]
    run = subprocess.run(command, cwd=ROOT, env={**os.environ, SWITCH: "0"}, capture_output=True, text=True, check=True)
    assert "\nmodules not compiled, as the environment says\n" in run.stdout


@pytest.mark.skipif(form() != "compiled", reason="there are no compiled modules here; `make native` makes them")
def test_both_forms_give_the_same_bytes(digits_model: Path, tmp_path: Path) -> None:
    compiled, plain = (_convert(digits_model, tmp_path / f"{switch}.tflite", switch) for switch in ("1", "0"))
    assert compiled == plain
