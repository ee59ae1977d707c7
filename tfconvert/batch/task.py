"""Tasks: conversions as plain data, which are sent to other processes and machines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

CANCELLED = "job-cancelled"
"""The code of the error of a task that was cancelled."""


class TaskLimits(NamedTuple):
    """The limits of a task; 0 means no limit.

    Attributes:
        seconds: Wall time.
        memory: Bytes of memory that all of its processes allocate; files that are mapped don't count.
        files: Files that are open at once, in each of its processes.
        output: Bytes of any file that it writes; in a sandbox, of all of them together, also temporary ones.
        processes: Processes that run at once.
    """

    seconds: float = 600.0
    memory: int = 8 << 30
    files: int = 256
    output: int = 8 << 30
    processes: int = 64


class Task(NamedTuple):
    """A conversion to a file.

    Attributes:
        model: The path of the model.
        output: The path of the result, which is written atomically; empty to write only the page of the report that
            exists at `report`.
        settings: The settings as data (`tfconvert.settings.data`).
        report: The path of the report as JSON, empty for none.
        page: The path of the report as a page, empty for none.
        log: The path of the log of what the process prints, empty for none.
        directory: The working directory, which relative paths start from; empty for that of the pool.
        array_name: The name of a C array; empty for one that follows from the file's name.
        cache_dir: The directory of cached results; empty for none.
        name: What the report calls the model; empty for its path.
        is_served: Whether it is for a client of a service. The result is a file then, and the trace of an internal
            error is in `Outcome.trace` rather than in the log, since its paths are not for clients.
        is_confined: Whether it runs in a sandbox, where it can read `directory` and the model, and write only to the
            directory of the result and one for temporary files.
        readable: Files and directories that it can read besides. Errors don't name the directories that they are in.
    """

    model: str
    output: str
    settings: Mapping[str, Any] = {}
    report: str = ""
    page: str = ""
    log: str = ""
    directory: str = ""
    array_name: str = ""
    cache_dir: str = ""
    name: str = ""
    is_served: bool = False
    is_confined: bool = False
    readable: Sequence[str] = ()


class Outcome(NamedTuple):
    """How a task ended.

    Attributes:
        problem: The error, as `ConversionError.to_dict` returns it, or `None`.
        summary: The size of the result, its operators and how long the conversion took, the extensions of the files
            beside it (`beside`), its fidelity, its largest difference where it was verified, the verdicts on
            accelerators, and whether it was cached; empty after a failure.
        seconds: Wall time, including the overhead.
        peak: The peak memory of the process, in bytes; 0 if unknown.
        is_lost: Whether the process ended without an answer: a retry may help.
        trace: The trace of an internal error of a task for a client.
    """

    problem: Mapping[str, Any] | None
    summary: Mapping[str, Any] = {}
    seconds: float = 0.0
    peak: int = 0
    is_lost: bool = False
    trace: str = ""

    @property
    def code(self) -> str:
        """The code of the error, or empty."""
        return str(self.problem["errors"][0]["code"]) if self.problem is not None else ""

    @property
    def message(self) -> str:
        """The message of the error, or empty."""
        return str(self.problem["errors"][0]["message"]) if self.problem is not None else ""
