"""`python -m tfconvert` and the `tfconvert` command."""

from __future__ import annotations

import atexit
import gc
import os
import signal
import sys
import time
from types import FrameType

# When the process began, by `time.perf_counter`: until here it was busy throughout.
_BEGIN = time.perf_counter() - time.process_time()


class Ended(BaseException):
    """The process received a signal to end; it does so once no half-written file is left.

    Args:
        number: The signal.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        super().__init__(number)


def main() -> None:
    """Runs the command line."""
    # The process converts one model and ends. Garbage collection would only cost time.
    gc.disable()
    # It multiplies no large matrices: numpy's threads for that would only keep other cores busy, waiting for work.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    _end_in_order()
    from tfconvert.cli.main import main as command

    try:
        command(prog_name="tfconvert", obj=_BEGIN)
    except Ended as end:
        # The parent process sees the signal that ended this one.
        os.kill(os.getpid(), end.number)
    finally:
        gc.freeze()


def run() -> None:
    """Runs the command line as all that the process does.

    After success it ends without freeing each object: that takes 10 ms, 6% of the time of a small conversion.
    """
    try:
        main()
    except SystemExit as end:
        if end.code == 0 and _is_done():
            os._exit(0)
        raise


def _is_done() -> bool:
    """Does what was registered for the end; returns whether nothing is left, as of a profiler or another thread."""
    from threading import active_count

    if sys.getprofile() is not None or active_count() > 1:
        return False
    atexit._run_exitfuncs()  # noqa: SLF001
    try:
        for stream in filter(None, (sys.stdout, sys.stderr)):
            stream.flush()
    except OSError:
        return False
    return True


def _end_in_order() -> None:
    """Makes signals that end the process raise an exception, as an interrupt does, so that files are cleaned up."""
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        # An ignored signal stays ignored, as under `nohup`.
        if number is not None and signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, _end)


def _end(number: int, frame: FrameType | None) -> None:
    signal.signal(number, signal.SIG_DFL)
    raise Ended(number)


if __name__ == "__main__":
    run()
