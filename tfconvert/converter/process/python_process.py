"""Further processes: how to start one of Python, how to kill one, and how it ends with the one that has started it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys

from tfconvert.converter.process.kernel import prctl

# Linux: the options for the signal that a process gets when its parent ends, and for adopting orphans.
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36


def python_command(module: str, function: str) -> list[str]:
    """Returns a command that calls a function in another process, whose first argument is the ID of this one.

    The process finds modules where this one does, and never in a working directory that holds files of others. Nobody
    reads its warnings, and none of them ends it, whatever the user's PYTHONWARNINGS say.
    """
    code = f"import sys; sys.path[:] = sys.argv[2:]; from {module} import {function}; {function}()"
    return [sys.executable, "-P", "-W", "ignore", "-c", code, str(os.getpid()), *sys.path]


def die_with(parent: int) -> None:
    """Makes this process end with its parent, whatever it is doing; on Linux only.

    Args:
        parent: The process ID of the parent: if it has already ended, so does this process.
    """
    if sys.platform == "linux":
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            sys.exit()


def adopt_orphans() -> None:
    """Makes this process the parent of those whose parents end below it, so that it can wait for them; Linux only."""
    if sys.platform == "linux":
        prctl(_PR_SET_CHILD_SUBREAPER, 1)


def kill(process: subprocess.Popen[bytes]) -> None:
    """Kills a process that this one has started, if it may.

    In the sandbox of a system that can't keep signals from other processes, it may not. The process ends with its pipe
    then, or with the job.
    """
    with contextlib.suppress(PermissionError):
        process.kill()
