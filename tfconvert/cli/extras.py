"""Commands in hints that install extras, for packages that were installed from a directory rather than an index."""

from __future__ import annotations

import re

# A command that installs an extra of this package.
_COMMAND = re.compile(r"pip install '?tfconvert(\[\w+\])'?")


def as_installed(text: str) -> str:
    """Returns a text in which commands name the directory that this package was installed from, if there is one."""
    if _COMMAND.search(text) is None:
        return text
    import shlex

    option, path = _origin()
    return _COMMAND.sub(lambda found: f"pip install {option}{shlex.quote(path + found[1])}", text) if path else text


def _origin() -> tuple[str, str]:
    """Returns an option of pip and the directory that this package came from, which is empty if it came otherwise."""
    import json
    from importlib.metadata import PackageNotFoundError, distribution
    from urllib.parse import urlsplit
    from urllib.request import url2pathname

    from tfconvert.schema.files import is_folder

    try:
        # Installers write it: https://packaging.python.org/specifications/direct-url/
        origin = json.loads(distribution("tfconvert").read_text("direct_url.json") or "{}")
    except PackageNotFoundError:
        return "", ""
    path = url2pathname(urlsplit(origin.get("url", "")).path)
    if "dir_info" not in origin or not is_folder(path):
        return "", ""
    return ("-e " if origin["dir_info"].get("editable") else ""), path
