"""The service's folders below one root, which all servers of a database share."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tfconvert.converter.targets.output_form import form_of

REPORT = "report.json"
PAGE = "report.html"
LOG = "log.txt"


def result_name(settings: Mapping[str, Any]) -> str:
    """Returns the name of a job's result: its ending is that of the target.

    Args:
        settings: The job's settings.
    """
    return f"model{form_of('', settings).ending}"


class Folders:
    """The layout of the data folder.

    Args:
        data: The folder, created if it is missing; nobody else may look into it.

    Attributes:
        database: The file of the embedded database.
        incoming: Uploads that are not complete.
        models: What was uploaded, named by the SHA-256 of its bytes.
        jobs: What attempts unpack and write until they end.
        results: What succeeded: each folder appears whole.
        events: A file of progress a job.
        servers: A locked file for each server that lives on this machine.
    """

    def __init__(self, data: Path) -> None:
        self.data = data
        self.database = data / "service.db"
        self.incoming = data / "incoming"
        self.models = data / "models"
        self.jobs = data / "jobs"
        self.results = data / "results"
        self.events = data / "events"
        self.servers = data / "servers"

    def create(self) -> None:
        """Creates what is missing."""
        self.data.mkdir(mode=0o700, parents=True, exist_ok=True)
        for folder in (self.incoming, self.models, self.jobs, self.results, self.events, self.servers):
            folder.mkdir(mode=0o700, exist_ok=True)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is kept that a database would have to know."""
        return not any(any(folder.iterdir()) for folder in (self.models, self.results, self.events))

    def model(self, sha256: str) -> Path:
        """Returns where an uploaded file is."""
        return self.models / sha256

    def attempt(self, job: str, attempt: int) -> Path:
        """Returns where an attempt works: `model/` is unpacked there and `out/` written."""
        return self.jobs / job / str(attempt)

    def result(self, job: str, attempt: int) -> Path:
        """Returns the folder of what an attempt made."""
        return self.results / job / str(attempt)

    def progress(self, job: str) -> Path:
        """Returns the file of a job's events."""
        return self.events / f"{job}.jsonl"

    def lock(self, server: str) -> Path:
        """Returns the file that a server keeps locked while it lives."""
        return self.servers / f"{server}.lock"
