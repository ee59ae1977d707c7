"""Diagnostics for processes that run LiteRT and fail."""

from __future__ import annotations

from tfconvert.converter.process.child_process import ChildError
from tfconvert.schema.diagnostics import ConversionError, error


def failure(crash: ChildError, code: str, what: str) -> ConversionError:
    """Returns the error to raise: `litert-timeout` if the time limit was exceeded, else `code`.

    Args:
        crash: How the process has ended.
        code: The code for a crash.
        what: What was to be done, as a sentence.
    """
    if crash.seconds:
        return error(
            "litert-timeout",
            f"{what}: LiteRT has not answered within {crash.seconds:g} s",
            hint="try smaller inputs; if those hang too, one of LiteRT's kernels does",
        )
    return error(code, f"{what}: LiteRT has crashed (status {crash.status})")
