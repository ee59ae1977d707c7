"""Uploads: written as they arrive, named by their content once complete, removed otherwise."""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import NamedTuple

from tfconvert.schema.diagnostics import error
from tfconvert.service.folders import Folders
from tfconvert.service.storage import storing, sync

# Parts that are written as they are; more are joined first.
_MAX_PARTS = 64


class Upload(NamedTuple):
    """An uploaded file.

    Attributes:
        sha256: The digest of its bytes, and its name below `models/`.
        size: Its bytes.
    """

    sha256: str
    size: int


class Incoming:
    """An upload in flight, as a context manager: whatever is not kept is gone afterwards.

    Args:
        folders: The service's folders.
        most: Bytes that it may have.
        what: What it is, for messages.
    """

    def __init__(self, folders: Folders, most: int, what: str = "model") -> None:
        self._folders = folders
        self._folder = folders.incoming / secrets.token_hex(16)
        self._part = self._folder / f"{what}.part"
        self._most = most
        self._what = what
        self._digest = hashlib.sha256()
        self._descriptor = -1
        # A thread may be writing when the upload breaks off; the descriptor's number is somebody else's by then.
        self._turn = threading.Lock()
        self.size = 0

    def __enter__(self) -> Incoming:
        """Creates the file."""
        with ExitStack() as undo:
            undo.callback(self.discard)
            with storing():
                self._folder.mkdir(0o700)
                self._descriptor = os.open(self._part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            undo.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Removes what was not kept."""
        self.discard()

    def write(self, parts: Sequence[bytes | memoryview]) -> None:
        """Appends bytes, as they came in.

        Raises:
            ConversionError: They are too many (`upload-too-large`), or can't be written (`storage-failed`).
        """
        self.size += sum(map(len, parts))
        if self.size > self._most:
            raise error(
                "upload-too-large",
                f"the {self._what} has more than {self._most} bytes",
                hint="pack it, or name a place that the server can read",
            )
        if len(parts) > _MAX_PARTS:
            parts = [b"".join(parts)]
        for part in parts:
            self._digest.update(part)
        with self._turn, storing():
            written = os.writev(self._descriptor, parts) if parts else 0
            for part in parts:
                rest = memoryview(part)[written:]
                written = max(written - len(part), 0)
                while rest:
                    rest = rest[os.write(self._descriptor, rest) :]

    def keep(self) -> Upload:
        """Moves the complete file to where jobs find it, in a way that outlives a loss of power."""
        upload = Upload(self._digest.hexdigest(), self.size)
        with self._turn, storing():
            os.fsync(self._descriptor)
            # An equal file is replaced: what looks at its age must not take it for one that nobody needs any more.
            self._part.replace(self._folders.model(upload.sha256))
            sync(self._folders.models)
        return upload

    def discard(self) -> None:
        """Removes what was not kept."""
        with self._turn:
            descriptor, self._descriptor = self._descriptor, -1
            if descriptor >= 0:
                os.close(descriptor)
        shutil.rmtree(self._folder, ignore_errors=True)
