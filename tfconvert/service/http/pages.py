"""The page, its files, and what the codes of errors mean."""

from __future__ import annotations

import html

from fastapi import APIRouter
from starlette.responses import HTMLResponse, Response

from tfconvert.schema.diagnostics import error
from tfconvert.schema.error_codes import all_codes
from tfconvert.service.page.files import FILES, INDEX, PageFile

ROUTES = APIRouter(include_in_schema=False)

_HEAD = "<!doctype html>\n<html lang=en>\n<meta charset=utf-8>\n<title>Error codes</title>\n<h1>Error codes</h1>\n"


@ROUTES.get("/")
def get_page() -> Response:
    """Open the page."""
    return _response(INDEX)


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
