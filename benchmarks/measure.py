"""Time and peak memory of a whole process.

The kernel counts a child's peak from its parent's at the moment of the fork, so a large parent would spoil the figure.
Hence `measure` starts a bare interpreter that has imported next to nothing, which is this same file run as a script,
and that one starts, awaits and weighs the command. The floor of what can be measured so is about 10 MB.
"""

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Run:
    """One run of a command."""

    seconds: float  # Wall time.
    peak: int  # Peak resident memory, in bytes.
    processor: float = 0.0  # Seconds of all processors together; on a busy machine they tell more than the wall time.


def child_environment() -> dict[str, str]:
    """Returns the environment that commands run in: compiled Python is cached, as on a user's machine."""
    quiet = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}
    left_out = ("PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED", "PYTHONHASHSEED")
    return {**{name: value for name, value in os.environ.items() if name not in left_out}, **quiet}


def measure(command: list[str], folder: Path) -> Run:
    """Runs a command and returns its cost.

    Args:
        command: Program and arguments.
        folder: The working folder.

    Raises:
        RuntimeError: The command failed; its output is in the message.
    """
    done = subprocess.run(
        [sys.executable, "-I", "-S", __file__, *command],
        cwd=folder,
        env=child_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr}")
    return Run(*json.loads(done.stdout.splitlines()[-1]))


def main() -> int:
    """Runs the command line's command, prints the fields of a `Run` as a list, returns the command's exit status."""
    command = sys.argv[1:]
    sink = os.open(os.devnull, os.O_WRONLY)
    start = time.perf_counter()
    child = os.posix_spawn(command[0], command, os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, sink, 1)])
    _, status, usage = os.wait4(child, 0)
    seconds = time.perf_counter() - start
    if os.WIFSIGNALED(status):
        print(f"died of signal {os.WTERMSIG(status)}", file=sys.stderr)
    # Linux counts kilobytes, macOS bytes.
    peak = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    print(json.dumps([seconds, peak, usage.ru_utime + usage.ru_stime]))
    return 1 if status else 0


if __name__ == "__main__":
    sys.exit(main())
