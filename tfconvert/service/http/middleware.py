"""Middleware: metrics, security headers, a guard against requests of other sites, and limits on bodies."""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tfconvert.schema.diagnostics import ConversionError, error
from tfconvert.service.http.problems import to_response
from tfconvert.service.http.service import Metrics

REPORT_POLICY = (
    "sandbox allow-scripts allow-downloads; default-src 'none'; script-src 'unsafe-inline'; "
    "style-src 'unsafe-inline'; img-src data: blob:; frame-ancestors 'self'"
)
"""The policy of a report: its scripts have no origin, so that they can't send requests to the server."""

SECURITY_HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}


class HttpMiddleware(ABC):
    """Base of middleware for requests of HTTP; everything else passes.

    Args:
        app: The application behind it.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        handle = self.handle if scope["type"] == "http" else self._app
        await handle(scope, receive, send)

    @abstractmethod
    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles a request."""


class SecurityHeaders(HttpMiddleware):
    """Adds security headers that the route doesn't set."""

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in SECURITY_HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, send_with_headers)


class MetricsMiddleware(HttpMiddleware):
    """Counts requests and measures their time.

    Args:
        app: The application behind it.
        metrics: The counters.
    """

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        super().__init__(app)
        self._metrics = metrics

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        begin = time.perf_counter()

        async def send_measured(message: Message) -> None:
            if message["type"] == "http.response.start":
                # Only paths of routes, since clients could create a new series with each other path.
                route = getattr(scope.get("route"), "path", "other")
                self._metrics.answered(scope["method"], route, message["status"], time.perf_counter() - begin)
            await send(message)

        await self._app(scope, receive, send_measured)


_LOCAL = ("127.0.0.1", "localhost", "[::1]")
_SAFE = ("GET", "HEAD", "OPTIONS")


class ForeignRequestGuard(HttpMiddleware):
    """Rejects cross-site requests of browsers."""

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        problem = _host_problem(headers) or _origin_problem(headers, scope["method"])
        answer = self._app if problem is None else to_response(problem, scope["path"])
        await answer(scope, receive, send)


def _host_problem(headers: Headers) -> ConversionError | None:
    hosts = headers.getlist("host")
    if len(hosts) == 1 and _name(hosts[0]) in _LOCAL:
        return None
    return error(
        "foreign-request",
        "the request is not for this machine by one of its own names",
        hint="use http://localhost, or start the server with tokens",
    )


def _origin_problem(headers: Headers, method: str) -> ConversionError | None:
    if method in _SAFE:
        return None
    origins = headers.getlist("origin")
    site = headers.get("sec-fetch-site", "none")
    is_own = all(origin == f"http://{headers['host']}" for origin in origins)
    if is_own and (origins or site in ("none", "same-origin")):
        return None
    return error(
        "foreign-request",
        "the request comes from a page of another site",
        hint="use the server's own page, or a program",
    )


def _name(host: str) -> str:
    """Returns a host without its port."""
    name, colon, port = host.lower().rpartition(":")
    return name if colon and port.isdigit() and port.isascii() else host.lower()


# Maximum bytes of a body, except for forms.
_MAX_SMALL_BODY = 1 << 16

# Seconds between checks whether the server is stopping.
_POLL_SECONDS = 0.5


class BodyLimits(HttpMiddleware):
    """Rejects bodies that are too large, and disconnects clients that stop in the middle of a body.

    Args:
        app: The application behind it.
        max_size: Maximum bytes of a form.
        idle: Maximum seconds without data from a client.
        is_stopping: Returns whether the server is stopping, and then doesn't wait for bodies.
        max_seconds: Maximum seconds for a body; the janitor removes older uploads.
    """

    def __init__(
        self, app: ASGIApp, max_size: int, idle: float, is_stopping: Callable[[], bool], max_seconds: float = 3000.0
    ) -> None:
        super().__init__(app)
        self._max_size = max_size
        self._idle = idle
        self._is_stopping = is_stopping
        self._max_seconds = max_seconds

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        is_form = headers.get("content-type", "").lower().startswith("multipart/form-data")
        max_size = self._max_size if is_form else _MAX_SMALL_BODY
        if announced_size(headers) > max_size:
            await to_response(_too_large(max_size), scope["path"])(scope, receive, send)
            return
        body = _Body(receive, max_size, self._idle, self._is_stopping, self._max_seconds)
        try:
            await self._app(scope, body, send)
        finally:
            body.close()


