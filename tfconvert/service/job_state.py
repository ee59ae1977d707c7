"""The service's record of a job."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, NamedTuple


class JobState(StrEnum):
    """Where a job is on its way."""

    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_final(self) -> bool:
        """Whether nothing happens any more, unless somebody asks for it to be tried again."""
        return self not in (JobState.QUEUED, JobState.RUNNING)


class Submission(NamedTuple):
    """A conversion that somebody asks for.

    Attributes:
        owner: Who asks: the ID of a token, empty for whoever needs none.
        settings: Keywords of `tfconvert.convert`, checked.
        model_name: What the model was called where it came from.
        model_sha256: The digest of what was uploaded, which lies under `models/`; empty if a place is named instead.
        calibration_sha256: That of the uploaded samples to calibrate with, empty if there are none.
        place: The path or URL of the model, empty if it was uploaded.
        size_in: Bytes that were uploaded.
        idempotency_key: By which the owner recognizes the request when it is sent again, empty for none.
    """

    owner: str
    settings: Mapping[str, Any]
    model_name: str
    model_sha256: str = ""
    calibration_sha256: str = ""
    place: str = ""
    size_in: int = 0
    idempotency_key: str = ""


class JobRecord(NamedTuple):
    """A job as the database has it; times are seconds since the epoch.

    Attributes:
        id: 32 random hexadecimal digits.
        owner: As submitted, like the six attributes after `state`.
        state: Where it is.
        cache_key: Equal for jobs whose results are.
        server: The ID of the server that runs it, empty if none does.
        attempt: How often it was begun.
        stage: Which stage it was last known to be in.
        problem: What went wrong, as `ConversionError.to_dict` has it.
        summary: What `batch.job.Ending.summary` says.
        result_attempt: The attempt whose result counts, 0 if there is no result.
        is_cached: Whether the result is that of an equal job.
        cancel_requested: Whether the owner wants it to end.
        seconds: Wall time of the conversion, with all that is around it.
        peak: The most memory that its process had, in bytes.
    """

    id: str
    owner: str
    state: JobState
    settings: Mapping[str, Any]
    model_name: str
    model_sha256: str
    calibration_sha256: str
    place: str
    size_in: int
    idempotency_key: str
    cache_key: str
    created: float
    started: float | None = None
    finished: float | None = None
    server: str = ""
    attempt: int = 0
    stage: str = ""
    problem: Mapping[str, Any] | None = None
    summary: Mapping[str, Any] = {}
    result_attempt: int = 0
    is_cached: bool = False
    cancel_requested: bool = False
    seconds: float = 0.0
    peak: int = 0
