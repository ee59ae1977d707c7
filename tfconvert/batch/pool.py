"""A pool of processes, each of which runs one job and ends: what a job does, or leaves behind, concerns no other."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any

from tfconvert.batch.job import Ending, Job, JobLimits
from tfconvert.schema.diagnostics import ConversionError, error

# Seconds within which the process that forks must be ready.
_START = 60.0

# Seconds within which a killed job must be gone.
_GRACE = 10.0

CANCELLED = "job-cancelled"

# For processes that live for a fraction of a second: GNU's library asks for memory rarely, and gives none back.
_ALLOCATION = {"MALLOC_TOP_PAD_": str(1 << 24), "MALLOC_TRIM_THRESHOLD_": str(1 << 30)}


class _Running:
    """A job that is being run.

    Attributes:
        messages: What is said of it; `None` if the process that forks is gone.
        is_cancelled: Whether the user has cancelled it.
    """

    __slots__ = ("is_cancelled", "messages")

    def __init__(self) -> None:
        self.messages: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self.is_cancelled = False


class Pool:
    """Runs jobs in processes of their own; used by several threads at once, and as a context manager.

    The process that forks them is started with the first job, and again if it has died.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._running: dict[int, _Running] = {}
        self._last = 0
        self._is_stopped = False

    def __enter__(self) -> Pool:
        """Returns itself; nothing is started yet."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Ends all jobs."""
        self.stop()

    def start(self) -> None:
        """Starts the process that forks, unless it runs."""
        with self._lock:
            self._started()

    def run(
        self,
        job: Job,
        limits: JobLimits,
        on_stage: Callable[[str], None] = lambda name: None,
        on_start: Callable[[int], None] = lambda number: None,
    ) -> Ending:
        """Runs a job and returns how it ended, whatever became of its process.

        Args:
            job: The job.
            limits: What it may use.
            on_stage: Called with the name of each stage before it begins.
            on_start: Called with the number by which it can be cancelled.
        """
        begin = time.monotonic()
        try:
            number, running = self._begin(job, limits)
        except ConversionError as problem:
            return Ending(problem.to_dict(), is_lost=True, seconds=time.monotonic() - begin)
        try:
            on_start(number)
            message = self._followed(number, running, begin, limits, on_stage)
        finally:
            with self._lock:
                del self._running[number]
        seconds = time.monotonic() - begin
        if running.is_cancelled:
            return Ending(error(CANCELLED, "it was cancelled").to_dict(), seconds=seconds)
        if message is None and self._is_stopped:
            return Ending(error(CANCELLED, "all jobs were cancelled").to_dict(), seconds=seconds)
        if message is None:
            return Ending(_lost("the process that starts jobs has died").to_dict(), seconds=seconds, is_lost=True)
        if message.get("late"):
            text = f"it took more than {limits.seconds:g} s"
            return Ending(error("job-timeout", text).to_dict(), seconds=seconds, peak=message["peak"])
        return _ending(message, seconds)

    def cancel(self, number: int) -> None:
        """Ends a job; its `run` returns soon."""
        with self._lock:
            running = self._running.get(number)
            if running is not None:
                running.is_cancelled = True
                self._send({"kill": number})

    def stop(self) -> None:
        """Ends the process that forks, and so all jobs; none is run any more."""
        with self._lock:
            self._is_stopped = True
            process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()

    @property
    def process(self) -> int | None:
        """The number of the process that forks, `None` if there is none."""
        process = self._process
        return process.pid if process is not None and process.poll() is None else None

    def _begin(self, job: Job, limits: JobLimits) -> tuple[int, _Running]:
        with self._lock:
            self._started()
            self._last += 1
            running = self._running[self._last] = _Running()
            self._send({"run": self._last, "job": job, "limits": limits})
            return self._last, running

    def _followed(
        self, number: int, running: _Running, begin: float, limits: JobLimits, on_stage: Callable[[str], None]
    ) -> dict[str, Any] | None:
        """Returns the last message about a job, `None` if there will be none; ends it if it takes too long."""
        deadline = begin + limits.seconds if limits.seconds else None
        late = False
        while True:
            try:
                rest = None if deadline is None else max(deadline - time.monotonic(), 0)
                message = running.messages.get(timeout=rest)
            except queue.Empty:
                if late:
                    return None  # Not even killing helps: it waits for a device, or the process that forks hangs.
                late = True
                deadline = time.monotonic() + _GRACE
                with self._lock:
                    self._send({"kill": number})
                continue
            if message is None or "ended" in message:
                return message if message is None else {**message, "late": late and message["ending"] is None}
            on_stage(message["name"])

    def _started(self) -> None:
        if self._is_stopped:
            raise error(CANCELLED, "all jobs were cancelled")
        if self._process is not None and self._process.poll() is None:
            return
        if not hasattr(os, "fork"):
            raise error("no-workers", "this system can't fork processes", hint="use Linux or macOS")
        # Signals of the terminal are for this process, which then decides what becomes of the jobs.
        process = subprocess.Popen(
            [sys.executable, "-m", "tfconvert.batch.zygote", str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
            env={**_ALLOCATION, **os.environ},
        )
        is_ready = threading.Event()
        threading.Thread(target=self._listen, args=(process, is_ready), daemon=True).start()
        if not is_ready.wait(_START) or process.poll() is not None:
            process.kill()
            raise _lost("the process that starts jobs doesn't start")
        self._process = process

    def _listen(self, process: subprocess.Popen[bytes], is_ready: threading.Event) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            message = json.loads(line)
            if "ready" in message:
                is_ready.set()
                continue
            running = self._running.get(message.get("ended", message.get("stage")))
            if running is not None:
                running.messages.put(message)
        process.wait()
        is_ready.set()
        with self._lock:
            with contextlib.suppress(OSError):  # What is left to be sent can't be.
                assert process.stdin is not None
                process.stdin.close()
            process.stdout.close()
            if self._process is process or self._process is None:
                for running in self._running.values():
                    running.messages.put(None)

    def _send(self, message: dict[str, Any]) -> None:
        process = self._process
        if process is None or process.stdin is None:
            return
        try:
            process.stdin.write(json.dumps(message).encode() + b"\n")
            process.stdin.flush()
        except (OSError, ValueError):
            process.kill()  # Who listens tells all jobs.


def _ending(message: dict[str, Any], seconds: float) -> Ending:
    said, status, peak = message["ending"], message["status"], message["peak"]
    if said is not None:
        return Ending(said.get("problem"), said.get("summary", {}), seconds, peak)
    if status == -signal.SIGXCPU:
        return Ending(error("job-timeout", "it took too much processor time").to_dict(), {}, seconds, peak)
    reason = f"signal {signal.Signals(-status).name}" if status < 0 else f"status {status}"
    return Ending(_lost(f"its process ended by itself ({reason})").to_dict(), {}, seconds, peak, is_lost=True)


def _lost(message: str) -> ConversionError:
    return error("worker-lost", message, hint="try again; if it happens again, the machine may be short of memory")