def announced_size(headers: Headers) -> int:
    """Returns the size of a request's body by its headers; 0 if they don't have it."""
    announced = headers.get("content-length", "0")
    return int(announced[:20]) if announced.isascii() and announced.isdigit() else 0


class _Body:
    """A body that is being received, with the limits of `BodyLimits`.

    While it is awaited, a timer interrupts the task after a timeout, or when the server stops. There is one timer for
    the whole body, which has hundreds of messages if it is large.
    """

    __slots__ = (
        "_deadline",
        "_idle",
        "_is_complete",
        "_is_stopping",
        "_left",
        "_max_seconds",
        "_max_size",
        "_problem",
        "_receive",
        "_since",
        "_task",
        "_timer",
    )

    def __init__(
        self, receive: Receive, max_size: int, idle: float, is_stopping: Callable[[], bool], max_seconds: float
    ) -> None:
        self._receive = receive
        self._max_size = self._left = max_size
        self._idle = idle
        self._is_stopping = is_stopping
        self._max_seconds = max_seconds
        self._since = time.monotonic()
        self._deadline = self._since + max_seconds
        self._is_complete = False
        self._problem: ConversionError | None = None
        # The task that awaits a message now.
        self._task: asyncio.Task[Any] | None = None
        self._timer: asyncio.TimerHandle | None = None

    async def __call__(self) -> Message:
        """Returns the next message; once the body is complete, the next one may take any time."""
        if self._is_complete:
            return await self._receive()
        message = await self._next()
        if message["type"] == "http.request":
            self._left -= len(message.get("body", b""))
            if self._left < 0:
                raise _too_large(self._max_size)
        if not message.get("more_body", False):
            self._is_complete = True
            self.close()
        return message

    def close(self) -> None:
        """Ends the timer."""
        if self._timer is not None:
            self._timer.cancel()

    async def _next(self) -> Message:
        """Returns the next message.

        Raises:
            ConversionError: It times out (`request-timeout`), or the server is stopping (`service-stopping`).
        """
        self._since = time.monotonic()
        if self._since >= self._deadline:  # A client that sends byte by byte is never idle.
            raise error("request-timeout", f"the request took more than {self._max_seconds:g} s to come in")
        self._task = asyncio.current_task()
        if self._timer is None:
            self._set_timer(self._since)
        try:
            return await self._receive()
        except asyncio.CancelledError:
            if self._problem is None:
                raise
            assert self._task is not None
            self._task.uncancel()
            raise self._problem from None
        finally:
            self._task = None

    def _set_timer(self, now: float) -> None:
        timeout = min(self._since + self._idle, self._deadline)
        seconds = min(max(timeout - now, 0.01), _POLL_SECONDS)
        self._timer = asyncio.get_running_loop().call_later(seconds, self._check)

    def _check(self) -> None:
        now = time.monotonic()
        if self._task is None:
            self._since = now  # The server is busy with the last message: the client isn't idle.
        elif now >= min(self._since + self._idle, self._deadline):
            seconds = round(now - self._since)
            self._problem = error("request-timeout", f"nothing came for {seconds} s in the middle of the request")
        elif self._is_stopping():
            self._problem = error("service-stopping", "the server is about to stop", hint="try again in a while")
        if self._problem is None:
            self._set_timer(now)
        elif self._task is not None:
            self._task.cancel()


def _too_large(max_size: int) -> ConversionError:
    return error("upload-too-large", f"the request has more than {max_size} bytes")
