"""Makes the pages of reports when they are requested: few at a time, and one of each client."""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor

from tfconvert.service.http.problems import TryLaterError
from tfconvert.service.jobs import JobRecord
from tfconvert.service.workers import WorkerPool

# Maximum number of pages that a client waits for.
_MAX_WAITING = 16

_LOG = logging.getLogger(__name__)


class PageQueue:
    """The pages that are made now or wait for their turn; used in the event loop only.

    Its threads are its own, since uploads need those of the event loop.

    Args:
        workers: What makes the pages.
        most: The number of pages that are made at a time.
    """

    def __init__(self, workers: WorkerPool, most: int) -> None:
        self._workers = workers
        self._threads = ThreadPoolExecutor(most, "tfconvert-page")
        self._turns = asyncio.Semaphore(most)
        self._tasks: dict[str, asyncio.Task[None]] = {}
        # By client, the number of its pages, which are made one after the other.
        self._counts: dict[str, int] = {}
        self._own_turns: dict[str, asyncio.Lock] = {}

    def __len__(self) -> int:
        return len(self._tasks)

    async def make(self, job: JobRecord, client: str, seconds: float) -> None:
        """Makes the page of a job's report, once for all who request it, and also if they don't wait.

        Args:
            job: The job, which has succeeded.
            client: The client that requests it.
            seconds: How long to wait.

        Raises:
            ConversionError: It takes longer (`page-not-ready`), the client waits for too many pages (`too-many-jobs`),
                or it can't be made: see `WorkerPool.make_page`.
        """
        task = self._tasks.get(job.id)
        if task is None:
            count = self._counts.get(client, 0)
            if count >= _MAX_WAITING:
                raise TryLaterError("too-many-jobs", f"{count} pages of reports are being made for you", 5.0)
            self._counts[client] = count + 1
            task = self._tasks[job.id] = asyncio.create_task(self._run(job, client))
            task.add_done_callback(lambda done: self._end(job, client, done))
        # Neither the end of the time nor a request that is cancelled cancels the task.
        done, _ = await asyncio.wait([task], timeout=seconds)
        if not done:
            raise TryLaterError("page-not-ready", "the page of the report is still being made", 1.0)
        task.result()

    def close(self) -> None:
        """Ends the threads, without waiting for pages."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _run(self, job: JobRecord, client: str) -> None:
        # A client waits for its turn among all with one page at most, so that all clients get turns.
        async with self._own_turns.setdefault(client, asyncio.Lock()), self._turns:
            await asyncio.get_running_loop().run_in_executor(self._threads, self._workers.make_page, job)

    def _end(self, job: JobRecord, client: str, done: asyncio.Task[None]) -> None:
        del self._tasks[job.id]
        self._counts[client] -= 1
        if not self._counts[client]:
            del self._counts[client]
            self._own_turns.pop(client, None)
        if not done.cancelled() and (problem := done.exception()) is not None:
            _LOG.warning("the page of job %s was not made: %s", job.id, problem)
