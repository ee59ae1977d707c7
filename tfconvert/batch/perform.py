"""Converts a model of a batch, wherever it is: fetches it, runs the job, stores the result, tries again."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tfconvert.batch import places
from tfconvert.batch.entries import Entry
from tfconvert.batch.job import Ending, Job, JobLimits
from tfconvert.batch.pool import Pool
from tfconvert.batch.run_job import check_place
from tfconvert.converter.targets.output_form import form_of
from tfconvert.exporters.output_file import places_of
from tfconvert.schema.diagnostics import ConversionError

# Codes of failures that may be over when it is tried again.
_PASSING = ("unreachable-place", "worker-lost")


class Trial(NamedTuple):
    """How to run entries.

    Attributes:
        limits: What each may use.
        retries: How often what may be over when it is tried again is tried again.
        backoff: Seconds before the first time; twice as many before each further one.
        reports: Whether the reports are written beside the results, as JSON.
    """

    limits: JobLimits
    retries: int = 2
    backoff: float = 1.0
    reports: bool = False


def perform(entry: Entry, trial: Trial, pool: Pool, wait: Callable[[float], object] = time.sleep) -> Ending:
    """Converts a model, and returns how that ended; whatever is wrong with it concerns no other.

    Args:
        entry: The model.
        trial: How.
        pool: Runs the job.
        wait: Waits for some seconds.
    """
    ending = _once(entry, trial, pool)
    for attempt in range(trial.retries):
        if ending.code not in _PASSING:
            break
        wait(trial.backoff * 2**attempt)
        ending = _once(entry, trial, pool)
    return ending


def _once(entry: Entry, trial: Trial, pool: Pool) -> Ending:
    begin = time.monotonic()
    try:
        with tempfile.TemporaryDirectory(prefix="tfconvert-") as temporary:
            job = _job(entry, Path(temporary), trial)
            check_place(job)
            ending = pool.run(job, trial.limits)
            if ending.problem is None and places.is_url(entry.output):
                for part in (*ending.summary.get("beside", ()), ""):
                    places.store(places_of(job.output, [part])[0], places.beside(entry.output, part))
                if job.report:
                    places.store(Path(job.report), report_of(entry.output))
            return ending._replace(seconds=time.monotonic() - begin)
    except ConversionError as problem:
        return Ending(problem.to_dict(), seconds=time.monotonic() - begin)


def _job(entry: Entry, folder: Path, trial: Trial) -> Job:
    model = os.fspath(places.fetch(entry.model, folder)) if places.is_url(entry.model) else entry.model
    result = folder / "result" / f"model{form_of(entry.output, entry.settings).ending}"
    output = os.fspath(result) if places.is_url(entry.output) else entry.output
    return Job(model, output, entry.settings, report_of(output) if trial.reports else "")


def report_of(output: str) -> str:
    """Returns where the report on a result goes."""
    return f"{output.removesuffix('.tflite')}.report.json"
