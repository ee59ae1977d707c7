"""The janitor removes only files that nothing needs, now or soon."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import update

from tests.batch.models import RELU, UNKNOWN
from tfconvert.batch.task import Outcome
from tfconvert.service.config import ServiceConfig
from tfconvert.service.database.connection import Database
from tfconvert.service.database.tables import JOBS, SERVERS
from tfconvert.service.events import EventLog
from tfconvert.service.janitor import LEFT_OVER_SECONDS, Janitor
from tfconvert.service.jobs import JobRecord, JobState, Submission
from tfconvert.service.leases import Lease
from tfconvert.service.storage import Folders
from tfconvert.service.store import JobStore

Submit = Callable[..., Submission]


class Clock:
    """A clock that goes on when it is told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def janitor(store: JobStore, folders: Folders, config: ServiceConfig, lease: Lease, clock: Clock) -> Janitor:
    return Janitor(store, folders, config, lease, clock)


def orphans(folders: Folders) -> list[Path]:
    """Leaves over what a server may leave when it dies; returns the files and folders."""
    made = [
        folders.incoming / "a" / "model.part",
        folders.model("0" * 64),
        folders.attempt("1" * 32, 1) / "out" / "x",
        folders.result("2" * 32, 1) / "x",
        folders.result("3" * 32, 1).with_name("1.part") / "x",
        folders.progress("4" * 32),
        folders.lock("5" * 32),
    ]
    for path in made:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    (folders.results / ("6" * 32)).mkdir()
    return [*made, folders.results / ("6" * 32)]


def finished(store: JobStore, lease: Lease, folders: Folders, state: JobState = JobState.SUCCEEDED) -> JobRecord:
    job = store.claim(lease.server)
    assert job is not None
    folders.result(job.id, 1).mkdir(parents=True)
    (folders.result(job.id, 1) / "x").touch()
    assert store.finish(job, state, Outcome(None))
    return store.get(job.id, None)


def files(folders: Folders) -> set[Path]:
    return {path for path in folders.data.rglob("*") if path.is_file() and not path.name.startswith("service.db")}


def test_leftover_files_are_removed_at_the_start(janitor: Janitor, folders: Folders) -> None:
    before = files(folders)
    made = orphans(folders)
    assert janitor.clean(is_start=True) == len(made)
    assert files(folders) == before
    assert not any(any(folder.iterdir()) for folder in (folders.jobs, folders.results, folders.incoming))


def test_while_others_live_it_takes_a_while(
    janitor: Janitor, folders: Folders, clock: Clock, database: Database
) -> None:
    made = orphans(folders)
    with database.write() as connection:
        connection.execute(SERVERS.insert().values(id="other", host="elsewhere", pid=1, beat=1, started=0.0))
    assert janitor.clean(is_start=True) == 0
    clock.now += LEFT_OVER_SECONDS - 1
    assert janitor.clean() == 0
    clock.now += 1
    assert janitor.clean() == len(made) - 1  # An upload may be under way for longer.
    assert made[0].exists()
    clock.now += 3600
    made[0].write_text("more of it")
    assert janitor.clean() == 0
    clock.now += 3600
    assert janitor.clean() == 1


def test_files_that_jobs_need_are_kept(
    janitor: Janitor, store: JobStore, folders: Folders, lease: Lease, submission: Submit, clock: Clock
) -> None:
    folders.model("c" * 64).touch()
    store.submit(submission())
    done = finished(store, lease, folders)
    store.submit(submission(UNKNOWN))
    failed = finished(store, lease, folders, JobState.FAILED)
    running, _ = store.submit(submission(f"{RELU} "))
    store.claim(lease.server)
    queued, _ = store.submit(submission(f"{RELU}  ", calibration_sha256="c" * 64))
    for attempt in (1, 2):
        (folders.attempt(running.id, attempt) / "out").mkdir(parents=True)
        (folders.result(running.id, attempt)).mkdir(parents=True)
    for _ in range(2):
        janitor.clean()
        clock.now += 2 * LEFT_OVER_SECONDS
    jobs = (done, failed, running, queued)
    assert set(folders.models.iterdir()) == {
        folders.model(sha256) for sha256 in ("c" * 64, *(job.model_sha256 for job in jobs))
    }
    assert folders.result(done.id, 1).exists()
    assert folders.result(failed.id, 1).exists()
    assert [path.name for path in (folders.jobs / running.id).iterdir()] == ["1"]
    assert [path.name for path in (folders.results / running.id).iterdir()] == ["1"]
    assert folders.lock(lease.server).exists()
    assert len(list(folders.events.iterdir())) == 4


