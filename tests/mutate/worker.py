"""Converts mutants, each in a process forked for it, under limits of memory and time."""

from __future__ import annotations

import gc
import json
import os
import resource
import selectors
import shutil
import signal
import tempfile
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

from tests.hardening.bounded import MEMORY, SECONDS
from tests.mutate.mutants import Mutant
from tests.support.flat_settings import converted
from tfconvert.importers.tflite.model import import_tflite
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.tflite.reader import TFLITE_IDENTIFIER

RESULT, REFUSED, FAILED = "result", "refused", "failed"

# Codes of errors that stand for mistakes of our own.
NOT_EXPLAINED = frozenset({"internal-error"})


class Outcome(NamedTuple):
    """The outcome of a mutant.

    Attributes:
        number: The mutant.
        kind: `RESULT`, `REFUSED` or `FAILED`.
        group: The error's code; of a failure, what distinguishes it from others.
        detail: What there is to know of a failure.
        output: The file that was written; empty if it was not to be kept.
    """

    number: int
    kind: str
    group: str
    detail: str = ""
    output: str = ""


class _Recorded:
    """A context from which every exception comes out as an outcome."""

    def __init__(self, number: int, pipe: int) -> None:
        self._number = number
        self._pipe = pipe
        self.output = ""

    def __enter__(self) -> _Recorded:
        """Returns itself, to which the file that is kept can be told."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> bool:
        """Sends the outcome."""
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        if isinstance(problem, ConversionError):
            kind_ = FAILED if NOT_EXPLAINED.intersection(each.code for each in problem.diagnostics) else REFUSED
            outcome = Outcome(self._number, kind_, problem.code, str(problem)[:2000])
        elif problem is not None:
            outcome = Outcome(
                self._number, FAILED, where(problem), "".join(traceback.format_exception(problem))[-4000:]
            )
        else:
            outcome = Outcome(self._number, RESULT, "", "", self.output)
        _send(self._pipe, outcome._asdict())
        return True


def _send(pipe: int, message: Any) -> None:
    """Writes a line of JSON."""
    os.write(pipe, json.dumps(message).encode() + b"\n")


def where(problem: BaseException) -> str:
    """Returns an exception's type and the innermost place of ours that it went through."""
    frames = traceback.extract_tb(problem.__traceback__)
    ours = [frame for frame in frames if "/tfconvert/" in frame.filename] or frames
    place = ours[-1]
    name = place.filename.rpartition("/tfconvert/")[2]
    return f"{type(problem).__name__} at {name}:{place.lineno} in {place.name}"


def write_mutant(mutant: Mutant, folder: Path) -> Path:
    """Writes a mutant's files; returns what is to be converted."""
    for name, content in mutant.files.items():
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
    return folder / mutant.target


def _convert(mutant: Mutant, folder: Path, output: Path | None) -> bool:
    """Converts a mutant; returns whether there is a file to be opened."""
    path = write_mutant(mutant, folder)
    _limit()
    model = converted(path, **mutant.arguments)
    content = bytes(model)
    model.report.to_dict()
    if content[4:8] != TFLITE_IDENTIFIER:
        return False
    import_tflite(content)
    if output is not None:
        output.write_bytes(content)
    return output is not None


