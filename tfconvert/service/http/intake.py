"""Limits on requests: bodies of limited size, from clients that go on sending."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tfconvert.schema.diagnostics import ConversionError, error
from tfconvert.service.http.problems import to_response

# Bytes of any body but that of a form.
_SMALL = 1 << 16

# Seconds between looks whether the server was asked to stop.
_PAUSE = 0.5

# Seconds within which any body must be there: what is older is cleaned up.
_LONGEST = 3000.0


class Intake:
    """Refuses bodies that are too large, and cuts off clients that stop in the middle of one.

    Args:
        app: The application behind it.
        most: Bytes of a form.
        idle: Seconds that a client may be silent.
        is_stopping: Returns whether the server was asked to stop: it doesn't wait for bodies then.
    """

    def __init__(self, app: ASGIApp, most: int, idle: float, is_stopping: Callable[[], bool]) -> None:
        self._app = app
        self._most = most
        self._idle = idle
        self._is_stopping = is_stopping

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        most = self._most if headers.get("content-type", "").lower().startswith("multipart/form-data") else _SMALL
        announced = headers.get("content-length", "0")
        if announced.isascii() and announced.isdigit() and int(announced[:20]) > most:
            await to_response(_too_large(most), scope["path"])(scope, receive, send)
            return
        await self._app(scope, _Body(receive, most, self._idle, self._is_stopping), send)


class _Body:
    """A body as it comes in.

    Args:
        receive: Where it comes from.
        most: Bytes that it may have.
        idle: Seconds that may pass without any.
        is_stopping: Returns whether the server was asked to stop.
    """

    __slots__ = ("_end", "_idle", "_is_complete", "_is_stopping", "_left", "_most", "_receive")

    def __init__(self, receive: Receive, most: int, idle: float, is_stopping: Callable[[], bool]) -> None:
        self._receive = receive
        self._most = self._left = most
        self._idle = idle
        self._is_stopping = is_stopping
        self._end = time.monotonic() + _LONGEST
        self._is_complete = False

    async def __call__(self) -> Message:
        """Returns the next message; once the body is complete, the next one may take any time."""
        if self._is_complete:
            return await self._receive()
        message = await self._next()
        if message["type"] == "http.request":
            self._left -= len(message.get("body", b""))
            if self._left < 0:
                raise _too_large(self._most)
        self._is_complete = not message.get("more_body", False)
        return message

    async def _next(self) -> Message:
        """Returns the next message.

        Raises:
            ConversionError: It doesn't come (`request-timeout`), or the server is about to stop (`service-stopping`).
        """
        now = time.monotonic()
        if now >= self._end:  # It may drip forever, never late by itself.
            raise error("request-timeout", f"the request took more than {_LONGEST:g} s to come in")
        watch = _Watch(min(now + self._idle, self._end), self._is_stopping)
        try:
            return await self._receive()
        except asyncio.CancelledError:
            if watch.problem is None:
                raise
            watch.task.uncancel()
            raise watch.problem from None
        finally:
            watch.timer.cancel()


class _Watch:
    """Looks at a task that waits for a message, now and then, and interrupts it if it has to wait no longer.

    A timer costs little, unlike a task that could be waited for with a limit: a large body has hundreds of messages.

    Args:
        end: Until when it may wait, by the monotonic clock.
        is_stopping: Returns whether the server was asked to stop.

    Attributes:
        task: The task.
        timer: Ends the watch when it is cancelled.
        problem: Why the task was interrupted.
    """

    __slots__ = ("_begin", "_end", "_is_stopping", "problem", "task", "timer")

    def __init__(self, end: float, is_stopping: Callable[[], bool]) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.task = task
        self.problem: ConversionError | None = None
        self._begin = time.monotonic()
        self._end = end
        self._is_stopping = is_stopping
        self._set_timer(self._begin)

    def _set_timer(self, now: float) -> None:
        seconds = max(min(self._end - now, _PAUSE), 0)
        self.timer = asyncio.get_running_loop().call_later(seconds, self._look)

    def _look(self) -> None:
        now = time.monotonic()
        if now >= self._end:
            seconds = round(now - self._begin)
            self.problem = error("request-timeout", f"nothing came for {seconds} s in the middle of the request")
        elif self._is_stopping():
            self.problem = error("service-stopping", "the server is about to stop", hint="try again in a while")
        if self.problem is None:
            self._set_timer(now)
        else:
            self.task.cancel()


def _too_large(most: int) -> ConversionError:
    return error("upload-too-large", f"the request has more than {most} bytes")
