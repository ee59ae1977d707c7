"""Workers run jobs as far as they go, and give back what they don't end."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import indent
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from sqlalchemy import update

import tfconvert
from tests.batch.models import ENDLESS, RELU, UNKNOWN
from tfconvert.batch.pool import Pool
from tfconvert.batch.task import Outcome, Task
from tfconvert.converter.process import sandbox
from tfconvert.schema.diagnostics import ConversionError, error
from tfconvert.service import storage, workers
from tfconvert.service.config import ServiceConfig
from tfconvert.service.database.connection import Database
from tfconvert.service.database.tables import JOBS, SERVERS
from tfconvert.service.events import STAGE, STATE, EventLog
from tfconvert.service.jobs import JobRecord, JobState, Submission
from tfconvert.service.leases import Lease
from tfconvert.service.storage import LOG, PAGE, REPORT, Folders, result_name
from tfconvert.service.store import JobStore
from tfconvert.service.workers import Attempt, WorkerPool

Submit = Callable[..., Submission]
Start = Callable[..., WorkerPool]


RULES = """
from tfconvert.patterns import rule, tf, value
PATTERNS = [rule("acme", tf.Elu(value("x")), tf.Relu(value("x")))]
"""


class Shared(Pool):
    """A pool of processes that several servers use, one after the other: starting one takes seconds."""

    def stop(self) -> None:
        for number in list(self._running):
            self.cancel(number)


@pytest.fixture(scope="module")
def shared() -> Iterator[Shared]:
    shared = Shared()
    shared.start()
    yield shared
    Pool.stop(shared)


@pytest.fixture
def start(store: JobStore, folders: Folders, config: ServiceConfig, shared: Shared) -> Iterator[Start]:
    started: list[WorkerPool] = []

    def make(*, retry_seconds: float = 1.0, **settings: Any) -> WorkerPool:
        started.append(WorkerPool(store, folders, config._replace(**settings), shared, retry_seconds))
        started[-1].start()
        return started[-1]

    yield make
    for pool in started:
        pool.stop(0)


@pytest.fixture
def endless(tmp_path: Path) -> str:
    rules = tmp_path / "endless.py"
    # Not at the start, when plug-ins are tried.
    rules.write_text(f"{RULES}\nfrom pathlib import Path\nif Path('out').exists():\n{indent(ENDLESS, '    ')}")
    return os.fspath(rules)


def wait_for(store: JobStore, job: JobRecord, *states: JobState) -> JobRecord:
    until(lambda: store.get(job.id, None).state in (states or tuple(s for s in JobState if s.is_final)))
    return store.get(job.id, None)


def until(holds: Callable[[], object]) -> None:
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)


def left_over(folders: Folders) -> list[Path]:
    return [path for folder in (folders.incoming, folders.jobs) for path in folder.iterdir()]


def code(job: JobRecord) -> str:
    assert job.problem is not None
    return str(job.problem["errors"][0]["code"])


def test_jobs_are_converted_once(start: Start, store: JobStore, folders: Folders, submission: Submit) -> None:
    pool = start()
    job, _ = store.submit(submission())
    twin, _ = store.submit(submission())
    wrong, _ = store.submit(submission(UNKNOWN, model_name="unknown.mlir"))
    pool.wake()
    # Which of the two is converted is left to the database.
    done, same = sorted((wait_for(store, job), wait_for(store, twin)), key=lambda each: each.is_cached)
    assert (done.state, done.attempt, done.result_attempt, done.is_cached) == ("succeeded", 1, 1, False)
    assert (same.state, same.is_cached) == ("succeeded", True)
    result = folders.result(done.id, 1)
    expected = tfconvert.convert(_write(folders.data.parent / "same.mlir"))
    expected.save(folders.data.parent / "same.tflite")
    assert (result / result_name({})).read_bytes() == (folders.data.parent / "same.tflite").read_bytes()
    assert done.summary["size"] == expected.report.size
    report = json.loads((result / REPORT).read_text())
    assert report["operators"] == expected.report.to_dict()["operators"]
    assert report["source"] == "relu.mlir"
    assert " export" in (result / LOG).read_text()
    assert {path.name for path in result.iterdir()} == {result_name({}), REPORT, LOG}
    for path in (REPORT, LOG):
        assert os.fspath(folders.data) not in (result / path).read_text()
    told = EventLog(folders).read(done.id)
    assert [event.name for event in told if event.type == STATE] == ["queued", "running", "succeeded"]
    assert {"unpack", "open", "legalize", "write"} <= {event.name for event in told if event.type == STAGE}
    assert [event.n for event in told] == list(range(1, len(told) + 1))
    assert (folders.result(same.id, same.result_attempt) / result_name({})).samefile(result / result_name({}))
    failed = wait_for(store, wrong)
    assert (failed.state, code(failed), failed.result_attempt) == ("failed", "unsupported-op", 1)
    kept = folders.result(wrong.id, 1)
    assert [path.name for path in kept.iterdir()] == [LOG]
    assert "unsupported-op" in (kept / LOG).read_text()
    until(lambda: not left_over(folders))
    assert pool.is_alive


def _data(page: str, name: str) -> Any:
    """Returns a block of data in the page of a report."""
    found = re.search(rf'<script type="application/json" id="{name}">(.*?)</script>', page, re.DOTALL)
    assert found is not None, page[:1000]
    return json.loads(found[1])


def test_the_page_of_a_report_is_made_when_it_is_requested(
    start: Start, store: JobStore, folders: Folders, submission: Submit, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = start()
    job, _ = store.submit(submission())
    pool.wake()
    done = wait_for(store, job)
    result = folders.result(done.id, 1)
    before = {path.name: path.read_bytes() for path in result.iterdir()}
    pool.make_page(done)
    page = (result / PAGE).read_text()
    # The report is that of the job; the graphs are those of a conversion of now.
    report = {key: value for key, value in json.loads(before[REPORT]).items() if key != "output_file"}
    assert {**_data(page, "report"), **_data(page, "times")} == report
    assert [node["op"] for node in _data(page, "graphs")["after"][0]["nodes"]] == ["Input", "RELU", "Output"]
    assert "<title>relu.mlir" in page
    assert os.fspath(folders.data) not in page
    assert {path.name: path.read_bytes() for path in result.iterdir() if path.name != PAGE} == before
    assert not left_over(folders)
    monkeypatch.setattr(pool._pool, "run", lambda *arguments: pytest.fail("it is made once"))
    pool.make_page(done)


def test_the_data_directory_may_be_relative(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert Folders(Path("data")).results == tmp_path / "data" / "results"


def test_jobs_get_no_secrets_of_the_server(
    store: JobStore, folders: Folders, config: ServiceConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    hidden = {"PGPASSWORD", "AWS_SECRET_ACCESS_KEY", "TFCONVERT_TOKEN", "TFCONVERT_SERVICE_DATABASE", "my_api_key"}
    for name in (*hidden, "LANG"):
        monkeypatch.setenv(name, "x")
    environment = WorkerPool(store, folders, config)._pool._environment
    assert {*os.environ} - {*environment} >= hidden
    assert {"LANG", "PATH"} <= environment.keys()


def test_only_files_of_a_job_are_published(folders: Folders, store: JobStore, submission: Submit, lease: Lease) -> None:
    store.submit(submission())
    job = store.claim(lease.server)
    assert job is not None
    out = folders.attempt(job.id, job.attempt) / "out"
    (out / "inside").mkdir(parents=True)
    (out / "inside" / "x").touch()
    (out / "model.tflite").symlink_to(folders.database)
    os.mkfifo(out / REPORT)
    (out / LOG).write_text("said")
    storage.publish(folders, job)
    assert [path.name for path in folders.result(job.id, job.attempt).iterdir()] == [LOG]


def test_a_page_has_no_graphs_if_the_model_is_gone(
    start: Start, store: JobStore, folders: Folders, submission: Submit
) -> None:
    pool = start()
    job, _ = store.submit(submission())
    pool.wake()
    done = wait_for(store, job)
    folders.model(job.model_sha256).unlink()
    pool.make_page(done)
    page = (folders.result(done.id, 1) / PAGE).read_text()
    assert _data(page, "graphs") is None
    assert _data(page, "report")["operators"] == {"RELU": 1}
    assert not left_over(folders)


def test_a_page_has_no_graphs_if_they_take_too_long(
    store: JobStore, folders: Folders, config: ServiceConfig, submission: Submit
) -> None:
    pool = WorkerPool(store, folders, config._replace(page_seconds=0.001))
    pool.start()
    try:
        job, _ = store.submit(submission())
        pool.wake()
        done = wait_for(store, job)
        pool.make_page(done)
    finally:
        pool.stop(0)
    page = (folders.result(done.id, 1) / PAGE).read_text()
    assert _data(page, "graphs") is None
    assert not left_over(folders)


def test_no_page_is_made_after_a_passing_failure(
    start: Start, store: JobStore, folders: Folders, submission: Submit, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = start()
    job, _ = store.submit(submission())
    pool.wake()
    done = wait_for(store, job)
    for outcome, expected in (
        (Outcome(error("job-cancelled", "it was cancelled").to_dict()), "service-stopping"),
        (Outcome(error("worker-lost", "it has died").to_dict(), is_lost=True), "service-not-ready"),
        (Outcome(error("output-not-writable", "the disk is full").to_dict()), "storage-failed"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(pool._pool, "run", lambda *arguments, outcome=outcome: outcome)
            with pytest.raises(ConversionError) as caught:
                pool.make_page(done)
        assert caught.value.code == expected
        assert not (folders.result(done.id, 1) / PAGE).exists()
    problem = error("storage-failed", "no room on /secret")
    problem.__cause__ = OSError()
    with monkeypatch.context() as patch:
        patch.setattr(Attempt, "prepare_page", Mock(side_effect=problem))
        with pytest.raises(ConversionError, match=r"^(?!.*secret).*incident"):
            pool.make_page(done)
    pool.make_page(done)
    assert (folders.result(done.id, 1) / PAGE).exists()


def test_a_job_that_runs_its_model_has_its_page_at_once(
    start: Start, store: JobStore, folders: Folders, submission: Submit
) -> None:
    pool = start()
    job, _ = store.submit(submission(settings={"verify": True}))
    pool.wake()
    done = wait_for(store, job)
    assert _data((folders.result(done.id, 1) / PAGE).read_text(), "graphs")["before"]


def _write(path: Path) -> Path:
    path.write_text(RELU)
    return path


def test_a_model_elsewhere_is_looked_at_again(
    start: Start, store: JobStore, folders: Folders, submission: Submit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is changed before a job is begun, and while another is converted."""
    path = tmp_path / "models" / "net.mlir"
    path.parent.mkdir()
    given: dict[str, Any] = {"roots": (str(path.parent),)}

    def submit() -> JobRecord:
        named = submission(place=os.fspath(path), model_sha256="", model_name=path.name, size_in=0)
        return store.submit(named)[0]

    def operators(job: JobRecord) -> list[str]:
        return list(json.loads((folders.result(job.id, job.result_attempt) / REPORT).read_text())["operators"])

    path.write_text(RELU)
    late = submit()
    path.write_text(RELU.replace("tf.Relu", "tf.Elu"))
    pool = start(**given)
    ended = [wait_for(store, late), wait_for(store, submit())]
    pool.stop(0)
    path.write_text(RELU)
    waiting = [submit(), submit()]
    pool = start(**given)
    ended += sorted((wait_for(store, job) for job in waiting), key=lambda each: each.is_cached)
    pool.stop(0)
    prepare = Attempt.prepare

    def prepare_and_change(attempt: Attempt) -> Task:
        task = prepare(attempt)
        path.touch()
        return task

    monkeypatch.setattr(Attempt, "prepare", prepare_and_change)
    path.touch()
    start(**given)
    ended += [wait_for(store, submit()), wait_for(store, submit())]
    assert [(each.state, each.is_cached, operators(each)) for each in ended] == [
        ("succeeded", False, ["ELU"]),
        ("succeeded", True, ["ELU"]),
        ("succeeded", False, ["RELU"]),
        ("succeeded", True, ["RELU"]),
        ("succeeded", False, ["RELU"]),
        ("succeeded", False, ["RELU"]),
    ]


