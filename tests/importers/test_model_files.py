"""Which files a model consists of."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import ModuleType

import pytest

from tests.importers.v1_models import dense, save
from tfconvert.importers.source import Source
from tfconvert.schema.diagnostics import ConversionError


def names(model: Path, folder: Path, asset_root: Path | None = None) -> list[str]:
    return [str(file.relative_to(folder)) for file in Source(model, asset_root=asset_root).files()]


def test_those_of_a_saved_model(digits_model: Path, tmp_path: Path) -> None:
    model = tmp_path / "model"
    shutil.copytree(digits_model, model)
    for extra in ("assets/deep/words.txt", "debug/saved_model_debug_info.pb", "variables/note.txt", "other.txt"):
        (model / extra).parent.mkdir(parents=True, exist_ok=True)
        (model / extra).write_text("x", "utf-8")
    expected = [
        "saved_model.pb",
        "variables/variables.data-00000-of-00001",
        "variables/variables.index",
        "assets/deep/words.txt",
        "debug/saved_model_debug_info.pb",
    ]
    assert names(model, model) == names(model / "saved_model.pb", model) == expected


def test_those_of_a_meta_graph(tf: ModuleType, tmp_path: Path) -> None:
    saved = save(tf, tmp_path, dense)
    expected = ["model.ckpt-5.meta", "checkpoint", "model.ckpt-5.data-00000-of-00001", "model.ckpt-5.index"]
    for path in (tmp_path, saved.prefix, saved.prefix.with_name("model.ckpt-5.meta")):
        assert names(path, tmp_path) == expected


@pytest.mark.parametrize("name", ["graph.pb", "graph.pbtxt", "model.tflite", "model.h5", "model.keras", "model.mlir"])
def test_those_of_a_single_file(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("x", "utf-8")
    assert names(tmp_path / name, tmp_path) == [name]


def test_text_names_its_assets(tmp_path: Path) -> None:
    words = tmp_path / "words.txt"
    words.write_text("a\n", "utf-8")
    text = f'"tf_saved_model.asset"() <{{filename = "{words}", sym_name = "words"}}> : () -> ()'
    (tmp_path / "model.mlir").write_text(text, "utf-8")
    assert names(tmp_path / "model.mlir", tmp_path) == ["model.mlir"]
    assert names(tmp_path / "model.mlir", tmp_path, tmp_path) == ["model.mlir", "words.txt"]


def test_there_are_none_of_what_is_not_there(tmp_path: Path) -> None:
    assert Source(tmp_path / "nothing").files() == Source(tmp_path).files() == Source(object()).files() == []


def test_an_output_is_none_of_them(digits_model: Path, tmp_path: Path) -> None:
    source = Source(digits_model)
    (tmp_path / "link").symlink_to(digits_model / "saved_model.pb")
    (tmp_path / "other").write_text("x", "utf-8")
    for fine in ("other", "nothing"):
        source.check_output(tmp_path / fine)
    with pytest.raises(ConversionError, match="which is read") as caught:
        source.check_output(tmp_path / "link")
    assert caught.value.code == "output-over-input"
