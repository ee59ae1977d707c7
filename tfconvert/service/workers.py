"""Threads that take jobs from the queue, run them in processes, and renew this server's lease."""

from __future__ import annotations

import json
import logging
import math
import os
import re
import secrets
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from tfconvert.batch.cache_key import is_run
from tfconvert.batch.pool import Pool
from tfconvert.batch.task import CANCELLED, Outcome, Task
from tfconvert.converter.pipeline.plugins import plugin_files
from tfconvert.converter.targets.output_form import form_of
from tfconvert.importers.archive import ArchiveLimits
from tfconvert.importers.open_model import is_ir
from tfconvert.report.page import render
from tfconvert.report.report import write_page
from tfconvert.schema.diagnostics import ConversionError, Diagnostic, error
from tfconvert.service import archives, model_places, storage
from tfconvert.service.config import ServiceConfig
from tfconvert.service.events import STAGE
from tfconvert.service.incidents import concealed, incident
from tfconvert.service.janitor import Janitor
from tfconvert.service.jobs import JobRecord, JobState
from tfconvert.service.leases import HEARTBEAT_SECONDS, Lease
from tfconvert.service.model_kinds import KERAS_SUFFIXES
from tfconvert.service.storage import LOG, PAGE, REPORT, Folders, remove, result_name, storing, sync
from tfconvert.service.store import JobStore
from tfconvert.settings.targets import Iree


