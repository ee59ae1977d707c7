"""The client's record of a job."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

ENDED = ("succeeded", "failed", "cancelled")


class JobInfo(NamedTuple):
    """A job as the server last reported it; times are seconds since the epoch.

    Attributes:
        id: Its ID.
        state: `queued`, `running`, `succeeded`, `failed` or `cancelled`.
        model_name: What the model was called.
        settings: Keywords of `tfconvert.convert`.
        created: When it was submitted.
        started: When it was begun.
        finished: When it ended.
        stage: The stage that it was last known to be in.
        attempt: How often it was begun.
        is_cached: Whether the result is that of an equal job.
        seconds: How long the conversion took.
        peak: The most memory that it had, in bytes.
        summary: The size of the result, its operators and how long the conversion took.
        problem: Why it failed, as `ConversionError.to_dict` has it.
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
        """Whether nothing happens any more, unless somebody asks for it to be tried again."""
        return self.state in ENDED


def to_info(data: Mapping[str, Any]) -> JobInfo | None:
    """Returns a job that the server reported, `None` if that isn't one; unknown fields are left out."""
    if not isinstance(data.get("id"), str) or not isinstance(data.get("state"), str):
        return None
    return JobInfo(**{name: data[name] for name in JobInfo._fields if name in data})
