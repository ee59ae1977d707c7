"""Incidents: errors whose details are in the server's log, under a number that users are shown."""

from __future__ import annotations

import logging
import secrets

from tfconvert.schema.diagnostics import ConversionError, error, printable
from tfconvert.schema.error_codes import all_codes

_LOG = logging.getLogger("tfconvert.service")


def concealed(problem: ConversionError) -> ConversionError:
    """Returns what clients are told of an error.

    One that was raised from another exception quotes it: what the database, the system or a plug-in says, such as
    addresses and paths, is for the log alone.
    """
    if problem.__cause__ is None:
        return problem
    return incident(all_codes()[problem.code].means.rstrip("."), str(problem), problem.code)


def incident(what: str, details: str | BaseException, code: str = "internal-error") -> ConversionError:
    """Logs an error with a new number, and returns what users are told of it.

    Args:
        what: A sentence for users.
        details: The exception, or a text, such as a trace that another process has sent.
        code: The code of the error.
    """
    number = secrets.token_hex(4)
    if isinstance(details, BaseException):
        _LOG.error("incident %s: %s", number, what, exc_info=details)
    else:
        # Indented, so that no line of it looks like one of the log.
        lines = "".join(f"\n  {printable(line)}" for line in details.splitlines())
        _LOG.error("incident %s: %s%s", number, what, lines)
    hint = "whoever runs the server finds the details under this number in its log"
    return error(code, f"{what} (incident {number})", hint=hint)
