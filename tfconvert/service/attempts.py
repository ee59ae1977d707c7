"""An attempt at a job: unpacks the model and completes the settings.

It works in a directory of its own, so that an attempt that has lost its lease never overwrites another's files. The
conversion gets paths relative to it: no text shows where the server keeps its files.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tfconvert.batch.job import Job
from tfconvert.service import archives, model_places
from tfconvert.service.config import ServiceConfig
from tfconvert.service.file_tree import ArchiveLimits
from tfconvert.service.folders import LOG, PAGE, REPORT, Folders, result_name
from tfconvert.service.job_state import JobRecord
from tfconvert.service.result_files import remove
from tfconvert.service.storage import storing


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
            return  # Another attempt works there, or the janitor removes it.

    def prepare(self) -> Job:
        """Unpacks the model, and returns the task for a process."""
        limits = ArchiveLimits.of(self._config)
        target = self._folder / "model"
        out = Path("out")
        job = self._job
        if job.place:
            model = model_places.resolve(job.place, self._config.roots, target, limits)
        else:
            model = archives.unpack(self._folders.model(job.model_sha256), target, limits, job.model_name)
        return Job(
            self._relative(model),
            os.fspath(out / result_name(job.settings)),
            self._settings(limits),
            os.fspath(out / REPORT),
            os.fspath(out / PAGE),
            os.fspath(out / LOG),
            os.fspath(self._folder),
        )

    def note(self, text: str) -> None:
        """Appends a line to the log; on a full disk it is lost."""
        try:
            if self._log < 0:
                self._log = os.open(self._out / LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            os.write(self._log, f"{text}\n".encode(errors="backslashreplace"))
        except OSError:
            return

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
            settings["quantize"] = {**given, "samples": list(map(self._relative, paths))}
        return settings

    def _relative(self, path: str | os.PathLike[str]) -> str:
        """Returns a path from the attempt's directory on, or as it is if it lies elsewhere."""
        place = Path(path)
        return os.fspath(place.relative_to(self._folder) if place.is_relative_to(self._folder) else place)


def _absolute(path: str) -> str:
    return os.fspath(Path(path).absolute())
