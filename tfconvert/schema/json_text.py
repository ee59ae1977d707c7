"""JSON, which has no infinite and undefined numbers: each becomes `null`, and in a record `why_null` has the reason."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

WHY_NULL = "why_null"
"""The field of a record with the reasons of its nulls, by the names of the fields."""

_INFINITE, _MINUS_INFINITE, _UNDEFINED = "infinite", "minus infinite", "undefined"
_NUMBERS = {_INFINITE: math.inf, _MINUS_INFINITE: -math.inf, _UNDEFINED: math.nan}


def record(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the fields of a record, with the reason where a number is infinite or undefined."""
    reasons = {name: _reason(value) for name, value in fields.items() if _is_special(value)}
    return {**fields, **dict.fromkeys(reasons), **({WHY_NULL: reasons} if reasons else {})}


def restored(data: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the fields that `record` was given."""
    reasons = data.get(WHY_NULL, {})
    fields = {name: value for name, value in data.items() if name != WHY_NULL}
    return {**fields, **{name: _NUMBERS.get(reason, math.nan) for name, reason in reasons.items()}}


def finite(value: Any) -> Any:
    """Returns plain data with `None` for infinite and undefined numbers."""
    if isinstance(value, Mapping):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return None if _is_special(value) else value


def json_text(data: object, indent: int | None = None, separators: tuple[str, str] | None = None) -> str:
    """Returns plain data as JSON.

    Args:
        data: The data.
        indent: Spaces for each level; `None` for a single line.
        separators: Between items, and after keys.
    """
    try:
        return json.dumps(data, allow_nan=False, indent=indent, separators=separators)
    except (TypeError, ValueError):  # Special numbers, which are rare, or mappings that are no dictionaries.
        return json.dumps(finite(data), allow_nan=False, indent=indent, separators=separators)


def _is_special(value: object) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


def _reason(value: float) -> str:
    return _UNDEFINED if math.isnan(value) else _INFINITE if value > 0 else _MINUS_INFINITE
