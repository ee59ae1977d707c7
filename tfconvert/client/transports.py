"""Carries conversations out: over httpx, waiting for each answer or letting others go on meanwhile."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any, TypeVar

from tfconvert.client.effects import Answer, Call, Chunk, Close, Effect, LostError, Pause, Steps
from tfconvert.schema.diagnostics import error

try:
    import httpx
except ImportError:
    raise error(
        "service-missing", "talking to a conversion service needs httpx", hint="pip install 'tfconvert[service]'"
    ) from None

T = TypeVar("T")

_CONNECT = 10.0
# Seconds without a byte after which a connection counts as lost; the service sends something more often.
_SILENCE = 60.0
_MIN = 1 << 16


class _AsyncBody(httpx.AsyncByteStream):
    """A body whose files are read in another thread."""

    def __init__(self, body: Any) -> None:
        self._body = body

    async def __aiter__(self) -> AsyncIterator[bytes]:
        blocks = iter(self._body)
        while block := await asyncio.to_thread(next, blocks, b""):
            yield block


def _request(client: httpx.Client | httpx.AsyncClient, call: Call) -> httpx.Request:
    """Returns a request; that of a blocking client has the same body."""
    files = {part.field: (part.name, part.stream) for part in call.files}
    # Without files a form would be sent in another way than the service takes.
    fields: Mapping[str, Any] = call.fields if files else {}
    plain = None if files else {name: (None, text.encode()) for name, text in call.fields.items()}
    return client.build_request(
        call.method, call.path, params=dict(call.query), headers=dict(call.headers), data=fields, files=files or plain
    )


def _answer(response: httpx.Response, body: bytes) -> Answer:
    return Answer(response.status_code, {name.lower(): text for name, text in response.headers.items()}, body)


def _next(steps: Steps[T], done: Any, problem: Exception | None) -> Effect:
    return steps.throw(LostError(str(problem) or type(problem).__name__)) if problem is not None else steps.send(done)


def _settings(url: str, token: str) -> dict[str, Any]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    try:
        base = httpx.URL(url if url.endswith("/") else f"{url}/")
    except (httpx.InvalidURL, TypeError) as problem:
        raise error("wrong-option", f"{url!r} is not a URL: {problem}") from None
    if base.scheme not in ("http", "https") or not base.host:
        raise error("wrong-option", f"{url!r} is not the URL of a server", hint="as in http://localhost:8750")
    return {"base_url": base, "headers": headers, "timeout": httpx.Timeout(_SILENCE, connect=_CONNECT)}


class BlockingTransport:
    """Carries conversations out and waits.

    Args:
        url: The server.
        token: The token, empty for none.
        transport: What carries requests; `None` for the network.
    """

    def __init__(self, url: str, token: str, transport: httpx.BaseTransport | None = None) -> None:
        self._client = httpx.Client(**_settings(url, token), transport=transport)
        self._response: httpx.Response | None = None
        self._chunks: Iterator[bytes] = iter(())

    def run(self, steps: Steps[T]) -> T:
        """Returns what a conversation comes to."""
        done: Any = None
        problem: Exception | None = None
        try:
            while True:
                effect = _next(steps, done, problem)
                done = problem = None
                try:
                    done = self._do(effect)
                except httpx.TransportError as lost:
                    problem = lost
        except StopIteration as end:
            result: T = end.value
            return result
        finally:
            steps.close()
            self._forget()

    def close(self) -> None:
        """Closes the connections."""
        self._client.close()

    def _do(self, effect: Effect) -> Any:
        match effect:
            case Call():
                self._forget()
                self._response = response = self._client.send(_request(self._client, effect), stream=True)
                self._chunks = response.iter_bytes()
                return _answer(response, b"" if effect.is_streamed else response.read())
            case Chunk():
                return next(self._chunks, b"")
            case Close():
                self._forget()
            case Pause():
                time.sleep(effect.seconds)
        return None

    def _forget(self) -> None:
        if self._response is not None:
            self._response.close()
            self._response = None


class AsyncTransport:
    """Carries conversations out in an event loop; several may be under way.

    Args:
        url: The server.
        token: The token, empty for none.
        transport: What carries requests; `None` for the network.
    """

    def __init__(self, url: str, token: str, transport: httpx.AsyncBaseTransport | None = None) -> None:
        self._client = httpx.AsyncClient(**_settings(url, token), transport=transport)

    async def run(self, steps: Steps[T]) -> T:
        """Returns what a conversation comes to."""
        done: Any = None
        problem: Exception | None = None
        line = _Line(self._client)
        try:
            while True:
                effect = _next(steps, done, problem)
                done = problem = None
                try:
                    done = await line.do(effect)
                except httpx.TransportError as lost:
                    problem = lost
        except StopIteration as end:
            result: T = end.value
            return result
        finally:
            steps.close()
            await line.forget()

    async def close(self) -> None:
        """Closes the connections."""
        await self._client.aclose()


class _Line:
    """One conversation's last answer."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client
        self._response: httpx.Response | None = None
        self._chunks: AsyncIterator[bytes] | None = None

    async def do(self, effect: Effect) -> Any:
        """Does what a conversation wants."""
        match effect:
            case Call():
                await self.forget()
                request = _request(self._client, effect)
                if effect.files:
                    request.stream = _AsyncBody(request.stream)
                self._response = response = await self._client.send(request, stream=True)
                self._chunks = response.aiter_bytes()
                return _answer(response, b"" if effect.is_streamed else await response.aread())
            case Chunk():
                assert self._chunks is not None
                return await anext(self._chunks, b"")
            case Close():
                await self.forget()
            case Pause():
                await asyncio.sleep(effect.seconds)
        return None

    async def forget(self) -> None:
        """Ends the last answer."""
        if self._response is not None:
            await self._response.aclose()
            self._response = None
