"""Archives come out below their folder, within limits, or not at all."""

from __future__ import annotations

import errno
import gzip
import io
import os
import random
import shutil
import stat
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest

import tfconvert
from tests.batch.models import RELU
from tests.importers.test_stablehlo_files import LEAF, MAGIC, export_file
from tests.service.archive_corpus import ARCHIVES, GRAPH, MODEL, tarred, zipped
from tests.support.work import calls
from tfconvert.importers.archive import ArchiveLimits
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.service import archives, model_places

ARTIFACT = MAGIC + bytes(20)
EXPORTED = export_file(ARTIFACT, LEAF, LEAF, [0])

LIMITS = ArchiveLimits(size=1 << 30, entries=1000, ratio=200, seconds=60)


def unpacked(tmp_path: Path, data: bytes, name: str = "", limits: ArchiveLimits = LIMITS) -> Path:
    upload = tmp_path / "upload"
    upload.write_bytes(data)
    return archives.unpack(upload, tmp_path / "job" / "model", limits, name)


def content(folder: Path) -> dict[str, bytes]:
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@pytest.mark.parametrize("case", ARCHIVES)
def test_hostile_and_damaged_archives_are_rejected_and_leave_nothing(case: str, tmp_path: Path) -> None:
    code, make = ARCHIVES[case]
    with pytest.raises(ConversionError) as caught:
        unpacked(tmp_path, make())
    assert caught.value.code == code, str(caught.value)
    assert len(caught.value.diagnostics) == 1
    assert caught.value.diagnostics[0].hint
    assert {path.name for path in tmp_path.rglob("*")} <= {"job", "upload"}


@pytest.mark.parametrize("prefix", ["", "./", "saved_model/", "./a/b/saved_model/"])
@pytest.mark.parametrize("kind", ["zip", "stored", "tar", "gnu", "zip -r", "tar.gz", "two-streams"])
def test_a_saved_model_is_found(kind: str, prefix: str, tmp_path: Path) -> None:
    members = {f"{prefix}{name}": data for name, data in MODEL.items()} | {"__MACOSX/._x": b"", "._a.pb": b""}
    tar = tarred(members)
    data = {
        "zip": zipped(members),
        "stored": zipped(members, zipfile.ZIP_STORED),
        "tar": tar,
        "zip -r": zipped([(f"{prefix}variables/", b""), (f"{prefix}assets/", b""), *members.items()]),
        "gnu": tarred(members, tarfile.GNU_FORMAT),
        "tar.gz": gzip.compress(tar),
        "two-streams": gzip.compress(tar[:700]) + gzip.compress(tar[700:]) + bytes(100),
    }[kind]
    model = unpacked(tmp_path, data)
    assert model == tmp_path / "job" / "model" / prefix.removeprefix("./").rstrip("/")
    assert content(model) == MODEL
    for path in (tmp_path / "job" / "model", *(tmp_path / "job" / "model").rglob("*")):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600)


def test_sizes_at_the_limits_pass(tmp_path: Path) -> None:
    limits = ArchiveLimits(size=1000, entries=3, ratio=1)
    files = {"saved_model.pb": os.urandom(300), "a": os.urandom(300), "b": os.urandom(400)}
    for pack in (zipped, tarred):
        assert content(unpacked(tmp_path, pack(files), limits=limits)) == files
        shutil.rmtree(tmp_path / "job")
        for less in (limits._replace(size=999), limits._replace(entries=2)):
            with pytest.raises(ConversionError) as caught:
                unpacked(tmp_path, pack(files), limits=less)
            assert caught.value.code == "archive-too-large"


def test_unpacking_has_a_time_limit(tmp_path: Path) -> None:
    with pytest.raises(ConversionError) as caught:
        unpacked(tmp_path, zipped(MODEL), limits=LIMITS._replace(seconds=1e-9))
    assert caught.value.code == "archive-too-large"


def test_work_grows_with_the_entries_and_no_faster(tmp_path: Path) -> None:
    def work(count: int) -> int:
        upload = tmp_path / f"{count}"
        upload.write_bytes(tarred([("saved_model.pb", b""), *((f"{n}", b"") for n in range(count))]))
        return calls(lambda: archives.unpack(upload, tmp_path / f"model{count}", LIMITS))

    assert work(800) < 5 * work(200)


