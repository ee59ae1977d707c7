"""The page, its files, their security policies for browsers, and the page of error codes.

The fields of the page's form are derived from the table of settings.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from typing import Any, NamedTuple

from fastapi import APIRouter
from starlette.responses import HTMLResponse, Response

from tfconvert.schema.diagnostics import error
from tfconvert.schema.error_codes import all_codes
from tfconvert.service.http.access import ServiceDep
from tfconvert.settings.data import SETTINGS
from tfconvert.settings.options import Options
from tfconvert.settings.quantization import Quantize
from tfconvert.settings.selection import Selection
from tfconvert.settings.setting import Setting, settings_of
from tfconvert.settings.targets import CLASSES, Iree, LiteRT, StableHLO
from tfconvert.settings.verify_options import Verify

# What fields are called where the setting's name isn't plain enough.
_LABELS: Mapping[str, str] = {
    "accelerator": "Accelerators",
    "allow_custom_ops": "Custom ops",
    "allow_flex": "Select TF ops",
    "batch": "Batch size",
    "bias": "Type of biases",
    "compare_layers": "Compare layer by layer",
    "cpu": "Processor",
    "exclude": "Layers that stay float",
    "flex_ops": "Further Select TF ops",
    "float_ends": "Float inputs and outputs",
    "input_shapes": "Input shapes",
    "io": "Type of inputs and outputs",
    "keep_mlir": "Keep the StableHLO text",
    "min_agreement": "Minimum agreement",
    "min_snr": "Minimum signal-to-noise ratio",
    "mlir_artifact": "Portable artifact",
    "mlir_state": "Variables that change",
    "mlir_weights": "Place of weights",
    "mode": "Quantization",
    "names": "Names of tensors",
    "on": "Run on",
    "order": "Order of inputs and outputs",
    "per_channel": "Scales of weights",
    "quantize": "Quantization",
    "recurrent": "Recurrent layers",
    "rename": "New names",
    "samples": "Calibration samples",
    "search_seconds": "Search time",
    "signatures": "Signatures",
    "slow_integers": "Integers even where slower",
    "strict": "Integers only",
    "target_runtime": "Oldest runtime",
    "trained": "Trained for quantization",
    "trained_only": "Only what was trained for quantization",
    "weights": "Bits of weights",
}

# Settings that the form has fields of its own for, and those that are only for the settings as JSON.
_METRIC = ("min_metric", "max_loss")  # Its labels and functions don't go to servers.
_PAGE_SETTINGS = ("target", "quantize", "verify", "batch", "mode", "trained", "keep_graphs", *_METRIC)

_SENTENCE = re.compile(r"(?<=[.;]) ")


def fields() -> Mapping[str, Any]:
    """Returns what the page makes its form of, as plain data.

    Fields are in groups; a group belongs to a target, or to a setting whose object the fields are in. Labels are by
    settings, and by the command's flags, which hints name.
    """
    groups: Sequence[tuple[str, Any, Mapping[str, str]]] = (
        ("Model", Selection, {}),
        ("LiteRT file", LiteRT, {"target": LiteRT.name}),
        ("StableHLO", StableHLO, {"target": StableHLO.name}),
        ("IREE", Iree, {"target": Iree.name, "inside": Iree.name}),
        ("Quantization", Quantize, {"inside": "quantize"}),
        ("Verification", Verify, {"inside": "verify"}),
        ("Checks", Options, {}),
    )
    rows = [row for _, cls, _ in groups for row in settings_of(cls).values()]
    return {
        "targets": list(CLASSES),
        "labels": {row.data: _label(row) for row in rows},
        "flags": {row.flag: _label(row) for row in rows if row.flag},
        "groups": [
            {"title": title, **where, "fields": list(_fields(settings_of(cls).values(), is_inside="inside" in where))}
            for title, cls, where in groups
        ],
    }


def _fields(rows: Iterable[Setting], *, is_inside: bool) -> Iterable[Mapping[str, Any]]:
    for row in rows:
        schema, is_path = row.client_schema, row.is_path and not row.own_values
        kind = _kind(schema)
        if is_path or row.stays or not kind or row.data in _PAGE_SETTINGS or not (is_inside or row.data in SETTINGS):
            continue
        choices = _first(schema).get("enum") or schema.get("items", {}).get("enum") or ()
        yield {
            "name": row.data,
            "label": _label(row),
            "kind": kind,
            "text": _text(row),
            "example": "" if choices else row.example,
            "is_common": row.is_common,
            "default": row.default if isinstance(row.default, bool | int | float | str) else None,
            **({"choices": list(choices)} if choices else {}),
            **({"minimum": schema["minimum"]} if "minimum" in schema else {}),
        }


def _kind(schema: Mapping[str, Any]) -> str:
    """Returns the kind of a field, empty for settings that are only for JSON."""
    schema = _first(schema)
    if "enum" in schema:
        return "choice"
    known = schema.get("type")
    if known == "array":
        items = schema.get("items", {})
        kinds = {"string": "choices" if "enum" in items else "list"}
        return kinds.get(str(items.get("type")), "")
    if known == "object":
        values = schema.get("additionalProperties")
        inside = values.get("type") if isinstance(values, Mapping) else None
        return {"array": "shapes", "string": "names"}.get(str(inside), "")
    return {"boolean": "flag", "integer": "number", "number": "number", "string": "text"}.get(str(known), "")


def _first(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns the schema of a single value where a pair is possible, too."""
    return schema["oneOf"][0] if "oneOf" in schema else schema


