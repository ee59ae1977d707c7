"""Converts rows of the job table to records and back, and has the statements that change them, built once."""

from __future__ import annotations

import struct
import time
from collections.abc import Mapping
from typing import Any

from sqlalchemy import ColumnElement, Row, Select, bindparam, exists, func, or_, select, tuple_, update

from tfconvert.schema.diagnostics import error
from tfconvert.service.database.tables import JOBS, SERVERS, TOKENS
from tfconvert.service.jobs import JobRecord, JobState, Submission

_COLUMNS = tuple(JOBS.c[name] for name in JobRecord._fields)
_CREATED = struct.Struct(">d")


def select_jobs() -> Select[Any]:
    """Returns the query for rows that `to_record` converts."""
    return select(*_COLUMNS)


_RUNNING = JOBS.alias("running")
_OWN_LIMIT = select(TOKENS.c.max_running).where(TOKENS.c.id == JOBS.c.owner).correlate(JOBS).scalar_subquery()

# Maximum number of running jobs of a job's owner; 0 for no limit.
_MAX_RUNNING = func.coalesce(_OWN_LIMIT, bindparam("max_running"))


def _few_run() -> ColumnElement[bool]:
    """Returns the condition that the owner of a job may have one more that runs."""
    number = select(func.count()).where(_RUNNING.c.owner == JOBS.c.owner, _RUNNING.c.state == JobState.RUNNING)
    return or_(_MAX_RUNNING == 0, number.correlate(JOBS).scalar_subquery() < _MAX_RUNNING)


def _next_job() -> Select[Any]:
    """Returns the query for the next queued job that no running job forbids.

    It skips rows that other servers have locked.
    """
    equal_runs = exists().where(_RUNNING.c.cache_key == JOBS.c.cache_key, _RUNNING.c.state == JobState.RUNNING)
    waiting = select(JOBS.c.id, JOBS.c.owner, _MAX_RUNNING.label("max_running"))
    waiting = waiting.where(JOBS.c.state == JobState.QUEUED, ~equal_runs, _few_run())
    in_order = waiting.order_by(JOBS.c.turn, JOBS.c.created, JOBS.c.id)
    return in_order.limit(1).with_for_update(of=JOBS, skip_locked=True)


NEXT_JOB = _next_job()
"""The job to run next; `max_running` is the limit of owners that have none of their own."""

LOCK_OWNER = select(func.pg_advisory_xact_lock(func.hashtextextended(bindparam("owner"), 0)))
"""Lets one transaction of PostgreSQL at a time take jobs of the owner `owner`, so that it counts the running ones."""

_QUEUED = JOBS.c.state == JobState.QUEUED
TURNS = select(
    func.coalesce(select(func.min(JOBS.c.turn)).where(_QUEUED).scalar_subquery(), 0),
    func.coalesce(
        select(func.max(JOBS.c.turn) + 1).where(_QUEUED, JOBS.c.owner == bindparam("owner")).scalar_subquery(), 0
    ),
)
"""The turn that is next, and the one after the last of the owner `owner`: a new job gets the later one.

So each owner has one job in each turn, and the hundred of one delay those of another by one job.
"""

UPLOADED = select(func.coalesce(func.sum(JOBS.c.size_in), 0)).where(
    JOBS.c.owner == bindparam("owner"), JOBS.c.is_cached.is_(False)
)
"""The bytes of uploads of the owner `owner`; jobs with a cached result were for an upload that was there."""

QUOTAS = select(TOKENS.c.max_active, TOKENS.c.max_bytes).where(TOKENS.c.id == bindparam("owner"))
"""The quotas of the owner `owner`; no row if it has no token."""

JOB_BY_ID = select_jobs().where(JOBS.c.id == bindparam("job"))
"""The job `job`."""

EQUAL_JOB = (
    select_jobs()
    .where(JOBS.c.cache_key == bindparam("key"), JOBS.c.state == JobState.SUCCEEDED, JOBS.c.result_attempt > 0)
    .limit(1)
)
"""A job with a result for the key `key`."""

WAITING = select(func.count()).where(JOBS.c.state == JobState.QUEUED)
"""The number of queued jobs."""

