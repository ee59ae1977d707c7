"""The conversion service in this process, with a socket: what its page, its client and the command talk to in tests."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from sqlalchemy import insert

from tfconvert.service.config import ServiceConfig
from tfconvert.service.database.job_rows import new_record, to_values
from tfconvert.service.database.tables import JOBS
from tfconvert.service.http.app import create_app
from tfconvert.service.http.service import Service
from tfconvert.service.jobs import JobRecord, JobState, Submission
from tfconvert.service.tokens import Role


class RunningService:
    """A server that converts, as a context manager.

    Args:
        data: The data folder.
        **settings: Settings of the server.

    Attributes:
        app: The ASGI application.
        service: What the application talks to.
        url: Where it listens.
    """

    def __init__(self, data: Path, **settings: Any) -> None:
        self.app = create_app(ServiceConfig(data, **{"workers": 2, "per_minute": 1_000_000, **settings}))
        service = self.app.state.service
        assert isinstance(service, Service)
        self.service = service
        self.url = ""
        self._may_begin = threading.Event()
        self._may_begin.set()
        claim = service.store.claim
        # Workers ask for jobs all the time; while these are held there seem to be none.
        service.store.claim = lambda server: claim(server) if self._may_begin.is_set() else None  # type: ignore[method-assign]
        self._server = uvicorn.Server(uvicorn.Config(self.app, port=0, log_level="error", lifespan="off"))
        self._thread = threading.Thread(target=self._server.run, daemon=True)

    def __enter__(self) -> RunningService:
        """Starts to run jobs and to answer."""
        self.service.start()
        self._thread.start()
        while not self._server.started:
            assert self._thread.is_alive()
            time.sleep(0.01)
        self.url = f"http://127.0.0.1:{self._server.servers[0].sockets[0].getsockname()[1]}/"
        return self

    def __exit__(self, *problem: object) -> None:
        """Ends all."""
        self._server.should_exit = self._server.force_exit = True
        self._thread.join()
        self.service.stop(0)
        self.service.close()

    @property
    def jobs(self) -> list[JobRecord]:
        """All jobs, the oldest first."""
        return self.service.store.list(None, limit=1000)[0][::-1]

    def hold(self) -> None:
        """Has jobs wait."""
        self._may_begin.clear()

    def release(self) -> None:
        """Has jobs begin again."""
        self._may_begin.set()
        self.service.workers.wake()

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Has jobs wait for the length of a block."""
        self.hold()
        try:
            yield
        finally:
            self.release()

    def token(self, name: str = "of the test") -> str:
        """Returns a new token."""
        return self.service.tokens.create(name, Role.USER)[0]

    def add(self, name: str, state: JobState, created: float, **values: Any) -> None:
        """Adds a job that has ended somehow, in which nothing was converted."""
        record = new_record(f"{len(self.jobs):032x}", Submission("", {}, name), "")
        with self.service.database.write() as connection:
            changed = record._replace(state=state, created=created, **values)
            connection.execute(insert(JOBS).values(to_values(changed, 0)))

    def clear(self) -> None:
        """Deletes all jobs."""
        self.release()
        store = self.service.store
        for job in self.jobs:
            if not job.state.is_final:
                store.cancel(job.id, None)
        while any(not job.state.is_final for job in self.jobs):
            time.sleep(0.01)
        for job in self.jobs:
            store.delete(job.id, None)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """Returns a server that the tests of a module share; a module that uses it names it, and `server`, as its own."""
    with RunningService(tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture
def server(running: RunningService) -> Iterator[RunningService]:
    """Returns the shared server, whose jobs are gone after the test."""
    yield running
    running.clear()
