"""Runs LiteRT in a child process: it hardly checks its inputs, and may crash on an index out of range."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType

from tfconvert.converter.process.child_process import Child, ChildError
from tfconvert.converter.targets.litert import runtime
from tfconvert.converter.targets.litert.runtime import failure
from tfconvert.schema.dialects.boxes import Array
from tfconvert.schema.limits import budget


class LiteRTProcess:
    """LiteRT in a child process, which starts when it is first needed and again after a crash; a context manager.

    A file is sent once for successive runs.

    Args:
        as_floats: Whether integers that represent floats are fed and returned as floats.
    """

    name = "LiteRT"
    """Its name in diagnostics."""

    def __init__(self, *, as_floats: bool = False) -> None:
        self._as_floats = as_floats
        self._child = Child(budget().limits.run_seconds)
        self._sent: bytes | None = None
        self._runner: _Runner | None = None

    def __enter__(self) -> LiteRTProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._child.stop()

    def run_file(self, content: bytes, key: str, inputs: Mapping[str, Array], outputs: Sequence[str]) -> list[Array]:
        """Runs a file like `runtime.run_file`; a crash is also a `runtime-error`."""
        (results,) = self.run_in_turn(content, key, [inputs], outputs)
        return results

    def run_in_turn(
        self, content: bytes, key: str, calls: Sequence[Mapping[str, Array]], outputs: Sequence[str]
    ) -> list[list[Array]]:
        """Calls a file's signature in turn, first in the file's initial state; errors are those of `run_file`."""
        runtime.require()
        new = None if content is self._sent else content
        try:
            if self._runner is None:
                self._runner = self._child.call(_Runner, self._as_floats)
            results = self._child.call(_Runner.run, self._runner, new, key, list(map(dict, calls)), list(outputs))
        except ChildError as problem:
            self._sent = self._runner = None
            raise failure(problem, "runtime-error", "the model can't be run") from problem
        self._sent = content
        return results

    def load_file(self, content: bytes) -> None:
        """Loads a file, as far as it can be without inputs; an operator without a kernel is a `runtime-error`."""
        runtime.require()
        try:
            self._child.call(_load, content)
        except ChildError as problem:
            self._sent = self._runner = None
            raise failure(problem, "runtime-error", "the model can't be loaded") from problem


# LiteRT has no kernels for some operators of the format, as files of other converters have them.
_HINT = "unless LiteRT refuses the .tflite file that it was converted from, too, this is a bug: please report it"


def _load(content: bytes) -> None:
    """Loads a file in the child process; inputs with dynamic sizes may not fit it before they are given.

    LiteRT shows an input whose rank is not known as a scalar.
    """
    with runtime.refusals("the converted model", _HINT):
        interpreter = runtime.interpreter_of(None, model_content=content)
        if all(min(detail["shape_signature"], default=0) > 0 for detail in interpreter.get_input_details()):
            interpreter.allocate_tensors()


class _Runner:
    """Runs files in the child process; keeps the last one."""

    def __init__(self, as_floats: bool) -> None:
        self._as_floats = as_floats
        self._content = b""

    def run(
        self, content: bytes | None, key: str, calls: Sequence[Mapping[str, Array]], outputs: Sequence[str]
    ) -> list[list[Array]]:
        """Calls a file in turn; `None` is the previous one."""
        if content is not None:
            self._content = content
        return runtime.run_in_turn(self._content, key, calls, outputs, as_floats=self._as_floats)