def _label(row: Setting) -> str:
    return _LABELS.get(row.data) or _LABELS.get(row.name) or row.name.replace("_", " ").capitalize()


def _text(row: Setting) -> str:
    """Returns what a setting does, without what is said of the command."""
    told = _SENTENCE.split(row.text)
    return " ".join(each for each in told if "--" not in each and "command" not in each)


_OWN_PACKAGE = "tfconvert.service.page"
_REPORTS = "tfconvert.report"

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; frame-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""The page's permissions: load files of its own, talk to its server, and show the frame of a report."""

FRAME_POLICY = (
    "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
)
"""Permissions of a report's frame: run, in an origin of its own, what it receives; it can't reach the server."""


class PageFile(NamedTuple):
    """A file that browsers load.

    Attributes:
        name: Its name in the package.
        media_type: Its media type.
        policy: Its Content-Security-Policy.
        package: The package that contains it.
    """

    name: str
    media_type: str
    policy: str = POLICY
    package: str = _OWN_PACKAGE

    def read(self) -> bytes:
        """Returns the contents."""
        return resources.files(self.package).joinpath(self.name).read_bytes()


INDEX = PageFile("index.html", "text/html; charset=utf-8")
"""The page itself, at the root of the server."""

_SCRIPT = "text/javascript; charset=utf-8"
_STYLE = "text/css; charset=utf-8"

FILES: Mapping[str, PageFile] = {
    "frame.html": PageFile("frame.html", "text/html; charset=utf-8", FRAME_POLICY),
    "colours.css": PageFile("colours.css", _STYLE, package=_REPORTS),
    "service.css": PageFile("service.css", _STYLE),
    "text.js": PageFile("text.js", _SCRIPT, package=_REPORTS),
    **{
        name: PageFile(name, _SCRIPT)
        for name in (
            "service.js",
            "requests.js",
            "tar.js",
            "progress.js",
            "settings.js",
            "form.js",
            "job.js",
            "jobs.js",
            "report.js",
        )
    },
}
"""The files that the page loads, by their names below `/page/`; colours and elements are made as those of reports."""


ROUTES = APIRouter(include_in_schema=False)

_HEAD = "<!doctype html>\n<html lang=en>\n<meta charset=utf-8>\n<title>Error codes</title>\n<h1>Error codes</h1>\n"


@ROUTES.get("/")
def get_page() -> Response:
    """Open the page."""
    return _response(INDEX)


@ROUTES.get("/page/settings.json")
async def get_settings(service: ServiceDep) -> Mapping[str, Any]:
    """Load what the form is made of."""
    return {**fields(), "takes_keras": service.config.takes_keras}


@ROUTES.get("/page/{name}")
def get_page_file(name: str) -> Response:
    """Load a file of the page."""
    file = FILES.get(name)
    if file is None:
        raise error("not-found", f"the page has no file {name[:100]!r}")
    return _response(file)


@ROUTES.get("/errors")
def get_errors() -> Response:
    """Read what the codes of errors mean."""
    sections = (
        f"<h2 id={html.escape(code.name)}>{html.escape(code.name)}</h2>\n"
        + "".join(f"<p>{html.escape(text)}</p>\n" for text in (code.means, code.why, code.do))
        for code in all_codes().values()
    )
    return HTMLResponse(_HEAD + "".join(sections))


def _response(file: PageFile) -> Response:
    is_framed = "frame-ancestors 'self'" in file.policy
    return Response(
        file.read(),
        headers={
            "Content-Type": file.media_type,
            "Content-Security-Policy": file.policy,
            "Cache-Control": "no-cache",
            "X-Frame-Options": "SAMEORIGIN" if is_framed else "DENY",
        },
    )
