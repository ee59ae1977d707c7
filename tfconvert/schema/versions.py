"""The versions for machine-readable output and bug reports, found without importing the packages."""

from __future__ import annotations

import platform
from collections.abc import Mapping

_DISTRIBUTIONS = ("numpy", "ai-edge-litert")


def own_version() -> str:
    return version_of("tfconvert") or "unknown"


def versions() -> Mapping[str, str]:
    """Returns the versions that results may depend on: Python, and numpy and LiteRT's runtime if installed."""
    found = {"python": platform.python_version()}
    found |= {name: version for name in _DISTRIBUTIONS if (version := version_of(name))}
    return found


def version_of(distribution: str) -> str:
    """Returns a distribution's version, empty if it is not installed."""
    from importlib import metadata  # loads much that a conversion doesn't need

    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return ""
