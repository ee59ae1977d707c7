"""Child processes that run a runtime, LiteRT or IREE.

These check their inputs little, so that a wrong file may end the process; their memory is given back when the work is
done; and what they print stays off the screen. Requests and answers go through pipes, each a line of JSON and the
arrays that it announces. A child that hangs is ended by a time limit, and one whose parent has died ends itself.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import IO, Any, Protocol

import ml_dtypes  # noqa: F401  # Makes numpy know the names of its dtypes.
import numpy as np

from tfconvert.converter.process.parent_process import die_with
from tfconvert.schema.dialects.boxes import Array

Message = tuple[dict[str, Any], list[Array]]


TIME_LIMIT = 600.0
"""Seconds that a request may take."""


class ChildError(Exception):
    """The process has ended before it answered, or was ended since it took too long.

    Attributes:
        status: Its exit status; negative for the signal that ended it.
        seconds: The time limit that it has exceeded; 0 if it ended by itself.
    """

    def __init__(self, status: int, seconds: float = 0) -> None:
        super().__init__(f"no answer within {seconds:g} s" if seconds else f"status {status}")
        self.status = status
        self.seconds = seconds


class Child:
    """A process, started when it is first asked, and again after a crash; a context manager.

    Args:
        module: The module that it runs, which calls `serve`.
        seconds: The time that a request may take.
    """

    def __init__(self, module: str, seconds: float = TIME_LIMIT) -> None:
        self._module = module
        self._seconds = seconds
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Child:
        """Returns itself; nothing is started yet."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Ends the process."""
        self.stop()

    def ask(self, header: Mapping[str, Any], arrays: Sequence[Array] = ()) -> Message:
        """Sends a request and returns the answer.

        Args:
            header: What JSON can say.
            arrays: What comes with it.

        Raises:
            ChildError: The process has ended, or exceeded the time limit.
        """
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-m", self._module, str(os.getpid())],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        with _limited(process, self._seconds) as expired:
            try:
                _write(process.stdin, header, arrays)
                return _read(process.stdout)
            except (EOFError, OSError) as problem:
                status = process.wait()
                self.stop()
                raise ChildError(status, self._seconds if expired.is_set() else 0) from problem

    def stop(self) -> None:
        """Ends the process."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


@contextmanager
def _limited(process: subprocess.Popen[bytes], seconds: float) -> Iterator[threading.Event]:
    """Ends a process unless the body is done in time; the event is set if it was ended."""
    expired = threading.Event()

    def end() -> None:
        expired.set()
        process.kill()

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    try:
        yield expired
    finally:
        timer.cancel()


def serve(answer: Callable[[Mapping[str, Any], list[Array]], Message]) -> None:
    """Answers the requests of a `Child` until it closes the pipe.

    Args:
        answer: Returns the answer to a request.
    """
    # Elsewhere than on Linux it ends when it reads next.
    die_with(int(sys.argv[1]) if len(sys.argv) > 1 else os.getppid())
    # The runtime's own output must not mix with the answers.
    with os.fdopen(os.dup(1), "wb") as channel:
        os.dup2(2, 1)
        while True:
            try:
                header, arrays = _read(sys.stdin.buffer)
            except EOFError:
                return
            _write(channel, *answer(header, arrays))


class Task(Protocol):
    """Work that a first request starts, further requests feed, and a last one finishes."""

    def feed(self, header: Mapping[str, Any], arrays: list[Array]) -> None:
        """Does the part of the work that a request brings."""

    def finish(self) -> Message:
        """Returns the result."""


def serve_task(start: Callable[[Mapping[str, Any]], Task]) -> None:
    """Answers the requests of a `Child` about one task.

    The first request starts it, the one with `finish` in its header asks for the result, those between feed it. Each
    answer has a `problem` in its header: why the runtime failed, empty if it didn't.

    Args:
        start: Returns the task, given the first request's header.
    """
    task: Task | None = None

    def answer(header: Mapping[str, Any], arrays: list[Array]) -> Message:
        nonlocal task
        result: Message = {}, []
        try:
            if task is None:
                task = start(header)
            elif header.get("finish"):
                result = task.finish()
            else:
                task.feed(header, arrays)
        except (RuntimeError, ValueError) as problem:
            return {"problem": str(problem)}, []
        return {"problem": "", **result[0]}, result[1]

    serve(answer)


def _write(stream: IO[bytes], header: Mapping[str, Any], arrays: Sequence[Array]) -> None:
    """Writes a message; strings go into the header."""
    kinds = [
        {"shape": array.shape, "text": [bytes(each).decode("latin-1") for each in array.reshape(-1)]}
        if array.dtype.kind in "OS"
        else {"shape": array.shape, "type": array.dtype.name}
        for array in arrays
    ]
    stream.write(json.dumps({**header, "arrays": kinds}).encode() + b"\n")
    for array, kind in zip(arrays, kinds, strict=True):
        if "type" in kind:
            stream.write(np.ascontiguousarray(array).tobytes())
    stream.flush()


def _read(stream: IO[bytes]) -> Message:
    """Reads a message.

    Raises:
        EOFError: There is none, or it breaks off.
    """
    line = stream.readline()
    if not line.endswith(b"\n"):
        raise EOFError
    header: dict[str, Any] = json.loads(line)
    arrays: list[Array] = []
    for kind in header["arrays"]:
        if "text" in kind:
            array = np.empty(len(kind["text"]), object)
            array[:] = [each.encode("latin-1") for each in kind["text"]]
        else:
            dtype = np.dtype(kind["type"])
            size = math.prod(kind["shape"]) * dtype.itemsize
            data = stream.read(size)
            if len(data) != size:
                raise EOFError
            array = np.frombuffer(data, dtype)
        arrays.append(array.reshape(kind["shape"]))
    return header, arrays