def _limit() -> None:
    mapped = int(Path("/proc/self/statm").read_text("ascii").split()[0]) * resource.getpagesize()
    # More only in tests, where TensorFlow is mapped too.
    resource.setrlimit(resource.RLIMIT_AS, (max(MEMORY, mapped + MEMORY // 2), resource.RLIM_INFINITY))
    used = resource.getrusage(resource.RUSAGE_SELF)
    seconds = int(used.ru_utime + used.ru_stime) + SECONDS
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, resource.RLIM_INFINITY))


# The first line of a process that has loaded what it needs.
_READY = "ready"
# Seconds in which it must do so, and answer for each mutant. A limit of its processor time ends it much earlier, unless
# it waits for something.
_PATIENCE = 300


@dataclass(slots=True)
class _Running:
    """A process.

    Attributes:
        numbers: The mutants that it has to convert, the one that it converts first.
        process: Its number.
        pipe: From where its lines are read.
        deadline: When it is killed.
        folder: The directory of its files.
        read: What was read of a line that isn't complete.
    """

    numbers: deque[int]
    process: int
    pipe: int
    deadline: float
    folder: Path
    read: bytes = b""


class Workers:
    """Converts mutants in processes forked from this one, into which all code and all seeds are loaded.

    Args:
        draw: Returns a mutant by its number.
        jobs: How many run at the same time.
        keep_every: Of how many results one is kept to be looked at; 0 keeps none.
        each: How many mutants a process converts.
        prepare: Loads into a process what its mutants need, if that can't be loaded before it is forked.
    """

    def __init__(
        self,
        draw: Callable[[int], Mutant],
        jobs: int,
        keep_every: int,
        each: int = 1,
        prepare: Callable[[], object] = tuple,
    ) -> None:
        self._draw = draw
        self._jobs = jobs
        self._keep_every = keep_every
        self._each = each
        self._prepare = prepare
        self._folder = Path(tempfile.mkdtemp(prefix="mutants-"))
        self._selector = selectors.DefaultSelector()

    def run(self, numbers: Iterator[int]) -> Iterator[Outcome]:
        """Yields the outcome of each mutant, in any order."""
        gc.collect()
        gc.freeze()
        for _ in range(self._jobs):
            self._start(deque(islice(numbers, self._each)))
        while self._selector.get_map():
            for running in self._ready():
                data = os.read(running.pipe, 1 << 20)
                yield from self._outcomes(running, data)
                if not data:
                    yield from self._finish(running)
                    self._start(running.numbers or deque(islice(numbers, self._each)))
        shutil.rmtree(self._folder)

    def _outcomes(self, running: _Running, data: bytes) -> Iterator[Outcome]:
        """Yields what the complete lines of a process say."""
        *lines, running.read = (running.read + data).split(b"\n")
        for line in lines:
            message = json.loads(line)
            running.deadline = time.monotonic() + _PATIENCE
            if message != _READY:
                running.numbers.popleft()
                yield Outcome(**message)

    def _start(self, numbers: deque[int]) -> None:
        """Starts a process that converts some mutants, if there are any."""
        if not numbers:
            return
        receiving, sending = os.pipe()
        folder = self._folder / str(numbers[0])
        folder.mkdir()
        process = os.fork()
        if not process:
            os.close(receiving)
            self._child(numbers, sending, folder)
        os.close(sending)
        running = _Running(numbers, process, receiving, time.monotonic() + _PATIENCE, folder)
        self._selector.register(receiving, selectors.EVENT_READ, running)

    def _child(self, numbers: deque[int], sending: int, folder: Path) -> None:
        """Converts mutants and ends the process."""
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nothing, stream)
        with _Recorded(numbers[0], sending):
            self._prepare()
            _send(sending, _READY)
            self._convert_all(numbers, sending, folder)
            os._exit(0)
        os._exit(1)

    def _convert_all(self, numbers: Iterable[int], sending: int, folder: Path) -> None:
        for number in numbers:
            own = folder / str(number)
            own.mkdir()
            tempfile.tempdir = str(own)
            output = self._folder / f"{number}.tflite" if self._keep_every and not number % self._keep_every else None
            with _Recorded(number, sending) as record:
                if _convert(self._draw(number), own / "model", output):
                    record.output = str(output)
            shutil.rmtree(own, ignore_errors=True)

    def _ready(self) -> list[_Running]:
        """Waits for the next lines and ends of processes; kills those that overrun."""
        events = self._selector.select(timeout=1)
        ready = [key.data for key, _ in events]
        now = time.monotonic()
        for key in self._selector.get_map().values():
            if key.data not in ready and key.data.deadline < now:
                os.kill(key.data.process, signal.SIGKILL)
        return ready

    def _finish(self, running: _Running) -> Iterator[Outcome]:
        """Yields the outcome of the mutant that ended its process; the next ones are converted in another."""
        self._selector.unregister(running.pipe)
        os.close(running.pipe)
        _, status = os.waitpid(running.process, 0)
        shutil.rmtree(running.folder, ignore_errors=True)
        if not running.numbers:
            return
        number, code = running.numbers.popleft(), os.waitstatus_to_exitcode(status)
        if -code == signal.SIGXCPU:
            yield Outcome(number, FAILED, f"over {SECONDS} s")
        elif -code == signal.SIGKILL:
            yield Outcome(number, FAILED, f"no answer in {_PATIENCE} s")
        else:
            yield Outcome(number, FAILED, f"signal {signal.Signals(-code).name}" if code < 0 else f"exit {code}")