class Attempt:
    """The directory of an attempt, as a context manager that removes it at the end.

    Args:
        folders: The data directory.
        config: The server's settings.
        job: The job, as it was claimed.
        folder: The directory; by default that of the attempt.
    """

    def __init__(self, folders: Folders, config: ServiceConfig, job: JobRecord, folder: Path | None = None) -> None:
        self._folders = folders
        self._config = config
        self._job = job
        self._folder = folders.attempt(job.id, job.attempt) if folder is None else folder
        self._out = self._folder / "out"
        self._log = -1

    def __enter__(self) -> Attempt:
        """Creates the directory."""
        with storing():
            remove(self._folder)
            self._out.mkdir(mode=0o700, parents=True)
        return self

    def __exit__(self, *problem: object) -> None:
        """Removes the directory."""
        if self._log >= 0:
            os.close(self._log)
        remove(self._folder)
        try:
            self._folder.parent.rmdir()
        except OSError:
            return  # Something else is there, or the janitor removes it.

    def prepare(self) -> Task:
        """Unpacks the model, and returns the task for a process."""
        limits = self._config.archive_limits
        target = self._folder / "model"
        out = Path("out")
        job = self._job
        if job.place:
            model = model_places.resolve(job.place, self._config.roots, target, limits)
        else:
            model = archives.unpack(self._folders.model(job.model_sha256), target, limits, job.model_name)
        # Loading TensorFlow takes longer than the page.
        is_keras = model.suffix in KERAS_SUFFIXES
        return Task(
            self._relative(model),
            os.fspath(out / result_name(job.settings)),
            self._settings(model, limits),
            os.fspath(out / REPORT),
            os.fspath(out / PAGE) if is_keras or has_page(job) else "",
            os.fspath(out / LOG),
            os.fspath(self._folder),
            name=job.model_name,
            is_served=True,
            is_confined=True,
            readable=self._readable(model),
        )

    def prepare_page(self, report: Path) -> Task:
        """Unpacks the model, and returns the task that writes the page of a report."""
        return self.prepare()._replace(output="", report=os.fspath(report), page=os.fspath(self.page), log="")

    @property
    def page(self) -> Path:
        """The page that the task of `prepare_page` writes."""
        return self._out / PAGE

    def note(self, text: str) -> None:
        """Appends a line to the log; on a full disk it is lost."""
        try:
            if self._log < 0:
                self._log = os.open(self._out / LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            os.write(self._log, f"{text}\n".encode(errors="backslashreplace"))
        except OSError:
            return

    def _settings(self, model: Path, limits: ArchiveLimits) -> Mapping[str, Any]:
        """Returns the settings of the job, with the server's plug-ins and the paths of samples."""
        settings = _with_plugins(self._job.settings, self._config, model)
        if self._job.calibration_sha256:
            samples = self._folders.model(self._job.calibration_sha256)
            paths = archives.unpack_samples(samples, self._folder / "samples", limits)
            quantize = settings.get("quantize", "int8")
            given = quantize if isinstance(quantize, dict) else {"mode": quantize}
            settings["quantize"] = {**given, "samples": list(map(self._relative, paths))}
        return settings

    def _readable(self, model: Path) -> Sequence[str]:
        """Returns what the job can read beside its directory: the server's plug-ins, and a model that is not in it."""
        beside = [] if model.is_relative_to(self._folder) else [model if model.is_dir() else model.parent]
        paths = [*_plugin_paths(self._config), *map(_absolute, beside)]
        return [path for path in paths if not self._folder.is_relative_to(path)]

    def _relative(self, path: str | os.PathLike[str]) -> str:
        """Returns a path relative to the attempt's directory, or unchanged if it is outside."""
        place = Path(path)
        return os.fspath(place.relative_to(self._folder) if place.is_relative_to(self._folder) else place)


def _with_plugins(given: Mapping[str, Any], config: ServiceConfig, model: Path) -> dict[str, Any]:
    """Returns the settings of a job with the server's plug-ins."""
    settings = dict(given)
    if config.patterns:
        settings["patterns"] = [*map(_plugin, config.patterns)]
    if config.composites:
        settings["composites"] = [*settings.get("composites", ()), *map(_plugin, config.composites)]
    if config.op_defs and not is_ir(model):
        settings["op_defs"] = _absolute(config.op_defs)
    return settings


def _plugin(name: str) -> str:
    """Returns the path of a plug-in in jobs, which run in other directories, or the name of an entry point."""
    return _absolute(name) if name.endswith(".py") else name


def _plugin_paths(config: ServiceConfig) -> list[str]:
    """Returns the files of the server's plug-ins, and what they may import."""
    op_defs = [config.op_defs] if config.op_defs else []
    return [*map(_absolute, plugin_files([*config.patterns, *config.composites])), *map(_absolute, op_defs)]


# The smallest graph that all plug-ins are loaded for.
_TRIAL = """
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "shape" value { shape { dim { size: 1 } } } } }
node { name: "y" op: "Identity" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
"""


def has_page(job: JobRecord) -> bool:
    """Returns whether a job's report gets its page with the result, rather than when it is first requested.

    The page needs the graphs before and after the conversion, which take a quarter of the time of a job, and most pages
    are never requested. To make one later, the model is converted again. That is no choice if the conversion also runs
    or compiles the model, which takes long, or if the model is not an upload and may have changed meanwhile.
    """
    return bool(job.place) or is_run(job.settings) or form_of("", job.settings).target == Iree.name


def _absolute(path: str | os.PathLike[str]) -> str:
    return os.fspath(Path(path).absolute())


def _write_short_page(report: Path, page: Path) -> None:
    """Writes the page of a report without graphs."""
    with storing():
        data = json.loads(report.read_text("utf-8"))
    write_page(page, render(data))


# Names of environment variables that jobs must not know.
_SECRET = re.compile(r"SECRET|TOKEN|PASSW|KEY|CREDENTIAL|DATABASE|^PG|^TFCONVERT_SERVICE_", re.IGNORECASE)

_LOG = logging.getLogger("tfconvert.service")


def _without_secrets(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if not _SECRET.search(name)}


# Seconds between polls for jobs that other servers have queued.
_POLL_SECONDS = 0.5

# Seconds between polls for jobs to cancel, since any server may receive the request.
_CANCEL_SECONDS = 1.0

# Seconds between two rounds of the janitor.
_CLEAN_SECONDS = 60.0

# Attempts to start the fork server, which may be killed at any time.
_START_ATTEMPTS = 3

# Errors after which the same change may be accepted later.
_AWAY = "database-away"
_TRANSIENT = (_AWAY, "storage-failed")

# The parts of a job that each have a time limit: fetching or unpacking a model, and samples, and converting.
_PHASES = 4

# Further seconds after which a job counts as stuck.
_STUCK_SECONDS = 60.0

# Seconds that threads get to end after their jobs.
_SHUTDOWN_SECONDS = 15.0


class _RunningJob:
    """A job that runs here.

    Attributes:
        job: The job, as it was claimed.
        begin: When it began, by the monotonic clock.
        number: Its number in the pool; 0 before it has one.
        stage: The last stage.
        noted: The last stage in the database.
        is_cancelled: Whether its owner has cancelled it.
        unwritten: Since when its end can't be written, by the monotonic clock; 0 if it can.
    """

    __slots__ = ("begin", "is_cancelled", "job", "noted", "number", "stage", "unwritten")

    def __init__(self, job: JobRecord) -> None:
        self.job = job
        self.begin = time.monotonic()
        self.number = 0
        self.stage = ""
        self.noted = ""
        self.is_cancelled = False
        self.unwritten = 0.0


class _Caught:
    """A context manager that suppresses exceptions, so that a thread continues with the next job.

    Attributes:
        problem: The error, or `None`.
    """

    __slots__ = ("problem",)

    def __init__(self) -> None:
        self.problem: ConversionError | None = None

    def __enter__(self) -> _Caught:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> bool:
        """Records and logs the exception."""
        if isinstance(problem, ConversionError):
            self.problem = concealed(problem)
            if self.problem is problem:
                _LOG.warning("%s", problem)
        elif problem is not None:
            self.problem = incident("the server failed unexpectedly", problem)
        return True


class WorkerPool:
    """Runs the jobs of a store, up to the configured number concurrently.

    Args:
        store: The jobs.
        folders: The data directory.
        config: The server's settings.
        pool: The processes; by default its own.
        retry_seconds: Seconds between attempts while the database refuses.
    """

    def __init__(
        self,
        store: JobStore,
        folders: Folders,
        config: ServiceConfig,
        pool: Pool | None = None,
        retry_seconds: float = 1.0,
    ) -> None:
        self._store = store
        self._retry_seconds = retry_seconds
        self._folders = folders
        self._config = config
        self._lease = Lease(store.database, folders)
        self._janitor = Janitor(store, folders, config, self._lease)
        self._pool = pool or Pool(_without_secrets(os.environ))
        self._jobs = threading.Condition()
        self._wakes = 0
        self._runs: dict[str, _RunningJob] = {}
        self._abandoned: dict[str, JobRecord] = {}
        self._is_ready = threading.Event()
        self._is_stopping = threading.Event()
        self._is_over = threading.Event()
        self._is_cancelling = threading.Event()
        self._start_problem: ConversionError | None = None
        self._threads: list[threading.Thread] = []
        self._idle = threading.Semaphore(0)

    @property
    def server_id(self) -> str:
        return self._lease.server

    @property
    def is_alive(self) -> bool:
        """Whether jobs are taken and run."""
        return bool(self._threads) and all(thread.is_alive() for thread in self._threads)

    @property
    def stuck(self) -> int:
        """The number of jobs whose time is long over, or whose end can't be recorded."""
        now = time.monotonic()
        longest = _PHASES * self._config.seconds + _STUCK_SECONDS if self._config.seconds else math.inf
        late = (
            now - run.begin > longest or (run.unwritten and now - run.unwritten > _STUCK_SECONDS)
            for run in list(self._runs.values())
        )
        return sum(map(bool, late)) + len(self._abandoned)

    @property
    def problem(self) -> str:
        """Why the server isn't ready to run jobs; empty if it is."""
        stuck = self.stuck
        return "dead" if not self.is_alive else f"{stuck} stuck" if stuck else ""

    def start(self) -> None:
        """Removes leftovers of previous servers, and starts to run jobs.

        Raises:
            ConversionError: The database or the data directory can't be used, or processes can't be started.
        """
        self._lease.begin()
        self._requeue_lost()
        with _Caught():
            self._janitor.clean(is_start=True)
        tasks = [self._monitor, self._clean] + [self._work] * self._config.workers
        self._threads = [threading.Thread(target=task, name=f"tfconvert-{task.__name__}") for task in tasks]
        for thread in self._threads:
            thread.daemon = True
            thread.start()
        self._is_ready.wait()
        if self._start_problem is not None:
            self.stop(0)
            raise self._start_problem

    def wake(self) -> None:
        """Wakes threads that wait for jobs."""
        with self._jobs:
            self._wakes += 1
            self._jobs.notify_all()

    def check_cancelled(self) -> None:
        """Checks for jobs to cancel now."""
        self._is_cancelling.set()

    def make_page(self, job: JobRecord) -> None:
        """Writes the page of a job's report, unless it exists.

        It has no graphs if the model can't be converted again within the limits.

        Raises:
            ConversionError: The server is stopping (`service-stopping`), the process died (`service-not-ready`), files
                can't be written (`storage-failed`), or the job was deleted (`job-not-found`).
        """
        result = self._folders.result(job.id, job.result_attempt)
        page = result / PAGE
        if page.exists():
            return
        folder = self._folders.incoming / secrets.token_hex(16) / "page"
        with Attempt(self._folders, self._config, job, folder) as attempt:
            outcome = self._paged(attempt, result / REPORT)
            if outcome.code == CANCELLED:
                raise error("service-stopping", "the server is about to stop", hint="try again in a while")
            if outcome.is_lost:
                raise error("service-not-ready", outcome.message, hint="try again")
            if outcome.code in ("storage-failed", "output-not-writable"):
                raise error("storage-failed", outcome.message)
            if outcome.problem is not None:
                _LOG.warning("the page of job %s has no graphs: %s", job.id, outcome.message)
                _write_short_page(result / REPORT, attempt.page)
            with storing():
                sync(attempt.page)
                try:
                    attempt.page.rename(page)
                except FileNotFoundError:
                    raise error("job-not-found", "the job was deleted") from None

    def _paged(self, attempt: Attempt, report: Path) -> Outcome:
        try:
            task = attempt.prepare_page(report)
        except ConversionError as problem:
            return Outcome(concealed(problem).to_dict())
        return self._pool.run(task, self._config.page_limits)

    def stop(self, grace: float) -> None:
        """Stops: starts no more jobs, and returns running ones to the queue after the grace period.

        Args:
            grace: The grace period in seconds.
        """
        if self._is_over.is_set():
            return
        self._is_stopping.set()
        self.wake()
        if self._threads:
            left = self._wait_idle(self._config.workers, grace)
            self._pool.stop()
            self._wait_idle(left, _SHUTDOWN_SECONDS)
        self._is_over.set()
        self.check_cancelled()
        for thread in self._threads:
            thread.join(_SHUTDOWN_SECONDS)
        self._pool.stop()
        with _Caught():
            self._lease.end()

    def _wait_idle(self, count: int, seconds: float) -> int:
        """Waits until threads are idle; returns the number of busy ones."""
        deadline = time.monotonic() + seconds
        while count and self._idle.acquire(timeout=max(deadline - time.monotonic(), 0)):
            count -= 1
        return count

    def _work(self) -> None:
        """Runs jobs, one after the other."""
        self._is_ready.wait()
        while not self._is_stopping.is_set():
            with self._jobs:
                seen = self._wakes
            job = None
            with _Caught() as caught:
                job = self._store.claim(self.server_id)
            if job is not None:
                self._run(job)
                self.wake()  # Equal jobs may have waited for this one.
            elif caught.problem is not None:
                self._is_stopping.wait(self._retry_seconds)
            else:
                self._wait_for_jobs(seen)
        self._idle.release()
        # The fork server ends with the thread that started it, which may be this one.
        self._is_over.wait()

    def _wait_for_jobs(self, seen: int) -> None:
        with self._jobs:
            self._jobs.wait_for(lambda: self._wakes != seen or self._is_stopping.is_set(), _POLL_SECONDS)

    def _monitor(self) -> None:
        """Sends heartbeats, finds dead servers, and cancels jobs."""
        for _ in range(_START_ATTEMPTS if self._config.workers else 0):
            with _Caught() as caught:
                self._pool.start()
                self._try_plugins()
            self._start_problem = caught.problem
            if caught.problem is None or caught.problem.code != "worker-lost":
                break
        self._is_ready.set()
        beat = time.monotonic()
        while not self._is_over.is_set():
            self._is_cancelling.wait(_CANCEL_SECONDS)
            self._is_cancelling.clear()
            with _Caught():
                if time.monotonic() - beat >= HEARTBEAT_SECONDS:
                    beat = time.monotonic()
                    self._lease.beat()
                    self._requeue_lost()
                    self._release_abandoned()
                self._cancel_and_report()

    def _try_plugins(self) -> None:
        """Converts a graph with the server's plug-ins, as in jobs: those that can't be loaded would fail all of them.

        Raises:
            ConversionError: It fails.
        """
        config = self._config
        if not (config.patterns or config.composites or config.op_defs):
            return
        folder = self._folders.incoming / secrets.token_hex(16)
        model = folder / "graph.pbtxt"
        try:
            with storing():
                (folder / "trial").mkdir(mode=0o700, parents=True)
                model.write_text(_TRIAL, "ascii")
            task = Task(
                model.name,
                "trial/model.tflite",
                _with_plugins({}, config, model),
                directory=os.fspath(folder),
                is_confined=True,
                readable=_plugin_paths(config),
            )
            outcome = self._pool.run(task, config.page_limits)
        finally:
            remove(folder)
        if outcome.problem is not None:
            raise ConversionError([Diagnostic(**each) for each in outcome.problem["errors"]])

    def _clean(self) -> None:
        """Runs the janitor periodically."""
        while not self._is_over.wait(_CLEAN_SECONDS):
            with _Caught():
                self._janitor.clean()

    def _requeue_lost(self) -> None:
        self._lease.remove_dead()
        if self._store.requeue_lost():
            self.wake()

    def _cancel_and_report(self) -> None:
        """Cancels jobs that their owners cancelled, and writes the stages of the others."""
        runs = list(self._runs.values())
        if not runs:
            return
        asked = self._store.is_cancel_requested([run.job.id for run in runs])
        for run in runs:
            if run.job.id in asked:
                run.is_cancelled = True
                if run.number:
                    self._pool.cancel(run.number)
            elif run.stage != run.noted:
                run.noted = run.stage
                with _Caught():
                    self._store.set_stage(run.job, run.stage)

    def _run(self, job: JobRecord) -> None:
        """Runs a job and records its end; its errors affect no other job."""
        run = self._runs[job.id] = _RunningJob(job)
        try:
            with _Caught() as caught:
                if not self._reuse_result(run):
                    self._attempt(run)
            if caught.problem is not None and caught.problem.code == _AWAY:
                self._write(run, lambda: self._store.release(job, is_forgiven=False))
            elif caught.problem is not None:
                self._write(run, self._failure(run, caught.problem))
        finally:
            del self._runs[job.id]

    def _reuse_result(self, run: _RunningJob) -> bool:
        """Gives a job the result of an equal one; returns whether there is one."""
        job = run.job
        equal = self._store.find_equal(job)
        if equal is None or (job.place and self._store.key_of(job) != job.cache_key):
            return False
        if not storage.link(self._folders, equal, job.id, job.attempt):
            return False
        outcome = Outcome(None, equal.summary)
        if not self._write(run, lambda: self._store.finish(job, JobState.SUCCEEDED, outcome, is_cached=True)):
            storage.remove(self._folders.result(job.id, job.attempt))
        return True

    def _attempt(self, run: _RunningJob) -> None:
        job = run.job
        key = self._store.key_of(job) if job.place else job.cache_key
        zygote = self._pool.process
        with Attempt(self._folders, self._config, job) as attempt:
            outcome = self._converted(run, attempt)
            if outcome.code == CANCELLED and not run.is_cancelled:
                self._write(run, lambda: self._store.release(job, is_forgiven=True))
                return
            if outcome.is_lost and zygote is not None and zygote != self._pool.process:
                # The fork server died, not this job's process.
                self._write(run, lambda: self._store.release(job, is_forgiven=False))
                return
            if outcome.trace:
                problem = incident(f"job {job.id}: {outcome.message}", outcome.trace, outcome.code)
                outcome = outcome._replace(problem=problem.to_dict())
            self._end(run, attempt, outcome, key)

    def _converted(self, run: _RunningJob, attempt: Attempt) -> Outcome:
        """Converts the model in a process."""

        def on_start(number: int) -> None:
            run.number = number
            if run.is_cancelled:
                self._pool.cancel(number)

        def on_stage(name: str) -> None:
            run.stage = name
            attempt.note(f"{time.monotonic() - run.begin:9.3f} s  {name}")
            self._store.events.append(run.job.id, STAGE, name)

        try:
            on_stage("unpack")
            prepared = attempt.prepare()
        except ConversionError as problem:
            return Outcome(concealed(problem).to_dict(), seconds=time.monotonic() - run.begin)
        if run.is_cancelled or self._is_stopping.is_set():
            return Outcome(error(CANCELLED, "it was cancelled").to_dict(), seconds=time.monotonic() - run.begin)
        outcome = self._pool.run(prepared, self._config.limits, on_stage, on_start)
        return outcome._replace(seconds=time.monotonic() - run.begin)

    def _end(self, run: _RunningJob, attempt: Attempt, outcome: Outcome, key: str) -> None:
        """Publishes the files of an attempt, and then records the end of the job."""
        job = run.job
        if outcome.code == CANCELLED:
            state, outcome = JobState.CANCELLED, outcome._replace(problem=None)
        else:
            state = JobState.SUCCEEDED if outcome.problem is None else JobState.FAILED
        if outcome.problem is not None:
            attempt.note(f"{outcome.seconds:9.3f} s  failed: {outcome.message} [{outcome.code}]")
        has_files = False
        with _Caught() as caught:
            storage.publish(self._folders, job, is_failed=state is not JobState.SUCCEEDED)
            has_files = True
        if caught.problem is not None and state is JobState.SUCCEEDED:
            state, outcome = JobState.FAILED, outcome._replace(problem=caught.problem.to_dict(), summary={})
        if job.place and self._store.key_of(job) != key:
            key = secrets.token_hex(32)  # The model changed meanwhile, so the result may be of either version.
        is_held = self._write(run, lambda: self._store.finish(job, state, outcome, has_files=has_files, cache_key=key))
        if not is_held:
            storage.remove(self._folders.result(job.id, job.attempt))

    def _write(self, run: _RunningJob, change: Callable[[], bool]) -> bool:
        """Records the end of a job; returns whether that was done, and this server still held the job.

        While the database is away or full, it tries again. If the database refuses the change, the job fails instead.
        """
        is_refused = False
        while True:
            with _Caught() as caught:
                return change() and not is_refused
            assert caught.problem is not None
            if caught.problem.code not in _TRANSIENT:
                if is_refused:
                    self._abandoned[run.job.id] = run.job
                    return False
                is_refused = True
                problem = incident(f"the end of job {run.job.id} can't be recorded", str(caught.problem))
                change = self._failure(run, problem)
                continue
            run.unwritten = run.unwritten or time.monotonic()
            # A server that must end leaves the job to others, which requeue it as lost.
            if self._is_over.is_set() or (self._is_stopping.is_set() and self._is_over.wait(self._retry_seconds)):
                return False
            self._is_over.wait(self._retry_seconds)

    def _failure(self, run: _RunningJob, problem: ConversionError) -> Callable[[], bool]:
        """Returns the change that records that a job failed, without files."""
        outcome = Outcome(problem.to_dict(), seconds=time.monotonic() - run.begin)
        return lambda: self._store.finish(run.job, JobState.FAILED, outcome, has_files=False)

    def _release_abandoned(self) -> None:
        """Returns jobs to the queue whose end the database didn't accept in any form, if it does now."""
        for job in list(self._abandoned.values()):
            self._store.release(job, is_forgiven=False)
            del self._abandoned[job.id]
