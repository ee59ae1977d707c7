"""Keeps web pages of others away from a server that asks for no token.

A page in the user's browser may send requests to this machine. It can't read the answers, but it could submit or
delete; and a name of its own that it lets point to this machine (DNS rebinding) would even let it read.
"""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from tfconvert.schema.diagnostics import ConversionError, error
from tfconvert.service.http.problems import to_response

_LOCAL = ("127.0.0.1", "localhost", "[::1]")
_SAFE = ("GET", "HEAD", "OPTIONS")


class Guard:
    """Refuses requests that a browser sends for others.

    Args:
        app: The application behind it.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles a request."""
        if scope["type"] == "http":
            headers = Headers(scope=scope)
            problem = _host_problem(headers) or _origin_problem(headers, scope["method"])
            if problem is not None:
                await to_response(problem, scope["path"])(scope, receive, send)
                return
        await self._app(scope, receive, send)


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
