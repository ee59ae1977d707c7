"""Functions for child processes: they sleep, end the process, fail, or return what they got."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

from tfconvert.schema.diagnostics import error


def nap(seconds: float, values: Any = None) -> tuple[int, Any]:
    """Sleeps, or ends the process if the time is negative; returns its ID and the argument."""
    if seconds < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(seconds)
    return os.getpid(), values


def fail(code: str) -> None:
    """Fails with a diagnostic of the code, or like a runtime if the code is empty."""
    if code:
        raise error(code, "told", hint="so")
    raise RuntimeError("told")


class Counter:
    """An object that stays in the process."""

    def __init__(self) -> None:
        self._count = 0

    def add(self, number: int) -> int:
        """Returns the sum so far."""
        self._count += number
        return self._count
