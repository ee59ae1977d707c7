"""Incidents: errors whose details are in the server's log, under a number that users are shown."""

from __future__ import annotations

import logging
import secrets

from tfconvert.schema.diagnostics import ConversionError, error, printable

_LOG = logging.getLogger("tfconvert.service")


def incident(what: str, details: str | BaseException) -> ConversionError:
    """Logs an error with a new number, and returns what users are told of it.

    Args:
        what: A sentence for users.
        details: The exception, or a trace that another process has sent.
    """
    number = secrets.token_hex(4)
    if isinstance(details, BaseException):
        _LOG.error("incident %s: %s", number, what, exc_info=details)
    else:
        # Indented, so that no line of it looks like one of the log.
        lines = "".join(f"\n  {printable(line)}" for line in details.splitlines())
        _LOG.error("incident %s: %s%s", number, what, lines)
    hint = "whoever runs the server finds the details under this number in its log"
    return error("internal-error", f"{what} (incident {number})", hint=hint)
