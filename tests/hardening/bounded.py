"""Runs the command under limits of memory and time, as a service would."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

# Bytes of address space, the interpreter's own included.
MEMORY = 2 << 30
# Of processor time; a process that waits is given twice as much.
SECONDS = 20


class Outcome(NamedTuple):
    """How a command ended.

    Attributes:
        status: Its exit status; negative if a signal ended it.
        stdout: What it printed.
        stderr: What it complained of.
    """

    status: int
    stdout: str
    stderr: str

    @property
    def is_diagnosed(self) -> bool:
        """Whether it ended in an error that was told as one: no traceback, no signal, no failure of our own."""
        return self.status in (1, 2) and "Traceback" not in self.stderr and bool(self.stderr.strip())


def run_bounded(
    arguments: Sequence[str | Path], folder: Path | None = None, memory: int = MEMORY, seconds: int = SECONDS
) -> Outcome:
    """Runs `tfconvert` with these arguments.

    Args:
        arguments: Its arguments.
        folder: The working folder.
        memory: The limit of its address space, in bytes.
        seconds: The limit of its processor time.

    Raises:
        subprocess.TimeoutExpired: It waited for something that doesn't come.
    """

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))

    done = subprocess.run(
        [sys.executable, "-m", "tfconvert", *map(str, arguments)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=2 * seconds,
        preexec_fn=limit,  # The child starts no thread before it runs.
        check=False,
    )
    return Outcome(done.returncode, done.stdout, done.stderr)
