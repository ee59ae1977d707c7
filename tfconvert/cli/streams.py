"""The command's standard streams, whose readers may be gone."""

from __future__ import annotations

import errno
import os
import re
import sys
from typing import TextIO, TypeGuard

import click

from tfconvert.schema.diagnostics import ERROR, NOTE, WARNING

_FULL = frozenset({errno.ENOSPC, errno.EFBIG, errno.EIO, errno.EPIPE, getattr(errno, "EDQUOT", errno.ENOSPC)})


COLOURS = {ERROR: "red", WARNING: "magenta"}
"""The colours of findings on a terminal, by their severity."""

# The first line of a report, and how its findings begin.
_EMPHASIZED = re.compile(rf"\A.+|^  (?:({ERROR}|{WARNING}|{NOTE}):)", re.MULTILINE)


def emphasized(text: str) -> str:
    """Returns a report with its first line in bold, and the colours of its findings; `say` drops them elsewhere."""
    return _EMPHASIZED.sub(lambda found: click.style(found[0], fg=COLOURS.get(found[1]), bold=True), text)


def wants_colour() -> bool | None:
    """Returns whether text has colours: never if `NO_COLOR` or a plain terminal says so, else `None`, on terminals."""
    return False if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" else None


def can_redraw(stream: TextIO | None) -> bool:
    """Returns whether a stream is an interactive terminal, on which a line can be redrawn."""
    is_plain = os.environ.get("TERM") == "dumb" or os.environ.get("CI")
    return stream is not None and not is_plain and stream.isatty()


def is_beside_errors(stream: TextIO | None) -> bool:
    """Returns whether who sees the error stream also sees this one: a terminal, or the same file or pipe."""
    if stream is None or sys.stderr is None:
        return False
    try:
        return stream.isatty() or os.path.sameopenfile(stream.fileno(), sys.stderr.fileno())
    except (OSError, ValueError):  # One is no file: it is captured or closed.
        return False


def say(text: str, stream: TextIO | None) -> None:
    """Prints a report; after the file was written, a missing reader or a full disk is not a failure.

    Args:
        text: The report.
        stream: A standard stream, `None` if the process was started without it.
    """
    if stream is None:
        return
    try:
        click.echo(text, file=stream, color=wants_colour())
        stream.flush()
    except BrokenPipeError:
        silence(stream)
    except OSError as problem:
        silence(stream)
        if stream is not sys.stderr:
            say(f"tfconvert: can't print the report: {problem.strerror}", sys.stderr)


def is_full(problem: BaseException | None) -> TypeGuard[OSError]:
    """Returns whether an exception is about a full disk or a closed pipe."""
    return isinstance(problem, OSError) and problem.filename is None and problem.errno in _FULL


def silence(stream: TextIO | None) -> None:
    """Discards the rest of a stream's buffer, about which Python would complain when it ends."""
    if stream is None:
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
