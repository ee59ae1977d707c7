"""The upload of a model: its file, or an archive of its files that is made while it is read."""

from __future__ import annotations

import io
import os
import tarfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from tfconvert.importers.source import Source
from tfconvert.schema.diagnostics import ConversionError, error

_BLOCK = tarfile.BLOCKSIZE
_END = bytes(2 * _BLOCK)


class Member(NamedTuple):
    """A file of an archive.

    Attributes:
        name: Its name in the archive.
        path: Where it is.
        size: Its bytes.
    """

    name: str
    path: Path
    size: int

    @property
    def header(self) -> bytes:
        """Its header: nothing that differs from machine to machine."""
        info = tarfile.TarInfo(self.name)
        info.size = self.size
        return info.tobuf(tarfile.PAX_FORMAT)

    @property
    def padding(self) -> int:
        """How many bytes follow it."""
        return -self.size % _BLOCK


class TarStream(io.RawIOBase):
    """An archive of files, never there as a whole; the same files give the same bytes.

    Args:
        members: The files.
    """

    def __init__(self, members: Sequence[Member]) -> None:
        super().__init__()
        self._members = sorted(members)
        self.size = sum(len(each.header) + each.size + each.padding for each in members) + len(_END)
        self._position = 0
        self._rest = b""
        self._blocks = self._read_members()

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        """Returns the next bytes."""
        size = self.size if size < 0 else size
        found = bytearray()
        while len(found) < size:
            if not self._rest:
                self._rest = next(self._blocks, b"")
                if not self._rest:
                    break
            part, self._rest = self._rest[: size - len(found)], self._rest[size - len(found) :]
            found += part
        self._position += len(found)
        return bytes(found)

    def tell(self) -> int:
        """Returns how many bytes were read."""
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Moves to the start or to the end, which is all that a sender needs."""
        if offset:
            raise io.UnsupportedOperation("an archive is read from the start")
        if whence == os.SEEK_END:
            self._blocks, self._position = iter(()), self.size
        elif whence == os.SEEK_SET:
            self._blocks, self._position = self._read_members(), 0
        self._rest = b""
        return self._position

    def _read_members(self) -> Iterator[bytes]:
        for member in self._members:
            yield member.header
            left = member.size
            with member.path.open("rb") as file:
                while left:
                    block = file.read(min(left, 1 << 18))
                    if not block:
                        raise error("unreadable-file", f"{member.path} has become shorter while it was sent")
                    left -= len(block)
                    yield block
            if member.padding:
                yield bytes(member.padding)
        yield _END


class Packed(NamedTuple):
    """A file that can be sent.

    Attributes:
        name: What it is called.
        stream: Its contents; it can be read again from the start.
    """

    name: str
    stream: BinaryIO | TarStream


def pack_model(path: str | os.PathLike[str]) -> Packed:
    """Returns the upload of a model: a file as it is, the files of a directory as an archive.

    Raises:
        ConversionError: There is no such model, or its files can't be read (`model-not-found`, `unreadable-file`).
    """
    place = Path(path)
    files = Source(place).files()
    if place.is_file() and len(files) <= 1:
        return Packed(place.name, _opened(place))
    if not files:
        raise error(
            "model-not-found",
            f"there is no model at {place}",
            hint="name a SavedModel directory, or a file that tfconvert takes",
        )
    root = Path(os.path.commonpath([file.parent for file in files]))
    name = place.name if place.is_dir() else place.stem
    return Packed(f"{name or place.resolve().name}.tar", TarStream(_members(files, root)))


def pack_samples(paths: Sequence[str | os.PathLike[str]]) -> Packed:
    """Returns the upload of files of samples: one as it is, several as an archive.

    Raises:
        ConversionError: A file can't be read, or no file is given (`no-samples`, `unreadable-file`).
    """
    files: list[Path] = []
    for path in map(Path, paths):
        files += sorted(path.glob("*.np[yz]")) if path.is_dir() else [path]
    if not files:
        raise error("no-samples", "there are no samples to calibrate with")
    if len(files) == 1:
        return Packed(files[0].name, _opened(files[0]))
    # Their order is that in which they were named, whatever they are called.
    members = [Member(f"{at:06}_{file.name}", file, _size(file)) for at, file in enumerate(files)]
    return Packed("samples.tar", TarStream(members))


def is_array(value: Any) -> bool:
    """Returns whether a value is an array or a tensor of any library."""
    return hasattr(value, "shape") and hasattr(value, "dtype")


def pack_arrays(samples: Any) -> Packed:
    """Returns the upload of samples in memory: an array as `.npy`, arrays by input name as `.npz`.

    Raises:
        ConversionError: An array has Python objects (`wrong-sample`).
    """
    stream = io.BytesIO()
    try:
        if not isinstance(samples, Mapping):
            np.save(stream, np.asarray(samples), allow_pickle=False)
        else:
            # Not `numpy.savez`, whose parameters are no names of arrays.
            with zipfile.ZipFile(stream, "w") as archive:
                for name, array in samples.items():
                    with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                        np.save(file, np.asarray(array), allow_pickle=False)
    except ValueError as problem:
        raise error("wrong-sample", f"the samples can't be sent: {problem}") from None
    stream.seek(0)
    return Packed("samples.npz" if isinstance(samples, Mapping) else "samples.npy", stream)


def _members(files: Sequence[Path], root: Path) -> list[Member]:
    return [Member(f"model/{file.relative_to(root).as_posix()}", file, _size(file)) for file in dict.fromkeys(files)]


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError as problem:
        raise _unreadable(file, problem) from None


def _opened(file: Path) -> BinaryIO:
    try:
        return file.open("rb")
    except OSError as problem:
        raise _unreadable(file, problem) from None


def _unreadable(file: Path, problem: OSError) -> ConversionError:
    return error("unreadable-file", f"can't read {file}: {problem.strerror}")
