"""Whether a file lies where a model may have its files, whatever its name and the links on the way say."""

from __future__ import annotations

from pathlib import Path


def is_within(path: Path, folder: Path) -> bool:
    """Returns whether a path lies in a folder, once every link in either is resolved.

    A path that can't be resolved, as a circle of links or a name with a zero byte, lies in none.

    Args:
        path: The path, of a file that need not exist.
        folder: The folder.
    """
    try:
        resolved = path.resolve()
        # Newer versions of Python leave a circle of links as it is.
        return resolved.is_relative_to(folder.resolve()) and not resolved.is_symlink()
    except (OSError, RuntimeError, ValueError):
        return False
