"""LiteRT in a process of its own: it checks its inputs little, and an index out of range may end the process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any

import numpy as np

from tfconvert.converter.process.child_process import Child, ChildError, Message, serve
from tfconvert.converter.targets.litert import runtime
from tfconvert.converter.targets.litert.runtime import failure
from tfconvert.schema.diagnostics import ConversionError, error
from tfconvert.schema.dialects.boxes import Array
from tfconvert.schema.limits import budget


class Runtime:
    """LiteRT in another process, started when first needed and again after a crash; a context manager.

    A file is sent once for all runs that follow one another.

    Args:
        as_floats: Whether integers that represent floats are fed and returned as floats.
    """

    name = "LiteRT"
    """Its name in diagnostics."""

    def __init__(self, *, as_floats: bool = False) -> None:
        self._as_floats = as_floats
        self._child = Child(__name__, budget().limits.run_seconds)
        self._sent: bytes | None = None

    def __enter__(self) -> Runtime:
        """Returns itself; nothing is started yet."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Ends the process."""
        self._child.stop()

    def run_file(self, content: bytes, key: str, inputs: Mapping[str, Array], outputs: Sequence[str]) -> list[Array]:
        """Runs a file; as `runtime.run_file`, and a crash is a `runtime-error` too."""
        runtime.require()
        is_known = content is self._sent
        header = {
            "key": key,
            "inputs": list(inputs),
            "outputs": list(outputs),
            "known": is_known,
            "as_floats": self._as_floats,
        }
        sent = np.frombuffer(b"" if is_known else content, np.uint8)
        try:
            answer, results = self._child.ask(header, [sent, *inputs.values()])
        except ChildError as crash:
            self._sent = None
            raise failure(crash, "runtime-error", "the model can't be run") from crash
        self._sent = content
        if answer["code"]:
            raise error(answer["code"], answer["problem"])
        return results


class _Server:
    """Answers requests; keeps the file of the last one."""

    def __init__(self) -> None:
        self._content = b""

    def answer(self, header: Mapping[str, Any], arrays: list[Array]) -> Message:
        """Runs the file of a request."""
        content, *inputs = arrays
        if not header["known"]:
            self._content = content.tobytes()
        named = dict(zip(header["inputs"], inputs, strict=True))
        try:
            results = runtime.run_file(
                self._content, header["key"], named, header["outputs"], as_floats=header["as_floats"]
            )
            return {"code": ""}, results
        except ConversionError as refused:
            return {"code": refused.code, "problem": refused.diagnostics[0].message}, []


if __name__ == "__main__":
    serve(_Server().answer)
