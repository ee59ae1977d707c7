"""Outputs appear whole or not at all, whoever writes as well and however a process ends; threads disturb none."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pytest
from click.testing import CliRunner

import tfconvert
from tests.hardening import models
from tfconvert.cli.main import main
from tfconvert.exporters.output_file import write_whole
from tfconvert.exporters.tflite.model import export
from tfconvert.importers.checkpoint.bundle import Checkpoint
from tfconvert.importers.tflite.model import import_tflite
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.dialects.sources import FileSlice
from tfconvert.schema.files import InputFile

_F32 = np.dtype(np.float32)


def _writing(content: bytes, pieces: int = 4) -> Callable[[BinaryIO], None]:
    """Returns what writes some contents piece by piece."""

    def write(stream: BinaryIO) -> None:
        for _ in range(pieces):
            stream.write(content)
            stream.flush()

    return write


def test_whoever_writes_a_file_last_has_written_it_whole(tmp_path: Path) -> None:
    """Processes of other machines may have the same number, and threads of one process have it."""
    target = tmp_path / "model.tflite"
    contents = [bytes([number]) * 50_000 for number in range(8)]
    wholes = {content * 4 for content in contents}
    seen: list[bytes] = []

    def store(content: bytes) -> None:
        for _ in range(20):
            write_whole(target, _writing(content))
            seen.append(target.read_bytes())

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(store, contents))
    assert set(seen) <= wholes
    assert [each.name for each in tmp_path.iterdir()] == ["model.tflite"]


def test_an_existing_name_is_not_written_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even if somebody guesses the name of the file that will be moved into place, and puts a link there."""
    monkeypatch.setattr(os, "urandom", bytes)
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / f".tfconvert-{'00' * 8}.part").symlink_to(victim)
    with pytest.raises(ConversionError) as caught:
        write_whole(tmp_path / "model.tflite", _writing(b"x"))
    assert caught.value.code == "output-not-writable"
    assert victim.read_text() == "mine"