def test_samples_and_plug_ins_reach_the_job(
    start: Start, store: JobStore, folders: Folders, submission: Submit, tmp_path: Path
) -> None:
    rules = tmp_path / "rules.py"
    rules.write_text(RULES)
    start(patterns=(os.fspath(rules),))
    np.savez(tmp_path / "samples.npz", x=np.ones((2, 2), np.float32))
    folders.model("0" * 64).write_bytes((tmp_path / "samples.npz").read_bytes())
    settings = {"quantize": {"mode": "int8", "io": "int8"}}
    job, _ = store.submit(submission(settings=settings, calibration_sha256="0" * 64))
    done = wait_for(store, job)
    assert done.settings == settings
    assert done.state is JobState.SUCCEEDED, done.problem


# Plug-ins of a server that use a module, a package and a file of their own directory, and the wrong ones.
_USES = """
import runpy
from pathlib import Path
here = Path(__file__).parent
assert runpy.run_path(str(here / "beside.py"))["READ"]
assert runpy.run_path(str(here / "package" / "inner.py"))["READ"]
"""
_SECRET = "open(here / 'secret.txt')\n"


@pytest.mark.skipif(not sandbox.is_available(), reason="this system has no Landlock of Linux 6.12")
def test_plug_ins_of_the_server_can_be_read_and_not_what_is_beside(
    start: Start, store: JobStore, submission: Submit, tmp_path: Path, log: io.StringIO
) -> None:
    plugins = tmp_path / "plugins"
    (plugins / "package").mkdir(parents=True)
    (plugins / "rules.py").write_text(_USES + RULES)
    (plugins / "beside.py").write_text("READ = 1\n")
    (plugins / "package" / "inner.py").write_text("READ = 1\n")
    (plugins / "secret.txt").write_text("secret")
    (plugins / "ops.pbtxt").write_text('op { name: "Acme" }\n')
    given = {"patterns": (os.fspath(plugins / "rules.py"),), "op_defs": os.fspath(plugins / "ops.pbtxt")}
    start(**given)
    job, _ = store.submit(submission(settings={"verify": True}))
    done = wait_for(store, job)
    assert done.state is JobState.SUCCEEDED, done.problem
    (plugins / "rules.py").write_text(_USES + _SECRET + RULES)
    job, _ = store.submit(submission(settings={"batch": 2}))
    done = wait_for(store, job)
    _incident(done, log.getvalue(), "bad-plugin")
    for text in (os.fspath(tmp_path), "rules.py", "PermissionError"):
        assert text not in json.dumps(done.problem)
        assert text in log.getvalue()