@pytest.mark.parametrize(
    ("data", "name", "expected"),
    [
        (GRAPH, "net.pb", "net.pb"),
        (GRAPH, "", "model.pb"),
        (GRAPH, "../../etc/p ass\nwd.weights", "p_ass_wd.pb"),
        (GRAPH, "graph.meta", "graph.meta"),
        (b"\x0a\x00\x12\x00\x1a\x00", "", "model.meta"),
        (b'# made by hand\nnode {\n  name: "x"\n}\n', "x.txt", "x.pbtxt"),
        (b"saved_model_schema_version: 1\nmeta_graphs {}\n", "", "saved_model.pbtxt"),
        (b"\x08\x01\x12\x02\x0a\x00", "x", "saved_model.pb"),
        (RELU.encode(), "relu", "relu.mlir"),
        (b"// words\n" + RELU.encode(), "", "model.mlir"),
        (b"\x1c\x00\x00\x00TFL3" + bytes(20), "x.bin", "x.tflite"),
        (ARTIFACT, "net.mlirbc", "net.mlirbc"),
        (ARTIFACT, "net.bin", "net.mlirbc"),
        (EXPORTED, "net.jax", "net.bin"),
        (EXPORTED, "", "model.bin"),
        (b"\x0a\x80\xa0\x06" + bytes(102_400), "large.pb", "large.pb"),
    ],
)
def test_single_files_are_recognized_by_their_content(data: bytes, name: str, expected: str, tmp_path: Path) -> None:
    model = unpacked(tmp_path, data, name)
    file = model / expected if model.is_dir() else model
    assert file.name == expected
    assert file.parent == tmp_path / "job" / "model"
    assert file.samefile(tmp_path / "upload")


def test_where_files_have_one_name_they_are_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "link", refuse)
    model = unpacked(tmp_path, GRAPH, "net.pb")
    assert model.read_bytes() == GRAPH
    assert not model.samefile(tmp_path / "upload")


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ({"net.pb": GRAPH}, "net.pb"),
        ({"net.mlirbc": ARTIFACT, "notes.bin": b"abcdefgh"}, "net.mlirbc"),
        ({"a/net.exported": EXPORTED, "a/notes.txt": b"abcdefgh"}, "a/net.exported"),
        ({"a/net.pbtxt": b"", "a/labels.txt": b""}, "a/net.pbtxt"),
        ({"m.meta": b"", "m.index": b"", "m.data-00000-of-00001": b"", "checkpoint": b""}, "m.meta"),
        ({"m-1.meta": b"", "m-2.meta": b"", "checkpoint": b""}, ""),
        ({"x/m.mlir": b""}, "x/m.mlir"),
        ({"saved_model.pbtxt": b"", "other.pb": b""}, ""),
    ],
)
def test_other_models_are_found_in_archives(members: Mapping[str, bytes], expected: str, tmp_path: Path) -> None:
    assert unpacked(tmp_path, zipped(members)) == tmp_path / "job" / "model" / expected


def test_unpacked_models_can_be_converted(digits_model: Path, tmp_path: Path) -> None:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        archive.add(digits_model, "digits")
    model = unpacked(tmp_path, stream.getvalue())
    for path, name in ((model, "own"), (digits_model, "same")):
        tfconvert.convert(path).save(tmp_path / name)
    assert (tmp_path / "own").read_bytes() == (tmp_path / "same").read_bytes()


def test_a_full_disk_is_the_servers_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.open

    def full(path: str | os.PathLike[str], flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if flags & os.O_CREAT:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(path, flags, mode, dir_fd=dir_fd)

    for data in (zipped(MODEL), tarred(MODEL)):
        (tmp_path / "upload").write_bytes(data)
        with monkeypatch.context() as patch:
            patch.setattr(os, "open", full)
            with pytest.raises(ConversionError) as caught:
                archives.unpack(tmp_path / "upload", tmp_path / "model", LIMITS)
        assert caught.value.code == "storage-failed"
        assert not (tmp_path / "model").exists()


@pytest.mark.parametrize("pack", ["zip", "tar", "tar.gz"])
def test_mutants_stay_within_their_directory_or_are_rejected(pack: str, tmp_path: Path) -> None:
    data = {"zip": zipped, "tar": tarred, "tar.gz": lambda files: gzip.compress(tarred(files), mtime=0)}[pack](MODEL)
    draw = random.Random(pack)
    ends: set[object] = set()
    for number in range(150):
        mutant = bytearray(data)
        for _ in range(draw.randint(1, 4)):
            at = draw.randrange(len(mutant))
            mutant[at] = draw.choice((0, 1, 0x2F, 0x2E, 0x7F, 0x80, 0xFF, draw.randrange(256)))
        if draw.random() < 0.1:
            del mutant[draw.randrange(len(mutant)) :]
        upload = tmp_path / "upload"
        upload.write_bytes(mutant)
        target = tmp_path / "jobs" / f"{number}"
        try:
            ends.add(archives.unpack(upload, target, LIMITS).is_relative_to(target))
        except ConversionError as problem:
            ends.add(problem.code)
            assert not target.exists()
    assert {path.name for path in tmp_path.iterdir()} == {"upload", "jobs"}
    known = {"bad-archive", "unknown-model", "foreign-format", "archive-too-large", "keras-file"}
    assert {True, "bad-archive"} <= ends <= known | {True}


def samples() -> bytes:
    stream = io.BytesIO()
    np.savez(stream, x=np.zeros((2, 3), np.float32))
    return stream.getvalue()


def array() -> bytes:
    stream = io.BytesIO()
    np.save(stream, np.zeros((2, 3), np.float32))
    return stream.getvalue()


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (samples(), ["samples.npz"]),
        (array(), ["samples.npy"]),
        (zipped({"a.npz": b"1", "b/c.npz": b"2", "notes.txt": b""}), ["a.npz", "b/c.npz"]),
        (zipped({"day/a.npy": b"1", "day/b.npy": b"2"}), ["day/a.npy", "day/b.npy"]),
        (tarred({"a.npy": array(), "b.npy": array()}), ["a.npy", "b.npy"]),
    ],
)
def test_samples_are_made_ready(data: bytes, expected: list[str], tmp_path: Path) -> None:
    (tmp_path / "upload").write_bytes(data)
    found = archives.unpack_samples(tmp_path / "upload", tmp_path / "samples", LIMITS)
    assert [Path(path).relative_to(tmp_path / "samples").as_posix() for path in found] == expected


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"x",
        GRAPH,
        zipped(MODEL),
        zipped({}),
        b"PK\x03\x04",
        tarred({"../a.npy": b""}),
        ARCHIVES["hdf5"][1](),
        ARCHIVES["keras"][1](),
    ],
)
def test_other_files_are_no_samples(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "upload").write_bytes(data)
    with pytest.raises(ConversionError) as caught:
        archives.unpack_samples(tmp_path / "upload", tmp_path / "samples", LIMITS)
    assert caught.value.code in ("bad-archive", "keras-file")
    assert not (tmp_path / "samples").exists()


