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
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

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
    """A context from which every exception comes out as an outcome, and a process ends."""

    def __init__(self, number: int, pipe: int) -> None:
        self._number = number
        self._pipe = pipe

    def __enter__(self) -> None:
        """Does nothing."""

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Sends the outcome; never returns."""
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        if isinstance(problem, ConversionError):
            kind_ = FAILED if NOT_EXPLAINED.intersection(each.code for each in problem.diagnostics) else REFUSED
            outcome = Outcome(self._number, kind_, problem.code, str(problem)[:2000])
        elif problem is not None:
            outcome = Outcome(
                self._number, FAILED, where(problem), "".join(traceback.format_exception(problem))[-4000:]
            )
        else:
            outcome = Outcome(self._number, RESULT, "")
        self.send(outcome)

    def send(self, outcome: Outcome) -> None:
        """Sends an outcome; never returns."""
        os.write(self._pipe, json.dumps(outcome).encode()[:60_000])
        os._exit(0)


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


def _convert(mutant: Mutant, folder: Path, output: Path | None, send: Callable[[str], None]) -> None:
    path = write_mutant(mutant, folder)
    _limit()
    model = converted(path, **mutant.arguments)
    content = bytes(model)
    model.report.to_dict()
    if content[4:8] != TFLITE_IDENTIFIER:
        return
    import_tflite(content)
    if output is not None:
        output.write_bytes(content)
        send(str(output))


def _limit() -> None:
    mapped = int(Path("/proc/self/statm").read_text("ascii").split()[0]) * resource.getpagesize()
    # More only in tests, where TensorFlow is mapped too.
    resource.setrlimit(resource.RLIMIT_AS, (max(MEMORY, mapped + MEMORY // 2), resource.RLIM_INFINITY))
    used = resource.getrusage(resource.RUSAGE_SELF)
    seconds = int(used.ru_utime + used.ru_stime) + SECONDS
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))


class _Running(NamedTuple):
    number: int
    process: int
    pipe: int
    deadline: float
    folder: Path


class Workers:
    """Converts mutants in processes forked from this one, into which all code and all seeds are loaded.

    Args:
        draw: Returns a mutant by its number.
        jobs: How many run at the same time.
        keep_every: Of how many results one is kept to be looked at; 0 keeps none.
    """

    def __init__(self, draw: Callable[[int], Mutant], jobs: int, keep_every: int) -> None:
        self._draw = draw
        self._jobs = jobs
        self._keep_every = keep_every
        self._folder = Path(tempfile.mkdtemp(prefix="mutants-"))
        self._selector = selectors.DefaultSelector()

    def run(self, numbers: Iterator[int]) -> Iterator[Outcome]:
        """Yields the outcome of each mutant, in any order."""
        gc.collect()
        gc.freeze()
        for number in islice(numbers, self._jobs):
            self._start(number)
        while self._selector.get_map():
            for running in self._ready():
                yield self._finish(running)
                for number in islice(numbers, 1):
                    self._start(number)
        shutil.rmtree(self._folder)

    def _start(self, number: int) -> None:
        receiving, sending = os.pipe()
        folder = self._folder / str(number)
        folder.mkdir()
        process = os.fork()
        if not process:
            os.close(receiving)
            self._child(number, sending, folder)
        os.close(sending)
        running = _Running(number, process, receiving, time.monotonic() + 3 * SECONDS, folder)
        self._selector.register(receiving, selectors.EVENT_READ, running)

    def _child(self, number: int, sending: int, folder: Path) -> None:
        """Converts a mutant and ends the process."""
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nothing, stream)
        tempfile.tempdir = str(folder)
        record = _Recorded(number, sending)
        keep = self._keep_every and not number % self._keep_every
        output = self._folder / f"{number}.tflite" if keep else None
        with record:
            mutant = self._draw(number)
            _convert(mutant, folder / "model", output, lambda path: record.send(Outcome(number, RESULT, "", "", path)))

    def _ready(self) -> list[_Running]:
        """Waits for the next processes to end or to overrun."""
        events = self._selector.select(timeout=1)
        ready = [key.data for key, _ in events]
        now = time.monotonic()
        for key in self._selector.get_map().values():
            if key.data not in ready and key.data.deadline < now:
                os.kill(key.data.process, signal.SIGKILL)
        return ready

    def _finish(self, running: _Running) -> Outcome:
        self._selector.unregister(running.pipe)
        with os.fdopen(running.pipe, "rb") as stream:
            told = stream.read()
        _, status = os.waitpid(running.process, 0)
        shutil.rmtree(running.folder, ignore_errors=True)
        if told:
            return Outcome(*json.loads(told))
        code = os.waitstatus_to_exitcode(status)
        if -code in (signal.SIGXCPU, signal.SIGKILL):
            return Outcome(running.number, FAILED, f"over {SECONDS} s")
        return Outcome(running.number, FAILED, f"signal {signal.Signals(-code).name}" if code < 0 else f"exit {code}")
