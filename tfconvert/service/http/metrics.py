"""Metrics for Prometheus."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.versions import own_version
from tfconvert.service.job_state import JobState

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_METHODS = ("DELETE", "GET", "HEAD", "OPTIONS", "POST", "PUT")

Counts = Callable[[], Mapping[JobState, int]]


class Metrics:
    """The measurements of one application.

    Args:
        counts: Returns how many jobs are in each state.
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
    """Jobs by state, as the database has them when it is asked."""

    def __init__(self, counts: Counts) -> None:
        self._counts = counts

    def describe(self) -> Iterator[Metric]:
        """Yields what is measured, without asking the database."""
        yield GaugeMetricFamily("tfconvert_jobs", "Jobs by state.", labels=("state",))

    def collect(self) -> Iterator[Metric]:
        """Yields the numbers; none while the database is away."""
        family = GaugeMetricFamily("tfconvert_jobs", "Jobs by state.", labels=("state",))
        try:
            counts = self._counts()
        except ConversionError:
            return
        for state in JobState:
            family.add_metric((state.value,), counts.get(state, 0))
        yield family


class Measured:
    """Measures requests.

    Args:
        app: The application behind it.
        metrics: Where they are counted.
    """

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begin = time.perf_counter()

        async def send_measured(message: Message) -> None:
            if message["type"] == "http.response.start":
                # Only paths of routes: what clients make up would be a new series each.
                route = getattr(scope.get("route"), "path", "other")
                self._metrics.answered(scope["method"], route, message["status"], time.perf_counter() - begin)
            await send(message)

        await self._app(scope, receive, send_measured)
