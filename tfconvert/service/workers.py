"""Threads that take jobs from the queue, run them in processes, and renew this server's lease."""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Callable
from types import TracebackType

from tfconvert.batch.job import Ending
from tfconvert.batch.pool import CANCELLED, Pool
from tfconvert.schema.diagnostics import ConversionError, error
from tfconvert.service import result_files
from tfconvert.service.attempts import Attempt
from tfconvert.service.config import ServiceConfig
from tfconvert.service.events import STAGE
from tfconvert.service.folders import Folders
from tfconvert.service.janitor import Janitor
from tfconvert.service.job_state import JobRecord, JobState
from tfconvert.service.leases import BEAT, Lease
from tfconvert.service.store import JobStore

_LOG = logging.getLogger("tfconvert.service")

# Seconds after which it is looked whether another server has left work.
_POLL = 0.5

# Seconds between looks at which jobs to cancel: other servers are asked, too.
_PULSE = 1.0

# Seconds between two rounds of the janitor.
_CLEAN = 60.0

# Seconds until what the database did not take is tried again.
_AGAIN = 1.0

# How often it is tried to start the process that forks: somebody may have killed it, as may happen later, too.
_STARTS = 3

# Seconds that threads get to end once their jobs were.
_LAST = 15.0


class _Run:
    """A job that runs here.

    Attributes:
        job: The job, as it was claimed.
        begin: When it began, by the monotonic clock.
        number: By which the pool knows it; 0 before.
        stage: The last one.
        noted: The last one that the database knows.
        is_cancelled: Whether its owner wants it to end.
    """

    __slots__ = ("begin", "is_cancelled", "job", "noted", "number", "stage")

    def __init__(self, job: JobRecord) -> None:
        self.job = job
        self.begin = time.monotonic()
        self.number = 0
        self.stage = ""
        self.noted = ""
        self.is_cancelled = False


class _Caught:
    """A context which no mistake of ours leaves: a thread that ends would be missed by all later jobs.

    Attributes:
        problem: What went wrong, `None` if nothing did.
    """

    __slots__ = ("problem",)

    def __init__(self) -> None:
        self.problem: ConversionError | None = None

    def __enter__(self) -> _Caught:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> bool:
        """Notes and logs what went wrong."""
        if isinstance(problem, ConversionError):
            self.problem = problem
            _LOG.warning("%s", problem)
        elif problem is not None:
            what = " ".join(f"{type(problem).__name__}: {problem}".split())
            self.problem = error("internal-error", what)
            _LOG.error("a mistake of the server's own", exc_info=problem)
        return True


