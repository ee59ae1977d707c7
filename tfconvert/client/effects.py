"""The steps of a conversation with the server.

A conversation is a generator: it yields what to do and is sent what came of it. `transports` has two that do
it, one that blocks and one that doesn't; a connection that breaks is raised in the generator as `Lost`.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any, BinaryIO, NamedTuple, TypeVar


class Part(NamedTuple):
    """A file that is sent.

    Attributes:
        field: The name of the form's field.
        name: What the file is called.
        stream: Its contents; it can be read again from the start.
    """

    field: str
    name: str
    stream: BinaryIO


class Call(NamedTuple):
    """A request.

    Attributes:
        method: GET, POST or DELETE.
        path: The path below the server's URL.
        query: What stands behind the path.
        headers: Further headers.
        fields: Texts of a form.
        files: Files of a form.
        is_streamed: Whether the body of the answer is asked for by `Chunk`s.
    """

    method: str
    path: str
    query: Mapping[str, str] = {}
    headers: Mapping[str, str] = {}
    fields: Mapping[str, str] = {}
    files: tuple[Part, ...] = ()
    is_streamed: bool = False


class Chunk(NamedTuple):
    """A wish for more of the last answer; empty bytes come at its end."""


class Close(NamedTuple):
    """The end of interest in the last answer."""


class Pause(NamedTuple):
    """A wait.

    Attributes:
        seconds: How long.
    """

    seconds: float


class Answer(NamedTuple):
    """A response.

    Attributes:
        status: Its status.
        headers: Its headers, names in small letters.
        body: Its body; empty if that is streamed.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes = b""

    @property
    def is_good(self) -> bool:
        """Whether the server did what was asked."""
        return 200 <= self.status < 300


class LostError(Exception):
    """The server was not reached, or the connection broke off."""


Effect = Call | Chunk | Close | Pause
T = TypeVar("T")
Steps = Generator[Effect, Any, T]
