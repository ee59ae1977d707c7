"""Models and results at URLs, by fsspec's file system in memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import fsspec
import pytest

from tests.batch.models import write
from tfconvert.batch import places
from tfconvert.batch.engines import Trial, perform
from tfconvert.batch.entries import Entry
from tfconvert.batch.pool import Pool
from tfconvert.batch.task import TaskLimits
from tfconvert.schema.diagnostics import ConversionError


@pytest.fixture
def memory() -> Iterator[fsspec.AbstractFileSystem]:
    system = fsspec.filesystem("memory")
    yield system
    system.store.clear()
    system.pseudo_dirs[:] = [""]


def test_urls_are_told_from_paths() -> None:
    assert places.is_url("s3://bucket/x")
    assert places.is_url("memory://x")
    assert not places.is_url("C://x")
    assert not places.is_url("a/b")
    assert places.name_of("s3://bucket/models/x.pb") == "x.pb"
    assert places.name_of("a/b/") == "b"


def test_results_and_reports_are_stored_whole(memory: fsspec.AbstractFileSystem, tmp_path: Path) -> None:
    memory.put(str(write(tmp_path, "relu")), "/models/relu.mlir")
    assert places.beside("memory://a.b/net.mlir", ".safetensors") == "memory://a.b/net.safetensors"
    (url,) = places.expand("memory://models/*.mlir")
    entry = Entry("relu", url, "memory://out/new/relu.tflite")
    with Pool() as pool:
        outcome = perform(entry, Trial(TaskLimits(seconds=60), reports=True), pool)
    assert outcome.problem is None
    assert places.exists(entry.output)
    assert memory.cat("/out/new/relu.tflite")[4:8] == b"TFL3"
    assert sorted(memory.find("/out")) == ["/out/new/relu.report.json", "/out/new/relu.tflite"]


def test_folders_are_fetched(memory: fsspec.AbstractFileSystem, tmp_path: Path) -> None:
    memory.pipe({"/m/net/saved_model.pb": b"x", "/m/net/variables/variables.index": b"y"})
    copy = places.fetch("memory://m/net", tmp_path)
    assert (copy / "variables" / "variables.index").read_bytes() == b"y"
    before = places.state_of("memory://m/net")
    memory.pipe({"/m/net/saved_model.pb": b"changed"})
    assert places.state_of("memory://m/net") != before


def test_unreachable_places_are_tried_again(memory: fsspec.AbstractFileSystem, tmp_path: Path) -> None:
    waits: list[float] = []
    entry = Entry("none", "memory://none/x.mlir", str(tmp_path / "x.tflite"))
    with Pool() as pool:

        def wait(seconds: float) -> None:
            waits.append(seconds)
            if len(waits) == 2:
                memory.put(str(write(tmp_path, "relu")), "/none/x.mlir")

        outcome = perform(entry, Trial(TaskLimits(seconds=60), retries=3, backoff=0.5), pool, wait)
        assert outcome.problem is None
        assert waits == [0.5, 1.0]
        missing = perform(entry._replace(model="memory://no/y"), Trial(TaskLimits(), 1), pool, wait)
    assert missing.code == "unreachable-place"
    assert len(waits) == 3


def never(seconds: float) -> None:
    raise AssertionError


def test_wrong_models_are_not_tried_again(tmp_path: Path) -> None:
    entry = Entry("none", str(tmp_path / "none"), str(tmp_path / "x.tflite"))
    with Pool() as pool:
        assert perform(entry, Trial(TaskLimits()), pool, never).code == "model-not-found"


def test_unknown_file_systems_are_told() -> None:
    with pytest.raises(ConversionError) as caught:
        places.exists("nonsense://x")
    assert caught.value.code == "unreachable-place"