@pytest.mark.parametrize(
    ("setting", "name", "text", "found"),
    [
        ("patterns", "rules.py", None, "wrong-option"),
        ("patterns", "rules.py", "PATTERNS = [pattern]", "bad-plugin"),
        ("patterns", "rules.py", "import missing_module", "bad-plugin"),
        ("patterns", "rules.py", "PATTERNS = []", "wrong-option"),
        ("patterns", "nobody.has.this", None, "wrong-option"),
        ("composites", "fusions.py", None, "wrong-option"),
        ("composites", "fusions.py", "1 / 0", "bad-plugin"),
        ("op_defs", "ops.pbtxt", None, "unreadable-file"),
        ("op_defs", "ops.pbtxt", "op { nam", "bad-op-list"),
    ],
)
def test_plugins_that_cannot_be_loaded_stop_the_start(
    start: Start, folders: Folders, tmp_path: Path, setting: str, name: str, text: str | None, found: str
) -> None:
    path = tmp_path / name
    if text is not None:
        path.write_text(text)
    given = os.fspath(path) if path.suffix in (".py", ".pbtxt") else name
    with pytest.raises(ConversionError) as caught:
        start(**{setting: given if setting == "op_defs" else (given,)})
    assert caught.value.code == found
    assert name in str(caught.value)
    assert not list(folders.incoming.iterdir())


