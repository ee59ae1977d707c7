"""The messages between client and server: jobs, events and errors. Nothing is sent or received here."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from tfconvert.schema.diagnostics import ConversionError, Diagnostic, error, printable

JOBS = "v1/jobs"
ENDED = ("succeeded", "failed", "cancelled")

# Characters that are shown of a response that isn't understood.
_MAX_SHOWN = 200


class Patience(NamedTuple):
    """How long the client goes on.

    Attributes:
        attempts: How many times a request is sent whose connection breaks.
        seconds: How long the client waits for a busy server.
        first: The seconds before the second attempt; they double with each one.
    """

    attempts: int = 5
    seconds: float = 300.0
    first: float = 0.5


class JobInfo(NamedTuple):
    """A job as the server last reported it; times are seconds since the epoch.

    Attributes:
        id: Its ID.
        state: `queued`, `running`, `succeeded`, `failed` or `cancelled`.
        model_name: The name of the model's file.
        settings: Keywords of `tfconvert.convert`.
        created: When it was submitted.
        started: When it was started.
        finished: When it ended.
        stage: The last stage that the server reported.
        attempt: How many times it was started.
        is_cached: Whether the result is that of an equal job.
        seconds: How long the conversion took.
        peak: The peak memory of the conversion, in bytes.
        summary: The size of the result, its operators and how long the conversion took.
        problem: Why it failed, as `ConversionError.to_dict` returns it.
    """

    id: str
    state: str
    model_name: str = ""
    settings: Mapping[str, Any] = {}
    created: float = 0.0
    started: float | None = None
    finished: float | None = None
    stage: str = ""
    attempt: int = 0
    is_cached: bool = False
    seconds: float = 0.0
    peak: int = 0
    summary: Mapping[str, Any] = {}
    problem: Mapping[str, Any] | None = None

    @property
    def has_ended(self) -> bool:
        """Whether it is in a final state, which only a retry changes."""
        return self.state in ENDED


class Event(NamedTuple):
    """A server-sent event; `id` is empty if it has none."""

    type: str = "message"
    id: str = ""
    data: str = ""


class EventReader:
    """Reads server-sent events from a stream that comes in chunks of any size."""

    def __init__(self) -> None:
        self._rest = b""
        self._event = Event()

    def read(self, chunk: bytes) -> list[Event]:
        """Returns the events that the next chunk completes."""
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


class LostError(Exception):
    """The server was not reached, or the connection broke off."""


def to_info(data: Mapping[str, Any]) -> JobInfo | None:
    """Returns a job from JSON, or `None`; unknown fields are ignored."""
    if not isinstance(data.get("id"), str) or not isinstance(data.get("state"), str):
        return None
    return JobInfo(**{name: data[name] for name in JobInfo._fields if name in data})


def parsed(body: bytes) -> dict[str, Any]:
    """Returns the JSON object in a body, or an empty one."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def refused(request: str, status: int, body: bytes) -> ConversionError:
    """Returns the error for a response that isn't a success, with the server's own diagnostics if it sent any.

    Args:
        request: The method and the path.
        status: The status of the response.
        body: The body of the response.
    """
    content = parsed(body)
    found = to_error({"errors": content.get("diagnostics"), "advice": content.get("advice", [])})
    if found is not None:
        return found
    detail = content.get("detail") or body[:_MAX_SHOWN].decode("utf-8", "replace")
    text = f"the server answered {request} with status {status}"
    return error(
        "server-refused",
        f"{text}: {printable(str(detail))}" if detail else text,
        hint="check that the URL is that of a conversion service, with nothing else in between",
    )


def to_error(problem: Mapping[str, Any]) -> ConversionError | None:
    """Returns the error whose `to_dict` gave these data, or `None`."""
    errors, advice = problem.get("errors"), problem.get("advice", [])
    if not isinstance(errors, list) or not errors or not isinstance(advice, list):
        return None
    found = []
    for each in errors:
        if not isinstance(each, Mapping) or not isinstance(each.get("code"), str) or "message" not in each:
            return None
        texts = {name: str(value) for name, value in each.items() if name in Diagnostic._fields}
        # An empty field is the same as a missing one.
        found.append(Diagnostic(**{name: text for name, text in texts.items() if text or name == "message"}))
    return ConversionError(found, map(str, advice))


def seconds_to_wait(headers: Mapping[str, str], default: float) -> float:
    """Returns the seconds of a Retry-After header."""
    text = headers.get("retry-after", "")
    return float(text) if re.fullmatch(r"\d{1,6}", text) else default
