"""The key of a result: what it is made from, and the programs that made it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tfconvert.batch import cache_key as module
from tfconvert.batch.cache_key import cache_key, is_run
from tfconvert.converter.targets.iree import compiler
from tfconvert.converter.targets.output_form import Form, form_of


def _key(settings: Mapping[str, Any]) -> str:
    return cache_key(form_of("", settings), settings, ["digest"], is_run=is_run(settings))


def test_equal_conversions_have_equal_keys() -> None:
    assert _key({"batch": 1, "order": "written"}) == _key({"order": "written", "batch": 1})
    assert len({_key({}), _key({"batch": 1}), cache_key(Form(), {}, ["other"], is_run=False)}) == 3


@pytest.mark.parametrize(
    ("settings", "depends"),
    [
        ({}, ["tfconvert"]),
        ({"quantize": "int8"}, ["ai-edge-litert", "tfconvert"]),
        ({"verify": True}, ["ai-edge-litert", "tfconvert"]),
        ({"target": "stablehlo"}, ["tfconvert"]),
        ({"target": "stablehlo", "mlir_artifact": True}, ["jaxlib", "tfconvert"]),
        ({"target": "iree"}, ["tfconvert"]),
        ({"target": "iree", "verify": True}, ["iree-base-runtime", "tfconvert"]),
    ],
)
def test_a_key_depends_on_the_programs_that_make_the_result(
    settings: dict[str, Any], depends: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "iree-compile"
    program.write_text("first")
    monkeypatch.setattr(compiler, "find", lambda: str(program))
    before = _key(settings)
    asked: list[str] = []

    def version_of(name: str) -> str:
        asked.append(name)
        return "another"

    monkeypatch.setattr(module, "version_of", version_of)
    monkeypatch.setattr(module, "own_version", lambda: version_of("tfconvert"))
    assert _key(settings) != before
    assert sorted(asked) == depends


def test_a_program_depends_on_the_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "iree-compile"
    monkeypatch.setattr(compiler, "find", lambda: str(program))
    keys = []
    for text in ("first", "another"):
        program.write_text(text)
        keys.append(_key({"target": "iree"}))
    assert len(set(keys)) == 2