def test_invalid_models_fail(start: Start, store: JobStore, submission: Submit) -> None:
    start()
    job, _ = store.submit(submission("not a model", model_name="model.zip"))
    assert code(wait_for(store, job)) == "unknown-model"


def test_a_running_job_is_cancelled(
    start: Start, store: JobStore, submission: Submit, folders: Folders, endless: str
) -> None:
    start(patterns=(endless,), workers=1)
    job, _ = store.submit(submission())
    wait_for(store, job, JobState.RUNNING)
    store.cancel(job.id, "me")
    done = wait_for(store, job)
    assert (done.state, done.problem) == (JobState.CANCELLED, None)
    until(lambda: not left_over(folders))


def test_a_job_that_takes_too_long_fails(start: Start, store: JobStore, submission: Submit, endless: str) -> None:
    start(patterns=(endless,), seconds=0.5)
    job, _ = store.submit(submission())
    assert code(wait_for(store, job)) == "job-timeout"


def test_running_jobs_go_back_to_the_queue_at_the_end(
    start: Start, store: JobStore, submission: Submit, folders: Folders, endless: str
) -> None:
    pool = start(patterns=(endless,), workers=1)
    job, _ = store.submit(submission())
    wait_for(store, job, JobState.RUNNING)
    pool.stop(0.1)
    assert not pool.is_alive
    waiting = store.get(job.id, None)
    assert (waiting.state, waiting.attempt, waiting.server) == (JobState.QUEUED, 1, "")
    assert not left_over(folders)
    assert not list(folders.servers.iterdir())
    start()
    done = wait_for(store, job)
    assert (done.state, done.attempt, done.result_attempt) == (JobState.SUCCEEDED, 2, 2)
    assert [path.name for path in (folders.results / job.id).iterdir()] == ["2"]


