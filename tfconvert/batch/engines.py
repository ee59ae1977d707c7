"""Engines, which run the entries of a batch on this machine or on a Ray cluster.

An entry's model may be remote: it is fetched, converted by a task, and the result is stored; transient failures are
retried. On a cluster, places must mean the same on all machines: URLs, or paths on a shared file system.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tfconvert.batch import places
from tfconvert.batch.entries import Entry
from tfconvert.batch.pool import Pool
from tfconvert.batch.run_task import make_directory_of
from tfconvert.batch.task import Outcome, Task, TaskLimits
from tfconvert.converter.targets.output_form import form_of
from tfconvert.exporters.output_file import places_of
from tfconvert.schema.diagnostics import ConversionError, error

# Codes of transient errors.
_TRANSIENT = ("unreachable-place", "worker-lost")


class Trial(NamedTuple):
    """How to run entries.

    Attributes:
        limits: The limits of each.
        retries: The number of retries after a transient failure.
        backoff: Seconds before the first retry; they double with each one.
        reports: Whether the reports are written beside the results, as JSON.
        cache_dir: The directory of cached results for entries without their own; empty for none.
    """

    limits: TaskLimits
    retries: int = 2
    backoff: float = 1.0
    reports: bool = False
    cache_dir: str = ""


def perform(entry: Entry, trial: Trial, pool: Pool, wait: Callable[[float], object] = time.sleep) -> Outcome:
    """Converts a model, and returns the outcome; its errors affect no other model.

    Args:
        entry: The model.
        trial: How to run it.
        pool: Runs the task.
        wait: Sleeps for some seconds.
    """
    outcome = _once(entry, trial, pool)
    for attempt in range(trial.retries):
        if outcome.code not in _TRANSIENT:
            break
        wait(trial.backoff * 2**attempt)
        outcome = _once(entry, trial, pool)
    return outcome


def _once(entry: Entry, trial: Trial, pool: Pool) -> Outcome:
    begin = time.monotonic()
    try:
        with tempfile.TemporaryDirectory(prefix="tfconvert-") as temporary:
            task = _task(entry, Path(temporary), trial)
            for path in filter(None, (task.output, task.page)):
                make_directory_of(path)
            outcome = pool.run(task, trial.limits)
            if outcome.problem is None and places.is_url(entry.output):
                for part in (*outcome.summary.get("beside", ()), ""):
                    places.store(places_of(task.output, [part])[0], places.beside(entry.output, part))
                if task.report:
                    places.store(Path(task.report), report_of(entry.output))
            return outcome._replace(seconds=time.monotonic() - begin)
    except ConversionError as problem:
        return Outcome(problem.to_dict(), seconds=time.monotonic() - begin)


def _task(entry: Entry, folder: Path, trial: Trial) -> Task:
    def absolute(path: str) -> str:
        """Returns a path that is the same in the entry's directory, where the task runs."""
        return os.path.abspath(path) if path and entry.directory else path  # noqa: PTH100  # Removes `..`.

    model = os.fspath(places.fetch(entry.model, folder)) if places.is_url(entry.model) else absolute(entry.model)
    result = folder / "result" / f"model{form_of(entry.output, entry.settings).ending}"
    output = os.fspath(result) if places.is_url(entry.output) else absolute(entry.output)
    return Task(
        model,
        output,
        entry.settings,
        report_of(output) if trial.reports else "",
        absolute(entry.extras.get("report", "")),
        directory=entry.directory,
        array_name=entry.extras.get("array_name", ""),
        cache_dir=absolute(entry.extras.get("cache_dir", trial.cache_dir)),
    )


def report_of(output: str) -> str:
    """Returns the path of the report on a result."""
    return f"{output.removesuffix('.tflite')}.report.json"


def cores() -> int:
    """Returns the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run_locally(entries: Sequence[Entry], trial: Trial, workers: int) -> Iterator[tuple[Entry, Outcome]]:
    """Runs entries in processes of this machine; yields each as it ends.

    Args:
        entries: What to convert.
        trial: How to run them.
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


@cache
def _pool() -> Pool:
    """Returns the pool of this process, which is one of the cluster's."""
    return Pool()


def _perform(entry: tuple[object, ...], trial: Trial) -> Outcome:
    """Runs an entry on the machine that Ray has chosen."""
    return perform(Entry(*entry), trial, _pool())  # type: ignore[arg-type]  # It was an entry before it was sent.


def run_on_ray(
    entries: Sequence[Entry], trial: Trial, workers: int | None, address: str | None
) -> Iterator[tuple[Entry, Outcome]]:
    """Runs entries on a cluster; yields each as it ends.

    Args:
        entries: What to convert.
        trial: How to run them; a task whose worker has died is retried on another, `retries` times.
        workers: How many run at once; `None` for as many as the cluster has processors.
        address: The cluster's address, `auto` for that of this machine; `None` starts one here, for this batch.

    Raises:
        ConversionError: Ray is missing (`ray-missing`), or there is no such cluster (`no-workers`).
    """
    try:
        import ray
    except ImportError:
        raise error("ray-missing", "the engine 'ray' needs Ray", hint="pip install tfconvert[ray]") from None
    try:
        ray.init(
            address=address,
            num_cpus=workers if address is None else None,
            log_to_driver=False,
            include_dashboard=False,
            configure_logging=False,
        )
    except (ConnectionError, RuntimeError, ValueError) as problem:
        raise error("no-workers", f"can't reach the Ray cluster {address or ''}: {problem}") from None
    try:
        remote = ray.remote(num_cpus=1, max_retries=trial.retries)(_perform)
        waiting = list(reversed(entries))
        running: dict[object, Entry] = {}
        most = workers or len(waiting)
        while waiting or running:
            while waiting and len(running) < most:
                entry = waiting.pop()
                running[remote.remote(tuple(entry), trial)] = entry
            (done, *_), _ = ray.wait(list(running), num_returns=1)
            yield running.pop(done), _outcome(ray, done)
    finally:
        ray.shutdown()


def _outcome(ray: object, task: object) -> Outcome:
    try:
        outcome: Outcome = ray.get(task)  # type: ignore[attr-defined]
    except ray.exceptions.RayError as problem:  # type: ignore[attr-defined]
        text = " ".join(str(problem).split())
        return Outcome(error("worker-lost", f"its worker in the cluster has died: {text}").to_dict(), is_lost=True)
    return outcome