def test_files_that_are_uploaded_again_are_kept(
    janitor: Janitor, store: JobStore, folders: Folders, lease: Lease, submission: Submit, clock: Clock
) -> None:
    job, _ = store.submit(submission())
    finished(store, lease, folders)
    model = folders.model(job.model_sha256)
    store.delete(job.id, None)
    janitor.clean()
    clock.now += LEFT_OVER_SECONDS
    os.utime(model, ns=(1, 1))
    janitor.clean()
    assert model.exists()
    store.submit(submission(settings={"batch": 1}))
    clock.now += LEFT_OVER_SECONDS
    janitor.clean()
    assert model.exists()


def test_files_that_are_needed_at_the_last_moment_are_kept(
    janitor: Janitor, store: JobStore, folders: Folders, submission: Submit, monkeypatch: pytest.MonkeyPatch
) -> None:
    submitted = submission()
    is_alone = janitor._lease.is_alone

    def submits_first() -> bool:
        store.submit(submitted)
        return is_alone()

    monkeypatch.setattr(janitor._lease, "is_alone", submits_first)
    janitor.clean(is_start=True)
    assert folders.model(submitted.model_sha256).exists()


def test_old_jobs_are_forgotten(
    janitor: Janitor,
    store: JobStore,
    folders: Folders,
    config: ServiceConfig,
    lease: Lease,
    clock: Clock,
    submission: Submit,
) -> None:
    store.submit(submission())
    old = finished(store, lease, folders)
    waiting, _ = store.submit(submission(UNKNOWN))
    recent, _ = store.submit(submission())
    with store.database.write() as connection:
        connection.execute(update(JOBS).where(JOBS.c.id != recent.id).values(created=0.0))
        connection.execute(update(JOBS).where(JOBS.c.id == old.id).values(finished=time.time() - 31 * 86400))
    Janitor(store, folders, config._replace(keep_days=0), lease, clock).clean()
    assert {job.id for job in store.list(None)[0]} == {old.id, waiting.id, recent.id}
    janitor.clean()
    assert {job.id for job in store.list(None)[0]} == {waiting.id, recent.id}
    assert not folders.result(old.id, 1).exists()
    assert not EventLog(folders).read(old.id)


def test_the_model_of_a_deleted_job_is_removed(
    janitor: Janitor, store: JobStore, folders: Folders, lease: Lease, submission: Submit, clock: Clock
) -> None:
    job, _ = store.submit(submission())
    finished(store, lease, folders)
    store.delete(job.id, None)
    janitor.clean()
    assert folders.model(job.model_sha256).exists()
    clock.now += LEFT_OVER_SECONDS
    janitor.clean()
    assert not folders.model(job.model_sha256).exists()


def test_a_directory_deeper_than_paths_may_be_does_not_keep_the_janitor(
    janitor: Janitor, folders: Folders, tmp_path: Path
) -> None:
    before = files(folders)
    out = folders.attempt("1" * 32, 1) / "out"
    out.mkdir(parents=True)
    (out / "sealed").mkdir()
    (out / "sealed" / "x").touch()
    (out / "sealed").chmod(0)
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "x").touch()
    (out / "link").symlink_to(tmp_path / "kept")
    nested(out, 5000)
    made = orphans(folders)
    assert janitor.clean(is_start=True) == len(made)
    assert files(folders) == before
    assert not any(any(folder.iterdir()) for folder in (folders.jobs, folders.results, folders.incoming))
    assert (tmp_path / "kept" / "x").exists()


def nested(folder: Path, depth: int) -> None:
    """Makes directories in each other."""
    descriptor = os.open(folder, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("d", dir_fd=descriptor)
        inner = os.open("d", os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = inner
    os.close(os.open("x", os.O_CREAT | os.O_WRONLY, dir_fd=descriptor))
    os.close(descriptor)


def test_names_that_no_database_compares_are_left_alone(janitor: Janitor, folders: Folders) -> None:
    odd = folders.models / os.fsdecode(b"\xff")
    odd.touch()
    made = orphans(folders)
    assert janitor.clean(is_start=True) == len(made)
    assert odd.exists()
