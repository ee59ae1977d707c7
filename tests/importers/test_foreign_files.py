"""Files and directories that are no models are recognized, and the hint helps. Each row has a specimen."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import tfconvert
from tests.support.foreign_specimens import POINTER, SPECIMENS
from tfconvert.importers.foreign_files import ROWS
from tfconvert.schema.diagnostics import ConversionError


@pytest.mark.parametrize(("what", "name", "write", "hint"), SPECIMENS, ids=[name for _, name, _, _ in SPECIMENS])
def test_it_is_named(what: str, name: str, write: Callable[[Path], object], hint: str, tmp_path: Path) -> None:
    path = name if ":/" in name else str(tmp_path / name)
    write(tmp_path / name)
    with pytest.raises(ConversionError) as caught:
        tfconvert.convert(path)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "foreign-format"
    assert diagnostic.message.startswith(f"{path} is {what}")
    assert hint in diagnostic.hint


def test_each_row_has_a_specimen() -> None:
    starts = [what for what, _, _, _ in SPECIMENS]
    assert [
        row.what for row in ROWS if not any(row.what.startswith(start.partition(" (")[0]) for start in starts)
    ] == []


def test_what_is_damaged_stays_damaged(tmp_path: Path, digits_model: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(digits_model, folder)
    for name, code in (("saved_model.pb", "damaged-saved-model"), ("variables/variables.index", "bad-index")):
        kept = (folder / name).read_bytes()
        (folder / name).write_bytes(kept[: len(kept) // 2])
        with pytest.raises(ConversionError) as caught:
            tfconvert.convert(folder)
        assert caught.value.code == code
        (folder / name).write_text(POINTER)
        with pytest.raises(ConversionError) as pointer:
            tfconvert.convert(folder)
        assert "git lfs pull" in pointer.value.diagnostics[0].hint
        (folder / name).write_bytes(kept)


def test_what_is_nothing_known_keeps_its_error(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    (tmp_path / "model.mlirbc").write_bytes(b"XXef\x0dStableHLO")
    codes = {"notes.txt": "unknown-format", "model.mlirbc": "unknown-format", "nothing": "model-not-found"}
    for name, code in codes.items():
        with pytest.raises(ConversionError) as caught:
            tfconvert.convert(tmp_path / name)
        assert caught.value.code == code