ACTIVE = select(func.count()).where(
    JOBS.c.owner == bindparam("owner"), JOBS.c.state.in_([JobState.QUEUED, JobState.RUNNING])
)
"""The number of queued and running jobs of the owner `owner`."""

TAKE = (
    update(JOBS)
    .where(
        JOBS.c.id == bindparam("job"),
        JOBS.c.state == JobState.QUEUED,
        select(SERVERS.c.id).where(SERVERS.c.id == bindparam("taker")).exists(),
        _few_run(),
    )
    .values(
        state=JobState.RUNNING,
        server=bindparam("taker"),
        attempt=JOBS.c.attempt + 1,
        stage="",
        started=bindparam("now"),
    )
)
"""Gives the job `job` to the server `taker`, if it is still queued, may run, and the server is registered."""

HELD = (
    JOBS.c.id == bindparam("job"),
    JOBS.c.state == JobState.RUNNING,
    JOBS.c.server == bindparam("holder"),
    JOBS.c.attempt == bindparam("number"),
)
"""The condition that an attempt still holds its job; otherwise it changes nothing."""

SET_STAGE = update(JOBS).where(*HELD).values(stage=bindparam("name"))
"""Sets the stage of the attempt in `held_by` to `name`."""

TO_CANCEL = select(JOBS.c.id).where(JOBS.c.id.in_(bindparam("jobs", expanding=True)), JOBS.c.cancel_requested)
"""Those of the jobs `jobs` that are to be cancelled."""


def held_by(job: JobRecord) -> dict[str, Any]:
    """Returns the parameters of `HELD` for an attempt."""
    return {"job": job.id, "holder": job.server, "number": job.attempt}


def to_record(row: Row[Any]) -> JobRecord:
    """Returns a row as a record."""
    record = JobRecord._make(row)
    return record._replace(state=JobState(record.state), idempotency_key=record.idempotency_key or "")


def new_record(identity: str, submission: Submission, cache_key: str) -> JobRecord:
    """Returns the record of a queued job."""
    return JobRecord(
        id=identity, state=JobState.QUEUED, cache_key=cache_key, created=time.time(), **submission._asdict()
    )


def to_values(record: JobRecord, turn: int) -> dict[str, Any]:
    """Returns a record as the values of a row, with its turn in the queue."""
    values = record._asdict()
    return {
        **values,
        "state": str(record.state),
        "idempotency_key": record.idempotency_key or None,
        "forgiven": 0,
        "turn": turn,
        "settings": dict(record.settings),
        "summary": dict(record.summary),
    }


def page_of(owner: str | None, filters: Mapping[str, str | None], before: str | None, limit: int) -> Select[Any]:
    """Returns the query for some jobs, newest first.

    Args:
        owner: The owner; `None` for all.
        filters: Their `state`, and a part of their `name`; `None` or empty for any.
        before: The cursor of the last one of the page before, `None` for the first page.
        limit: The maximum number.
    """
    query = select_jobs().order_by(JOBS.c.created.desc(), JOBS.c.id.desc()).limit(limit)
    if owner is not None:
        query = query.where(JOBS.c.owner == owner)
    if state := filters.get("state"):
        query = query.where(JOBS.c.state == state)
    if name := filters.get("name"):
        query = query.where(JOBS.c.model_name.icontains(name, autoescape=True))
    if before:
        query = query.where(tuple_(JOBS.c.created, JOBS.c.id) < tuple_(*_decoded(before)))
    return query


def cursor_of(record: JobRecord) -> str:
    """Returns the cursor of the page that follows a job."""
    return _CREATED.pack(record.created).hex() + record.id


def _decoded(cursor: str) -> tuple[float, str]:
    try:
        (created,) = _CREATED.unpack(bytes.fromhex(cursor[:16]))
    except (struct.error, ValueError):
        created = float("nan")
    identity = cursor[16:]
    if not abs(created) < float("inf") or len(identity) != 32 or not identity.isalnum():
        raise error("bad-config", "the cursor is not one that a page of this list ended with")
    return created, identity
