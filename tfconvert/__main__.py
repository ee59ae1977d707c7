"""`python -m tfconvert` and the `tfconvert` command."""

from __future__ import annotations

import gc
import os
import signal
import sys
from types import FrameType, ModuleType

# The modules that give numpy's built-in functions their docstrings.
_DOCSTRINGS = ("numpy._core._add_newdocs", "numpy._core._add_newdocs_scalars")


class Ended(BaseException):
    """The process was asked to end, and does once nothing half-written is left.

    Args:
        number: The signal.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        super().__init__(number)


def main() -> None:
    """Runs the command line."""
    # The process converts one model and ends. Looking for garbage would only cost time: while modules and IR grow, and
    # once more at the end, when everything goes anyway.
    gc.disable()
    # Nor does it multiply large matrices: numpy's threads for that would only keep other cores busy, waiting for work.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # And nobody reads numpy's documentation in it, which takes as long as importing a small graph. Without it numpy is
    # as under `python -OO`.
    for name in _DOCSTRINGS:
        sys.modules.setdefault(name, ModuleType(name))
    _end_in_order()
    from tfconvert.cli.main import main as command

    try:
        command(prog_name="tfconvert")
    except Ended as end:
        # The parent process sees the signal that ended this one.
        os.kill(os.getpid(), end.number)
    finally:
        gc.freeze()


def _end_in_order() -> None:
    """Has signals that end the process raise an exception, as an interrupt does, so that files are tidied away."""
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        # One that is ignored, as `nohup` has it, stays so.
        if number is not None and signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, _end)


def _end(number: int, frame: FrameType | None) -> None:
    signal.signal(number, signal.SIG_DFL)
    raise Ended(number)


if __name__ == "__main__":
    main()
