"""Programs of IREE as users make them: converted with the product's own flags, saved, and loaded again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import tfconvert


def made(model: Any, folder: Path) -> tfconvert.Program:
    """Converts a model for IREE, and loads the files that are saved.

    Args:
        model: What `tfconvert.convert` takes.
        folder: Where the program and its weights are put.
    """
    path = folder / "model.vmfb"
    tfconvert.convert(model, target="iree").save(path)
    return tfconvert.load(path)
