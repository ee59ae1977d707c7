"""Checks that files lie inside the model's folder, with links resolved."""

from __future__ import annotations

from pathlib import Path


def is_within(path: Path, folder: Path) -> bool:
    """Returns whether a path lies in a folder, once every link in either is resolved.

    A path that can't be resolved, as a circle of links or a name with a zero byte, is not in any folder.

    Args:
        path: The path; the file need not exist.
        folder: The folder.
    """
    try:
        resolved = path.resolve()
        # Newer versions of Python leave a circle of links as it is.
        return resolved.is_relative_to(folder.resolve()) and not resolved.is_symlink()
    except (OSError, RuntimeError, ValueError):
        return False
