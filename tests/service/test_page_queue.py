"""Pages of reports are made in turn, whoever requests how many."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tfconvert.schema.diagnostics import ConversionError
from tfconvert.service.http.page_queue import PageQueue
from tfconvert.service.jobs import JobRecord
from tfconvert.service.workers import WorkerPool


def jobs(name: str, count: int) -> list[JobRecord]:
    empty: dict[str, Any] = dict.fromkeys(JobRecord._fields[:12], "")
    return [JobRecord(**{**empty, "id": f"{name}{each}"}) for each in range(count)]


class Maker(WorkerPool):
    """Makes pages once it may.

    Attributes:
        begun: The IDs of the jobs whose pages were begun.
    """

    def __init__(self) -> None:  # Without the parts of a pool.
        self.begun: list[str] = []
        self._finish = threading.Semaphore(0)

    def make_page(self, job: JobRecord) -> None:
        self.begun.append(job.id)
        assert self._finish.acquire(timeout=60)

    async def wait_for(self, ids: Sequence[str]) -> None:
        """Waits until the pages of jobs were begun, and a while for others."""
        while len(self.begun) < len(ids):
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)
        assert sorted(self.begun) == sorted(ids)

    def finish(self, count: int) -> None:
        """Finishes pages."""
        self._finish.release(count)


async def requested(queue: PageQueue, wanted: Sequence[JobRecord], client: str) -> list[BaseException | None]:
    """Requests pages without waiting for them; returns the errors."""
    return await asyncio.gather(*(queue.make(job, client, 0.01) for job in wanted), return_exceptions=True)


def codes(problems: Sequence[BaseException | None]) -> set[str]:
    return {problem.code if isinstance(problem, ConversionError) else "" for problem in problems}


def test_clients_get_turns() -> None:
    async def act() -> None:
        maker = Maker()
        queue = PageQueue(maker, 2)
        assert codes(await requested(queue, jobs("a", 10), "a")) == {"page-not-ready"}
        await requested(queue, jobs("b", 2), "b")
        await requested(queue, jobs("c", 1), "c")
        await maker.wait_for(["a0", "b0"])
        maker.finish(1)
        await maker.wait_for(["a0", "b0", "c0"])
        maker.finish(20)
        while queue:
            await asyncio.sleep(0.01)
        assert len(maker.begun) == 13
        queue.close()

    asyncio.run(asyncio.wait_for(act(), 60))


def test_pages_of_a_client_are_bounded() -> None:
    async def act() -> None:
        maker = Maker()
        queue = PageQueue(maker, 1)
        assert codes(await requested(queue, jobs("a", 16), "a")) == {"page-not-ready"}
        assert codes(await requested(queue, jobs("a", 18)[16:], "a")) == {"too-many-jobs"}
        assert codes(await requested(queue, jobs("a", 1), "a")) == {"page-not-ready"}
        assert codes(await requested(queue, jobs("b", 1), "b")) == {"page-not-ready"}
        maker.finish(20)
        while queue:
            await asyncio.sleep(0.01)
        assert codes(await requested(queue, jobs("c", 1), "a")) <= {"", "page-not-ready"}
        queue.close()

    asyncio.run(asyncio.wait_for(act(), 60))


def test_pages_leave_the_threads_of_uploads_alone() -> None:
    async def act() -> None:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(2))
        maker = Maker()
        queue = PageQueue(maker, 4)
        for client in "abcd":
            await requested(queue, jobs(client, 1), client)
        await maker.wait_for(["a0", "b0", "c0", "d0"])
        assert await asyncio.wait_for(asyncio.to_thread(len, "upload"), 10) == 6
        maker.finish(4)
        while queue:
            await asyncio.sleep(0.01)
        queue.close()

    asyncio.run(asyncio.wait_for(act(), 60))


def test_a_page_that_fails_is_told_to_who_waits() -> None:
    class Failing(Maker):
        def make_page(self, job: JobRecord) -> None:
            raise ValueError(job.id)

    async def act() -> None:
        queue = PageQueue(Failing(), 1)
        with pytest.raises(ValueError, match="a0"):
            await queue.make(jobs("a", 1)[0], "a", 10)
        assert not queue
        queue.close()

    asyncio.run(asyncio.wait_for(act(), 60))
