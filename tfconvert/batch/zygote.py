"""The fork server: a process that has everything loaded and forks one process a task, which starts at once.

Requests and answers are lines of JSON: `{"run": N, "task": [...], "limits": [...]}` and `{"kill": N}` come in, and
`{"ready": true}`, `{"stage": N, "name": ...}` and `{"ended": N, ...}` go out. It has no threads, so that forking is
safe, and ends with its parent or when the pipe is closed; its children end with it.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import resource
import selectors
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from traceback import format_exception, print_exception
from types import TracebackType
from typing import Any, NoReturn

from tfconvert.batch import job_usage
from tfconvert.batch.messages import MessageReader, outcome_line, stage_line
from tfconvert.batch.preload import preload
from tfconvert.batch.run_task import run_task
from tfconvert.batch.task import Task, TaskLimits
from tfconvert.converter.process import sandbox
from tfconvert.converter.process.python_process import adopt_orphans, die_with
from tfconvert.importers.temporary_model import is_out_of_memory, says_out_of_memory
from tfconvert.schema.diagnostics import ConversionError, Diagnostic
from tfconvert.schema.files import open_file

# Characters of the end of a trace that are sent.
_MAX_TRACE = 8000

# Codes of errors that quote exceptions of plug-ins.
_OF_PLUGINS = frozenset(("bad-fusion", "bad-pattern", "bad-plugin"))

# Seconds of CPU time for a second of wall time: some libraries have threads.
_CORES = 4


def apply_limits(limits: TaskLimits) -> None:
    """Limits this process and those that it starts."""
    _limit(resource.RLIMIT_CORE, 0)
    if limits.seconds:
        _limit(resource.RLIMIT_CPU, int(limits.seconds * _CORES) + 1)
    if limits.memory:
        # What is mapped from files, as weights are, doesn't count; only Linux enforces the limit.
        _limit(resource.RLIMIT_DATA, limits.memory)
    if limits.files:
        _limit(resource.RLIMIT_NOFILE, limits.files)
    if limits.output:
        # Writing more is an OSError then, since Python ignores the signal.
        _limit(resource.RLIMIT_FSIZE, limits.output)


def _limit(what: int, value: int) -> None:
    _, most = resource.getrlimit(what)
    value = value if most == resource.RLIM_INFINITY else min(value, most)
    resource.setrlimit(what, (value, value))


# Seconds between two looks at what jobs use.
_COUNT_SECONDS = 0.25

# The part of its memory that a process which died without a word must have had to have died of that.
_MUCH = 0.75

# The directory of temporary files of a task in the sandbox, in its working directory.
_SCRATCH = "scratch"


class _Child:
    """A process that runs a task.

    Attributes:
        number: The number of the task.
        process: The process ID, and that of its process group.
        pipe: The pipe that it writes messages to.
        messages: Reads them.
        limits: What it may use.
        directories: Where it may write, if it is confined.
        log: The file of what it prints; empty for none.
        excess: Its outcome if it has exceeded a limit, whatever it says itself.
        peak: The most bytes of memory that it was seen to have.
    """

    __slots__ = ("directories", "excess", "limits", "log", "messages", "number", "peak", "pipe", "process")

    def __init__(self, number: int, process: int, pipe: int, task: Task, limits: TaskLimits) -> None:
        self.number = number
        self.process = process
        self.pipe = pipe
        self.messages = MessageReader(pipe)
        self.limits = limits
        self.directories = _writable(task) if task.is_confined else []
        self.log = os.path.join(task.directory, task.log) if task.log else ""  # noqa: PTH118
        self.excess: dict[str, Any] | None = None
        self.peak = 0

    def kill(self) -> None:
        """Kills it, and the processes that it has started."""
        for end in (os.killpg, os.kill):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                end(self.process, signal.SIGKILL)

    def exceeds(self, processes: Sequence[int]) -> bool:
        """Returns whether it has exceeded a limit.

        Args:
            processes: Its processes.
        """
        try:
            self.peak = max(self.peak, job_usage.check(self.limits, processes, self.directories))
        except ConversionError as problem:
            self.excess = {"problem": problem.to_dict()}
        return self.excess is not None

    def is_short_of_memory(self) -> bool:
        """Returns whether it died, without saying how it ended, for lack of memory.

        Libraries that are refused memory abort or crash, mostly with a message; the system kills a process that has
        taken too much.
        """
        limit = self.limits.memory
        return limit > 0 and (self.peak > limit * _MUCH or says_out_of_memory(_end_of(self.log)))


def _end_of(log: str) -> str:
    """Returns the end of a log; empty if it can't be read."""
    try:
        with os.fdopen(open_file(log, follow_links=False), "rb") as file:
            file.seek(max(os.fstat(file.fileno()).st_size - _MAX_TRACE, 0))
            return file.read(_MAX_TRACE).decode(errors="replace")
    except OSError:
        return ""