def test_a_failure_leaves_the_old_file(tmp_path: Path) -> None:
    target = tmp_path / "model.tflite"
    target.write_text("old")

    def fail(stream: BinaryIO) -> None:
        stream.write(b"half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_whole(target, fail)
    assert {each.name: each.read_text() for each in tmp_path.iterdir()} == {"model.tflite": "old"}


_ENDED = """
import os
from tfconvert.exporters.tflite import file
from tfconvert.__main__ import main

def write(self, stream):
    stream.write(b"half")
    stream.flush()
    os.kill(os.getpid(), int(os.environ["SIGNAL"]))
    stream.write(b"rest")

file.TFLiteFile.write = write
main()
"""


def _heed_signals() -> None:
    """Undoes what a shell does for commands in the background, and `nohup`: tests may be run so."""
    for number in (signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGINT"])
def test_a_signal_leaves_nothing_half_written(name: str, tmp_path: Path) -> None:
    """The process still ends by the signal, for whoever waits for it."""
    (tmp_path / "graph.pb").write_bytes(models.NEGATION.SerializeToString())
    number = getattr(signal, name)
    arguments = [sys.executable, "-c", _ENDED, "graph.pb", "-o", "model.tflite"]
    done = subprocess.run(
        arguments,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "SIGNAL": str(int(number))},
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=_heed_signals,
    )
    assert done.returncode == (130 if name == "SIGINT" else -number), done.stderr
    assert "Traceback" not in done.stderr
    assert [each.name for each in tmp_path.iterdir()] == ["graph.pb"]


def _convert(folder: Path, *arguments: str | Path) -> int:
    (folder / "graph.pb").write_bytes(models.NEGATION.SerializeToString())
    return CliRunner().invoke(main, [str(folder / "graph.pb"), *map(str, arguments)]).exit_code


@pytest.mark.parametrize("target", ["other", "nothing", "link", "missing/file"])
def test_a_link_is_replaced_unless_it_is_to_be_followed(tmp_path: Path, target: str) -> None:
    link, other = tmp_path / "link", tmp_path / "other"
    other.write_text("other")
    link.symlink_to(target)
    assert _convert(tmp_path, "-o", link, "--report", tmp_path / "report.html") == 0
    assert not link.is_symlink()
    assert other.read_text() == "other"
    link.unlink()
    if target in ("other", "nothing"):
        link.symlink_to(target)
        assert _convert(tmp_path, "-o", link, "--write-through-links") == 0
        assert link.is_symlink()
        assert (tmp_path / target).read_bytes()[4:8] == b"TFL3"


def test_a_pipe_is_written_to_through_links(tmp_path: Path) -> None:
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    with ThreadPoolExecutor(1) as threads:
        content = threads.submit(pipe.read_bytes)
        assert _convert(tmp_path, "-o", link) == 0
        assert content.result(60)[4:8] == b"TFL3"
    assert link.is_symlink()


@pytest.mark.parametrize("length", [250, 251, 254, 255])
def test_any_name_that_a_file_can_have(tmp_path: Path, length: int) -> None:
    for name in ("n" * length, "ü" * (length // 2)):
        assert _convert(tmp_path, "-o", tmp_path / name) == 0
        assert (tmp_path / name).read_bytes()[4:8] == b"TFL3"


_PARTS = ("saved_model.pb", "variables/variables.index", "variables/variables.data-00000-of-00001")


@pytest.mark.parametrize("part", _PARTS)
@pytest.mark.parametrize("form", ["itself", "link", "hard link", "case"])
def test_no_output_overwrites_an_input(digits_model: Path, tmp_path: Path, part: str, form: str) -> None:
    folder = Path(shutil.copytree(digits_model, tmp_path / "model"))
    before = (folder / part).read_bytes()
    output = folder / part
    if form == "link":
        output = tmp_path / "link"
        output.symlink_to(folder / part)
    elif form == "hard link":
        output = tmp_path / "link"
        output.hardlink_to(folder / part)
    elif form == "case":
        output = folder / "variables" / ".." / part
    done = CliRunner().invoke(main, [str(folder), "-o", str(output)])
    assert (done.exit_code, "[output-over-input]" in done.stderr) == (1, True)
    with pytest.raises(ConversionError) as caught:
        tfconvert.convert(folder).save(output)
    assert caught.value.code == "output-over-input"
    assert (folder / part).read_bytes() == before


@pytest.fixture
def model(digits_model: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(digits_model, tmp_path / "model"))


@pytest.mark.parametrize("left", [0, 100, 5000])
def test_a_shard_that_is_cut_off_while_it_is_read(model: Path, left: int) -> None:
    """Pages of a mapped file would be gone, and with them the process."""
    shard = model / _PARTS[2]
    converted = tfconvert.convert(model)
    whole = shard.read_bytes()
    os.truncate(shard, left)
    output = model.with_name("out.tflite")
    for write in (lambda: bytes(converted), lambda: converted.save(output)):
        with pytest.raises(ConversionError) as caught:
            write()
        assert caught.value.code in ("changed-input", "bad-checksum")
    assert not output.exists()
    shard.write_bytes(whole)
    assert bytes(converted) == bytes(tfconvert.convert(model))


@pytest.mark.parametrize("stays_open", [True, False])
def test_parts_of_a_file_that_is_cut_off(tmp_path: Path, stays_open: bool) -> None:
    path = tmp_path / "shard"
    value = np.arange(1 << 16, dtype=np.float32).reshape(256, 256)
    boxes = [(slice(0, 256), slice(0, 256)), (slice(200, 256), slice(3, 5)), (slice(255, 256), slice(0, 256))]

    def parts() -> Iterator[np.ndarray]:
        source = FileSlice(file, 0, value.nbytes)
        for box in boxes:
            yield source.part(_F32, value.shape, box)
        yield np.concatenate(list(source.blocks(_F32, value.shape))).reshape(value.shape)

    path.write_bytes(value.tobytes())
    file = InputFile(path, stays_open=stays_open)
    for part, box in zip(parts(), [*boxes, boxes[0]], strict=True):
        np.testing.assert_array_equal(part, value[box])
    os.truncate(path, value.nbytes - 4)
    for box in boxes:
        if box[1].stop == 256:
            with pytest.raises(ConversionError, match="shorter now"):
                FileSlice(file, 0, value.nbytes).part(_F32, value.shape, box)
    path.write_bytes(value.tobytes())
    path.rename(tmp_path / "moved")
    path.write_bytes(value.tobytes())
    if stays_open:
        next(parts())
    else:
        with pytest.raises(ConversionError, match="no longer the file"):
            next(parts())
        path.unlink()
        with pytest.raises(ConversionError, match="can't be opened again"):
            next(parts())


def test_a_tflite_file_that_is_cut_off(tmp_path: Path, digits_model: Path) -> None:
    path = tmp_path / "model.tflite"
    tfconvert.convert(digits_model).save(path)
    module = import_tflite(path)
    os.truncate(path, 64)
    with pytest.raises(ConversionError) as caught:
        export(module).to_bytes()
    assert caught.value.code == "changed-input"


def _open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="the system doesn't tell which files are open")
def test_files_are_closed_with_the_model(model: Path) -> None:
    gc.collect()
    before = _open_files()
    converted = [tfconvert.convert(model) for _ in range(3)]
    assert len({bytes(each) for each in converted}) == 1
    del converted
    gc.collect()
    assert _open_files() == before
    (model / _PARTS[1]).write_bytes(b"damaged")
    for _ in range(3):
        with pytest.raises(ConversionError):
            tfconvert.convert(model)
    gc.collect()
    assert _open_files() == before


def test_many_shards_are_not_all_open(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process may have some hundred files open only."""
    monkeypatch.setattr("tfconvert.importers.checkpoint.bundle._MAX_OPEN", 0)
    expected = bytes(tfconvert.convert(model))
    before = _open_files()
    checkpoint = Checkpoint(model / "variables" / "variables")
    assert _open_files() == before
    assert len(checkpoint.entries())
    assert bytes(tfconvert.convert(model)) == expected


def test_threads_give_the_same_bytes(digits_model: Path, tmp_path: Path) -> None:
    """Conversions share tables, caches of attributes and the interpreter, but nothing that tells."""
    sources: list[object] = [digits_model, models.NEGATION, models.saved("a,b"), models.save(tmp_path / "saved")]
    expected = [bytes(tfconvert.convert(source)) for source in sources]
    ready = threading.Barrier(4)

    def work(number: int) -> list[bytes]:
        ready.wait()
        order = [*range(number, len(sources)), *range(number)]
        found = {index: bytes(tfconvert.convert(sources[index])) for _ in range(2) for index in order}
        return [found[index] for index in range(len(sources))]

    with ThreadPoolExecutor(4) as threads:
        results = list(threads.map(work, range(4)))
    assert results == [expected] * 4
