"""The engine `ray`: entries run as tasks of a Ray cluster, in processes of its workers' machines.

Places must mean the same on all of its machines: URLs, or paths of a file system that they share.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

from tfconvert.batch.entries import Entry
from tfconvert.batch.job import Ending
from tfconvert.batch.perform import Trial, perform
from tfconvert.batch.pool import Pool
from tfconvert.schema.diagnostics import error


@cache
def _pool() -> Pool:
    """Returns the pool of this process, which is one of the cluster's."""
    return Pool()


def _task(entry: tuple[object, ...], trial: Trial) -> Ending:
    """Runs an entry on the machine that Ray has chosen."""
    return perform(Entry(*entry), trial, _pool())  # type: ignore[arg-type]  # It was an entry before it was sent.


def run_on_ray(
    entries: Sequence[Entry], trial: Trial, workers: int | None, address: str | None
) -> Iterator[tuple[Entry, Ending]]:
    """Runs entries on a cluster; yields each as it ends.

    Args:
        entries: What to convert.
        trial: How; a task whose worker has died is run again on another, as often as `retries` says.
        workers: How many run at once; `None` for as many as the cluster has processors for.
        address: The cluster's, `auto` for the one of this machine; `None` starts one here, which ends with the batch.

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
        remote = ray.remote(num_cpus=1, max_retries=trial.retries)(_task)
        waiting = list(reversed(entries))
        running: dict[object, Entry] = {}
        most = workers or len(waiting)
        while waiting or running:
            while waiting and len(running) < most:
                entry = waiting.pop()
                running[remote.remote(tuple(entry), trial)] = entry
            (done, *_), _ = ray.wait(list(running), num_returns=1)
            yield running.pop(done), _ending(ray, done)
    finally:
        ray.shutdown()


def _ending(ray: object, task: object) -> Ending:
    try:
        ending: Ending = ray.get(task)  # type: ignore[attr-defined]
    except ray.exceptions.RayError as problem:  # type: ignore[attr-defined]
        text = " ".join(str(problem).split())
        return Ending(error("worker-lost", f"its worker in the cluster has died: {text}").to_dict(), is_lost=True)
    return ending
