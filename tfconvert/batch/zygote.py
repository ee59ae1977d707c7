"""The process that forks one process a job: it has everything loaded, so that a job begins at once.

    python -m tfconvert.batch.zygote PARENT

Requests and answers are lines of JSON: `{"run": N, "job": [...], "limits": [...]}` and `{"kill": N}` come in, and
`{"ready": true}`, `{"stage": N, "name": ...}` and `{"ended": N, ...}` go out. It has no threads, so that forking is
safe, and ends with its parent or when the pipe is closed; its children end with it.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import selectors
import signal
import sys
import tempfile
from traceback import print_exception
from types import TracebackType
from typing import Any, NoReturn

from tfconvert.batch.job import Job, JobLimits
from tfconvert.batch.limits import apply_limits
from tfconvert.batch.preload import preload
from tfconvert.batch.run_job import run_job
from tfconvert.converter.process.parent_process import die_with
from tfconvert.schema.diagnostics import ConversionError, Diagnostic

# Bytes of a line from a child.
_LONGEST = 1 << 24


class _Child:
    """A process that runs a job.

    Attributes:
        number: The job's.
        process: Its own.
        pipe: What it says.
        rest: What it has said of a line so far.
        ending: Its last word.
    """

    __slots__ = ("ending", "number", "pipe", "process", "rest")

    def __init__(self, number: int, process: int, pipe: int) -> None:
        self.number = number
        self.process = process
        self.pipe = pipe
        self.rest = b""
        self.ending: dict[str, Any] | None = None

    def read(self) -> list[dict[str, Any]] | None:
        """Returns what it has said since; `None` if it says nothing any more."""
        data = os.read(self.pipe, 1 << 16)
        if not data or len(self.rest) > _LONGEST:
            return None
        *lines, self.rest = (self.rest + data).split(b"\n")
        return [json.loads(line) for line in lines]

    def kill(self) -> None:
        """Ends it, and what it has started."""
        for end in (os.killpg, os.kill):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                end(self.process, signal.SIGKILL)


class Zygote:
    """Forks children for requests, and tells what becomes of them."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._children: dict[int, _Child] = {}
        self._rest = b""

    def serve(self) -> None:
        """Answers requests until there are no more."""
        self._selector.register(0, selectors.EVENT_READ, None)
        self._say({"ready": True})
        while True:
            for key, _ in self._selector.select():
                if key.data is not None:
                    self._hear(key.data)
                elif not self._requests():
                    self._end()
                    return

    def _requests(self) -> bool:
        data = os.read(0, 1 << 16)
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            request = json.loads(line)
            if "run" in request:
                self._run(request["run"], Job(*request["job"]), JobLimits(*request["limits"]))
            else:
                child = self._children.get(request["kill"])
                if child is not None:
                    child.kill()
        return bool(data)

    def _run(self, number: int, job: Job, limits: JobLimits) -> None:
        reading, writing = os.pipe()
        parent = os.getpid()
        process = os.fork()
        if not process:
            os.close(reading)
            for child in self._children.values():
                os.close(child.pipe)
            self._selector.close()
            _work(job, limits, writing, parent)
        os.close(writing)
        child = self._children[number] = _Child(number, process, reading)
        self._selector.register(reading, selectors.EVENT_READ, child)

    def _hear(self, child: _Child) -> None:
        said = child.read()
        if said is None:
            self._bury(child)
            return
        for each in said:
            if "stage" in each:
                self._say({"stage": child.number, "name": each["stage"]})
            else:
                child.ending = each

    def _bury(self, child: _Child) -> None:
        self._selector.unregister(child.pipe)
        os.close(child.pipe)
        child.kill()  # It has closed its pipe: whatever it still does, or has left running, is of no use.
        _, status, usage = os.wait4(child.process, 0)
        del self._children[child.number]
        # Linux counts kilobytes, macOS bytes.
        peak = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
        self._say(
            {"ended": child.number, "status": os.waitstatus_to_exitcode(status), "peak": peak, "ending": child.ending}
        )

    def _end(self) -> None:
        for child in list(self._children.values()):
            child.kill()
            os.waitpid(child.process, 0)

    def _say(self, message: dict[str, Any]) -> None:
        data = memoryview(json.dumps(message).encode() + b"\n")
        while data:
            data = data[os.write(1, data) :]


def _work(job: Job, limits: JobLimits, pipe: int, parent: int) -> NoReturn:
    """Runs a job in the child, and ends."""
    try:
        die_with(parent)
        os.setsid()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        if job.directory:
            os.chdir(job.directory)
        _redirect(job.log)
        apply_limits(limits)
        os.write(pipe, json.dumps(_outcome(job, pipe)).encode() + b"\n")
    finally:
        # Nothing of the parent's, such as what its streams hold, may be written or freed twice.
        os._exit(0)


def _redirect(log: str) -> None:
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    target = os.open(log or os.devnull, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(target, 1)
    os.dup2(target, 2)


class _Outcome:
    """A context in which a job is run, and what to say of it afterwards: nothing leaves it but as a problem.

    Attributes:
        said: The ending, as it is sent.
    """

    __slots__ = ("said",)

    def __init__(self) -> None:
        self.said: dict[str, Any] = {}

    def __enter__(self) -> _Outcome:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> bool:
        """Notes what went wrong, a mistake of ours included: it is a failure of this job alone."""
        if isinstance(problem, ConversionError):
            self.said = {"problem": problem.to_dict()}
        elif isinstance(problem, MemoryError):
            self.said = {"problem": _told("job-memory", "it needs more memory than a job may have")}
        elif problem is not None:
            print_exception(problem)  # Into the job's log.
            what = " ".join(f"{type(problem).__name__}: {problem}".split())
            self.said = {"problem": _told("internal-error", what)}
        return True


def _outcome(job: Job, pipe: int) -> dict[str, Any]:
    def on_stage(name: str) -> None:
        os.write(pipe, json.dumps({"stage": name}).encode() + b"\n")

    with _Outcome() as outcome:
        outcome.said = {"summary": run_job(job, on_stage)}
    return outcome.said


def _told(code: str, message: str) -> dict[str, Any]:
    return ConversionError([Diagnostic(code, message)]).to_dict()


def main() -> None:
    """Serves the process that started this one, whose number is the argument."""
    die_with(int(sys.argv[1]))
    # An interrupt from the terminal reaches the whole group; who started this decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    gc.disable()
    with tempfile.TemporaryDirectory() as folder:
        preload(folder)
    gc.collect()
    # What is never looked at again is never copied: children share these pages for good.
    gc.freeze()
    Zygote().serve()


if __name__ == "__main__":
    main()