class Zygote:
    """Forks children for requests, and reports how they end."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._children: dict[int, _Child] = {}
        self._rest = b""
        self._next_count = 0.0

    def serve(self) -> None:
        """Answers requests until there are no more."""
        self._selector.register(0, selectors.EVENT_READ, None)
        self._send({"ready": True})
        while True:
            for key, _ in self._selector.select(self._count()):
                if key.data is not None:
                    self._receive(key.data)
                elif not self._requests():
                    self._end()
                    return

    def _count(self) -> float | None:
        """Counts what jobs use, if it is time; returns the seconds until the next time, `None` without jobs."""
        if not self._children or not job_usage.IS_COUNTED:
            return None
        now = time.monotonic()
        if now >= self._next_count:
            found = job_usage.processes_of(child.process for child in self._children.values())
            for child in self._children.values():
                if child.exceeds(found[child.process]):
                    child.kill()
            self._next_count = time.monotonic() + _COUNT_SECONDS
        return max(self._next_count - now, 0)

    def _requests(self) -> bool:
        data = os.read(0, 1 << 16)
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            request = json.loads(line)
            if "run" in request:
                self._run(request["run"], Task(*request["task"]), TaskLimits(*request["limits"]))
            else:
                child = self._children.get(request["kill"])
                if child is not None:
                    child.kill()
        return bool(data)

    def _run(self, number: int, task: Task, limits: TaskLimits) -> None:
        reading, writing = os.pipe()
        parent = os.getpid()
        process = os.fork()
        if not process:
            self._selector.close()
            # Nothing of this process, such as the pipes of other tasks, is left to it.
            os.closerange(3, writing)
            os.closerange(writing + 1, os.sysconf("SC_OPEN_MAX"))
            _work(task, limits, writing, parent)
        os.close(writing)
        if not self._children:
            self._next_count = time.monotonic() + _COUNT_SECONDS
        child = self._children[number] = _Child(number, process, reading, task, limits)
        self._selector.register(reading, selectors.EVENT_READ, child)

    def _receive(self, child: _Child) -> None:
        stages = child.messages.read()
        if stages is None:
            self._reap(child)
            return
        for name in stages:
            self._send({"stage": child.number, "name": name})

    def _reap(self, child: _Child) -> None:
        self._selector.unregister(child.pipe)
        os.close(child.pipe)
        child.kill()  # It has closed its pipe: nothing else of it, or of processes that it has left, is of use.
        _, status, usage = os.wait4(child.process, 0)
        with contextlib.suppress(ChildProcessError):
            while True:
                os.waitpid(-child.process, 0)
        if child.excess is None:
            child.exceeds([])  # It may have written much in the end.
        del self._children[child.number]
        # Linux counts kilobytes, macOS bytes.
        peak = max(usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024), child.peak)
        outcome = child.excess or child.messages.outcome
        if outcome is None and status and child.is_short_of_memory():
            outcome = {"problem": _OUT_OF_MEMORY}
        self._send(
            {"ended": child.number, "status": os.waitstatus_to_exitcode(status), "peak": peak, "outcome": outcome}
        )

    def _end(self) -> None:
        for child in list(self._children.values()):
            child.kill()
            os.waitpid(child.process, 0)

    def _send(self, message: dict[str, Any]) -> None:
        _write(1, json.dumps(message, allow_nan=False).encode() + b"\n")


def _work(task: Task, limits: TaskLimits, pipe: int, parent: int) -> NoReturn:
    """Runs a task in the child, and ends."""
    status = 1
    try:
        die_with(parent)
        os.setsid()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        if task.directory:
            os.chdir(task.directory)
            task = task._replace(directory=os.fspath(Path.cwd()))
        _redirect(task.log)
        if task.is_served:
            warnings.formatwarning = lambda message, kind, *place: f"{kind.__name__}: {message}\n"
        apply_limits(limits)
        _write(pipe, outcome_line(_outcome(task, limits, pipe)))
        status = 0
    except MemoryError:
        os.write(pipe, _OUT_OF_MEMORY_LINE)  # Made before, since nothing can be made now.
    finally:
        # Nothing of the parent's, such as the buffers of its streams, may be written or freed twice.
        os._exit(status)


def _write(descriptor: int, line: bytes) -> None:
    data = memoryview(line)
    while data:
        data = data[os.write(descriptor, data) :]


def _redirect(log: str) -> None:
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    target = os.open(log or os.devnull, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(target, 1)
    os.dup2(target, 2)


class _Guarded:
    """A context in which a task runs; exceptions become its outcome.

    Args:
        hides_trace: Whether the trace of an internal error is sent rather than printed.
        is_limited: Whether the task's memory is limited.

    Attributes:
        outcome: The outcome, as it is sent.
    """

    __slots__ = ("_hides_trace", "_is_limited", "outcome")

    def __init__(self, *, hides_trace: bool, is_limited: bool) -> None:
        self._hides_trace = hides_trace
        self._is_limited = is_limited
        self.outcome: dict[str, Any] = {}

    def __enter__(self) -> _Guarded:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> bool:
        """Records the exception, also an internal error, which fails this task alone."""
        if isinstance(problem, MemoryError) or (self._is_limited and _is_about_memory(problem)):
            self.outcome = {"problem": _OUT_OF_MEMORY}
        elif isinstance(problem, ConversionError) and not (self._hides_trace and problem.code in _OF_PLUGINS):
            self.outcome = {"problem": problem.to_dict()}
        elif problem is not None and self._hides_trace:
            code, what = "internal-error", f"an unexpected {type(problem).__name__}"
            if isinstance(problem, ConversionError):
                code, what = problem.code, "a plug-in of the server fails"
            stage = next((f"{note}: " for note in getattr(problem, "__notes__", ()) if note.startswith("stage ")), "")
            self.outcome = {
                "problem": _problem(code, f"{stage}{what}"),
                "trace": "".join(format_exception(problem))[-_MAX_TRACE:],
            }
        elif problem is not None:
            print_exception(problem)  # Into the task's log.
            what = " ".join(f"{type(problem).__name__}: {problem}".split())
            self.outcome = {"problem": _problem("internal-error", what)}
        return True


def _is_about_memory(problem: BaseException | None) -> bool:
    """Returns whether a task failed for lack of memory, whatever its code or that of others says of it."""
    if not isinstance(problem, ConversionError):
        return is_out_of_memory(problem)
    return problem.code == "out-of-memory" or is_out_of_memory(problem.__cause__ or problem.__context__)


def _outcome(task: Task, limits: TaskLimits, pipe: int) -> dict[str, Any]:
    def on_stage(name: str) -> None:
        os.write(pipe, stage_line(name))

    with _Guarded(hides_trace=task.is_served, is_limited=limits.memory > 0) as guarded:
        if task.is_confined:
            _confine(task)
        guarded.outcome = {"summary": run_task(task, on_stage)}
    outcome = guarded.outcome
    if "problem" in outcome:
        folders = [f"{path.parent}/" for path in map(Path, task.readable) if len(path.parts) > 2 and not path.is_dir()]
        outcome["problem"] = _without(folders, outcome["problem"])
    return outcome


def _without(folders: Sequence[str], value: Any) -> Any:
    """Returns data without the names of directories in its strings."""
    match value:
        case str():
            for folder in folders:
                value = value.replace(folder, "")
        case list():
            return [_without(folders, each) for each in value]
        case dict():
            return {key: _without(folders, each) for key, each in value.items()}
    return value


def _confine(task: Task) -> None:
    """Puts this process into the sandbox of a task."""
    writable = _writable(task)
    writable[-1].mkdir(mode=0o700, exist_ok=True)
    scratch = os.fspath(writable[-1])
    # Keras would look for its settings at home.
    os.environ |= {"TMPDIR": scratch, "KERAS_HOME": scratch}
    tempfile.tempdir = None
    report = [] if task.output else [task.report]
    sandbox.enter(map(Path, (".", task.model, *report, *task.readable)), writable)


def _writable(task: Task) -> list[Path]:
    """Returns the directories that a task may write to in the sandbox: that of its result, and one for the rest."""
    folder = Path(task.directory).absolute()
    return [(folder / (task.output or task.page)).parent, folder / _SCRATCH]


def _problem(code: str, message: str) -> dict[str, Any]:
    return ConversionError([Diagnostic(code, message)]).to_dict()


_OUT_OF_MEMORY = _problem("job-memory", job_usage.TOO_MUCH_MEMORY)
_OUT_OF_MEMORY_LINE = outcome_line({"problem": _OUT_OF_MEMORY})


def main() -> None:
    """Serves the process that started this one, whose process ID is the argument."""
    die_with(int(sys.argv[1]))
    adopt_orphans()
    # An interrupt from the terminal reaches the whole group; the parent decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    gc.disable()
    with tempfile.TemporaryDirectory() as folder:
        preload(folder)
    sandbox.prepare()
    gc.collect()
    # The collector never touches frozen objects, so that children keep sharing their pages.
    gc.freeze()
    Zygote().serve()
