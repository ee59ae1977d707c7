"""Jobs go from state to state as they may, whoever else does what at the same time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import update

from tests.batch.models import RELU
from tfconvert.batch.task import Outcome
from tfconvert.schema.diagnostics import ConversionError, error
from tfconvert.service.config import ServiceConfig
from tfconvert.service.database.tables import JOBS
from tfconvert.service.events import STATE, EventLog
from tfconvert.service.jobs import JobRecord, JobState, Submission
from tfconvert.service.leases import Lease
from tfconvert.service.storage import Folders, result_name
from tfconvert.service.store import JobStore
from tfconvert.service.tokens import TokenStore

Submit = Callable[..., Submission]
FAILED = Outcome(error("unsupported-op", "no").to_dict())
DONE = Outcome(None, {"size": 3, "operators": 1}, 0.25, 1 << 20)


def claimed(store: JobStore, lease: Lease) -> JobRecord:
    job = store.claim(lease.server)
    assert job is not None
    return job


def succeed(store: JobStore, folders: Folders, job: JobRecord) -> None:
    result = folders.result(job.id, job.attempt)
    result.mkdir(parents=True)
    (result / result_name({})).write_bytes(b"abc")
    assert store.finish(job, JobState.SUCCEEDED, DONE)


def states(folders: Folders, job: str) -> list[str]:
    return [event.name for event in EventLog(folders).read(job) if event.type == STATE]


def test_the_life_of_a_job(store: JobStore, lease: Lease, folders: Folders, submission: Submit) -> None:
    job, is_new = store.submit(submission(settings={"batch": 2}))
    assert is_new
    assert job == store.get(job.id, "me") == store.get(job.id, None)
    assert (job.state, job.attempt, dict(job.settings)) == (JobState.QUEUED, 0, {"batch": 2})
    running = claimed(store, lease)
    assert (running.id, running.state, running.attempt, running.server) == (job.id, "running", 1, lease.server)
    assert store.claim(lease.server) is None
    store.set_stage(running, "export")
    assert store.get(job.id, None).stage == "export"
    succeed(store, folders, running)
    done = store.get(job.id, None)
    assert (done.state, done.result_attempt, done.summary, done.problem) == ("succeeded", 1, DONE.summary, None)
    assert (done.seconds, done.peak, done.is_cached) == (0.25, 1 << 20, False)
    assert done.finished is not None
    assert states(folders, job.id) == ["queued", "running", "succeeded"]
    assert store.counts() == {**dict.fromkeys(JobState, 0), JobState.SUCCEEDED: 1}


def test_equal_jobs_are_converted_once(store: JobStore, lease: Lease, folders: Folders, submission: Submit) -> None:
    first, _ = store.submit(submission())
    second, _ = store.submit(submission())
    other, _ = store.submit(submission(owner="you"))
    assert first.cache_key == second.cache_key != other.cache_key
    running = claimed(store, lease)
    assert running.id == first.id
    assert claimed(store, lease).id == other.id
    assert store.claim(lease.server) is None  # The second waits for the first.
    assert store.find_equal(running) is None
    succeed(store, folders, running)
    assert claimed(store, lease).id == second.id
    third, is_new = store.submit(submission())
    assert is_new
    assert (third.state, third.is_cached, third.result_attempt) == ("succeeded", True, 1)
    assert third == store.get(third.id, "me")
    copy = folders.result(third.id, 1) / result_name({})
    assert copy.samefile(folders.result(first.id, 1) / result_name({}))
    store.delete(first.id, "me")
    assert copy.read_bytes() == b"abc"
    assert not (folders.results / first.id).exists()
    assert not folders.progress(first.id).exists()


def test_a_missing_result_is_made_again(store: JobStore, lease: Lease, folders: Folders, submission: Submit) -> None:
    store.submit(submission())
    running = claimed(store, lease)
    succeed(store, folders, running)
    (folders.result(running.id, 1) / result_name({})).unlink()
    folders.result(running.id, 1).rmdir()
    assert store.submit(submission())[0].state is JobState.QUEUED


@pytest.mark.parametrize(
    "fields",
    [{"settings": {"batch": 1}}, {"model_name": "relu.pb"}, {"calibration_sha256": "x"}, {"text": f"{RELU}\n"}],
)
def test_different_submissions_are_not_equal(
    store: JobStore, folders: Folders, submission: Submit, fields: dict[str, str]
) -> None:
    folders.model("x").touch()
    assert store.submit(submission())[0].cache_key != store.submit(submission(**fields))[0].cache_key


def test_an_idempotency_key_identifies_one_request(store: JobStore, submission: Submit) -> None:
    first, _ = store.submit(submission(idempotency_key="k"))
    assert store.submit(submission(idempotency_key="k")) == (first, False)
    assert store.submit(submission(idempotency_key="k", owner="you"))[1]
    assert store.submit(submission())[1]
    assert store.submit(submission())[1]  # NULLs are not equal.
    with pytest.raises(ConversionError) as caught:
        store.submit(submission(idempotency_key="k", settings={"batch": 1}))
    assert caught.value.code == "idempotency-mismatch"


def test_there_is_back_pressure(store: JobStore, config: ServiceConfig, submission: Submit) -> None:
    def code(owner: str) -> str:
        with pytest.raises(ConversionError) as caught:
            store.submit(submission(owner=owner))
        return caught.value.code

    for _ in range(config.max_active):
        store.submit(submission())
    assert code("me") == "too-many-jobs"
    _, token = TokenStore(store.database).create("ci", max_active=1)
    store.submit(submission(owner=token.id))
    assert code(token.id) == "too-many-jobs"
    store.submit(submission(owner="you"))
    assert code("others") == "queue-full"
    assert store.counts()[JobState.QUEUED] == config.max_queued


def test_uploads_must_exist(store: JobStore, folders: Folders, submission: Submit) -> None:
    lost = submission()
    folders.model(lost.model_sha256).unlink()
    with pytest.raises(ConversionError) as caught:
        store.submit(lost)
    assert caught.value.code == "upload-lost"


def test_jobs_of_others_are_not_there(store: JobStore, submission: Submit) -> None:
    job, _ = store.submit(submission())
    for act in (store.get, store.cancel, store.retry, store.delete):
        for identity, owner in ((job.id, "you"), ("0" * 32, None)):
            with pytest.raises(ConversionError) as caught:
                act(identity, owner)
            assert caught.value.code == "job-not-found"
    assert store.get(job.id, "me") == job


def test_cancelling_and_trying_again(store: JobStore, lease: Lease, folders: Folders, submission: Submit) -> None:
    job, _ = store.submit(submission())
    assert store.cancel(job.id, "me").state is JobState.CANCELLED
    assert store.claim(lease.server) is None
    assert store.retry(job.id, "me").state is JobState.QUEUED
    running = claimed(store, lease)
    assert store.is_cancel_requested([job.id]) == set()
    assert store.cancel(job.id, "me").state is JobState.RUNNING
    assert store.is_cancel_requested([job.id, "x"]) == {job.id}
    assert store.finish(running, JobState.CANCELLED, Outcome(None), has_files=False)
    again = store.retry(job.id, None)
    assert (again.cancel_requested, again.problem, again.finished) == (False, None, None)
    assert states(folders, job.id) == ["queued", "cancelled", "queued", "running", "cancelled", "queued"]


def test_forbidden_transitions(store: JobStore, lease: Lease, folders: Folders, submission: Submit) -> None:
    def refused(act: Callable[[str, str], object]) -> bool:
        with pytest.raises(ConversionError) as caught:
            act(job.id, "me")
        return caught.value.code == "job-state"

    job, _ = store.submit(submission())
    assert refused(store.retry)
    running = claimed(store, lease)
    assert refused(store.retry)
    assert refused(store.delete)
    succeed(store, folders, running)
    assert refused(store.retry)
    assert refused(store.cancel)
    store.delete(job.id, "me")


def test_only_who_holds_a_job_ends_it(store: JobStore, lease: Lease, folders: Folders, submission: Submit) -> None:
    store.submit(submission())
    first = claimed(store, lease)
    assert store.release(first, is_forgiven=True)
    second = claimed(store, lease)
    assert second.attempt == 2
    for late in (first, second._replace(server="x")):
        assert not store.finish(late, JobState.SUCCEEDED, DONE)
        assert not store.release(late, is_forgiven=False)
        store.set_stage(late, "late")
    assert store.get(first.id, None) == second
    assert store.finish(second, JobState.FAILED, FAILED)
    assert not store.finish(second, JobState.SUCCEEDED, DONE)
    assert store.get(first.id, None).problem == FAILED.problem


def test_a_server_that_is_not_known_gets_no_job(store: JobStore, submission: Submit) -> None:
    store.submit(submission())
    assert store.claim("0" * 32) is None
    assert store.counts()[JobState.QUEUED] == 1


def test_a_job_is_not_begun_for_ever(
    store: JobStore, lease: Lease, config: ServiceConfig, folders: Folders, submission: Submit
) -> None:
    job, _ = store.submit(submission())
    assert store.release(claimed(store, lease), is_forgiven=True)
    for _ in range(config.attempts):
        assert store.get(job.id, None).state is JobState.QUEUED
        assert store.requeue_lost() == 0
        assert claimed(store, lease).id == job.id
        with store.database.write() as connection:
            connection.execute(update(JOBS).values(server="dead"))
        assert store.requeue_lost() == 1
    failed = store.get(job.id, None)
    assert failed.state is JobState.FAILED
    assert failed.problem is not None
    assert failed.problem["errors"][0]["code"] == "server-lost"
    store.retry(job.id, None)
    assert store.release(claimed(store, lease), is_forgiven=False)
    assert store.get(job.id, None).state is JobState.QUEUED


def test_a_lost_job_that_was_to_be_cancelled_is(store: JobStore, lease: Lease, submission: Submit) -> None:
    job, _ = store.submit(submission())
    claimed(store, lease)
    store.cancel(job.id, None)
    with store.database.write() as connection:
        connection.execute(update(JOBS).values(server="dead"))
    store.requeue_lost()
    assert store.get(job.id, None).state is JobState.CANCELLED


def test_lists_come_in_pages(store: JobStore, submission: Submit) -> None:
    jobs = [store.submit(submission(model_name=f"a%b{number}.mlir"))[0] for number in range(5)]
    theirs, _ = store.submit(submission(owner="you"))
    found: list[JobRecord] = []
    cursor: str | None = None
    while True:
        page, cursor = store.list("me", before=cursor, limit=2)
        found += page
        if cursor is None:
            break
    assert found == jobs[::-1]
    assert store.list(None)[0] == [theirs, *jobs[::-1]]
    assert store.list(None, limit=6) == ([theirs, *jobs[::-1]], None)
    store.cancel(jobs[1].id, None)
    assert [job.id for job in store.list("me", state="cancelled")[0]] == [jobs[1].id]
    assert [job.id for job in store.list("me", name="A%B3")[0]] == [jobs[3].id]
    assert store.list("me", name="a_b")[0] == []


@pytest.mark.parametrize("cursor", ["x", "zz" * 24, "7ff8000000000000" + "0" * 32, "0" * 16, "0" * 16 + "'" * 32])
def test_cursors_are_not_made_up(store: JobStore, cursor: str) -> None:
    with pytest.raises(ConversionError) as caught:
        store.list(None, before=cursor)
    assert caught.value.code == "bad-config"


def test_each_job_is_claimed_once(store: JobStore, lease: Lease, submission: Submit) -> None:
    expected = {store.submit(submission(settings={"batch": number + 1}))[0].id for number in range(8)}
    barrier = threading.Barrier(4)

    def claim() -> list[str]:
        barrier.wait()
        return [job.id for _ in range(4) if (job := store.claim(lease.server)) is not None]

    with ThreadPoolExecutor(4) as threads:
        found = [each for claims in [threads.submit(claim) for _ in range(4)] for each in claims.result()]
    assert len(found) == len(expected)
    assert set(found) == expected
