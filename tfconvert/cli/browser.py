"""Pages that a command opens in the user's browser."""

from __future__ import annotations

import sys
import tempfile
import webbrowser
from pathlib import Path

from tfconvert.cli.streams import say


def temporary_page(model: str) -> str:
    """Returns the path of a page in a new temporary directory, with the name of a model."""
    name = Path(model).absolute().stem or "model"
    return str(Path(tempfile.mkdtemp(prefix="tfconvert-"), f"{name}.html"))


def open_page(path: str, *, is_known: bool = False) -> None:
    """Opens a page in the user's browser; says so if it finds no browser.

    Args:
        path: The page.
        is_known: Whether the path was printed already.
    """
    if not webbrowser.open(Path(path).absolute().as_uri()):
        say(f"tfconvert: note: found no browser; open {'the page' if is_known else path}", sys.stderr)
