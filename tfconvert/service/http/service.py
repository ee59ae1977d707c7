"""The parts of a server, from its settings to its workers, with its metrics and its rate limits."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from tfconvert.converter.process import sandbox
from tfconvert.schema.diagnostics import ConversionError, error
from tfconvert.schema.versions import own_version
from tfconvert.service.config import ServiceConfig
from tfconvert.service.database.connection import open_database
from tfconvert.service.http.page_queue import PageQueue
from tfconvert.service.http.readiness import Check, database_problem, disk_problem
from tfconvert.service.jobs import JobState
from tfconvert.service.storage import Folders
from tfconvert.service.store import JobStore
from tfconvert.service.tokens import TokenStore
from tfconvert.service.workers import WorkerPool

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_METHODS = ("DELETE", "GET", "HEAD", "OPTIONS", "POST", "PUT")

Counts = Callable[[], Mapping[JobState, int]]


class Metrics:
    """The measurements of one application.

    Args:
        counts: Returns the number of jobs in each state.
    """

    def __init__(self, counts: Counts) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "tfconvert_requests", "Requests.", ("method", "route", "status"), registry=self._registry
        )
        self._seconds = Histogram(
            "tfconvert_request_seconds",
            "Time until a response began.",
            ("route",),
            buckets=_SECONDS,
            registry=self._registry,
        )
        self._uploaded = Counter("tfconvert_uploaded_bytes", "Bytes of models and samples.", registry=self._registry)
        self._submitted = Counter(
            "tfconvert_jobs_submitted", "Jobs that were accepted.", ("is_cached",), registry=self._registry
        )
        build = Gauge("tfconvert_build_info", "The version.", ("version",), registry=self._registry)
        build.labels(own_version()).set(1)
        self._registry.register(_Jobs(counts))
        ProcessCollector(registry=self._registry)

    def text(self) -> bytes:
        """Returns everything in Prometheus' text format."""
        return generate_latest(self._registry)

    def submitted(self, size: int, *, is_cached: bool) -> None:
        """Counts a job that was accepted."""
        self._uploaded.inc(size)
        self._submitted.labels(str(is_cached).lower()).inc()

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        """Counts a request."""
        self._requests.labels(method if method in _METHODS else "other", route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)


class _Jobs(Collector):
    """The numbers of jobs by state, from the database."""

    def __init__(self, counts: Counts) -> None:
        self._counts = counts

    def describe(self) -> Iterator[Metric]:
        """Yields the metric without numbers."""
        yield GaugeMetricFamily("tfconvert_jobs", "Jobs by state.", labels=("state",))

    def collect(self) -> Iterator[Metric]:
        """Yields the numbers; none while the database can't be reached."""
        family = GaugeMetricFamily("tfconvert_jobs", "Jobs by state.", labels=("state",))
        try:
            counts = self._counts()
        except ConversionError:
            return
        for state in JobState:
            family.add_metric((state.value,), counts.get(state, 0))
        yield family


class RateLimiter:
    """Limits requests by token buckets, which hold those of a minute.

    Args:
        clock: A monotonic clock.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._buckets: dict[str, tuple[float, float]] = {}

    def take(self, owner: str, per_minute: int) -> float:
        """Returns 0 if a request is allowed, else the seconds after which it may be sent again.

        Args:
            owner: The owner.
            per_minute: The maximum number in a minute; 0 for any number.
        """
        if per_minute <= 0:
            return 0.0
        rate = per_minute / 60
        now = self._clock()
        with self._lock:
            left, since = self._buckets.get(owner, (float(per_minute), now))
            left = min(left + (now - since) * rate, float(per_minute))
            if left < 1:
                self._buckets[owner] = (left, now)
                return (1 - left) / rate
            self._buckets[owner] = (left - 1, now)
            return 0.0


class Service:
    """The parts of a server behind its HTTP interface.

    Args:
        config: Its settings.

    Attributes:
        folders: Its data directory.
        database: Its database.
        store: The jobs.
        tokens: Its tokens.
        workers: Its threads that run jobs.
        metrics: Its metrics.
        rates: The rate limits of owners.
        uploads: The number of uploads under way by owner; used in the event loop only, like the next.
        streams: The number of streams of events by owner.
        pages: The pages of reports that are made now or wait for their turn.
        min_free_bytes: Bytes of free disk space below which the server is not ready.
        checks: The checks of `/readyz` by name.
        is_stopping: Whether the server was asked to stop.

    Raises:
        ConversionError: The data directory or the database can't be used.
    """

    def __init__(self, config: ServiceConfig) -> None:
        self.config = config
        self.folders = Folders(config.data)
        self.folders.create()
        self.database = open_database(config, self.folders)
        self.store = JobStore(self.database, config, self.folders)
        self.tokens = TokenStore(self.database)
        self.workers = WorkerPool(self.store, self.folders, config)
        self.metrics = Metrics(self.store.counts)
        self.rates = RateLimiter()
        self.uploads: dict[str, int] = {}
        self.streams: dict[str, int] = {}
        self.pages = PageQueue(self.workers, max(config.workers, 1))
        self.min_free_bytes = config.min_free
        self.is_stopping = False
        self.checks: dict[str, Check] = {
            "server": Check(lambda: "stopping" if self.is_stopping else ""),
            "database": Check(lambda: database_problem(self.database)),
            "workers": Check(lambda: self.workers.problem),
            "disk": Check(lambda: disk_problem(self.folders.data, self.min_free_bytes)),
            "sandbox": Check(sandbox.problem, is_needed=config.require_sandbox),
        }
        self._is_started = False

    def start(self) -> None:
        """Starts to run jobs, unless they run already."""
        if not self._is_started:
            self._is_started = True
            self.workers.start()

    def stop(self, grace: float) -> None:
        """Stops: takes no more jobs.

        Args:
            grace: Seconds that running jobs get before they go back to the queue.
        """
        self.is_stopping = True
        self.store.events.wake()
        self.workers.stop(grace)

    def close(self) -> None:
        """Closes the database."""
        self.pages.close()
        self.database.close()

    def check_open(self) -> None:
        """Checks that jobs are accepted.

        Raises:
            ConversionError: The server was asked to stop (`service-stopping`).
        """
        if self.is_stopping:
            raise error("service-stopping", "the server is about to stop", hint="try again in a while")

    def check_room(self, size: int) -> None:
        """Checks that the disk has room for an upload, by the measure of `/readyz`.

        Args:
            size: Its announced bytes, or 0.

        Raises:
            ConversionError: It has not (`storage-failed`).
        """
        problem = disk_problem(self.folders.data, self.min_free_bytes + size)
        if problem:
            raise error(
                "storage-failed", f"the server can't keep uploads: its disk is {problem}", hint="try again later"
            )
