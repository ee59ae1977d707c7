"""Engines: what runs the entries of a batch, on this machine or on others."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed

from tfconvert.batch.entries import Entry
from tfconvert.batch.job import Ending
from tfconvert.batch.perform import Trial, perform
from tfconvert.batch.pool import Pool

ENGINES = ("local", "ray")


def cores() -> int:
    """Returns how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run_locally(entries: Sequence[Entry], trial: Trial, workers: int) -> Iterator[tuple[Entry, Ending]]:
    """Runs entries in processes of this machine; yields each as it ends.

    Args:
        entries: What to convert.
        trial: How.
        workers: How many run at once.
    """
    with Pool() as pool:
        pool.start()
        with ThreadPoolExecutor(workers) as threads:
            tasks = {threads.submit(perform, entry, trial, pool): entry for entry in entries}
            try:
                for task in as_completed(tasks):
                    yield tasks[task], task.result()
            finally:
                for task in tasks:
                    task.cancel()
                pool.stop()