def test_jobs_survive_the_process_that_forks(start: Start, store: JobStore, submission: Submit, endless: str) -> None:
    pool = start(patterns=(endless,))
    job, _ = store.submit(submission())
    wait_for(store, job, JobState.RUNNING)
    until(lambda: any(run.number for run in pool._runs.values()))
    process = pool._pool.process
    assert process is not None
    Path(endless).write_text(RULES)
    os.kill(process, signal.SIGKILL)
    done = wait_for(store, job)
    assert (done.state, done.attempt) == (JobState.SUCCEEDED, 2)


def test_a_result_of_a_job_that_was_lost_is_thrown_away(
    start: Start, store: JobStore, submission: Submit, folders: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish = storage.publish

    def late(folders: Folders, job: JobRecord, **options: bool) -> None:
        publish(folders, job, **options)
        with store.database.write() as connection:  # Another server has taken this one for dead.
            connection.execute(update(JOBS).values(server="other"))

    monkeypatch.setattr(storage, "publish", late)
    pool = start(workers=1)
    job, _ = store.submit(submission())
    until((folders.results / job.id).exists)
    until(lambda: not left_over(folders) and not pool._runs)
    assert not folders.result(job.id, 1).exists()


def test_how_a_job_ended_is_written_when_the_database_is_back(
    start: Start, store: JobStore, submission: Submit, monkeypatch: pytest.MonkeyPatch
) -> None:
    finish = store.finish
    refused: list[int] = []

    def away(*arguments: Any, **options: Any) -> bool:
        if len(refused) < 3:
            refused.append(1)
            raise error("database-away", "it is away")
        return finish(*arguments, **options)

    monkeypatch.setattr(store, "finish", away)
    start(retry_seconds=0.01)
    job, _ = store.submit(submission())
    assert wait_for(store, job).state is JobState.SUCCEEDED
    assert len(refused) == 3


def _incident(job: JobRecord, log: str, kind: str = "internal-error") -> str:
    """Returns the number of the incident that a failed job shows, which the server's log must have."""
    assert code(job) == kind
    assert job.problem is not None
    found = re.search(r"\(incident ([0-9a-f]{8})\)", job.problem["errors"][0]["message"])
    assert found is not None, job.problem
    assert f"incident {found[1]}: " in log
    return found[1]


def test_a_job_whose_end_is_refused_fails_with_an_incident(
    start: Start,
    store: JobStore,
    submission: Submit,
    folders: Folders,
    monkeypatch: pytest.MonkeyPatch,
    log: io.StringIO,
) -> None:
    finish = store.finish

    def refuse(job: JobRecord, state: JobState, *arguments: Any, **options: Any) -> bool:
        if state is JobState.SUCCEEDED:
            raise error("internal-error", "the database refuses a statement: a secret")
        return finish(job, state, *arguments, **options)

    monkeypatch.setattr(store, "finish", refuse)
    pool = start(retry_seconds=0.01, workers=1)
    job, _ = store.submit(submission())
    done = wait_for(store, job)
    _incident(done, log.getvalue())
    assert "a secret" not in str(done.problem)
    assert "a secret" in log.getvalue()
    until(lambda: not left_over(folders) and not folders.result(job.id, 1).exists())
    monkeypatch.undo()
    assert wait_for(store, store.submit(submission(f"{RELU} "))[0]).state is JobState.SUCCEEDED
    assert pool.problem == ""


def test_a_job_of_which_nothing_can_be_recorded_goes_back_once_it_can(
    start: Start, store: JobStore, submission: Submit, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: Any, **options: Any) -> bool:
        raise KeyError("x")

    monkeypatch.setattr(store, "finish", refuse)
    monkeypatch.setattr(workers, "HEARTBEAT_SECONDS", 0.1)
    pool = start(retry_seconds=0.01, workers=1)
    monkeypatch.setattr(store, "release", refuse)
    job, _ = store.submit(submission())
    until(lambda: pool.problem == "1 stuck")
    monkeypatch.undo()
    pool.check_cancelled()
    assert wait_for(store, job).state is JobState.SUCCEEDED
    until(lambda: pool.problem == "")


def test_jobs_that_are_stuck_are_counted(
    start: Start, store: JobStore, submission: Submit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "_STUCK_SECONDS", 0.05)

    def away(*arguments: Any, **options: Any) -> bool:
        raise error("database-away", "it is away")

    monkeypatch.setattr(store, "finish", away)
    pool = start(retry_seconds=0.01)
    assert pool.problem == ""
    job, _ = store.submit(submission())
    until(lambda: pool.problem == "1 stuck")
    monkeypatch.undo()
    assert wait_for(store, job).state is JobState.SUCCEEDED
    until(lambda: pool.problem == "")


def test_an_infinite_fidelity_is_null_and_ends(
    start: Start, store: JobStore, folders: Folders, submission: Submit
) -> None:
    """Nothing of the model is quantized, so that the results are the same."""
    start()
    job, _ = store.submit(submission(settings={"quantize": "dynamic", "verify": True}))
    done = wait_for(store, job)
    assert done.state is JobState.SUCCEEDED, done.problem
    fidelity = done.summary["fidelity"]
    assert (fidelity["snr"], fidelity["why_null"]["snr"]) == (None, "infinite")
    report = (folders.result(job.id, 1) / REPORT).read_text()
    assert json.loads(report, parse_constant=pytest.fail)["quantization"]["fidelity"]["snr"] is None


_BROKEN = """
from pathlib import Path
from tfconvert.batch import run_task
from tfconvert.patterns import rule, tf, value

def summary_of(*_):
    raise KeyError(__file__)

if Path("out").exists():  # Not in the trial at the start.
    run_task.summary_of = summary_of
PATTERNS = [rule("acme", tf.Elu(value("x")), tf.Relu(value("x")))]
"""


def test_traces_are_in_the_log_of_the_server_only(
    start: Start, store: JobStore, folders: Folders, submission: Submit, tmp_path: Path, log: io.StringIO
) -> None:
    rules = tmp_path / "broken.py"
    rules.write_text(_BROKEN)
    start(patterns=(os.fspath(rules),))
    job, _ = store.submit(submission())
    done = wait_for(store, job)
    number = _incident(done, log.getvalue())
    assert "Traceback" in log.getvalue()
    assert rules.name in log.getvalue()
    shown = (folders.result(job.id, 1) / LOG).read_text()
    assert number in shown
    for text in (shown, str(done.problem)):
        assert "Traceback" not in text
        assert rules.name not in text


def test_a_full_disk_fails_the_job(
    start: Start, store: JobStore, submission: Submit, folders: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*arguments: Any, **options: Any) -> None:
        raise error("storage-failed", "the server can't keep files: No space left on device")

    monkeypatch.setattr(storage, "publish", full)
    start()
    job, _ = store.submit(submission())
    done = wait_for(store, job)
    assert (code(done), done.result_attempt) == ("storage-failed", 0)
    until(lambda: not left_over(folders))


def test_an_internal_error_fails_only_its_job(
    start: Start, store: JobStore, submission: Submit, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish = storage.publish
    wrong: list[int] = []

    def broken(*arguments: Any, **options: Any) -> None:
        if not wrong:
            wrong.append(1)
            raise KeyError("x")
        publish(*arguments, **options)

    monkeypatch.setattr(storage, "publish", broken)
    pool = start(workers=1)
    first, _ = store.submit(submission())
    assert code(wait_for(store, first)) == "internal-error"
    assert wait_for(store, store.retry(first.id, None)).state is JobState.SUCCEEDED
    assert pool.is_alive


def test_jobs_of_a_dead_server_are_reassigned(
    start: Start, store: JobStore, submission: Submit, folders: Folders, database: Database
) -> None:
    job, _ = store.submit(submission())
    with database.write() as connection:
        connection.execute(SERVERS.insert().values(id="dead", host="here", pid=1, beat=1, started=0.0))
    assert store.claim("dead") is not None
    with database.write() as connection:
        connection.execute(SERVERS.delete())
    (folders.attempt(job.id, 1) / "out").mkdir(parents=True)
    start()
    done = wait_for(store, job)
    assert (done.state, done.attempt) == (JobState.SUCCEEDED, 2)
    until(lambda: not left_over(folders))


@pytest.mark.parametrize(
    ("failures", "code", "expected"), [(2, "worker-lost", 3), (3, "worker-lost", 3), (1, "no-workers", 1)]
)
def test_the_process_that_forks_may_be_killed_at_the_start(
    start: Start, shared: Shared, monkeypatch: pytest.MonkeyPatch, failures: int, code: str, expected: int
) -> None:
    tried: list[int] = []

    def killed() -> None:
        tried.append(1)
        if len(tried) <= failures:
            raise error(code, "it was killed")

    monkeypatch.setattr(shared, "start", killed)
    if failures < expected:
        assert start().is_alive
    else:
        with pytest.raises(ConversionError, match="it was killed"):
            start()
    assert len(tried) == expected


def test_a_server_may_run_no_jobs(start: Start, store: JobStore, submission: Submit) -> None:
    pool = start(workers=0)
    assert pool.is_alive
    job, _ = store.submit(submission())
    pool.wake()
    assert store.get(job.id, None).state is JobState.QUEUED


def test_a_pool_that_was_not_started_can_be_stopped(store: JobStore, folders: Folders, config: ServiceConfig) -> None:
    before = threading.active_count()
    WorkerPool(store, folders, config).stop(1)
    assert threading.active_count() == before
