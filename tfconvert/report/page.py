"""The page of a report: one file of HTML with its style, its script and its data, which loads nothing from elsewhere.

What the page shows is the data of the report as it stands; the script in it makes text of it, never markup. All that
differs from run to run, the times, is in a block of its own.
"""

from __future__ import annotations

import base64
import hashlib
import html
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any

from tfconvert.schema.json_text import json_text

PACKAGE = "tfconvert.report"
STYLES = ("colours.css", "page.css")
SCRIPTS = (
    "text.js",
    "tree.js",
    "layout.js",
    "pens.js",
    "colours.js",
    "view.js",
    "graphs.js",
    "details.js",
    "charts.js",
    "sections.js",
    "main.js",
)
"""The parts of the script, in order: each uses what those before it define."""

Latency = Mapping[str, float] | Sequence[float | None]

_PLACES = re.compile(r"\{\{(\w+)\}\}")
_IN_MARKUP = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}
_TIMES = ("seconds", "stages")


def render(report: Mapping[str, Any], graphs: Mapping[str, Any] | None = None, latency: Latency | None = None) -> str:
    """Returns the page of a report.

    Args:
        report: The report as plain data, also of an older version.
        graphs: The graphs before and after, as `Report.graphs` has them.
        latency: The time of operators in milliseconds: by the names of their nodes, or of each in the main graph.
    """
    style, script, policy = _fixed()
    data = {key: value for key, value in report.items() if key not in _TIMES}
    contents = {
        "title": html.escape(_printable(str(report.get("source", "model")))),
        "style": style,
        "script": script,
        "policy": policy,
        "report": _json(data),
        "graphs": _json(graphs),
        "latency": _json(latency),
        "times": _json({key: report[key] for key in _TIMES if key in report}),
    }
    return _PLACES.sub(lambda place: contents[place[1]], _read("page.html"))


@cache
def _fixed() -> tuple[str, str, str]:
    """Returns the parts that all pages share: the style, the script, and the policy that allows these."""
    style = "".join(map(_read, STYLES))
    script = "(() => {\n" + "\n".join(map(_read, SCRIPTS)) + "})();\n"
    policy = (
        f"default-src 'none'; script-src '{_digest(script)}'; style-src '{_digest(style)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    return style, script, policy


@cache
def _read(name: str) -> str:
    return resources.files(PACKAGE).joinpath(name).read_text("utf-8")


def _digest(text: str) -> str:
    """Returns the source expression by which a policy allows an inline style or script of this text and no other."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _json(data: object) -> str:
    """Returns JSON in ASCII that can't end the element that it is in."""
    text = json_text(data, separators=(",", ":"))
    for sign, escaped in _IN_MARKUP.items():
        text = text.replace(sign, escaped)
    return text


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() else f"\\u{{{ord(char):x}}}" for char in text)
