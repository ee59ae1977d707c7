"""The key of the cache: jobs with equal ones have equal results."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

from tfconvert.batch import places
from tfconvert.importers.source import Source
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.versions import own_version
from tfconvert.service.config import ServiceConfig
from tfconvert.service.job_state import Submission


class CacheKeys:
    """Makes keys that are equal if owner, model, settings, plug-ins and version are.

    Args:
        config: The server's settings; the files of its plug-ins are read once.
    """

    def __init__(self, config: ServiceConfig) -> None:
        plugins = [*config.patterns, *config.composites, *filter(None, [config.op_defs])]
        self._server = (own_version(), *(_digest(path) for path in plugins))

    def key(self, submission: Submission) -> str:
        """Returns the key of a job; a model that can't be looked at is different each time."""
        parts = (
            *self._server,
            submission.owner,
            submission.model_sha256,
            # What a file is called decides how it is read.
            Path(submission.model_name).suffix if submission.model_sha256 else "",
            submission.calibration_sha256,
            submission.place,
            _state_of(submission.place) if submission.place else "",
            json.dumps(submission.settings, sort_keys=True),
        )
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _state_of(place: str) -> str:
    """Returns what changes when a model elsewhere does."""
    try:
        if places.is_url(place):
            return places.state_of(place)
        stats = [(os.fspath(path), path.stat()) for path in Source(place).files()]
    except (OSError, ConversionError):
        return os.urandom(16).hex()  # Converting tells what is wrong with it.
    return " ".join(f"{path}:{stat.st_size}:{stat.st_mtime_ns}:{stat.st_ctime_ns}" for path, stat in stats)


def _digest(path: str) -> str:
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError:
        return os.urandom(16).hex()
