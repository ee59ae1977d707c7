"""LiteRT in a process of its own: it checks its inputs little, and an index out of range may end the process.

Requests and answers go through pipes, each a line of JSON and the bytes that it announces.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import IO, Any

import ml_dtypes  # noqa: F401  # Makes numpy know the names of its dtypes.
import numpy as np

from tfconvert.converter.litert import runtime
from tfconvert.converter.litert.runtime import Array
from tfconvert.schema.diagnostics import ConversionError, error


class Runtime:
    """LiteRT in another process, started when first needed and again after a crash; a context manager."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Runtime:
        """Returns itself; nothing is started yet."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Ends the process."""
        self._stop()

    def run_file(self, content: bytes, key: str, inputs: Mapping[str, Array], outputs: Sequence[str]) -> list[Array]:
        """Runs a file; as `litert.run_file`, and a crash is a `runtime-error` too."""
        runtime.require()
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tfconvert.converter.litert.runtime_process"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            )  # fmt: skip
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        try:
            write_message(stdin, {"key": key, "inputs": list(inputs), "outputs": list(outputs)},
                   [np.frombuffer(content, np.uint8), *inputs.values()])  # fmt: skip
            header, results = read_message(stdout)
        except (EOFError, OSError) as problem:
            status = self._process.wait()
            self._stop()
            raise error("runtime-error", f"LiteRT has crashed on the converted model (status {status})") from problem
        if header["code"]:
            raise error(header["code"], header["problem"])
        return results

    def _stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


def write_message(stream: IO[bytes], header: Mapping[str, Any], arrays: Sequence[Array]) -> None:
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


def read_message(stream: IO[bytes]) -> tuple[dict[str, Any], list[Array]]:
    """Reads a message.

    Raises:
        EOFError: There is none.
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
            data = stream.read(math.prod(kind["shape"]) * dtype.itemsize)
            array = np.frombuffer(data, dtype)
        arrays.append(array.reshape(kind["shape"]))
    return header, arrays


def _serve(requests: IO[bytes], answers: IO[bytes]) -> None:
    """Serves the requests of a `Runtime` until it closes the pipe."""
    while True:
        try:
            header, (content, *inputs) = read_message(requests)
        except EOFError:
            return
        named = dict(zip(header["inputs"], inputs, strict=True))
        try:
            results = runtime.run_file(content.tobytes(), header["key"], named, header["outputs"])
            write_message(answers, {"code": ""}, results)
        except ConversionError as refused:
            write_message(answers, {"code": refused.code, "problem": refused.diagnostics[0].message}, [])


if __name__ == "__main__":
    # LiteRT's own output must not mix with the answers.
    with os.fdopen(os.dup(1), "wb") as channel:
        os.dup2(2, 1)
        _serve(sys.stdin.buffer, channel)
