"""The key of the cache: jobs with equal ones have equal results."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from tfconvert.batch import places
from tfconvert.batch.cache_key import cache_key, is_run
from tfconvert.converter.targets.output_form import form_of
from tfconvert.importers.source import Source
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.service.config import ServiceConfig
from tfconvert.service.job_state import Submission


class CacheKeys:
    """Makes keys that are equal if owner, model, settings, plug-ins and versions are.

    Args:
        config: The server's settings; the files of its plug-ins are read once.
    """

    def __init__(self, config: ServiceConfig) -> None:
        plugins = [*config.patterns, *config.composites, *filter(None, [config.op_defs])]
        self._plugins = [_digest(path) for path in plugins]

    def key(self, submission: Submission) -> str:
        """Returns the key of a job; that of a model that can't be read is different each time."""
        inputs = (
            self._plugins,
            submission.owner,
            submission.model_sha256,
            # The ending of a file's name decides how it is read.
            Path(submission.model_name).suffix if submission.model_sha256 else "",
            submission.calibration_sha256,
            submission.place,
            _state_of(submission.place) if submission.place else "",
        )
        settings = submission.settings
        return cache_key(form_of("", settings), settings, inputs, is_run=is_run(settings))


def _state_of(place: str) -> str:
    """Returns names, sizes and times of the files of a model elsewhere."""
    try:
        if places.is_url(place):
            return places.state_of(place)
        stats = [(os.fspath(path), path.stat()) for path in Source(place).files()]
    except (OSError, ConversionError):
        return os.urandom(16).hex()  # Converting reports what is wrong with it.
    return " ".join(f"{path}:{stat.st_size}:{stat.st_mtime_ns}:{stat.st_ctime_ns}" for path, stat in stats)


def _digest(path: str) -> str:
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError:
        return os.urandom(16).hex()
