"""Opens files in LiteRT, each in a process forked for it: an invalid file may end the process that opens it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from types import TracebackType

_SECONDS = 10


class LiteRT:
    """A process with LiteRT in it; a context manager."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> LiteRT:
        """Returns itself; nothing is started yet."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Ends the process."""
        if self._process is not None:
            self._process.communicate()

    def problem(self, path: Path) -> str:
        """Returns why a file can't be opened; empty if it can be."""
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-m", __name__],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                stderr=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{path}\n")
        self._process.stdin.flush()
        return self._process.stdout.readline().rstrip("\n")


def _open(path: str, pipe: int) -> None:
    """Opens a file and sends what is wrong with it; never returns."""
    from ai_edge_litert.interpreter import Interpreter

    signal.alarm(_SECONDS)
    problem = "ok"
    try:
        interpreter = Interpreter(model_path=path, num_threads=1)
        interpreter.allocate_tensors()
    except (RuntimeError, ValueError) as refused:
        problem = " ".join(str(refused).split())
        if "unresolved custom op" in problem or "Select TensorFlow op" in problem:
            problem = "ok"  # Whoever asks for custom and flex ops brings their kernels.
    os.write(pipe, problem.encode()[:4000])
    os._exit(0)


def serve() -> None:
    """Answers a line for each file that is named on a line."""
    import ai_edge_litert.interpreter  # noqa: F401  # Loaded before processes are forked.

    for line in sys.stdin:
        receiving, sending = os.pipe()
        process = os.fork()
        if not process:
            _open(line.rstrip("\n"), sending)
        os.close(sending)
        with os.fdopen(receiving, "rb") as stream:
            told = stream.read().decode("utf-8", "replace")
        _, status = os.waitpid(process, 0)
        code = os.waitstatus_to_exitcode(status)
        problem = told or f"it ends the process: {signal.Signals(-code).name if code < 0 else code}"
        print("" if problem == "ok" else problem, flush=True)


if __name__ == "__main__":
    serve()
