"""Connections: how many there may be, how long a request may take to come in, and how large its headers may be."""

from __future__ import annotations

import asyncio
import ipaddress
from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from tfconvert.schema.diagnostics import ConversionError, error
from tfconvert.service.http.middleware import SECURITY_HEADERS
from tfconvert.service.http.problems import TryLaterError, to_response

# Paths that are also answered on connections beyond the limits.
_PROBES = (b"/healthz", b"/readyz")

# Headers of requests with a body.
_BODY = (b"content-length", b"transfer-encoding")

# Maximum number of connections beyond the limits that wait to be refused, and the seconds that they get.
_MAX_REFUSED = 64
_REFUSED_SECONDS = 5.0

# Maximum number of header lines, and bytes of the request line and the headers.
_MAX_LINES = 100
_MAX_HEAD = 1 << 15

# Bytes that are parsed at once where headers may be: then their size is known up to this.
_PIECE = 1 << 12

# Seconds for which the rest of a refused request is discarded. If the connection was closed at once, the client's
# system could drop the answer.
_LINGER_SECONDS = 2.0


class _Group:
    """Connections with a common limit.

    Attributes:
        members: All of them.
        waiting: Those without a request in progress, the longest waiting first.
    """

    __slots__ = ("members", "waiting")

    def __init__(self) -> None:
        self.members: set[Protocol] = set()
        self.waiting: dict[Protocol, None] = {}


class Connections:
    """The connections of a server. If there are too many, the one that has waited longest for a request is closed.

    Args:
        max_all: The maximum number.
        per_address: The maximum number of one address; 0 for no limit.
    """

    def __init__(self, max_all: int, per_address: int) -> None:
        self._max_all = max_all
        self._per_address = per_address
        self._all = _Group()
        self._by_address: dict[str, _Group] = {}
        self._refused: dict[Protocol, None] = {}

    def enter(self, connection: Protocol) -> bool:
        """Adds a connection; returns whether there is room for it."""
        own = self._by_address.get(connection.address, _Group())
        if not (self._has_room(own, self._per_address) and self._has_room(self._all, self._max_all)):
            self._refused[connection] = None
            if len(self._refused) > _MAX_REFUSED:
                self._close(next(iter(self._refused)))
            return False
        self._by_address[connection.address] = own
        for group in (self._all, own):
            group.members.add(connection)
            group.waiting[connection] = None
        return True

    def leave(self, connection: Protocol) -> None:
        """Removes a connection."""
        self._refused.pop(connection, None)
        for group in self._groups(connection):
            group.members.discard(connection)
            group.waiting.pop(connection, None)
            if not group.members and group is not self._all:
                del self._by_address[connection.address]

    def work(self, connection: Protocol) -> None:
        """Records that a connection has a request in progress."""
        for group in self._groups(connection):
            group.waiting.pop(connection, None)

    def rest(self, connection: Protocol) -> None:
        """Records that a connection waits for a request."""
        for group in self._groups(connection):
            if connection in group.members:
                group.waiting[connection] = None

    def _groups(self, connection: Protocol) -> list[_Group]:
        group = self._by_address.get(connection.address)
        return [self._all] if group is None else [self._all, group]

    def _has_room(self, group: _Group, most: int) -> bool:
        """Returns whether a group has room for one more, after making some if possible."""
        if not most or len(group.members) < most:
            return True
        oldest = next(iter(group.waiting), None)
        if oldest is not None:
            self._close(oldest)
        return oldest is not None

    def _close(self, connection: Protocol) -> None:
        self.leave(connection)
        connection.transport.close()


class _RefusedError(Exception):
    """Ends the parsing of a request that the application doesn't get.

    Attributes:
        problem: The answer.
    """

    def __init__(self, problem: ConversionError) -> None:
        super().__init__(str(problem))
        self.problem = problem


