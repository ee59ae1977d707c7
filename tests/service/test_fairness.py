"""Owners share the server: their jobs take turns, and each has quotas."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tfconvert.batch.task import Outcome
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.service.config import ServiceConfig
from tfconvert.service.database.connection import Database
from tfconvert.service.jobs import JobRecord, JobState, Submission
from tfconvert.service.leases import Lease
from tfconvert.service.storage import Folders
from tfconvert.service.store import JobStore
from tfconvert.service.tokens import TokenStore

Submit = Callable[..., Submission]


class Queue:
    """A queue of jobs that differ from each other.

    Args:
        store: The jobs.
        lease: The server that takes them.
        submission: Returns a submission.
    """

    def __init__(self, store: JobStore, lease: Lease, submission: Submit) -> None:
        self.store = store
        self._lease = lease
        self._submission = submission
        self._count = 0

    def submit(self, owner: str, count: int = 1, **fields: object) -> list[JobRecord]:
        """Submits jobs of an owner."""
        jobs = []
        for _ in range(count):
            self._count += 1
            made = self._submission(owner=owner, settings={"batch": self._count}, **fields)
            jobs.append(self.store.submit(made)[0])
        return jobs

    def claim(self) -> JobRecord | None:
        """Takes the next job."""
        return self.store.claim(self._lease.server)

    def owners(self) -> Iterator[str]:
        """Takes jobs as long as there are any, and yields their owners."""
        while (job := self.claim()) is not None:
            yield job.owner

    def end(self, job: JobRecord) -> None:
        """Makes a running job fail."""
        assert self.store.finish(job, JobState.FAILED, Outcome(None), has_files=False)


@pytest.fixture
def config(config: ServiceConfig) -> ServiceConfig:
    return config._replace(max_active=1000, max_queued=1000)


@pytest.fixture
def queue(store: JobStore, lease: Lease, submission: Submit) -> Queue:
    return Queue(store, lease, submission)


@pytest.fixture
def limited(
    database: Database, config: ServiceConfig, folders: Folders, lease: Lease, submission: Submit
) -> Callable[..., Queue]:
    """Returns a function that returns a queue with other settings."""

    def make(**settings: Any) -> Queue:
        return Queue(JobStore(database, config._replace(**settings), folders), lease, submission)

    return make


def refusal(act: Callable[[], object]) -> str:
    with pytest.raises(ConversionError) as caught:
        act()
    return caught.value.code


@pytest.mark.parametrize("running", [0, 1, 2, 50])
def test_a_second_owner_does_not_wait_for_a_hundred_jobs(queue: Queue, running: int) -> None:
    queue.submit("first", 100)
    for _ in range(running):
        job = queue.claim()
        assert job is not None
        queue.end(job)
    queue.submit("second")
    assert "second" in [job.owner for job in (queue.claim(), queue.claim()) if job is not None]


def test_owners_alternate(queue: Queue) -> None:
    queue.submit("first", 4)
    queue.submit("second", 3)
    queue.submit("third", 1)
    assert "".join(owner[0] for owner in queue.owners()) == "fstfsfsf"


def test_an_owner_that_always_has_one_job_does_not_keep_others_waiting(queue: Queue) -> None:
    queue.submit("first", 5)
    served = []
    for _ in range(10):
        queue.submit("second")
        job = queue.claim()
        assert job is not None
        served.append(job.owner)
    assert served.count("first") == 5


def test_a_retried_job_waits_for_its_turn_again(queue: Queue) -> None:
    (retried,) = queue.submit("first")
    queue.store.cancel(retried.id, None)
    queue.submit("first", 3)
    queue.submit("second", 2)
    queue.store.retry(retried.id, None)
    assert "".join(owner[0] for owner in queue.owners()) == "fsfsff"


def test_running_jobs_of_an_owner_are_bounded(limited: Callable[..., Queue]) -> None:
    queue = limited(max_running=2)
    queue.submit("first", 4)
    queue.submit("second", 1)
    jobs = [job for _ in range(5) if (job := queue.claim()) is not None]
    assert [job.owner for job in jobs] == ["first", "second", "first"]
    queue.end(jobs[0])
    assert list(queue.owners()) == ["first"]


def test_a_token_has_its_own_bound_of_running_jobs(queue: Queue, database: Database) -> None:
    tokens = TokenStore(database)
    few, any_number = (tokens.create(f"t{most}", max_running=most)[1].id for most in (1, 0))
    queue.submit(few, 3)
    queue.submit(any_number, 3)
    assert sorted(queue.owners()) == sorted([few, *[any_number] * 3])


def test_servers_that_take_jobs_at_once_keep_the_bound(limited: Callable[..., Queue]) -> None:
    queue = limited(max_running=2)
    queue.submit("first", 30)
    barrier = threading.Barrier(6)

    def claim() -> int:
        barrier.wait()
        return sum(queue.claim() is not None for _ in range(5))

    with ThreadPoolExecutor(6) as threads:
        assert sum(each.result() for each in [threads.submit(claim) for _ in range(6)]) == 2


def test_uploads_of_an_owner_are_bounded(limited: Callable[..., Queue], database: Database) -> None:
    queue = limited(max_bytes=100)
    (job,) = queue.submit("first", size_in=60)
    assert refusal(lambda: queue.submit("first", size_in=41)) == "too-many-bytes"
    assert refusal(lambda: queue.store.check_size("first", 41)) == "too-many-bytes"
    queue.store.check_size("first", 40)
    queue.submit("second", size_in=100)
    queue.submit("first", size_in=0)
    _, token = TokenStore(database).create("ci", max_bytes=10)
    assert refusal(lambda: queue.submit(token.id, size_in=11)) == "too-many-bytes"
    queue.store.cancel(job.id, None)
    queue.store.delete(job.id, None)
    queue.submit("first", size_in=100)
    limited(max_bytes=0).submit("first", size_in=1 << 50)
