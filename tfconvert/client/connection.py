"""Connections to a server, over httpx: one that suspends while it waits, and one that blocks."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from typing import Any

from tfconvert.client.protocol import LostError, Patience, refused, seconds_to_wait
from tfconvert.schema.diagnostics import error

try:
    import httpx
except ImportError:
    raise error(
        "service-missing", "talking to a conversion service needs httpx", hint="pip install 'tfconvert[service]'"
    ) from None

_CONNECT_SECONDS = 10.0
# Seconds without a byte after which a connection counts as lost; the service sends something more often.
_SILENCE_SECONDS = 60.0
_BUSY = (429, 503)
# Seconds to wait for a busy server that doesn't say how long.
_BUSY_SECONDS = 2.0


class Retries:
    """The retries of one exchange with a server.

    Args:
        connection: The connection.
    """

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection
        self._left = connection.patience.attempts
        self._deadline = time.monotonic() + connection.patience.seconds

    async def after_loss(self, problem: Exception) -> None:
        """Waits after the connection broke.

        Raises:
            ConversionError: There were enough attempts, or the first one found no server (`server-unreachable`).
        """
        url, patience = self._connection.url, self._connection.patience
        self._left -= 1
        is_absent = isinstance(problem, httpx.ConnectError | httpx.ConnectTimeout) and not self._connection.was_reached
        if self._left <= 0 or is_absent:
            reason = str(problem) or type(problem).__name__
            hint = "check that it runs, and the URL"
            raise error("server-unreachable", f"the server at {url} can't be reached: {reason}", hint=hint) from problem
        await self._connection.sleep(patience.first * 2 ** (patience.attempts - self._left - 1))

    async def after_refusal(self, response: httpx.Response, body: bytes) -> None:
        """Waits for a busy server, as long as it asks for.

        Raises:
            ConversionError: The response says something else, or the patience is exhausted.
        """
        seconds = seconds_to_wait(response.headers, _BUSY_SECONDS)
        if response.status_code not in _BUSY or time.monotonic() + seconds > self._deadline:
            request = response.request
            path = request.url.raw_path.decode("ascii").removeprefix(self._connection.root)
            raise refused(f"{request.method} {path}", response.status_code, body)
        await self._connection.sleep(seconds)

    def reset(self) -> None:
        """Counts attempts from the start again, after something has arrived."""
        self._left = self._connection.patience.attempts


class AsyncConnection:
    """Sends requests, again if the server is busy or the connection breaks.

    Args:
        url: The server's URL.
        token: The token; empty for none.
        patience: How long to go on.
        transport: Carries requests; `None` for the network.

    Attributes:
        was_reached: Whether the server has answered; if not, a connection that fails is not tried again.
    """

    was_reached = False

    _client: httpx.AsyncClient | httpx.Client

    def __init__(
        self, url: str, token: str, patience: Patience, transport: httpx.AsyncBaseTransport | None = None
    ) -> None:
        self.url = url
        self.patience = patience
        self._client = httpx.AsyncClient(**_options(url, token), transport=transport)

    @property
    def root(self) -> str:
        """The path of the server's URL, which ends with a slash."""
        return self._client.base_url.raw_path.decode("ascii")

    async def send(self, method: str, path: str, **options: Any) -> bytes:
        """Returns the body of a response.

        Args:
            method: The method.
            path: The path below the server's URL.
            **options: The rest of the request, as httpx takes it.

        Raises:
            ConversionError: The server refuses the request, or can't be reached.
        """
        _, body = await self._exchange(method, path, Retries(self), **options)
        return body

    def retries(self) -> Retries:
        return Retries(self)

    async def stream(self, path: str, retries: Retries, headers: dict[str, str]) -> httpx.Response:
        """Returns a response to GET whose body is read by `chunks`, which also closes it."""
        response, _ = await self._exchange("GET", path, retries, is_streamed=True, headers=headers)
        return response

    async def chunks(self, response: httpx.Response) -> AsyncGenerator[bytes]:
        """Yields the body of a response.

        Raises:
            LostError: The connection breaks.
        """
        try:
            async for chunk in self._chunks(response):
                yield chunk
        except httpx.TransportError as problem:
            raise LostError(str(problem) or type(problem).__name__) from None
        finally:
            await self._close_response(response)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def close(self) -> None:
        assert isinstance(self._client, httpx.AsyncClient)
        await self._client.aclose()

    async def _exchange(
        self, method: str, path: str, retries: Retries, *, is_streamed: bool = False, **options: Any
    ) -> tuple[httpx.Response, bytes]:
        """Returns a response, and its body unless that is streamed."""
        while True:
            request = self._client.build_request(method, path, **options)
            try:
                response = await self._send(request)
                self.was_reached = True
                if is_streamed and response.is_success:
                    return response, b""
                body = await self._read(response, may_be_cut=is_streamed)
            except httpx.TransportError as problem:
                await retries.after_loss(problem)
                continue
            if response.is_success:
                return response, body
            await retries.after_refusal(response, body)

    async def _read(self, response: httpx.Response, *, may_be_cut: bool) -> bytes:
        found = bytearray()
        try:
            async for chunk in self._chunks(response):
                found += chunk
        except httpx.TransportError:
            if not may_be_cut:
                raise
        finally:
            await self._close_response(response)
        return bytes(found)

    async def _send(self, request: httpx.Request) -> httpx.Response:
        assert isinstance(self._client, httpx.AsyncClient)
        if isinstance(request.stream, httpx.SyncByteStream):
            request.stream = _ThreadedBody(request.stream)
        return await self._client.send(request, stream=True)

    def _chunks(self, response: httpx.Response) -> AsyncIterator[bytes]:
        return response.aiter_bytes()

    async def _close_response(self, response: httpx.Response) -> None:
        await response.aclose()


class BlockingConnection(AsyncConnection):
    """A connection whose coroutines never suspend: they block, so that `run` needs no event loop.

    Args:
        url: The server's URL.
        token: The token; empty for none.
        patience: How long to go on.
        transport: Carries requests; `None` for the network.
    """

    _client: httpx.Client

    def __init__(self, url: str, token: str, patience: Patience, transport: httpx.BaseTransport | None = None) -> None:
        self.url = url
        self.patience = patience
        self._client = httpx.Client(**_options(url, token), transport=transport)

    async def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    async def close(self) -> None:
        self._client.close()

    async def _send(self, request: httpx.Request) -> httpx.Response:
        return self._client.send(request, stream=True)

    async def _chunks(self, response: httpx.Response) -> AsyncIterator[bytes]:
        for chunk in response.iter_bytes():
            yield chunk

    async def _close_response(self, response: httpx.Response) -> None:
        response.close()


class _ThreadedBody(httpx.AsyncByteStream):
    """A body whose files are read in another thread."""

    def __init__(self, body: httpx.SyncByteStream) -> None:
        self._body = body

    async def __aiter__(self) -> AsyncIterator[bytes]:
        blocks: Iterator[bytes] = iter(self._body)
        while block := await asyncio.to_thread(next, blocks, b""):
            yield block


def _options(url: str, token: str) -> dict[str, Any]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    try:
        base = httpx.URL(url if url.endswith("/") else f"{url}/")
    except (httpx.InvalidURL, TypeError) as problem:
        raise error("wrong-option", f"{url!r} is not a URL: {problem}") from None
    if base.scheme not in ("http", "https") or not base.host:
        raise error("wrong-option", f"{url!r} is not the URL of a server", hint="as in http://localhost:8750")
    return {"base_url": base, "headers": headers, "timeout": httpx.Timeout(_SILENCE_SECONDS, connect=_CONNECT_SECONDS)}
