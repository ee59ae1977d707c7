"""Unpacks uploaded archives safely into separate directories, within limits.

Archives are untrusted: their names, sizes and compression may be hostile. Only regular files and directories are
unpacked, and the limits count the bytes that are written, not those that the archive declares. The archive does not
determine the size of a read or the time of unpacking.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Protocol

from tfconvert.importers.archive import (
    DAMAGED,
    ArchiveLimits,
    DirectoryReader,
    check_keras,
    checked_entries,
    reason_of,
    refused,
    too_much,
)
from tfconvert.importers.containment import SAVED_MODEL_FILES
from tfconvert.importers.foreign_files import KERAS_FILES
from tfconvert.importers.stablehlo.model_file import is_stablehlo_file
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.files import open_file
from tfconvert.service.file_tree import FileTree, Readable
from tfconvert.service.model_kinds import KERAS_SUFFIXES, ModelKind, keras_file, recognize, unknown
from tfconvert.service.storage import remove, storing

# Maximum padding at the end of a tar, in bytes.
_PADDING = 1 << 20

_ONE_FILE = (".pb", ".pbtxt", ".prototxt", ".meta", ".mlir", ".mlirbc", ".tflite")
_STATE = "checkpoint"
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


def unpack(archive: Path, target: Path, limits: ArchiveLimits, name: str = "") -> Path:
    """Prepares an uploaded model for the conversion; returns its path.

    Args:
        archive: The upload: an archive, or a single-file model, which is linked.
        target: A directory, which must not exist yet; it is removed if this fails.
        limits: The limits.
        name: The name of the client's file.
    """
    kind = recognize(archive, name, takes_keras=limits.keras)
    with _new(target):
        if kind.is_archive:
            _extract(archive, kind, FileTree(target, limits, archive.stat().st_size), name)
            return find_model(target)
        if kind.is_saved_model:
            _link(archive, target / kind.value)
            return target
        if kind is ModelKind.KERAS:
            check_keras(archive, limits)
        stem = _UNSAFE.sub("_", Path(name).stem).strip("._")[:100] or "model"
        return _link(archive, target / f"{stem}{kind.value}")


def unpack_samples(archive: Path, target: Path, limits: ArchiveLimits) -> list[str]:
    """Prepares uploaded samples; returns the files for `Quantize.samples`.

    Args:
        archive: The upload: a `.npz` file, or an archive of `.npz` and `.npy` files. A zip that contains only arrays
            without directories is a `.npz` file.
        target: As for `unpack`.
        limits: The limits.

    Raises:
        ConversionError: As for `unpack`, but an archive without samples is a `bad-archive`.
    """
    with _new(target):
        if _is_array(archive):
            return [os.fspath(_link(archive, target / "samples.npy"))]
        try:
            kind = recognize(archive)
        except ConversionError as problem:
            raise (
                _no_samples() if problem.code in ("unknown-model", "foreign-format", "keras-file") else problem
            ) from None
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
    """Returns the model in an unpacked archive: the directory of a SavedModel, or the only file that is a model.

    Raises:
        ConversionError: There is not exactly one model (`unknown-model`), or only Keras can read it (`keras-file`).
    """
    while True:
        entries = sorted(folder.iterdir())
        names = {entry.name for entry in entries}
        if names.intersection(SAVED_MODEL_FILES):
            return folder
        files = [entry for entry in entries if entry.is_file() and entry.suffix in _ONE_FILE]
        if not files:
            # Files of jax.export have any name.
            files = [entry for entry in entries if entry.is_file() and is_stablehlo_file(entry)]
        if len(files) == 1:
            return files[0]
        if _STATE in names and any(file.suffix == ".meta" for file in files):
            return folder
        if files:
            raise unknown(f"the archive has several models: {', '.join(file.name for file in files[:8])}")
        folders = [entry for entry in entries if entry.is_dir()]
        if len(folders) != 1:
            keras = next((entry.name for entry in entries if entry.suffix in KERAS_SUFFIXES), None)
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
        except DAMAGED as problem:
            raise _damaged(problem) from None


def _unzip(file: io.BufferedReader, tree: FileTree, name: str) -> None:
    with zipfile.ZipFile(DirectoryReader(file, tree.limits.entries)) as archive:
        if KERAS_FILES - {"model.weights.h5"} <= {entry.filename for entry in archive.infolist()}:
            raise keras_file(name)
        for entry, path in checked_entries(archive, tree):
            if path and entry.is_dir():
                tree.make_folder(tree.folder / path)
            elif path:
                with archive.open(entry) as content:
                    tree.make_file(tree.folder / path, content)


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
            with zipfile.ZipFile(DirectoryReader(file, limits.entries)) as archive:
                names = archive.namelist()
        except DAMAGED as problem:
            raise _damaged(problem) from None
    return bool(names) and all(name.endswith(".npy") and "/" not in name for name in names)


@contextmanager
def _new(folder: Path) -> Iterator[None]:
    """A context manager that creates a directory, and removes it after an exception."""
    with storing():
        folder.mkdir(0o700, parents=True)
    with ExitStack() as undo:
        undo.callback(remove, folder)
        yield
        undo.pop_all()


def _link(file: Path, place: Path) -> Path:
    """Links a file, or copies it if the file system has no links."""
    with storing():
        with suppress(OSError):
            os.link(file, place)
            return place
        shutil.copyfile(file, place)
        return place


def _damaged(problem: BaseException) -> ConversionError:
    return refused(f"the archive is damaged: {reason_of(problem)}")


def _no_samples() -> ConversionError:
    return refused(
        "the samples are neither .npy or .npz files nor an archive of such",
        "write them with numpy.savez, an array an input whose first axis counts samples",
    )


_READ_BYTES = 1 << 15
_MAX_READ = 1 << 20
# Maximum bytes of all headers of a tar.
_MAX_HEADERS = 1 << 26

# The `wbits` of zlib for gzip.
_GZIP = 31


class _Stream(Readable, Protocol):
    def tell(self) -> int: ...


class ForwardReader(io.RawIOBase):
    """A tar, which is read forward; its headers are counted.

    Args:
        stream: The file, or its decompressed contents.

    Attributes:
        last: The last block that was read.
    """

    def __init__(self, stream: _Stream) -> None:
        super().__init__()
        self.last = b""
        self._stream = stream
        self._headers = 0
        self._is_content = False

    @contextmanager
    def content(self, place: int, size: int) -> Iterator[Readable]:
        """A context manager for reading the contents of a file, which don't count as headers.

        Args:
            place: Their offset.
            size: Their size.

        Yields:
            The bytes.
        """
        self.seek(place)
        self._is_content = True
        yield _Content(self, size)
        self._is_content = False

    def read(self, size: int = -1) -> bytes:
        """Returns the next bytes.

        Raises:
            ConversionError: The read, or the total of headers, is too large (`bad-archive`).
        """
        if not 0 <= size <= _MAX_READ:
            raise too_much()
        if not self._is_content:
            self._headers += size
            if self._headers > _MAX_HEADERS:
                raise too_much()
        self.last = self._stream.read(size)
        return self.last

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Moves forward, and returns the position.

        Raises:
            ConversionError: The position is backwards or too far ahead for a header (`bad-archive`).
        """
        distance = offset - self._stream.tell()
        if whence != os.SEEK_SET or not 0 <= distance <= _READ_BYTES:
            raise refused("its entries overlap, or are torn apart")
        self._stream.read(distance)
        return self._stream.tell()

    def tell(self) -> int:
        return self._stream.tell()

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True


