"""The types of fixtures that watch our temporary folders."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

# Returns our temporary folders that are still there; TensorFlow has files of its own.
LeftFolders = Callable[[], list[Path]]
