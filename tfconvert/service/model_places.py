"""Models that a request names by path or URL instead of uploading them; these must be below the server's roots."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tfconvert.batch import places
from tfconvert.converter.process.guard import Guard
from tfconvert.importers.archive import ArchiveLimits, check_keras, checked_parts
from tfconvert.schema.diagnostics import ConversionError, error
from tfconvert.schema.files import is_folder
from tfconvert.service import archives
from tfconvert.service.file_tree import FileTree
from tfconvert.service.model_kinds import ModelKind, recognize, shown
from tfconvert.service.storage import remove, storing

_URL = re.compile(r"([a-z][a-z0-9+.-]+)://([^/]*)((?:/.*)?)", re.IGNORECASE)
_LOCAL = ("file", "local")
# Characters for escapes, patterns, credentials or chained file systems.
_ODD = re.compile(r"[\\%?#@*\[\]]|::")


class _Place(NamedTuple):
    """A path or URL in its parts.

    Attributes:
        scheme: The scheme of a URL; empty for paths.
        host: The host or bucket.
        parts: The directories and the file.
    """

    scheme: str
    host: str
    parts: tuple[str, ...]

    def holds(self, other: _Place) -> bool:
        """Returns whether another location is this one, or below it."""
        own = self.parts
        return (self.scheme, self.host, own) == (other.scheme, other.host, other.parts[: len(own)])

    def __str__(self) -> str:
        path = "/".join(self.parts)
        return f"{self.scheme}://{self.host}/{path}".rstrip("/") if self.scheme else f"/{path}"


def check(place: str, roots: Sequence[str]) -> str:
    """Returns a path or URL in its normal form, without reading anything.

    Args:
        place: The path or URL in a request.
        roots: Paths and URLs below which it must be.

    Raises:
        ConversionError: It is not below a root (`place-not-allowed`).
    """
    parsed = _parsed(place)
    if parsed is None or not any(root is not None and root.holds(parsed) for root in map(_parsed, roots)):
        raise _not_allowed(place)
    return str(parsed)


def resolve(place: str, roots: Sequence[str], target: Path, limits: ArchiveLimits = ArchiveLimits()) -> Path:  # noqa: B008  # It is immutable.
    """Returns the path of a model that a request names.

    Args:
        place: The path or URL in the request.
        roots: Paths and URLs below which it must be, once links are followed.
        target: A directory for fetched and unpacked files, which must not exist yet.
        limits: The limits of fetching and unpacking.
    """
    allowed = check(place, roots)
    if not places.is_url(allowed):
        return _prepared(_inside(allowed, roots), target, limits)
    with storing():
        target.mkdir(0o700, parents=True)
    fetched = _fetched(allowed, target / "fetched", limits)
    model = _prepared(fetched, target / "model", limits)
    if not model.is_relative_to(target / "fetched"):
        remove(target / "fetched")
    return model


def _parsed(place: str) -> _Place | None:
    """Returns the parts of a path or URL, or `None` if it is ambiguous."""
    match = _URL.fullmatch(place)
    scheme, host, path = (match[1].lower(), match[2], match[3]) if match is not None else ("", "", place)
    if scheme in _LOCAL:
        scheme = ""
    if not scheme and (host or not path.startswith("/")):
        return None
    if scheme and _ODD.search(place):
        return None
    try:
        # Paths start with a slash, unlike entries of archives.
        parts = checked_parts(path.lstrip("/"))
    except ConversionError:
        return None
    return _Place(scheme, host, tuple(parts))


def _inside(path: str, roots: Sequence[str]) -> Path:
    """Returns a path without links.

    Raises:
        ConversionError: A link points outside the roots (`place-not-allowed`), or it is missing (`unreachable-place`).
    """
    try:
        resolved = Path(path).resolve(strict=True)
    except (OSError, RuntimeError):
        raise _nothing_at(path) from None
    for root in map(_parsed, roots):
        if root is not None and not root.scheme and resolved.is_relative_to(Path(str(root)).resolve()):
            return resolved
    raise _not_allowed(path)


def _nothing_at(place: str) -> ConversionError:
    return error("unreachable-place", f"there is nothing at {place!r}")


def _prepared(path: Path, target: Path, limits: ArchiveLimits) -> Path:
    """Returns the path for the converter: the same, or that of an unpacked or linked copy."""
    if is_folder(path):
        return path
    kind = recognize(path, path.name, takes_keras=limits.keras)
    if kind is ModelKind.KERAS:
        check_keras(path, limits)
    is_named = path.name == kind.value if kind.is_saved_model else path.suffix == kind.value
    if kind.is_archive or not is_named:
        return archives.unpack(path, target, limits, path.name)
    return path


def _fetched(url: str, target: Path, limits: ArchiveLimits) -> Path:
    """Returns a copy of the file or directory at a URL."""
    with Guard(lambda said: error("unreachable-place", f"{url}: {' '.join(said.split())}")):
        system, path = places.system_of(url)
        with storing():
            target.mkdir(0o700)
        tree = FileTree(target, limits)
        base = path.rstrip("/")
        try:
            is_file = system.info(path)["type"] != "directory"
        except FileNotFoundError:
            raise _nothing_at(url) from None
        if is_file:
            _copy(system, path, base.rpartition("/")[2], tree)
            return next(target.iterdir())
        for name in _files(system, path):
            if not name.startswith(f"{base}/"):
                raise _not_allowed(name)
            _copy(system, name, name.removeprefix(base).lstrip("/"), tree)
        return archives.find_model(target)


def _files(system: Any, path: str) -> Iterator[str]:
    for _, _, files in system.walk(path, detail=True):
        for info in files.values():
            yield str(info["name"])


def _copy(system: Any, path: str, name: str, tree: FileTree) -> None:
    place = tree.place(name, is_folder=False)
    with system.open(path, "rb") as content:
        tree.make_file(place, content)


def _not_allowed(place: str) -> ConversionError:
    return error(
        "place-not-allowed",
        f"{shown(place)} is not below a root of this server",
        hint="send the model, or ask whoever runs the server to add a root",
    )
