"""An attempt at a job: unpacks the model, completes the settings, and keeps the server's paths out of the output.

All happens in a folder of the attempt's own; whoever has lost the job by then has not written where somebody else does.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from tfconvert.batch.job import Ending, Job
from tfconvert.service import archives, model_places
from tfconvert.service.config import ServiceConfig
from tfconvert.service.file_tree import ArchiveLimits
from tfconvert.service.folders import LOG, PAGE, REPORT, Folders, result_name
from tfconvert.service.job_state import JobRecord
from tfconvert.service.result_files import remove
from tfconvert.service.storage import storing

_TEXTS = (REPORT, PAGE, LOG)


class Attempt:
    """The folder of an attempt, as a context manager: it is gone afterwards.

    Args:
        folders: The data folder.
        config: The server's settings.
        job: The job, as it was claimed.
    """

    def __init__(self, folders: Folders, config: ServiceConfig, job: JobRecord) -> None:
        self._folders = folders
        self._config = config
        self._job = job
        self._folder = folders.attempt(job.id, job.attempt)
        self._out = self._folder / "out"
        self._log = -1

    def __enter__(self) -> Attempt:
        """Creates the folder."""
        with storing():
            remove(self._folder)
            self._out.mkdir(mode=0o700, parents=True)
        return self

    def __exit__(self, *problem: object) -> None:
        """Removes the folder."""
        if self._log >= 0:
            os.close(self._log)
        remove(self._folder)
        try:
            self._folder.parent.rmdir()
        except OSError:
            return  # Somebody else is at it, or the janitor will be.

    def prepare(self) -> Job:
        """Returns what a process is to do."""
        limits = ArchiveLimits.of(self._config)
        target = self._folder / "model"
        job = self._job
        if job.place:
            model = model_places.resolve(job.place, self._config.roots, target, limits)
        else:
            model = archives.unpack(self._folders.model(job.model_sha256), target, limits, job.model_name)
        return Job(
            os.fspath(model),
            os.fspath(self._out / result_name(job.settings)),
            self._settings(limits),
            os.fspath(self._out / REPORT),
            os.fspath(self._out / PAGE),
            os.fspath(self._out / LOG),
        )

    def note(self, text: str) -> None:
        """Appends a line to the log; without room on the disk it is lost."""
        try:
            if self._log < 0:
                self._log = os.open(self._out / LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            os.write(self._log, f"{text}\n".encode(errors="backslashreplace"))
        except OSError:
            return

    def cleaned(self, ending: Ending) -> Ending:
        """Takes the paths of this server out of what the attempt has written; returns its ending without them."""
        for path in (self._out / name for name in _TEXTS):
            if path.exists():
                with storing():
                    text = path.read_bytes()
                    hidden = self._hidden(text)
                    if hidden != text:
                        path.write_bytes(hidden)
        if ending.problem is None:
            return ending
        return ending._replace(problem=json.loads(self._hidden(json.dumps(ending.problem).encode())))

    def _hidden(self, text: bytes) -> bytes:
        for name in self._names:
            text = text.replace(name, b"")
        return text.replace(self._job.model_sha256.encode(), b"model") if self._job.model_sha256 else text

    @cached_property
    def _names(self) -> list[bytes]:
        """The names of the server's folders, as text and in JSON, an attempt's before those that it is in."""
        folders = (self._folder, self._folders.data)
        plain = [os.fspath(path) for each in folders for path in (each, each.absolute(), each.resolve())]
        shown = dict.fromkeys(name for path in plain for name in (path, json.dumps(path)[1:-1]))
        return [name.encode(errors="backslashreplace") + b"/" for name in shown]

    def _settings(self, limits: ArchiveLimits) -> Mapping[str, Any]:
        """Returns the settings of the job with what the server adds: its plug-ins, and where the samples are."""
        settings = dict(self._job.settings)
        config = self._config
        if config.patterns:
            settings["patterns"] = [_absolute(path) for path in config.patterns]
        if config.composites:
            settings["composites"] = [_absolute(path) for path in config.composites]
        if config.op_defs:
            settings["op_defs"] = _absolute(config.op_defs)
        if self._job.calibration_sha256:
            samples = self._folders.model(self._job.calibration_sha256)
            paths = archives.unpack_samples(samples, self._folder / "samples", limits)
            quantize = settings.get("quantize", "int8")
            given = quantize if isinstance(quantize, dict) else {"mode": quantize}
            settings["quantize"] = {**given, "samples": paths}
        return settings


def _absolute(path: str) -> str:
    return os.fspath(Path(path).absolute())
