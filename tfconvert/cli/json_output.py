"""The head of every JSON document that the command prints; `docs/report.schema.json` describes them."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import click

from tfconvert.schema.versions import own_version

SCHEMA_VERSION = 1
"""Of the documents. It grows when a field is removed or changes its meaning, not when one is added."""


def to_json(content: Mapping[str, Any]) -> str:
    """Returns the text of a document, which begins with its kind."""
    head = {"schema_version": SCHEMA_VERSION, "tfconvert_version": own_version()}
    return json.dumps(_finite({**head, **content}), indent=2, allow_nan=False)


def print_json(content: Mapping[str, Any]) -> None:
    """Prints a document."""
    click.echo(to_json(content))


def _finite(value: Any) -> Any:
    """Returns plain data with `None` for infinite and undefined numbers, which JSON doesn't have."""
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
