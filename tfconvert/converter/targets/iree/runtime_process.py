"""Runs IREE in a child process: it doesn't check all sizes, and may crash."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType

from tfconvert.converter.process.child_process import Child, ChildError
from tfconvert.converter.targets.iree.program_file import IreeFile
from tfconvert.exporters.output_file import write_parts
from tfconvert.schema.diagnostics import ConversionError, error
from tfconvert.schema.dialects.boxes import Array
from tfconvert.schema.limits import budget

_NAME = "model.vmfb"


class Runtime:
    """IREE in another process, as validation runs files in LiteRT; a context manager.

    Each run has its own session, so that variables start from their initial values, as in the reference executor.

    Args:
        file: The program.
    """

    name = "IREE"
    """Its name in diagnostics."""

    def __init__(self, file: IreeFile) -> None:
        self._file = file
        self._directory: tempfile.TemporaryDirectory[str] | None = None
        self._program = ""
        self._child = Child(budget().limits.run_seconds)

    def __enter__(self) -> Runtime:
        """Writes the program and its weights to a temporary directory."""
        if not _is_installed():
            raise error(
                "iree-missing",
                "programs are run in IREE's runtime, which is not installed",
                hint="pip install 'tfconvert[iree]'",
            )
        self._file.check()
        self._directory = tempfile.TemporaryDirectory(prefix="tfconvert-")
        self._program = str(Path(self._directory.name, _NAME))
        try:
            write_parts(self._program, self._file.parts)
        except ConversionError:
            self._directory.cleanup()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._child.stop()
        if self._directory is not None:
            self._directory.cleanup()

    def run_file(self, content: bytes, key: str, inputs: Mapping[str, Array], outputs: Sequence[str]) -> list[Array]:
        """Runs the program.

        Args:
            content: Ignored; this object has the program.
            key: The signature; empty for the only function, whose inputs and outputs are taken in order.
            inputs: The values, by input name.
            outputs: The names of the outputs.

        Raises:
            ConversionError: The program can't be loaded, fails or crashes (`runtime-error`), or hangs (`run-timeout`).
        """
        try:
            return self._child.call(_run, self._program, key, dict(inputs), list(outputs))
        except ConversionError as refused:
            message = refused.diagnostics[0].message
            raise error("runtime-error", f"IREE refuses the program: {message}") from None
        except ChildError as problem:
            if problem.seconds:
                raise error("run-timeout", f"IREE has not answered within {problem.seconds:g} s") from problem
            reason = problem.refusal or f"status {problem.status}"
            raise error("runtime-error", f"IREE has crashed ({reason})") from problem


def _run(path: str, key: str, inputs: Mapping[str, Array], outputs: Sequence[str]) -> list[Array]:
    """Loads a program and runs it; called in the child process."""
    # Imported here, so that the parent process does not import IREE's runtime.
    from tfconvert.converter.targets.iree.runtime import IreeProgram

    found = IreeProgram(path).run(inputs if key else list(inputs.values()), key)
    return [found[name] for name in outputs] if key else list(found.values())


def _is_installed() -> bool:
    """Returns whether IREE's runtime is installed, without importing it."""
    return find_spec("iree") is not None and find_spec("iree.runtime") is not None
