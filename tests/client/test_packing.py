"""The files of a model that a client sends."""

from __future__ import annotations

import io
import os
import shutil
import tarfile
from pathlib import Path

import numpy as np
import pytest

from tfconvert.client.packing import TarStream, pack_arrays, pack_model, pack_samples
from tfconvert.schema.diagnostics import ConversionError


def _names(stream: object) -> list[str]:
    assert isinstance(stream, TarStream)
    with tarfile.open(fileobj=io.BytesIO(stream.read())) as archive:
        return archive.getnames()


def test_the_same_model_gives_the_same_bytes(digits_model: Path, tmp_path: Path) -> None:
    shutil.copytree(digits_model, tmp_path / "copy")
    os.utime(tmp_path / "copy" / "saved_model.pb", (1, 1))
    (tmp_path / "copy" / "saved_model.pb").chmod(0o600)
    one, other = pack_model(digits_model), pack_model(tmp_path / "copy")
    assert (one.name, other.name) == ("saved_model.tar", "copy.tar")
    content = one.stream.read()
    assert content == other.stream.read()
    assert one.stream.tell() == len(content) == one.stream.seek(0, os.SEEK_END)
    assert one.stream.read() == b""
    one.stream.seek(0)
    assert b"".join(iter(lambda: one.stream.read(1000), b"")) == content
    with pytest.raises(io.UnsupportedOperation):
        one.stream.seek(10)


def test_only_what_a_conversion_reads_is_sent(digits_model: Path, tmp_path: Path) -> None:
    model = shutil.copytree(digits_model, tmp_path / "model")
    (model / "notes.txt").write_text("not part of it")
    (model / "assets").mkdir(exist_ok=True)
    (model / "assets" / ("é" * 120)).write_text("words")
    read = [
        "assets/" + "é" * 120,
        "saved_model.pb",
        "variables/variables.data-00000-of-00001",
        "variables/variables.index",
    ]
    debug = [name for name in ("debug/saved_model_debug_info.pb",) if (model / name).exists()]
    assert _names(pack_model(model).stream) == sorted(f"model/{name}" for name in [*read, *debug])


def test_links_are_sent_as_what_they_lead_to(digits_model: Path, tmp_path: Path) -> None:
    model = shutil.copytree(digits_model, tmp_path / "model")
    graph = model / "saved_model.pb"
    graph.rename(tmp_path / "graph")
    graph.symlink_to(tmp_path / "graph")
    with tarfile.open(fileobj=io.BytesIO(pack_model(model).stream.read())) as archive:
        assert all(member.isreg() for member in archive)


def test_files_are_sent_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "frozen.pb").write_bytes(b"graph")
    packed = pack_model(tmp_path / "frozen.pb")
    with packed.stream as stream:
        assert (packed.name, stream.read()) == ("frozen.pb", b"graph")


def test_a_file_that_shrinks_is_noticed(digits_model: Path, tmp_path: Path) -> None:
    model = shutil.copytree(digits_model, tmp_path / "model")
    packed = pack_model(model)
    (model / "saved_model.pb").write_bytes(b"")
    with pytest.raises(ConversionError) as caught:
        packed.stream.read()
    assert caught.value.code == "unreadable-file"


@pytest.mark.parametrize(("name", "code"), [("missing", "model-not-found"), ("empty", "model-not-found")])
def test_what_is_no_model_is_refused(tmp_path: Path, name: str, code: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConversionError) as caught:
        pack_model(tmp_path / name)
    assert caught.value.code == code


def test_samples_keep_their_order(tmp_path: Path) -> None:
    for name in ("b.npz", "a.npz", "more/c.npy", "more/d.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"samples")
    one = pack_samples([tmp_path / "b.npz"])
    with one.stream as stream:
        assert (one.name, stream.read()) == ("b.npz", b"samples")
    packed = pack_samples([tmp_path / "b.npz", str(tmp_path / "a.npz"), tmp_path / "more"])
    assert _names(packed.stream) == ["000000_b.npz", "000001_a.npz", "000002_c.npy"]
    for paths, code in (([], "no-samples"), ([tmp_path / "gone.npz"], "unreadable-file")):
        with pytest.raises(ConversionError) as caught:
            pack_samples(paths)
        assert caught.value.code == code


def test_samples_in_memory_are_files() -> None:
    array = np.arange(6, dtype=np.float32).reshape(3, 2)
    one = pack_arrays(array)
    assert one.name == "samples.npy"
    np.testing.assert_array_equal(np.load(io.BytesIO(one.stream.read())), array)
    named = pack_arrays({"file": array, "scope/x": array[:, :1]})
    assert named.name == "samples.npz"
    content = named.stream.read()
    assert content == pack_arrays({"file": array, "scope/x": array[:, :1]}).stream.read()
    with np.load(io.BytesIO(content)) as found:
        assert sorted(found) == ["file", "scope/x"]
        np.testing.assert_array_equal(found["scope/x"], array[:, :1])
    with pytest.raises(ConversionError) as caught:
        pack_arrays(np.array([None]))
    assert caught.value.code == "wrong-sample"
