"""Uploaded archives, unpacked into a folder of their own: nothing leads out of it, and it grows within limits.

An archive is hostile until it is unpacked: its names, its sizes, how it is compressed. Only regular files and folders
come out of it, and what counts is what is written, not what the archive says of itself.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.files import open_file
from tfconvert.service.archive_streams import DirectoryReader, ForwardReader, Inflated
from tfconvert.service.entry_names import refused
from tfconvert.service.file_tree import ArchiveLimits, FileTree
from tfconvert.service.model_kinds import ModelKind, keras_file, recognize, unknown
from tfconvert.service.storage import storing

# Bytes of a zip's directory for each entry that it may have.
_NAME_BYTES = 512

# Bytes that a tar may be filled up with.
_PADDING = 1 << 20

_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)

# Exceptions of Python's readers of archives for some kinds of damage.
_DAMAGED = (
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    IndexError,
    KeyError,
    NotImplementedError,
    OSError,
    OverflowError,
    RuntimeError,
    ValueError,
)

_ONE_FILE = (".pb", ".pbtxt", ".prototxt", ".meta", ".mlir", ".tflite")
_KERAS = (".keras", ".h5", ".hdf5")
_SAVED_MODEL = ("saved_model.pb", "saved_model.pbtxt")
_STATE = "checkpoint"
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


def unpack(archive: Path, target: Path, limits: ArchiveLimits, name: str = "") -> Path:
    """Makes the model that was uploaded ready to be converted; returns its path.

    Args:
        archive: What was uploaded: an archive, or a model of a single file, which is linked to.
        target: A folder, which must not exist yet; it doesn't exist afterwards if this fails.
        limits: What that may take.
        name: What it was called where it came from.
    """
    kind = recognize(archive, name)
    with _new(target):
        if kind.is_archive:
            _extract(archive, kind, FileTree(target, limits, archive.stat().st_size), name)
            return find_model(target)
        if kind.is_saved_model:
            _link(archive, target / kind.value)
            return target
        stem = _UNSAFE.sub("_", Path(name).stem).strip("._")[:100] or "model"
        return _link(archive, target / f"{stem}{kind.value}")


def unpack_samples(archive: Path, target: Path, limits: ArchiveLimits) -> list[str]:
    """Makes uploaded samples ready to be read; returns the files, as `Quantize.samples` takes them.

    Args:
        archive: What was uploaded: a `.npz` file, or an archive of `.npz` and `.npy` files. A zip that has nothing but
            arrays beside each other is a `.npz` file.
        target: As `unpack` takes it.
        limits: What that may take.

    Raises:
        ConversionError: As `unpack` says, but what holds no samples is a `bad-archive`.
    """
    with _new(target):
        if _is_array(archive):
            return [os.fspath(_link(archive, target / "samples.npy"))]
        try:
            kind = recognize(archive)
        except ConversionError as problem:
            raise _no_samples() if problem.code in ("unknown-model", "keras-file") else problem from None
        if not kind.is_archive:
            raise _no_samples()
        if kind is ModelKind.ZIP and _is_npz(archive, limits):
            return [os.fspath(_link(archive, target / "samples.npz"))]
        _extract(archive, kind, FileTree(target, limits, archive.stat().st_size), "")
        found = sorted(os.fspath(file) for file in target.rglob("*.np[yz]"))
        if not found:
            raise _no_samples()
        return found


def find_model(folder: Path) -> Path:
    """Returns the model in an unpacked archive: the folder of a SavedModel, or the only file that is a model.

    Raises:
        ConversionError: There is none, or several (`unknown-model`), or one that only Keras can read (`keras-file`).
    """
    while True:
        entries = sorted(folder.iterdir())
        names = {entry.name for entry in entries}
        if names.intersection(_SAVED_MODEL):
            return folder
        files = [entry for entry in entries if entry.is_file() and entry.suffix in _ONE_FILE]
        if len(files) == 1:
            return files[0]
        if _STATE in names and any(file.suffix == ".meta" for file in files):
            return folder
        if files:
            raise unknown(f"the archive has several models: {', '.join(file.name for file in files[:8])}")
        folders = [entry for entry in entries if entry.is_dir()]
        if len(folders) != 1:
            keras = next((entry.name for entry in entries if entry.suffix in _KERAS), None)
            raise keras_file(keras) if keras is not None else _nothing(entries)
        folder = folders[0]


def _nothing(entries: list[Path]) -> ConversionError:
    listed = ", ".join(repr(entry.name) for entry in entries[:8]) or "nothing"
    return unknown(f"the archive has no model: neither saved_model.pb nor a GraphDef is beside {listed}")


def _extract(archive: Path, kind: ModelKind, tree: FileTree, name: str) -> None:
    with os.fdopen(open_file(archive), "rb") as file:
        try:
            if kind is ModelKind.ZIP:
                _unzip(file, tree, name)
            elif kind is ModelKind.TAR:
                _untar(ForwardReader(file), tree)
            else:
                _untar(ForwardReader(Inflated(file, tree.spend)), tree)
        except _DAMAGED as problem:
            raise _damaged(problem) from None


def _unzip(file: io.BufferedReader, tree: FileTree, name: str) -> None:
    with zipfile.ZipFile(DirectoryReader(file, tree.limits.entries * _NAME_BYTES)) as archive:
        entries = archive.infolist()
        if {"config.json", "metadata.json"} <= {entry.filename for entry in entries}:
            raise keras_file(name)
        if len(entries) > tree.limits.entries:
            tree.count(len(entries))
        if sum(entry.file_size for entry in entries) > tree.limits.size:
            tree.spend(tree.limits.size + 1)
        places = [(entry, tree.place(entry.orig_filename, is_folder=entry.is_dir())) for entry in entries]
        for entry in entries:
            _check_entry(entry)
        for entry, place in places:
            if place and entry.is_dir():
                tree.make_folder(place)
            elif place:
                with archive.open(entry) as content:
                    tree.make_file(place, content)


def _check_entry(entry: zipfile.ZipInfo) -> None:
    mode = entry.external_attr >> 16
    if stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFDIR):
        raise refused(f"the entry {entry.filename!r} is a link or a device")
    if entry.flag_bits & 1:
        raise refused(f"the entry {entry.filename!r} is encrypted", "pack the model's folder without a password")
    if entry.compress_type not in _METHODS:
        raise refused(f"the entry {entry.filename!r} is compressed in another way than by deflating it")


def _untar(stream: ForwardReader, tree: FileTree) -> None:
    with tarfile.open(fileobj=stream, mode="r:", encoding="utf-8", errors="surrogateescape") as archive:
        for entry in archive:
            tree.spend(0)
            place = tree.place(entry.name, is_folder=entry.isdir())
            if entry.isdir():
                if place:
                    tree.make_folder(place)
            elif entry.size < 0:
                raise refused(f"the entry {entry.name!r} has less than no bytes")
            elif not entry.isreg() or entry.issparse():
                raise refused(f"the entry {entry.name!r} is a link, a device or sparse")
            else:
                with stream.content(entry.offset_data, entry.size) as content:
                    tree.make_file(place, content)
    if stream.last != bytes(tarfile.BLOCKSIZE):
        raise refused("the archive ends in the middle")
    padding = 0
    while size := len(stream.read(_PADDING)):  # A checksum may be at the end.
        padding += size
        if padding > _PADDING:
            raise refused("there is something behind the archive's end")


def _is_array(path: Path) -> bool:
    with os.fdopen(open_file(path), "rb", buffering=0) as file:
        return file.read(6) == b"\x93NUMPY"


def _is_npz(path: Path, limits: ArchiveLimits) -> bool:
    with os.fdopen(open_file(path), "rb") as file:
        try:
            with zipfile.ZipFile(DirectoryReader(file, limits.entries * _NAME_BYTES)) as archive:
                names = archive.namelist()
        except _DAMAGED as problem:
            raise _damaged(problem) from None
    return bool(names) and all(name.endswith(".npy") and "/" not in name for name in names)


@contextmanager
def _new(folder: Path) -> Iterator[None]:
    """A context in which a folder is filled; it is removed if that fails."""
    with storing():
        folder.mkdir(0o700, parents=True)
    with ExitStack() as undo:
        undo.callback(shutil.rmtree, folder, ignore_errors=True)
        yield
        undo.pop_all()


def _link(file: Path, place: Path) -> Path:
    """Gives a file a second name, or copies it where file systems don't have that."""
    with storing():
        with suppress(OSError):
            os.link(file, place)
            return place
        shutil.copyfile(file, place)
        return place


def _damaged(problem: BaseException) -> ConversionError:
    # The text of an error of the system names the file.
    reason = (problem.strerror if isinstance(problem, OSError) else str(problem)) or type(problem).__name__
    return refused(f"the archive is damaged: {' '.join(reason.split())}")


def _no_samples() -> ConversionError:
    return refused(
        "the samples are neither .npy or .npz files nor an archive of such",
        "write them with numpy.savez, an array an input whose first axis counts samples",
    )