class Protocol(HttpToolsProtocol):
    """A connection.

    Its timer runs while a request is expected or its headers come in; `BodyLimits` watches the body.

    Args:
        limits: All connections.
        idle: Maximum seconds until the headers are complete, and without progress in sending an answer.
        **given: The arguments of uvicorn.

    Attributes:
        address: The network that the client is counted by.
    """

    def __init__(self, *, limits: Connections, idle: float, **given: Any) -> None:
        super().__init__(**given)
        self.address = ""
        self.url = b""
        self._limits = limits
        self._idle = idle
        self._is_refused = False
        self._is_over = False
        self._is_in_head = False
        self._is_in_body = False
        self._head_size = 0
        # The number of steps of the parser, and the bytes since the last one.
        self._steps = 0
        self._unparsed = 0
        self._timer: asyncio.TimerHandle | None = None
        self._send_timer: asyncio.TimerHandle | None = None
        self._unsent = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.address = _network(self.client[0]) if self.client else ""
        if not self._limits.enter(self):
            self._is_refused = True
            self._idle = min(self._idle, _REFUSED_SECONDS)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        self._limits.leave(self)
        self._unwatch()
        self._stop_send_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parses what has come in, in small pieces where headers may be."""
        rest = memoryview(data)
        while rest and not self._is_over and not self.transport.is_closing():
            piece = rest if self._is_in_body else rest[:_PIECE]
            rest = rest[self._parse(piece) :]

    def _parse(self, piece: memoryview) -> int:
        """Parses bytes, and returns their number."""
        steps, count = self._steps, len(piece)
        try:
            self.parser.feed_data(piece)
        except httptools.HttpParserUpgrade:
            # The protocol isn't changed, but the parser takes no further request.
            self._is_over = True
            self.cycle.keep_alive = False
            return count
        except httptools.HttpParserError as problem:
            cause = problem.__context__
            invalid = error("bad-request", "the request is not valid HTTP")
            self._refuse(cause.problem if isinstance(cause, _RefusedError) else invalid)
            return count
        self._unparsed = self._unparsed + count if steps == self._steps else 0
        if self._unparsed > _MAX_HEAD:
            self._refuse(_large_head())
        return count

    def on_message_begin(self) -> None:
        self._steps += 1
        self._is_in_head = True
        self._head_size = 0
        super().on_message_begin()
        if self._is_answered:
            self._watch()

    def on_url(self, url: bytes) -> None:
        self._grow_head(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Adds a header, or a trailer, to those of the request."""
        self._grow_head(len(name) + len(value) + len(": \r\n"))
        super().on_header(name, value)
        if len(self.headers) > _MAX_LINES:
            raise _RefusedError(error("headers-too-large", f"the request has more than {_MAX_LINES} header lines"))

    def on_headers_complete(self) -> None:
        self._steps += 1
        if self._is_refused and self.url.partition(b"?")[0] not in _PROBES:
            raise _RefusedError(TryLaterError("too-many-connections", "there are too many connections", 5.0))
        if self.parser.should_upgrade() and any(name in _BODY for name, _ in self.headers):
            hint = "send it as HTTP/1.1 without the header 'Upgrade'"
            raise _RefusedError(error("bad-request", "a request to change the protocol can't have a body", hint=hint))
        super().on_headers_complete()
        self._is_in_head = False
        self._is_in_body = True
        self._unwatch()
        self._limits.work(self)
        if self._is_refused:
            self.cycle.keep_alive = False

    def on_body(self, body: bytes) -> None:
        self._steps += 1
        # Adding to no bytes, rather than to an empty array, is no copy, nor is taking bytes out of it.
        if not self.cycle.body:
            self.cycle.body = b""  # type: ignore[assignment]
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._steps += 1
        self._is_in_body = False
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._unset_keepalive_if_required()
        if self._is_answered:  # A request that came meanwhile may have been begun instead.
            self._limits.rest(self)
            # If the answer came early, the rest of the body is discarded until then.
            self._watch()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._unsent = self.transport.get_write_buffer_size()
        self._send_timer = self.loop.call_later(self._idle, self._check_sent)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stop_send_timer()

    @property
    def _is_answered(self) -> bool:
        """Whether no answer is outstanding."""
        return self.cycle is None or self.cycle.response_complete  # type: ignore[redundant-expr]

    def _grow_head(self, count: int) -> None:
        self._head_size += count
        if self._head_size > _MAX_HEAD:
            raise _RefusedError(_large_head())

    def _watch(self) -> None:
        """Starts the timer again."""
        self._unwatch()
        self._timer = self.loop.call_later(self._idle, self._on_silence)

    def _unwatch(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _on_silence(self) -> None:
        if self._is_in_head and not self._is_over:
            self._refuse(error("request-timeout", f"the headers were not complete after {self._idle:g} s"))
        else:
            self.transport.close()

    def _refuse(self, problem: ConversionError) -> None:
        """Answers a request that the application doesn't get, or no further, and closes the connection."""
        is_next = self._is_answered or (self._is_in_body and not self.cycle.response_started and not self.pipeline)
        if not is_next:  # The answer could be taken for that to an earlier request.
            self.transport.close()
            return
        self._is_over = True
        if not self._is_answered:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        self.transport.write(_answer(problem, self.url.partition(b"?")[0]))
        self.transport.write_eof()
        self._unwatch()
        self._timer = self.loop.call_later(_LINGER_SECONDS, self.transport.close)

    def _check_sent(self) -> None:
        unsent = self.transport.get_write_buffer_size()
        if unsent >= self._unsent:
            self.transport.abort()
            return
        self._unsent = unsent
        self._send_timer = self.loop.call_later(self._idle, self._check_sent)

    def _stop_send_timer(self) -> None:
        if self._send_timer is not None:
            self._send_timer.cancel()
            self._send_timer = None


def _network(host: str) -> str:
    """Returns the part of an address that one client may have: of IPv6 it has a whole network."""
    address = ipaddress.ip_address(host.partition("%")[0])
    if address.version == 4:
        return host
    mapped = address.ipv4_mapped
    return address.packed[:8].hex() if mapped is None else str(mapped)


def _large_head() -> ConversionError:
    return error("headers-too-large", f"the request line and the headers have more than {_MAX_HEAD} bytes")


def _answer(problem: ConversionError, path: bytes) -> bytes:
    """Returns a whole response."""
    response = to_response(problem, path.decode("ascii", "replace"))
    headers = {**dict(response.headers), **SECURITY_HEADERS, "Connection": "close"}
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return STATUS_LINE[response.status_code] + f"{lines}\r\n".encode("latin-1") + bytes(response.body)
