"""A pool of processes, each of which runs one task and ends, so that no task can affect another."""

from __future__ import annotations

import contextlib
import json
import math
import os
import queue
import signal
import stat
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from tfconvert.batch.task import CANCELLED, Outcome, Task, TaskLimits
from tfconvert.converter.process.python_process import python_command
from tfconvert.exporters.output_file import is_c_source, places_of
from tfconvert.schema.diagnostics import ConversionError, error

# Seconds within which the fork server must be ready: seconds of processor time, of which others may take most.
_START_SECONDS = 300.0

# Seconds within which a killed task must be gone.
_KILL_SECONDS = 10.0

# For processes that live for a fraction of a second: glibc requests memory rarely, and returns none.
_ALLOCATION = {"MALLOC_TOP_PAD_": str(1 << 24), "MALLOC_TRIM_THRESHOLD_": str(1 << 30)}


class _Running:
    """A running task.

    Attributes:
        messages: The messages of the fork server about it; `None` if the server is gone.
        is_cancelled: Whether the user has cancelled it.
    """

    __slots__ = ("is_cancelled", "messages")

    def __init__(self) -> None:
        self.messages: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self.is_cancelled = False


class Pool:
    """Runs tasks in processes of their own; used by several threads at once, and as a context manager.

    The fork server is started with the first task, and again if it has died.

    Args:
        environment: The environment variables of its processes; by default those of this process.
    """

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        self._environment = environment
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._running: dict[int, _Running] = {}
        self._last = 0
        self._is_stopped = False

    def __enter__(self) -> Pool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Starts the fork server, unless it runs."""
        with self._lock:
            self._started()

    def run(
        self,
        task: Task,
        limits: TaskLimits,
        on_stage: Callable[[str], None] = lambda name: None,
        on_start: Callable[[int], None] = lambda number: None,
    ) -> Outcome:
        """Runs a task and returns its outcome, whatever happens to its process.

        Args:
            task: The task.
            limits: What it may use.
            on_stage: Called with the name of each stage before it begins.
            on_start: Called with the number to cancel it by.
        """
        begin = time.monotonic()
        try:
            number, running = self._begin(task, limits)
        except ConversionError as problem:
            return Outcome(problem.to_dict(), is_lost=True, seconds=time.monotonic() - begin)
        try:
            on_start(number)
            message = self._followed(number, running, begin, limits, on_stage)
        finally:
            with self._lock:
                del self._running[number]
        seconds = time.monotonic() - begin
        if running.is_cancelled:
            return Outcome(error(CANCELLED, "it was cancelled").to_dict(), seconds=seconds)
        if message is None and self._is_stopped:
            return Outcome(error(CANCELLED, "all jobs were cancelled").to_dict(), seconds=seconds)
        if message is None:
            return Outcome(_lost("the process that starts jobs has died").to_dict(), seconds=seconds, is_lost=True)
        if message.get("late"):
            text = f"it took more than {limits.seconds:g} s"
            return Outcome(error("job-timeout", text).to_dict(), seconds=seconds, peak=message["peak"])
        return _checked(task, _outcome(message, seconds))

    def cancel(self, number: int) -> None:
        """Cancels a task; its `run` returns soon."""
        with self._lock:
            running = self._running.get(number)
            if running is not None:
                running.is_cancelled = True
                self._send({"kill": number})

    def stop(self) -> None:
        """Ends the fork server, and so all tasks; no task can run afterwards."""
        with self._lock:
            self._is_stopped = True
            process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()

    @property
    def process(self) -> int | None:
        """The process ID of the fork server, or `None`."""
        process = self._process
        return process.pid if process is not None and process.poll() is None else None

    def _begin(self, task: Task, limits: TaskLimits) -> tuple[int, _Running]:
        with self._lock:
            self._started()
            self._last += 1
            running = self._running[self._last] = _Running()
            self._send({"run": self._last, "task": task, "limits": limits})
            return self._last, running

    def _followed(
        self, number: int, running: _Running, begin: float, limits: TaskLimits, on_stage: Callable[[str], None]
    ) -> dict[str, Any] | None:
        """Returns the last message about a task, `None` if there will be none; kills it after its timeout."""
        deadline = begin + limits.seconds if limits.seconds else math.inf
        late = False
        while True:
            try:
                rest = deadline - time.monotonic()
                if rest <= 0:
                    raise queue.Empty  # Messages that wait don't extend the time.
                message = running.messages.get(timeout=None if rest == math.inf else rest)
            except queue.Empty:
                if late:
                    return None  # Killing it has no effect: it waits for a device, or the fork server hangs.
                late = True
                deadline = time.monotonic() + _KILL_SECONDS
                with self._lock:
                    self._send({"kill": number})
                continue
            if message is None or "ended" in message:
                return message if message is None else {**message, "late": late and message["outcome"] is None}
            if not (late or running.is_cancelled):
                on_stage(message["name"])

    def _started(self) -> None:
        if self._is_stopped:
            raise error(CANCELLED, "all jobs were cancelled")
        if self._process is not None and self._process.poll() is None:
            return
        if not hasattr(os, "fork"):
            raise error("no-workers", "this system can't fork processes", hint="use Linux or macOS")
        # Signals of the terminal are for this process, which then decides what happens to the tasks.
        process = subprocess.Popen(
            python_command("tfconvert.batch.zygote", "main"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
            env={**_ALLOCATION, **self._environment},
        )
        is_ready = threading.Event()
        threading.Thread(target=self._listen, args=(process, is_ready), daemon=True).start()
        if not is_ready.wait(_START_SECONDS) or process.poll() is not None:
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
            with contextlib.suppress(OSError):  # The rest of the buffer can't be sent.
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
            process.stdin.write(json.dumps(message, allow_nan=False).encode() + b"\n")
            process.stdin.flush()
        except (OSError, ValueError):
            process.kill()  # The listening thread notifies all tasks.


def _outcome(message: dict[str, Any], seconds: float) -> Outcome:
    said, status, peak = message["outcome"], message["status"], message["peak"]
    if said is not None:
        return Outcome(said.get("problem"), said.get("summary", {}), seconds, peak, trace=said.get("trace", ""))
    if status == -signal.SIGXCPU:
        return Outcome(error("job-timeout", "it took too much processor time").to_dict(), {}, seconds, peak)
    reason = f"signal {signal.Signals(-status).name}" if status < 0 else f"status {status}"
    return Outcome(_lost(f"its process ended by itself ({reason})").to_dict(), {}, seconds, peak, is_lost=True)


def _checked(task: Task, outcome: Outcome) -> Outcome:
    """Returns the outcome, which is a failure if it is a success without its files."""
    if outcome.problem is not None or _is_written(task, outcome.summary):
        return outcome
    text = "its process reported a success, but the result is not what it reported"
    return outcome._replace(problem=error("internal-error", text).to_dict(), summary={})


def _is_written(task: Task, summary: Mapping[str, Any]) -> bool:
    if not task.output:
        return True  # The page of a report.
    output = Path(task.directory, task.output)
    try:
        found = [path.lstat() for path in places_of(output, ["", *summary.get("beside", ())])]
    except OSError:
        return False
    if not all(stat.S_ISREG(each.st_mode) for each in found):
        return not task.is_served  # Pipes and terminals are written directly.
    # The size is of the file and of those that belong to it; the text of a program doesn't.
    sizes = [each.st_size for each in found]
    return is_c_source(task.output) or sizes[0] <= summary.get("size", -1) <= sum(sizes)


def _lost(message: str) -> ConversionError:
    return error("worker-lost", message, hint="try again; if it happens again, the machine may be short of memory")
