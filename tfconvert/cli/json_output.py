"""The head of every JSON document that the command prints; `docs/report.schema.json` describes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from tfconvert.schema.json_text import json_text
from tfconvert.schema.versions import own_version

SCHEMA_VERSION = 1
"""Of the documents. It grows when a field is removed or changes its meaning, not when one is added."""


def to_json(content: Mapping[str, Any]) -> str:
    """Returns the text of a document, which begins with its kind."""
    head = {"schema_version": SCHEMA_VERSION, "tfconvert_version": own_version()}
    return json_text({**head, **content}, indent=2)


def print_json(content: Mapping[str, Any]) -> None:
    """Prints a document."""
    click.echo(to_json(content))
