"""The text of every error of the corpus; `TFCONVERT_UPDATE_GOLDENS=1 pytest tests/errors` writes them again."""

from __future__ import annotations

import os
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import tfconvert
from tests.errors.corpus import CORPUS, GOLDENS, message
from tests.support.sources import ROOT


@pytest.mark.parametrize("name", CORPUS)
def test_a_model_fails_with_this_text(
    tf: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    model, options = CORPUS[name](tf, tmp_path / "model")
    text = message(model, options, capsys)
    golden = GOLDENS / f"{name}.txt"
    if os.environ.get("TFCONVERT_UPDATE_GOLDENS"):
        golden.write_text(text, "utf-8")
    assert text == golden.read_text("utf-8")


# The keyword arguments with which texts say that a model converts.
ADVISED = {
    name: found[1]
    for name in CORPUS
    if (found := re.search(r"or cut it off: --.* \((\w+=\[.*\])\)", (GOLDENS / f"{name}.txt").read_text("utf-8")))
}


@pytest.mark.parametrize("name", ADVISED)
def test_a_model_converts_as_its_text_says(tf: ModuleType, tmp_path: Path, name: str) -> None:
    model, _ = CORPUS[name](tf, tmp_path / "model")
    settings: dict[str, Any] = {
        key: re.findall(r'"([^"]+)"', names) for key, names in re.findall(r"(\w+)=\[(.*?)\]", ADVISED[name])
    }
    report = tfconvert.convert(model, verify=True, **settings).report
    (interface,) = report.interfaces
    assert [each.name for each in interface.inputs] == settings["inputs"]
    assert report.verification or any("..." in each.type for each in interface.inputs)  # no random value has any rank


def test_most_that_belongs_outside_of_a_model_can_be_cut_off() -> None:
    assert {
        "decode-jpeg",
        "decode-wav",
        "keras-text",
        "parse-example",
        "py-function",
        "split-to-numbers",
    } <= ADVISED.keys()


def test_the_corpus_is_large_and_has_a_text_for_each_model() -> None:
    assert len(CORPUS) >= 40
    assert {file.stem for file in GOLDENS.iterdir()} == set(CORPUS)


@pytest.mark.parametrize("name", CORPUS)
def test_texts_are_short_and_name_no_rules(name: str) -> None:
    text = (GOLDENS / f"{name}.txt").read_text("utf-8")
    assert len(text.encode()) < 4000
    assert not re.search(r"\b\w+-to-\w+\b|-widened|Traceback", text)
    first, *_, last = text.splitlines()
    code = re.search(r"\[([a-z0-9-]+)\]", text)
    assert first.startswith("tfconvert: error: ")
    assert code is not None
    assert last == f"For details, run: tfconvert explain {code[1]}"


@pytest.mark.parametrize("name", sorted(CORPUS.keys() - {"damaged-mlir"}))
def test_every_text_names_a_next_step(name: str) -> None:
    assert "  hint: " in (GOLDENS / f"{name}.txt").read_text("utf-8")


def test_the_comparison_with_the_official_converter_is_of_these_texts() -> None:
    page = (ROOT / "docs" / "errors_compared.md").read_text("utf-8")
    sizes = {name: int(size) for name, size in re.findall(r"^\| ([a-z0-9-]+) \| (\d+) / ", page, re.MULTILINE)}
    assert len(sizes) >= 40
    assert sizes == {name: len((GOLDENS / f"{name}.txt").read_bytes()) for name in sizes}
