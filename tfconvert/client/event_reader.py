"""Server-sent events, read from a stream that comes in pieces of any size."""

from __future__ import annotations

from typing import NamedTuple


class Event(NamedTuple):
    """An event.

    Attributes:
        type: Its type.
        id: Its ID; empty if it has none.
        data: What it says.
    """

    type: str = "message"
    id: str = ""
    data: str = ""


class EventReader:
    """Reads events."""

    def __init__(self) -> None:
        self._rest = b""
        self._event = Event()

    def read(self, chunk: bytes) -> list[Event]:
        """Returns the events that are complete with the next piece."""
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        found = []
        for line in lines:
            field, _, text = line.decode("utf-8", "replace").rstrip("\r").partition(":")
            text = text.removeprefix(" ")
            if field == "event":
                self._event = self._event._replace(type=text)
            elif field == "id":
                self._event = self._event._replace(id=text)
            elif field == "data":
                self._event = self._event._replace(data=self._event.data + text)
            elif not field and not text:
                if self._event != Event():
                    found.append(self._event)
                self._event = Event()
        return found
