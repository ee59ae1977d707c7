"""Errors between the client and the server, with codes."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from tfconvert.client.effects import Answer, Call
from tfconvert.schema.diagnostics import ConversionError, Diagnostic, error, printable

# Characters of an answer that isn't understood.
_MAX = 200


def unreachable(url: str, reason: str) -> ConversionError:
    """Returns the error of a server that doesn't answer."""
    return error(
        "server-unreachable", f"the server at {url} can't be reached: {reason}", hint="check that it runs, and the URL"
    )


def refused(call: Call, answer: Answer) -> ConversionError:
    """Returns the error of an answer that isn't good: with the server's own diagnostics if there are any."""
    body = parsed(answer.body)
    found = to_error({"errors": body.get("diagnostics"), "advice": body.get("advice", [])})
    if found is not None:
        return found
    told = body.get("detail") or answer.body[:_MAX].decode("utf-8", "replace")
    text = f"the server answered {call.method} {call.path} with status {answer.status}"
    return error(
        "server-refused",
        f"{text}: {printable(str(told))}" if told else text,
        hint="check that the URL is that of a conversion service, with nothing else in between",
    )


def to_error(problem: Mapping[str, Any]) -> ConversionError | None:
    """Returns the error that data describe as `ConversionError.to_dict` does, `None` if they don't."""
    errors, advice = problem.get("errors"), problem.get("advice", [])
    if not isinstance(errors, list) or not errors or not isinstance(advice, list):
        return None
    found = []
    for each in errors:
        if not isinstance(each, Mapping) or not isinstance(each.get("code"), str) or "message" not in each:
            return None
        texts = {name: str(value) for name, value in each.items() if name in Diagnostic._fields}
        # What the server sends for fields that say nothing is as good as nothing.
        found.append(Diagnostic(**{name: text for name, text in texts.items() if text or name == "message"}))
    return ConversionError(found, map(str, advice))


def parsed(body: bytes) -> dict[str, Any]:
    """Returns the object that a body has as JSON, an empty one if it has none."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def seconds_to_wait(answer: Answer, otherwise: float) -> float:
    """Returns how long the server wants to be left alone."""
    text = answer.headers.get("retry-after", "")
    return float(text) if re.fullmatch(r"\d{1,6}", text) else otherwise
