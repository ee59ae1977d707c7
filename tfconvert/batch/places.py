"""Models and results elsewhere: URLs of any file system that fsspec knows, fetched and stored by copies."""

from __future__ import annotations

import contextlib
import glob
import os
import re
from pathlib import Path, PurePosixPath
from typing import Any

from tfconvert.schema.diagnostics import ConversionError, error
from tfconvert.schema.files import is_file, is_folder

# At least two letters: `C://` is a drive.
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]+://", re.IGNORECASE)


def is_url(place: str) -> bool:
    """Returns whether a string is a URL rather than a path."""
    return _SCHEME.match(place) is not None


def name_of(place: str) -> str:
    """Returns the last part of a path or URL."""
    path = _SCHEME.sub("", place) if is_url(place) else place.replace(os.sep, "/")
    return PurePosixPath(path.rstrip("/")).name


def expand(pattern: str) -> list[str]:
    """Returns the sorted paths or URLs that match a pattern; a string without `*`, `?` or `[` is returned as it is.

    Raises:
        ConversionError: The place can't be listed (`unreachable-place`), or fsspec is missing (`fsspec-missing`).
    """
    if not glob.has_magic(pattern):
        return [pattern]
    if not is_url(pattern):
        return sorted(glob.glob(pattern, recursive=True))  # noqa: PTH207  # Paths forget a slash at the end, and `./`.
    system, path = system_of(pattern)
    try:
        return sorted(system.unstrip_protocol(found) for found in system.glob(path))
    except (OSError, ValueError) as problem:
        raise _unreachable(pattern, problem) from problem


def exists(place: str) -> bool:
    """Returns whether there is a file or directory.

    Raises:
        ConversionError: It can't be reached (`unreachable-place`), or fsspec is missing (`fsspec-missing`).
    """
    if not is_url(place):
        return is_file(place) or is_folder(place)
    system, path = system_of(place)
    try:
        return bool(system.exists(path))
    except (OSError, ValueError) as problem:
        raise _unreachable(place, problem) from problem


def beside(place: str, ending: str) -> str:
    """Returns the path of a file beside a result: its extension replaces the result's.

    Args:
        place: The result's path or URL.
        ending: The extension; empty for the result itself.
    """
    if not ending:
        return place
    name = name_of(place)
    return place.removesuffix(name) + PurePosixPath(name).with_suffix(ending).name


def state_of(url: str) -> str:
    """Returns names and versions of the files at a URL, as far as its file system knows them.

    Raises:
        ConversionError: It isn't there (`unreachable-place`), or fsspec is missing (`fsspec-missing`).
    """
    system, path = system_of(url)
    try:
        names = system.find(path) or [path]
        return " ".join(f"{name}:{system.ukey(name)}" for name in sorted(names))
    except (OSError, ValueError) as problem:
        raise _unreachable(url, problem) from problem


def fetch(url: str, folder: Path) -> Path:
    """Copies a file or directory from a URL; returns the copy.

    Raises:
        ConversionError: It can't be read (`unreachable-place`), or fsspec is missing (`fsspec-missing`).
    """
    system, path = system_of(url)
    copy = folder / name_of(url)
    try:
        system.get(path, os.fspath(copy), recursive=system.isdir(path))
    except (OSError, ValueError) as problem:
        raise _unreachable(url, problem) from problem
    return copy


def store(path: Path, url: str) -> None:
    """Copies a file to a URL, under another name first, so that it appears whole.

    Raises:
        ConversionError: It can't be written (`unreachable-place`), or fsspec is missing (`fsspec-missing`).
    """
    system, target = system_of(url)
    part = f"{target}.{os.urandom(8).hex()}.part"
    try:
        with contextlib.suppress(NotImplementedError):
            system.makedirs(target.rpartition("/")[0], exist_ok=True)
        system.put(os.fspath(path), part)
        system.mv(part, target)
    except (OSError, ValueError) as problem:
        raise _unreachable(url, problem) from problem


def system_of(url: str) -> tuple[Any, str]:
    """Returns the file system of a URL, and the path in it.

    Raises:
        ConversionError: fsspec is missing (`fsspec-missing`), or doesn't know such URLs (`unreachable-place`).
    """
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        hint = "pip install tfconvert[batch], and what fsspec names for this kind of URL"
        raise error("fsspec-missing", f"{url} is a URL, for which fsspec is needed", hint=hint) from None
    try:
        system, path = url_to_fs(url)
    except (ImportError, ValueError) as problem:
        raise _unreachable(url, problem) from problem
    return system, path


def _unreachable(url: str, problem: Exception) -> ConversionError:
    return error("unreachable-place", f"{url}: {' '.join(str(problem).split())}")
