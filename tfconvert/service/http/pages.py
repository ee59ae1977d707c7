"""The page, its files, their security policies for browsers, and the page of error codes."""

from __future__ import annotations

import html
from collections.abc import Mapping
from importlib import resources
from typing import Any, NamedTuple

from fastapi import APIRouter
from starlette.responses import HTMLResponse, Response

from tfconvert.schema.diagnostics import error
from tfconvert.schema.error_codes import all_codes
from tfconvert.service.http.access import ServiceDep
from tfconvert.service.http.page_settings import fields

_OWN = "tfconvert.service.page"
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
    package: str = _OWN

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
