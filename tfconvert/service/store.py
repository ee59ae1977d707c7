"""The jobs in the database, with the operations for requests and workers.

An operation that several servers may run concurrently is one conditional statement or an exclusive transaction. For
example, a submission checks the length of the queue, equal results and the upload, which no server removes meanwhile.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import time
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Update, delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from tfconvert.batch import places
from tfconvert.batch.cache_key import cache_key, is_run
from tfconvert.batch.task import Outcome
from tfconvert.converter.targets.output_form import form_of
from tfconvert.importers.source import Source
from tfconvert.schema.diagnostics import ConversionError, error
from tfconvert.service import storage
from tfconvert.service.config import ServiceConfig
from tfconvert.service.database.connection import Database
from tfconvert.service.database.job_rows import (
    ACTIVE,
    EQUAL_JOB,
    HELD,
    JOB_BY_ID,
    LOCK_OWNER,
    NEXT_JOB,
    QUOTAS,
    SET_STAGE,
    TAKE,
    TO_CANCEL,
    TURNS,
    UPLOADED,
    WAITING,
    cursor_of,
    held_by,
    new_record,
    page_of,
    select_jobs,
    to_record,
    to_values,
)
from tfconvert.service.database.tables import JOBS, SERVERS
from tfconvert.service.events import STATE, EventLog
from tfconvert.service.jobs import JobRecord, JobState, Submission
from tfconvert.service.storage import Folders

# Maximum number of attempts to claim a job when other servers claim equal ones.
_MAX_CLAIMS = 20

_RETRIED = (JobState.FAILED, JobState.CANCELLED)


class JobStore:
    """The jobs of a database; used by several threads at once.

    Args:
        database: The database.
        config: The server's settings.
        folders: The data directory.

    Attributes:
        database: The database.
        events: The events of the jobs.
    """

    def __init__(self, database: Database, config: ServiceConfig, folders: Folders) -> None:
        self.database = database
        self._config = config
        self._folders = folders
        self.events = EventLog(folders)
        self._keys = CacheKeys(config)

    def submit(self, submission: Submission) -> tuple[JobRecord, bool]:
        """Returns a job and whether it is new, or was submitted before with the same idempotency key.

        A job with a cached result has already succeeded.
        """
        key = self._keys.key(submission)
        identity = secrets.token_hex(16)
        with self.database.write(is_exclusive=True) as connection:
            former = self._former(connection, submission)
            if former is not None:
                return former, False
            job = new_record(identity, submission, key)
            equal, turn = self._equal(connection, key), 0
            if equal is not None and storage.link(self._folders, equal, identity, 1):
                now = time.time()
                job = job._replace(
                    state=JobState.SUCCEEDED,
                    attempt=1,
                    result_attempt=1,
                    is_cached=True,
                    started=now,
                    finished=now,
                    summary=equal.summary,
                )
            else:
                self._check_limits(connection, submission.owner, submission.size_in)
                self._check_files(submission)
                turn = self._turn(connection, submission.owner)
            connection.execute(insert(JOBS), to_values(job, turn))
            # Before the commit, since a worker may then append the next event.
            self._append_state(job)
        return job, True

    def get(self, identity: str, owner: str | None) -> JobRecord:
        """Returns a job.

        Args:
            identity: Its ID.
            owner: Its owner; `None` for any.
        """
        with self.database.read() as connection:
            return _found(connection, identity, owner)

    def list(
        self,
        owner: str | None,
        state: str | None = None,
        name: str | None = None,
        before: str | None = None,
        limit: int = 50,
    ) -> tuple[list[JobRecord], str | None]:
        """Returns jobs, newest first, and the cursor of the next page, or `None` on the last page.

        Args:
            owner: Their owner; `None` for all.
            state: Their state; `None` for any.
            name: A part of their models' names; `None` for any.
            before: The cursor of the previous page.
            limit: The maximum number.
        """
        query = page_of(owner, {"state": state, "name": name}, before, limit + 1)
        with self.database.read() as connection:
            found = [to_record(row) for row in connection.execute(query)]
        page = found[:limit]
        return page, cursor_of(page[-1]) if page and len(found) > limit else None

    def cancel(self, identity: str, owner: str | None) -> JobRecord:
        """Cancels a job, a running one with some delay; returns it.

        Raises:
            ConversionError: The job does not exist or has ended (`job-not-found`, `job-state`).
        """
        mine = _owned(update(JOBS), identity, owner)
        ended = mine.where(JOBS.c.state == JobState.QUEUED).values(state=JobState.CANCELLED, finished=time.time())
        asked = mine.where(JOBS.c.state == JobState.RUNNING).values(cancel_requested=True)
        with self.database.write() as connection:
            is_done = connection.execute(ended).rowcount or connection.execute(asked).rowcount
            job = _found(connection, identity, owner)
        if not is_done:
            raise _state_error(job, "can't be cancelled any more")
        if job.state is JobState.CANCELLED:
            self._append_state(job)
        return job

    def retry(self, identity: str, owner: str | None) -> JobRecord:
        """Puts a job that failed or was cancelled into the queue again, and returns it.

        Raises:
            ConversionError: The job does not exist or is in another state, there are too many jobs, or the upload is
                gone (`job-not-found`, `job-state`, `queue-full`, `too-many-jobs`, `upload-lost`).
        """
        again: dict[str, Any] = {
            "state": JobState.QUEUED,
            "problem": None,
            "started": None,
            "finished": None,
            "server": "",
            "stage": "",
            "cancel_requested": False,
            "result_attempt": 0,
            "forgiven": JOBS.c.attempt,
        }
        with self.database.write(is_exclusive=True) as connection:
            job = _found(connection, identity, owner)
            submission = Submission(*(getattr(job, name) for name in Submission._fields))
            if job.state in _RETRIED:
                self._check_limits(connection, job.owner)
                self._check_files(submission)
                again["turn"] = self._turn(connection, job.owner)
            change = update(JOBS).where(JOBS.c.id == identity, JOBS.c.state.in_(_RETRIED)).values(again)
            if not connection.execute(change).rowcount:
                raise _state_error(job, "only jobs that failed or were cancelled can be tried again")
            job = _found(connection, identity, owner)
            self._append_state(job)
        return job

    def delete(self, identity: str, owner: str | None) -> None:
        """Deletes a job that doesn't run, with its results.

        Raises:
            ConversionError: The job does not exist or is running (`job-not-found`, `job-state`).
        """
        with self.database.write() as connection:
            job = _found(connection, identity, owner)
            gone = delete(JOBS).where(JOBS.c.id == identity, JOBS.c.state != JobState.RUNNING)
            if not connection.execute(gone).rowcount:
                raise _state_error(job, "it can be deleted once it has ended; cancel it first")
        storage.remove_job(self._folders, identity)

    def counts(self) -> Mapping[JobState, int]:
        """Returns the number of jobs in each state."""
        with self.database.read() as connection:
            rows = connection.execute(select(JOBS.c.state, func.count()).group_by(JOBS.c.state)).all()
        found = {JobState(state): count for state, count in rows}
        return {state: found.get(state, 0) for state in JobState}

    def claim(self, server: str) -> JobRecord | None:
        """Claims the next job for a server and returns it, or `None` if no job can run now.

        Args:
            server: The server's ID; an unregistered server gets no job.
        """
        for _ in range(_MAX_CLAIMS):
            try:
                with self.database.write() as connection:
                    limit = {"max_running": self._config.max_running}
                    found = connection.execute(NEXT_JOB, limit).one_or_none()
                    if found is None:
                        return None
                    if found.max_running and connection.dialect.name == "postgresql":
                        connection.execute(LOCK_OWNER, {"owner": found.owner})
                    taken = {"job": found.id, "taker": server, "now": time.time(), **limit}
                    if not connection.execute(TAKE, taken).rowcount:
                        continue  # Another server has just claimed one of the owner, or this one isn't registered.
                    job = _found(connection, found.id, None)
            except IntegrityError:
                continue  # Another server has just claimed an equal one.
            self._append_state(job)
            return job
        return None

    def find_equal(self, job: JobRecord) -> JobRecord | None:
        """Returns a job that has the result of this one, or `None`."""
        with self.database.read() as connection:
            return self._equal(connection, job.cache_key)

    def key_of(self, job: JobRecord) -> str:
        """Returns the current cache key of a job, since a model outside the service may have changed."""
        return self._keys.key(Submission(*(getattr(job, name) for name in Submission._fields)))

    def set_stage(self, job: JobRecord, name: str) -> None:
        """Writes the stage of a running job."""
        with self.database.write() as connection:
            connection.execute(SET_STAGE, {**held_by(job), "name": name})

    def finish(
        self,
        job: JobRecord,
        state: JobState,
        outcome: Outcome,
        *,
        is_cached: bool = False,
        has_files: bool = True,
        cache_key: str = "",
    ) -> bool:
        """Records the end of a job; returns whether this server still held it. If not, its result must be removed.

        Args:
            job: The job, as it was claimed.
            state: Its final state.
            outcome: Its outcome.
            is_cached: Whether its result is that of an equal job.
            has_files: Whether the attempt has published files.
            cache_key: Its new key; empty to keep it.
        """
        ended = {
            "state": state,
            "finished": time.time(),
            "problem": outcome.problem,
            "summary": dict(outcome.summary),
            "seconds": outcome.seconds,
            "peak": outcome.peak,
            "is_cached": is_cached,
            "cache_key": cache_key or job.cache_key,
            "result_attempt": job.attempt if has_files else 0,
        }
        if not self._change(job, ended):
            return False
        self.events.append(job.id, STATE, state)
        return True

    def release(self, job: JobRecord, *, is_forgiven: bool) -> bool:
        """Gives a job back to the queue; returns whether this server still held it.

        Args:
            job: The job, as it was claimed.
            is_forgiven: Whether the attempt doesn't count because the server stopped it.
        """
        if not is_forgiven and self._is_exhausted(job):
            lost = error("server-lost", f"it was begun {job.attempt} times, and each time its processes died")
            return self.finish(job, JobState.FAILED, Outcome(lost.to_dict()), has_files=False)
        back: dict[str, Any] = {"state": JobState.QUEUED, "server": "", "stage": ""}
        if is_forgiven:
            back["forgiven"] = JOBS.c.forgiven + 1
        if not self._change(job, back):
            return False
        self.events.append(job.id, STATE, JobState.QUEUED)
        return True

    def is_cancel_requested(self, jobs: Collection[str]) -> set[str]:
        """Returns the jobs among the given ones that their owners cancelled."""
        with self.database.read() as connection:
            return set(connection.execute(TO_CANCEL, {"jobs": list(jobs)}).scalars())

    def requeue_lost(self) -> int:
        """Gives the jobs of dead servers back to the queue; returns their number.

        Jobs with a request to cancel are cancelled, and jobs with too many attempts fail.
        """
        alive = select(SERVERS.c.id)
        query = select_jobs().where(JOBS.c.state == JobState.RUNNING, JOBS.c.server.not_in(alive))
        with self.database.read() as connection:
            lost = [to_record(row) for row in connection.execute(query)]
        for job in lost:
            if job.cancel_requested:
                self.finish(job, JobState.CANCELLED, Outcome(None), has_files=False)
            else:
                self.release(job, is_forgiven=False)
        return len(lost)

    def _change(self, job: JobRecord, values: Mapping[str, Any]) -> bool:
        with self.database.write() as connection:
            change = update(JOBS).where(*HELD).values(values)
            return connection.execute(change, held_by(job)).rowcount > 0

    def _is_exhausted(self, job: JobRecord) -> bool:
        with self.database.read() as connection:
            forgiven = connection.execute(select(JOBS.c.forgiven).where(JOBS.c.id == job.id)).scalar() or 0
        return job.attempt - forgiven >= self._config.attempts

    def _former(self, connection: Connection, submission: Submission) -> JobRecord | None:
        """Returns the job that was submitted with the same idempotency key."""
        if not submission.idempotency_key:
            return None
        is_it = (JOBS.c.owner == submission.owner, JOBS.c.idempotency_key == submission.idempotency_key)
        row = connection.execute(select_jobs().where(*is_it)).one_or_none()
        if row is None:
            return None
        job = to_record(row)
        if any(getattr(job, name) != getattr(submission, name) for name in Submission._fields):
            raise error(
                "idempotency-mismatch",
                "the idempotency key was used for another request",
                hint="choose a new key for each request, and the same only to send it again",
            )
        return job

    def _equal(self, connection: Connection, key: str) -> JobRecord | None:
        row = connection.execute(EQUAL_JOB, {"key": key}).one_or_none()
        return None if row is None else to_record(row)

    def check_size(self, owner: str, size: int) -> None:
        """Checks that an upload fits into the quota of its owner, before it is stored.

        Raises:
            ConversionError: It doesn't (`too-many-bytes`).
        """
        with self.database.read() as connection:
            self._check_size(connection, owner, size, self._quotas(connection, owner)[1])

    def _check_size(self, connection: Connection, owner: str, size: int, most: int) -> None:
        if most and size and connection.execute(UPLOADED, {"owner": owner}).scalar_one() + size > most:
            raise error(
                "too-many-bytes",
                f"the uploads of your jobs would have more than {most} bytes",
                hint="delete jobs that are no longer needed, or convert one again by its ID",
            )

    def _quotas(self, connection: Connection, owner: str) -> tuple[int, int]:
        """Returns the maximum number of active jobs of an owner, and that of the bytes of its uploads."""
        own = connection.execute(QUOTAS, {"owner": owner}).one_or_none() or (None, None)
        given = (self._config.max_active, self._config.max_bytes)
        active, size = (default if value is None else value for value, default in zip(own, given, strict=True))
        return active, size

    def _turn(self, connection: Connection, owner: str) -> int:
        """Returns the turn of a new job."""
        following, own = connection.execute(TURNS, {"owner": owner}).one()
        return int(max(following, own))

    def _check_limits(self, connection: Connection, owner: str, size: int = 0) -> None:
        """Rejects a job if too many are queued, or its upload is too large."""
        if connection.execute(WAITING).scalar_one() >= self._config.max_queued:
            raise error("queue-full", "too many jobs are waiting", hint="try again later")
        most, max_bytes = self._quotas(connection, owner)
        self._check_size(connection, owner, size, max_bytes)
        if connection.execute(ACTIVE, {"owner": owner}).scalar_one() >= most:
            raise error(
                "too-many-jobs",
                f"{most} of your jobs are waiting or running, and no more may be",
                hint="wait for one of them to end, or cancel one",
            )

    def _check_files(self, submission: Submission) -> None:
        for sha256 in filter(None, (submission.model_sha256, submission.calibration_sha256)):
            if not self._folders.model(sha256).exists():
                raise error("upload-lost", "what was uploaded is no longer there", hint="upload it again")

    def _append_state(self, job: JobRecord) -> None:
        self.events.append(job.id, STATE, job.state)


def _found(connection: Connection, identity: str, owner: str | None) -> JobRecord:
    row = connection.execute(JOB_BY_ID, {"job": identity}).one_or_none()
    if row is None or (owner is not None and row.owner != owner):
        raise error("job-not-found", "there is no such job")
    return to_record(row)


def _owned(statement: Update, identity: str, owner: str | None) -> Update:
    statement = statement.where(JOBS.c.id == identity)
    return statement if owner is None else statement.where(JOBS.c.owner == owner)


def _state_error(job: JobRecord, message: str) -> ConversionError:
    return error("job-state", f"the job has the state {str(job.state)!r}: {message}")


class CacheKeys:
    """Creates keys that are equal if owner, model, settings, plug-ins and versions are equal.

    Args:
        config: The server's settings; the files of its plug-ins are read once.
    """

    def __init__(self, config: ServiceConfig) -> None:
        plugins = [*config.patterns, *config.composites, *filter(None, [config.op_defs])]
        self._plugins = [_digest_of(path) for path in plugins]

    def key(self, submission: Submission) -> str:
        """Returns the key of a job; for a model that can't be read, it is different each time."""
        inputs = (
            self._plugins,
            submission.owner,
            submission.model_sha256,
            # The extension determines how the file is read.
            Path(submission.model_name).suffix if submission.model_sha256 else "",
            submission.calibration_sha256,
            submission.place,
            _state_of(submission.place) if submission.place else "",
        )
        settings = submission.settings
        return cache_key(form_of("", settings), settings, inputs, is_run=is_run(settings))


def _state_of(place: str) -> str:
    """Returns names, sizes and times of the files of a model outside the service."""
    try:
        if places.is_url(place):
            return places.state_of(place)
        stats = [(os.fspath(path), path.stat()) for path in Source(place).files()]
    except (OSError, ConversionError):
        return os.urandom(16).hex()  # The conversion reports the error.
    return " ".join(f"{path}:{stat.st_size}:{stat.st_mtime_ns}:{stat.st_ctime_ns}" for path, stat in stats)


def _digest_of(path: str) -> str:
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError:
        return os.urandom(16).hex()