class _Content:
    """The next bytes of a stream, up to a size."""

    def __init__(self, stream: Readable, size: int) -> None:
        self._stream = stream
        self._rest = size

    def read(self, size: int, /) -> bytes:
        """Returns the next bytes, none at the end.

        Raises:
            EOFError: The stream ends before.
        """
        data = self._stream.read(min(size, self._rest))
        self._rest -= len(data)
        if self._rest and not data:
            raise EOFError("it ends in the middle")
        return data


class Inflated:
    """The decompressed contents of a gzip file, read forward.

    Python's own reader skips names and empty members at the beginning without a limit.

    Args:
        file: The file.
        spend: Called with 0 for each block of the file, to check the time.
    """

    def __init__(self, file: IO[bytes], spend: Callable[[int], None]) -> None:
        self._file = file
        self._spend = spend
        self._decoder = zlib.decompressobj(wbits=_GZIP)
        self._packed = b""
        self._place = 0

    def tell(self) -> int:
        """Returns the number of bytes read so far."""
        return self._place

    def read(self, size: int, /) -> bytes:
        """Returns the next bytes, fewer only at the end."""
        parts = []
        while size and (part := self._part(size)):
            parts.append(part)
            size -= len(part)
            self._place += len(part)
        return b"".join(parts)

    def _part(self, size: int) -> bytes:
        """Returns some of the next bytes, none at the end."""
        while True:
            self._spend(0)
            if self._decoder.eof and not self._begin_next():
                return b""
            packed = self._packed or self._file.read(_READ_BYTES)
            # At the end of the file the decoder may still hold data.
            part = self._decoder.decompress(packed, size)
            self._packed = self._decoder.unconsumed_tail
            if part:
                return part
            if not packed and not self._decoder.eof:
                raise EOFError("it ends in the middle")

    def _begin_next(self) -> bool:
        """Begins the next member of the file, and returns whether there is one; zeros may follow the last."""
        packed = self._decoder.unused_data.lstrip(b"\0")
        while not packed and (more := self._file.read(_READ_BYTES)):
            self._spend(0)
            packed = more.lstrip(b"\0")
        if packed:
            self._packed = packed
            self._decoder = zlib.decompressobj(wbits=_GZIP)
        return bool(packed)
