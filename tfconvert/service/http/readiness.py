"""The checks that `/readyz` reports: each is a row of `Service.checks`."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from tfconvert.schema.diagnostics import ConversionError
from tfconvert.service.database.connection import Database

_OK = "ok"


class Check(NamedTuple):
    """A check of the server.

    Attributes:
        problem: Returns the problem in a few words, without paths; an empty string if all is well.
        is_needed: Whether jobs can't be taken while there is a problem; it is only reported otherwise.
    """

    problem: Callable[[], str]
    is_needed: bool = True


class Readiness(NamedTuple):
    """The results of all checks.

    Attributes:
        checks: By the name of the check, its problem or `ok`.
        missing: Those that keep the server from taking jobs.
    """

    checks: Mapping[str, str]
    missing: Mapping[str, str]


def run_checks(checks: Mapping[str, Check]) -> Readiness:
    """Returns the results of checks."""
    problems = {name: check.problem() for name, check in checks.items()}
    missing = {name: problem for name, problem in problems.items() if problem and checks[name].is_needed}
    return Readiness({name: problem or _OK for name, problem in problems.items()}, missing)


def database_problem(database: Database) -> str:
    """Returns why a database doesn't answer, or an empty string."""
    try:
        database.check()
    except ConversionError as problem:
        return problem.code
    return ""


def disk_problem(folder: Path, min_free_bytes: int) -> str:
    """Returns why files can't be written, or an empty string.

    Args:
        folder: A directory on the disk.
        min_free_bytes: The number of bytes that must be free.
    """
    try:
        free = shutil.disk_usage(folder).free
    except OSError:
        return "away"
    return "" if free >= min_free_bytes else "full"