def keras(members: Mapping[str, bytes] = MappingProxyType({}), compression: int = zipfile.ZIP_STORED) -> bytes:
    """Returns a file with the members of a Keras file, and others."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as archive:
        for name, data in {"metadata.json": b"{}", "config.json": b"{}", "model.weights.h5": b"x", **members}.items():
            archive.writestr(name, data)
    return stream.getvalue()


def keras_code(tmp_path: Path, data: bytes, **limits: int) -> str:
    """Returns the code that a Keras file is refused with, the same as an upload and below a root."""
    allowed = LIMITS._replace(keras=True, **limits)
    (tmp_path / "roots").mkdir(exist_ok=True)
    model = tmp_path / "roots" / "model.keras"
    model.write_bytes(data)
    codes = []
    makes: tuple[Callable[[Path], Path], ...] = (
        lambda target: archives.unpack(model, target, allowed, "model.keras"),
        lambda target: model_places.resolve(os.fspath(model), (os.fspath(model.parent),), target, allowed),
    )
    for number, make in enumerate(makes):
        shutil.rmtree(tmp_path / f"target{number}", ignore_errors=True)
        try:
            assert make(tmp_path / f"target{number}").read_bytes() == data
            codes.append("")
        except ConversionError as problem:
            codes.append(problem.code)
            assert not (tmp_path / f"target{number}").exists()
    assert len(set(codes)) == 1
    return codes[0]


def test_a_keras_file_of_201_mb_is_refused_where_200_are_allowed(tmp_path: Path) -> None:
    size = 201 * 10**6
    data = keras({"model.weights.h5": random.Random(1).randbytes(10**6) + bytes(size - 10**6)}, zipfile.ZIP_DEFLATED)
    assert keras_code(tmp_path, data, size=200 * 10**6) == "archive-too-large"
    assert keras_code(tmp_path, data, size=202 * 10**6) == ""


def test_keras_files_have_the_limits_of_archives(tmp_path: Path) -> None:
    assert keras_code(tmp_path, keras({"assets/": b"", "assets/layer/words.txt": b"x"})) == ""
    packed = keras({"model.weights.h5": bytes(100 << 20)}, zipfile.ZIP_DEFLATED)
    assert keras_code(tmp_path, packed) == "archive-too-large"
    assert keras_code(tmp_path, packed, ratio=2000) == ""
    many = {f"assets/{number}": b"" for number in range(20)}
    assert keras_code(tmp_path, keras(many), entries=10) == "archive-too-large"
    for name in ("model.py", "assets/../x", "/x", "assets\\x", "weights/model.weights.h5", "ASSETS/x"):
        assert keras_code(tmp_path, keras({name: b"x"})) == "bad-archive", name
    assert keras_code(tmp_path, keras(compression=zipfile.ZIP_LZMA)) == "bad-archive"
    assert keras_code(tmp_path, keras({"model.weights.npz": b"x"})) == "unsafe-model"
    assert keras_code(tmp_path, keras()[:-10]) == "damaged-model"


def test_the_limits_take_what_keras_writes(tmp_path: Path) -> None:
    """A real file, with a vocabulary beside its weights."""
    keras_package = pytest.importorskip("keras")
    words = keras_package.layers.TextVectorization(vocabulary=["a", "b"])
    table = keras_package.Sequential([keras_package.Input((1,), dtype="string"), words])
    table.save(tmp_path / "words.keras")
    assert keras_code(tmp_path, (tmp_path / "words.keras").read_bytes()) == ""
