"""Diagnostics for processes that run LiteRT and fail."""

from __future__ import annotations

from tfconvert.converter.process.child_process import ChildError
from tfconvert.schema.diagnostics import ConversionError, error


def failure(problem: ChildError, code: str, what: str, hint: str = "") -> ConversionError:
    """Returns the error to raise: `litert-timeout` if the timeout was exceeded, else `code`.

    Args:
        problem: How the call failed.
        code: The code for a refusal or a crash.
        what: What was to be done, as a sentence.
        hint: What to do about a refusal.
    """
    if problem.refusal:
        return error(code, f"{what}: {problem.refusal}", hint=hint)
    if problem.seconds:
        return error(
            "litert-timeout",
            f"{what}: LiteRT has not answered within {problem.seconds:g} s",
            hint="try smaller inputs; if those hang too, one of LiteRT's kernels does",
        )
    return error(code, f"{what}: LiteRT has crashed (status {problem.status})")
