"""The service's records of jobs."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, NamedTuple


class JobState(StrEnum):
    """The state of a job."""

    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_final(self) -> bool:
        """Whether only a retry changes it."""
        return self not in (JobState.QUEUED, JobState.RUNNING)


class Submission(NamedTuple):
    """A request to convert a model.

    Attributes:
        owner: The ID of the token; empty if the server needs none.
        settings: Keywords of `tfconvert.convert`, checked.
        model_name: The name of the model's file.
        model_sha256: The digest of the upload, which is in `models/`; empty if `place` is set instead.
        calibration_sha256: That of the uploaded calibration samples; empty without samples.
        place: The path or URL of the model, empty if it was uploaded.
        size_in: Bytes that were uploaded.
        idempotency_key: Equal for a request that is sent again; empty for none.
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
        state: Its state.
        cache_key: Equal for jobs with equal results.
        server: The ID of the server that runs it, or empty.
        attempt: The number of attempts.
        stage: The last known stage.
        problem: The error, as `ConversionError.to_dict` returns it.
        summary: The summary, as `batch.job.Outcome.summary` returns it.
        result_attempt: The attempt that made the result; 0 without a result.
        is_cached: Whether the result is that of an equal job.
        cancel_requested: Whether the owner has cancelled it while it runs.
        seconds: Wall time, including the overhead.
        peak: The peak memory of its process, in bytes.
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