class WorkerPool:
    """Runs the jobs of a store, as many at once as the settings say.

    Args:
        store: The jobs.
        folders: The data folder.
        config: The server's settings.
    """

    def __init__(self, store: JobStore, folders: Folders, config: ServiceConfig) -> None:
        self._store = store
        self._folders = folders
        self._config = config
        self._lease = Lease(store.database, folders)
        self._janitor = Janitor(store, folders, config, self._lease)
        self._pool = Pool()
        self._news = threading.Condition()
        self._wakes = 0
        self._runs: dict[str, _Run] = {}
        self._is_ready = threading.Event()
        self._is_stopping = threading.Event()
        self._is_over = threading.Event()
        self._is_urged = threading.Event()
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

    def start(self) -> None:
        """Cleans up what a former server has left, and begins to run jobs.

        Raises:
            ConversionError: The database or the data folder can't be used, or processes can't be started.
        """
        self._lease.begin()
        self._find_lost()
        self._janitor.clean(is_start=True)
        tasks = [self._pulse, self._clean] + [self._work] * self._config.workers
        self._threads = [threading.Thread(target=task, name=f"tfconvert-{task.__name__}") for task in tasks]
        for thread in self._threads:
            thread.daemon = True
            thread.start()
        self._is_ready.wait()
        if self._start_problem is not None:
            self.stop(0)
            raise self._start_problem

    def wake(self) -> None:
        """Tells that there may be work."""
        with self._news:
            self._wakes += 1
            self._news.notify_all()

    def urge(self) -> None:
        """Tells that there may be something to cancel."""
        self._is_urged.set()

    def stop(self, grace: float) -> None:
        """Ends: no job is begun any more, and those that run get some time; then they go back to the queue.

        Args:
            grace: Seconds that they get.
        """
        if self._is_over.is_set():
            return
        self._is_stopping.set()
        self.wake()
        if self._threads:
            left = self._wait_idle(self._config.workers, grace)
            self._pool.stop()
            self._wait_idle(left, _LAST)
        self._is_over.set()
        self.urge()
        for thread in self._threads:
            thread.join(_LAST)
        self._pool.stop()
        with _Caught():
            self._lease.end()

    def _wait_idle(self, count: int, seconds: float) -> int:
        """Waits for so many threads to have no job; returns how many still have one."""
        deadline = time.monotonic() + seconds
        while count and self._idle.acquire(timeout=max(deadline - time.monotonic(), 0)):
            count -= 1
        return count

    def _work(self) -> None:
        """Runs jobs, one after the other."""
        self._is_ready.wait()
        while not self._is_stopping.is_set():
            with self._news:
                seen = self._wakes
            job = None
            with _Caught() as caught:
                job = self._store.claim(self.server_id)
            if job is not None:
                self._run(job)
                self.wake()  # Equal ones may have waited for this one.
            elif caught.problem is not None:
                self._is_stopping.wait(_AGAIN)
            else:
                self._wait_for_news(seen)
        self._idle.release()
        # The process that forks ends with the thread that has started it, and that may be this one.
        self._is_over.wait()

    def _wait_for_news(self, seen: int) -> None:
        with self._news:
            self._news.wait_for(lambda: self._wakes != seen or self._is_stopping.is_set(), _POLL)

    def _pulse(self) -> None:
        """Tells that this server lives, looks who else does, and passes on what owners want."""
        for _ in range(_STARTS if self._config.workers else 0):
            with _Caught() as caught:
                self._pool.start()
            self._start_problem = caught.problem
            if caught.problem is None or caught.problem.code != "worker-lost":
                break
        self._is_ready.set()
        beat = time.monotonic()
        while not self._is_over.is_set():
            self._is_urged.wait(_PULSE)
            self._is_urged.clear()
            with _Caught():
                if time.monotonic() - beat >= BEAT:
                    beat = time.monotonic()
                    self._lease.beat()
                    self._find_lost()
                self._pass_on()

    def _clean(self) -> None:
        """Has the janitor make its rounds."""
        while not self._is_over.wait(_CLEAN):
            with _Caught():
                self._janitor.clean()

    def _find_lost(self) -> None:
        self._lease.bury_dead()
        if self._store.requeue_lost():
            self.wake()

    def _pass_on(self) -> None:
        """Cancels what owners want to end, and notes how far others have come."""
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
                self._store.set_stage(run.job, run.stage)

    def _run(self, job: JobRecord) -> None:
        """Runs a job and writes how it ended; nothing that goes wrong with it concerns others."""
        run = self._runs[job.id] = _Run(job)
        try:
            with _Caught() as caught:
                if not self._is_known(job):
                    self._attempt(run)
            if caught.problem is not None and caught.problem.code == "database-away":
                self._write(lambda: self._store.release(job, is_forgiven=False))
            elif caught.problem is not None:
                ending = Ending(caught.problem.to_dict(), seconds=time.monotonic() - run.begin)
                self._write(lambda: self._store.finish(job, JobState.FAILED, ending, has_files=False))
        finally:
            del self._runs[job.id]

    def _is_known(self, job: JobRecord) -> bool:
        """Returns whether the result of an equal job is there, and is that of this one now."""
        equal = self._store.find_equal(job)
        if equal is None or (job.place and self._store.key_of(job) != job.cache_key):
            return False
        if not result_files.link(self._folders, equal, job.id, job.attempt):
            return False
        ending = Ending(None, equal.summary)
        if not self._write(lambda: self._store.finish(job, JobState.SUCCEEDED, ending, is_cached=True)):
            result_files.remove(self._folders.result(job.id, job.attempt))
        return True

    def _attempt(self, run: _Run) -> None:
        job = run.job
        key = self._store.key_of(job) if job.place else job.cache_key
        zygote = self._pool.process
        with Attempt(self._folders, self._config, job) as attempt:
            ending = self._converted(run, attempt)
            if ending.code == CANCELLED and not run.is_cancelled:
                self._write(lambda: self._store.release(job, is_forgiven=True))
                return
            if ending.is_lost and zygote is not None and zygote != self._pool.process:
                # Not this job's process has died, but the one that all come from.
                self._write(lambda: self._store.release(job, is_forgiven=False))
                return
            self._end(run, attempt, ending, key)

    def _converted(self, run: _Run, attempt: Attempt) -> Ending:
        """Has a process convert the model."""

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
            return Ending(problem.to_dict(), seconds=time.monotonic() - run.begin)
        if run.is_cancelled or self._is_stopping.is_set():
            return Ending(error(CANCELLED, "it was cancelled").to_dict(), seconds=time.monotonic() - run.begin)
        ending = self._pool.run(prepared, self._config.limits, on_stage, on_start)
        return ending._replace(seconds=time.monotonic() - run.begin)

    def _end(self, run: _Run, attempt: Attempt, ending: Ending, key: str) -> None:
        """Moves the files of an attempt to their place, and then writes that they are there."""
        job = run.job
        if ending.code == CANCELLED:
            state, ending = JobState.CANCELLED, ending._replace(problem=None)
        else:
            state = JobState.SUCCEEDED if ending.problem is None else JobState.FAILED
        if ending.problem is not None:
            attempt.note(f"{ending.seconds:9.3f} s  failed: {ending.message} [{ending.code}]")
        has_files = False
        with _Caught() as caught:
            result_files.publish(self._folders, job, is_failed=state is not JobState.SUCCEEDED)
            has_files = True
        if caught.problem is not None and state is JobState.SUCCEEDED:
            state, ending = JobState.FAILED, ending._replace(problem=caught.problem.to_dict(), summary={})
        if job.place and self._store.key_of(job) != key:
            key = secrets.token_hex(32)  # The model was changed meanwhile: nobody knows what this is the result of.
        is_ours = self._write(lambda: self._store.finish(job, state, ending, has_files=has_files, cache_key=key))
        if not is_ours:
            result_files.remove(self._folders.result(job.id, job.attempt))

    def _write(self, change: Callable[[], bool]) -> bool:
        """Writes how a job ended, as soon as the database takes it; returns whether the job was still ours."""
        while True:
            try:
                return change()
            except ConversionError as problem:
                _LOG.warning("%s", problem)
            # A server that has to end leaves the job to others, who find it lost.
            if self._is_over.is_set() or (self._is_stopping.is_set() and self._is_over.wait(_AGAIN)):
                return False
            self._is_over.wait(_AGAIN)
