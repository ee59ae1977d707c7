"""Jobs: conversions as plain data, which go to other processes and machines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


class JobLimits(NamedTuple):
    """The limits of a job; 0 means no limit.

    Attributes:
        seconds: Wall time.
        memory: Bytes of memory that it allocates; files that are mapped don't count.
        files: Files that are open at once.
        output: Bytes of any file that it writes.
    """

    seconds: float = 600.0
    memory: int = 8 << 30
    files: int = 256
    output: int = 8 << 30


class Job(NamedTuple):
    """A conversion to a file.

    Attributes:
        model: The path of the model.
        output: The path of the result; the file appears whole or not at all.
        settings: The settings as data (`tfconvert.settings.data`).
        report: The path of the report as JSON, empty for none.
        page: The path of the report as a page, empty for none.
        log: The path of what the process prints, empty to drop that.
    """

    model: str
    output: str
    settings: Mapping[str, Any] = {}
    report: str = ""
    page: str = ""
    log: str = ""


class Ending(NamedTuple):
    """How a job ended.

    Attributes:
        problem: What went wrong, as `ConversionError.to_dict` has it; `None` if nothing did.
        summary: The size of the result, its operators and how long the conversion took, and the endings of the files
            beside it (`beside`); empty after a failure.
        seconds: Wall time, with all that is around the conversion.
        peak: The most memory that the process had, in bytes; 0 if unknown.
        is_lost: Whether the process ended before it said anything: trying again may help.
    """

    problem: Mapping[str, Any] | None
    summary: Mapping[str, Any] = {}
    seconds: float = 0.0
    peak: int = 0
    is_lost: bool = False

    @property
    def code(self) -> str:
        """The code of what went wrong, empty if nothing did."""
        return str(self.problem["errors"][0]["code"]) if self.problem is not None else ""

    @property
    def message(self) -> str:
        """The error in a sentence, empty if there is none."""
        return str(self.problem["errors"][0]["message"]) if self.problem is not None else ""
