"""A child process that sleeps as long as it is told, ends if that is less than nothing, and returns what it got."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping
from typing import Any

from tfconvert.converter.process.child_process import Message, serve
from tfconvert.schema.dialects.boxes import Array


def _answer(header: Mapping[str, Any], arrays: list[Array]) -> Message:
    if header["nap"] < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(header["nap"])
    return {"nap": header["nap"], "pid": os.getpid()}, arrays


if __name__ == "__main__":
    serve(_answer)
