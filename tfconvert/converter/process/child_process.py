"""Calls in child processes, which run LiteRT, IREE or MLIR.

These check their inputs little, so that a wrong file may end the process; their memory is freed with the process, and
what they print stays off the screen. Calls and results go through pipes, each as a line of JSON and the arrays that it
announces. A child that hangs is killed after a timeout, and one whose parent has died ends itself.

Arguments and results are plain data, bytes and arrays. Any other result, such as an object that a call creates, stays
in the child: the caller gets a reference, which it can pass to further calls.
"""

from __future__ import annotations

import json
import math
import os
import pkgutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import IO, Any, NamedTuple, ParamSpec, TypeVar

import ml_dtypes  # noqa: F401  # Makes numpy know the names of its dtypes.
import numpy as np

from tfconvert.converter.process.python_process import die_with, kill, python_command
from tfconvert.schema.diagnostics import ConversionError, Diagnostic

P = ParamSpec("P")
T = TypeVar("T")

# Seconds that a call may take.
_TIMEOUT = 600.0

# What is sent itself; results of other types stay in the process.
_DATA = (type(None), bool, int, float, str, bytes, list, tuple, dict, np.ndarray)


class ChildError(Exception):
    """A call that failed: the function raised `RuntimeError` or `ValueError`, or the process ended before it answered.

    Attributes:
        refusal: The message of the exception; empty if the process ended.
        status: The exit status of the process; negative for the signal that ended it.
        seconds: The timeout that it has exceeded; 0 if it ended by itself.
    """

    def __init__(self, refusal: str = "", status: int = 0, seconds: float = 0) -> None:
        super().__init__(refusal or (f"no answer within {seconds:g} s" if seconds else f"status {status}"))
        self.refusal = refusal
        self.status = status
        self.seconds = seconds


class Reference(NamedTuple):
    """An object in the child process, by its number."""

    number: int


class Child:
    """A process, started with the first call, and again with the first one after a crash; a context manager.

    Args:
        seconds: The timeout of a call.
    """

    def __init__(self, seconds: float = _TIMEOUT) -> None:
        self._seconds = seconds
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Child:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def call(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Calls a function, a method or a class in the process, and returns the result.

        Args:
            function: What to call; the process imports its module.
            *args: The arguments; references stand for the objects in the process.
            **kwargs: The keyword arguments.

        Raises:
            ChildError: The function raised an error of a runtime, or the process ended or exceeded the timeout.
            ConversionError: The function raised it.
        """
        request = (f"{function.__module__}:{function.__qualname__}", list(args), kwargs)
        if self._process is None:
            self._process = subprocess.Popen(
                python_command(__name__, "serve"),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        with _limited(process, self._seconds) as expired:
            try:
                _write(process.stdin, request)
                kind, result = _read(process.stdout, None)
            except (EOFError, OSError) as problem:
                status = process.wait()
                self.stop()
                raise ChildError("", status, self._seconds if expired.is_set() else 0) from problem
        if kind == "refused":
            raise ChildError(result)
        if kind == "failed":
            raise ConversionError([Diagnostic(*each) for each in result])
        returned: T = result
        return returned

    def stop(self) -> None:
        """Ends the process."""
        if self._process is not None:
            kill(self._process)
            self._process.communicate()
            self._process = None


@contextmanager
def _limited(process: subprocess.Popen[bytes], seconds: float) -> Iterator[threading.Event]:
    """Kills a process unless the body is done in time; the event is set if it was killed."""
    expired = threading.Event()

    def end() -> None:
        expired.set()
        kill(process)

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    try:
        yield expired
    finally:
        timer.cancel()


def serve() -> None:
    """Answers the calls of a `Child`, whose process ID is the first argument, until it closes the pipe."""
    # Elsewhere than on Linux it ends when it reads next.
    die_with(int(sys.argv[1]))
    objects: list[object] = []
    # The runtime's own output must not mix with the answers.
    with os.fdopen(os.dup(1), "wb") as channel:
        os.dup2(2, 1)
        while True:
            try:
                name, args, kwargs = _read(sys.stdin.buffer, objects)
            except EOFError:
                return
            kind, result = _answer(name, args, kwargs)
            if not isinstance(result, _DATA):
                objects.append(result)
                result = Reference(len(objects) - 1)
            _write(channel, (kind, result))


def _answer(name: str, args: list[Any], kwargs: dict[str, Any]) -> tuple[str, Any]:
    function = pkgutil.resolve_name(name)
    try:
        return "returned", function(*args, **kwargs)
    except ConversionError as problem:
        return "failed", [tuple(each) for each in problem.diagnostics]
    except (RuntimeError, ValueError) as problem:
        return "refused", str(problem) or type(problem).__name__


def _write(stream: IO[bytes], message: object) -> None:
    """Writes a message of data and references."""
    arrays: list[bytes] = []
    line = json.dumps(_encoded(message, arrays))
    stream.write(line.encode() + b"\n")
    for array in arrays:
        stream.write(array)
    stream.flush()


def _encoded(value: object, arrays: list[bytes]) -> object:
    """Returns a value as JSON; the contents of arrays are added to a list."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case list():
            return [_encoded(each, arrays) for each in value]
        case Reference():
            return {"reference": value.number}
        case tuple():
            return {"tuple": _encoded(list(value), arrays)}
        case dict():
            return {"items": _encoded([list(item) for item in value.items()], arrays)}
        case bytes():
            arrays.append(value)
            return {"bytes": len(value)}
        case np.ndarray() if value.dtype.kind in "OS":
            # Strings go into the line.
            return {"shape": value.shape, "strings": [bytes(each).decode("latin-1") for each in value.reshape(-1)]}
        case np.ndarray():
            arrays.append(value.tobytes())
            return {"shape": value.shape, "type": value.dtype.name}
    raise TypeError(f"{type(value).__name__} is not data")


def _read(stream: IO[bytes], objects: list[object] | None) -> Any:
    """Reads a message.

    Args:
        stream: The pipe.
        objects: What references stand for; `None` if they stand for objects of the other process.

    Raises:
        EOFError: The message is missing or incomplete.
    """
    line = stream.readline()
    if not line.endswith(b"\n"):
        raise EOFError
    return _decoded(json.loads(line), stream, objects)


def _decoded(value: Any, stream: IO[bytes], objects: list[object] | None) -> Any:
    match value:
        case list():
            return [_decoded(each, stream, objects) for each in value]
        case {"tuple": parts}:
            return tuple(_decoded(parts, stream, objects))
        case {"items": items}:
            return dict(_decoded(items, stream, objects))
        case {"reference": number}:
            return Reference(number) if objects is None else objects[number]
        case {"bytes": size}:
            return _taken(stream, size)
        case {"strings": strings, "shape": shape}:
            array = np.empty(len(strings), object)
            array[:] = [each.encode("latin-1") for each in strings]
            return array.reshape(shape)
        case {"type": name, "shape": shape}:
            dtype = np.dtype(name)
            return np.frombuffer(_taken(stream, math.prod(shape) * dtype.itemsize), dtype).reshape(shape)
    return value


def _taken(stream: IO[bytes], size: int) -> bytes:
    data = stream.read(size)
    if len(data) != size:
        raise EOFError
    return data
