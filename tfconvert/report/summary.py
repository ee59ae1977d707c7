"""Summaries as small, static HTML, which notebooks show for the last value of a cell."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from tfconvert.converter.ir.interface import Interface
from tfconvert.schema.diagnostics import printable

# Maximum number of rows of a table.
_MAX_ROWS = 30

_TITLE = "font-weight:600;margin:0.4em 0"
_TABLE = "border-collapse:collapse;margin:0.4em 0"
_CAPTION = "text-align:left;font-weight:600;padding:0.2em 0"
_CELL = "text-align:left;padding:0.1em 0.8em 0.1em 0;border-bottom:1px solid #8884;white-space:nowrap"


class Table(NamedTuple):
    """A table: its title, the names of its columns, and its rows."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]


def summary(title: str, lines: Sequence[str], tables: Sequence[Table]) -> str:
    """Returns a summary as HTML that needs nothing beside it and runs no scripts.

    Args:
        title: What it is about.
        lines: Sentences.
        tables: Tables; long ones are cut off, and empty ones left out.
    """
    parts = [_element("div", _TITLE, _text(title)), *(f"<div>{_text(line)}</div>" for line in lines)]
    parts += [_table(each) for each in tables if each.rows]
    return f"<div>{''.join(parts)}</div>"


def interface_tables(interfaces: Sequence[Interface]) -> list[Table]:
    """Returns a table of inputs and outputs for each function."""
    return [
        Table(
            ", ".join(each.keys) or each.function,
            ("", "name", "type"),
            [
                (side, tensor.name, tensor.type)
                for side, own in (("in", each.inputs), ("out", each.outputs))
                for tensor in own
            ],
        )
        for each in interfaces
    ]


def _table(table: Table) -> str:
    rows = [_row("th", table.head), *(_row("td", row) for row in table.rows[:_MAX_ROWS])]
    left = len(table.rows) - _MAX_ROWS
    if left > 0:
        rows.append(_row("td", [f"... and {left} more"]))
    caption = _element("caption", _CAPTION, _text(table.title)) if table.title else ""
    return _element("table", _TABLE, caption + "".join(rows))


def _row(tag: str, cells: Sequence[str]) -> str:
    return f"<tr>{''.join(_element(tag, _CELL, _text(cell)) for cell in cells)}</tr>"


def _element(tag: str, style: str, content: str) -> str:
    return f'<{tag} style="{style}">{content}</{tag}>'


def _text(text: str) -> str:
    return escape(printable(text)).replace("\n", "<br>")
