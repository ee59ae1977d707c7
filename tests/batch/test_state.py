"""The next run knows the results of a batch."""

from __future__ import annotations

import os
from pathlib import Path

import fsspec
import pytest

from tests.batch.models import write
from tfconvert.batch.entries import Entry
from tfconvert.batch.state import State
from tfconvert.batch.task import Outcome
from tfconvert.schema.diagnostics import ConversionError

DONE = Outcome(None, {"size": 3}, 0.5, 7)


@pytest.fixture
def entry(tmp_path: Path) -> Entry:
    (tmp_path / "x.tflite").write_bytes(b"...")
    return Entry("x", str(write(tmp_path, "x")), str(tmp_path / "x.tflite"), {"verify": True})


def test_a_result_is_known_until_something_changes(tmp_path: Path, entry: Entry) -> None:
    path = str(tmp_path / "state")
    State(path).add(entry, DONE)
    assert State(path).find(entry) == DONE
    assert State(path).find(entry._replace(settings={})) is None
    assert State(path).find(entry._replace(output=entry.output + "2")) is None
    os.utime(entry.model, (1, 1))
    assert State(path).find(entry) is None


def test_models_behind_urls_are_looked_at_there(tmp_path: Path, entry: Entry) -> None:
    system = fsspec.filesystem("memory")
    system.pipe("/batch/model/saved_model.pb", b"one")
    path = str(tmp_path / "state")
    remote = entry._replace(model="memory://batch/model")
    State(path).add(remote, DONE)
    assert State(path).find(remote) == DONE
    system.pipe("/batch/model/variables/variables.index", b"two")
    assert State(path).find(remote) is None
    system.rm("/batch", recursive=True)


def test_neither_model_nor_state_need_be_there(tmp_path: Path, entry: Entry) -> None:
    path = str(tmp_path / "state")
    missing = entry._replace(model=str(tmp_path / "missing"))
    state = State(path)
    assert state.find(missing) is None
    Path(path).mkdir()
    with pytest.raises(ConversionError) as caught:
        state.add(entry, DONE)
    assert caught.value.code == "output-not-writable"


def test_a_result_that_is_gone_is_made_again(tmp_path: Path, entry: Entry) -> None:
    State(str(tmp_path / "state")).add(entry, DONE)
    Path(entry.output).unlink()
    assert State(str(tmp_path / "state")).find(entry) is None


def test_a_line_that_breaks_off_is_forgotten(tmp_path: Path, entry: Entry) -> None:
    path = tmp_path / "state"
    State(str(path)).add(entry, DONE)
    path.write_text(path.read_text() + path.read_text()[:20])
    state = State(str(path))
    assert state.find(entry) == DONE
    other = entry._replace(name="y", settings={})
    state.add(other, DONE)
    again = State(str(path))
    assert again.find(other) == again.find(entry) == DONE


def test_other_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("Dear state,\n")
    (tmp_path / "bytes").write_bytes(b"\xff\n")
    for name in ("text", "bytes"):
        with pytest.raises(ConversionError) as caught:
            State(str(tmp_path / name))
        assert caught.value.code == "bad-config"
