"""The files of the page, and the policy under which browsers run each."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources
from typing import NamedTuple

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
        media_type: What it is.
        policy: The Content-Security-Policy that it is sent with.
        package: The package that it is in.
    """

    name: str
    media_type: str
    policy: str = POLICY
    package: str = _OWN

    def read(self) -> bytes:
        """Returns the contents."""
        return resources.files(self.package).joinpath(self.name).read_bytes()


INDEX = PageFile("index.html", "text/html; charset=utf-8")
"""The page itself, which is at the root of the server."""

_SCRIPT = "text/javascript; charset=utf-8"
_STYLE = "text/css; charset=utf-8"

FILES: Mapping[str, PageFile] = {
    "frame.html": PageFile("frame.html", "text/html; charset=utf-8", FRAME_POLICY),
    "colours.css": PageFile("colours.css", _STYLE, package=_REPORTS),
    "service.css": PageFile("service.css", _STYLE),
    "text.js": PageFile("text.js", _SCRIPT, package=_REPORTS),
    **{
        name: PageFile(name, _SCRIPT)
        for name in ("service.js", "requests.js", "tar.js", "progress.js", "form.js", "job.js", "jobs.js")
    },
}
"""The files that the page loads, by their names below `/page/`; colours and elements are made as those of reports."""
