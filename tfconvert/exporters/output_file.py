"""Output files that are written atomically, to a temporary file that is renamed; pipes are written to directly."""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from io import BufferedWriter, FileIO
from pathlib import Path
from typing import Any, BinaryIO

from tfconvert.schema.diagnostics import ConversionError, error
from tfconvert.schema.files import is_folder, is_missing

C_SOURCES = (".c", ".cc", ".cpp", ".cxx")
C_HEADERS = (".h", ".hh", ".hpp")

Write = Callable[[BinaryIO], object]
"""Writes a file's contents."""

Parts = Mapping[str, Write]
"""The files of a result: how each is written, by the extension that replaces that of the result's name.

The result's own file has the empty extension and is the last.
"""

_STANDARD = {"/dev/stdout": 1, "/dev/stderr": 2}
_DESCRIPTOR = re.compile(r"/(?:dev|proc/self)/fd/(\d{1,9})")


def write_parts(path: str | os.PathLike[str], parts: Parts) -> None:
    """Writes a result and the files beside it, each atomically.

    Args:
        path: The result's place.
        parts: Its files.
    """
    if descriptor_of(path) is not None:
        write_whole(path, only_part(parts))
        return
    for place, write in zip(places_of(path, parts), parts.values(), strict=True):
        write_whole(place, write)


def only_part(parts: Parts) -> Write:
    """Returns the parts of a result that is a single file."""
    check_single(parts)
    return parts[""]


def check_single(endings: Iterable[str]) -> None:
    """Checks that a result is a single file, as a stream requires.

    Args:
        endings: The extensions of its files, as `Parts` has them.

    Raises:
        ConversionError: There are other files (`wrong-option`).
    """
    beside = ", ".join(filter(None, endings))
    if beside:
        raise error(
            "wrong-option",
            f"the result is more than one file ({beside} beside it), which need a path",
            hint="save it to a path; or choose other places of weights and state (--mlir-weights, --mlir-state), "
            "embed the weights (--iree-embed-weights), and keep no text",
        )


def places_of(path: str | os.PathLike[str], endings: Iterable[str]) -> list[Path]:
    """Returns the paths of a result's files.

    Args:
        path: The result's place.
        endings: The extensions of the files, as `Parts` has them.

    Raises:
        ConversionError: Two files would have the same path (`wrong-option`).
    """
    _check_given(path)
    places = [Path(path).with_suffix(ending) if ending else Path(path) for ending in endings]
    if len(set(places)) < len(places):
        raise error(
            "wrong-option",
            f"the result can't be {os.fspath(path)}: that is another of the files beside it",
            hint="choose another extension",
        )
    return places


def write_whole(path: str | os.PathLike[str], write: Write) -> None:
    """Writes a file as `whole_file` does.

    Args:
        path: The file's place.
        write: Writes the contents.

    Raises:
        ConversionError: It can't be written there (`output-not-writable`).
    """
    with whole_file(path) as stream:
        write(stream)


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Yields a file beside its place, which is moved there if all goes well; pipes and terminals are written directly.

    A link is replaced and its target left unchanged, unless that is a pipe or a terminal.

    Args:
        path: The file's place.

    Raises:
        ConversionError: It can't be written there (`output-not-writable`).
    """
    _check_given(path)
    descriptor = descriptor_of(path)
    target = Path(path)
    if "\0" in os.fspath(path):
        raise _not_writable(os.fspath(path), "no file can have this name")
    try:
        if descriptor is not None:
            with os.fdopen(os.dup(descriptor), "wb") as stream:
                yield stream
        elif _is_device(target):
            with target.open("wb") as stream:
                yield stream
        else:
            with _beside(target) as stream:
                yield stream
    except OSError as problem:
        hint = "the program that reads it has ended" if problem.errno == errno.EPIPE else _HINT
        raise _not_writable(os.fspath(path), problem.strerror or str(problem), hint) from problem
    except UnicodeError as problem:
        raise _not_writable(os.fspath(path), "no file can have this name") from problem


def check_directory(path: str | os.PathLike[str]) -> None:
    """Checks that the directory of a file to be written exists, before the work whose result it is.

    Args:
        path: The file's place.

    Raises:
        ConversionError: It doesn't, or the path is a directory itself (`output-not-writable`).
    """
    _check_given(path)
    directory = Path(path).parent
    if is_folder(path):
        raise _not_writable(os.fspath(path), os.strerror(errno.EISDIR))
    if not is_folder(directory):
        number = errno.ENOENT if is_missing(directory) else errno.ENOTDIR
        raise _not_writable(os.fspath(path), os.strerror(number))


def _check_given(path: str | os.PathLike[str]) -> None:
    if not os.fspath(path):
        raise error("wrong-option", "the path of the output is empty", hint="check the variable that it comes from")


def descriptor_of(path: str | os.PathLike[str]) -> int | None:
    """Returns which of the process's file descriptors a path names, `None` if it is a path of a file.

    The target of such a path can't be replaced and can't always be opened again: it may be an anonymous pipe, or a file
    that another process also writes to.
    """
    text = os.fspath(path)
    if text in _STANDARD:
        return _STANDARD[text]
    match = _DESCRIPTOR.fullmatch(text)
    return int(match[1]) if match is not None else None


def is_c_source(path: str | os.PathLike[str]) -> bool:
    """Returns whether a file name has an extension of C or C++, which means that a model is written as an array."""
    return os.fspath(path).lower().endswith((*C_SOURCES, *C_HEADERS))


class _InPieces(FileIO):
    """A file that is written a piece at a time.

    Linux caches a write in pages as large as it is. In a virtual machine the largest ones may be memory that the host
    has to provide first: a model of 114 MB took 170 ms then, and takes 64 ms in pieces.
    """

    def write(self, data: Any) -> int:
        return super().write(memoryview(data)[:_PIECE])


@contextmanager
def _beside(target: Path) -> Iterator[BinaryIO]:
    # A short name that is unique among threads, processes and containers.
    beside = target.with_name(f".tfconvert-{os.urandom(8).hex()}.part")
    # The mode of a new file is left to the umask, as for any program's output.
    # Only Windows has text files, which are read with other bytes than were written.
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    descriptor = os.open(beside, flags, 0o666)
    try:
        with BufferedWriter(_InPieces(descriptor, "wb")) as stream:
            yield stream
        beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)


def _is_device(path: Path) -> bool:
    """Returns whether a path is something to write into rather than to replace: a pipe, a terminal."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return False  # A dangling or circular link is replaced like any other.
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


# Bytes that are written at once.
_PIECE = 1 << 20

_HINT = "check that the directory exists and is writable, and that the disk has space left"


def _not_writable(path: str, reason: str, hint: str = _HINT) -> ConversionError:
    return error("output-not-writable", f"can't write {path}: {reason}", hint=hint)
