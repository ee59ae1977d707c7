"""The settings of a job in a request: JSON that the database and every process can represent."""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn

from tfconvert.schema.diagnostics import error
from tfconvert.settings.data import check_data

_DEEPEST = 32
_LARGEST = 1 << 63


def read_settings(text: str) -> dict[str, Any]:
    """Returns settings.

    Args:
        text: A JSON object, or an empty string for no settings.

    Raises:
        ConversionError: It is not JSON, or no settings, or names files (`bad-config`).
    """
    try:
        settings = json.loads(text or "{}", parse_constant=_refuse)
    except (ValueError, RecursionError) as problem:
        reason = "it is nested too deeply" if isinstance(problem, RecursionError) else problem
        raise error("bad-config", f"'options' is not JSON: {reason}") from None
    if not isinstance(settings, dict):
        raise error("bad-config", "'options' is not an object", hint='as in {"quantize": "dynamic"}')
    _check_values(settings)
    check_data(settings, "options", allow_paths=False)
    return settings


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a number")


def _check_values(settings: dict[str, Any]) -> None:
    """Rejects values that JSON can represent but databases can't."""
    pending: list[tuple[Any, int]] = [(settings, 0)]
    while pending:
        value, depth = pending.pop()
        if depth > _DEEPEST:
            raise error("bad-config", "'options' is nested too deeply")
        if isinstance(value, dict):
            pending += [(each, depth + 1) for pair in value.items() for each in pair]
        elif isinstance(value, list):
            pending += [(each, depth + 1) for each in value]
        elif isinstance(value, str):
            _check_text(value)
        elif (isinstance(value, float) and not math.isfinite(value)) or (
            isinstance(value, int) and not -_LARGEST <= value < _LARGEST
        ):
            raise error("bad-config", "'options' has a number that is too large")


def _check_text(text: str) -> None:
    if "\0" in text or any("\ud800" <= each <= "\udfff" for each in text):
        raise error("bad-config", "'options' has a string with an invalid character")
