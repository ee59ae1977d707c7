"""`python -m tfconvert` and the `tfconvert` command."""

from __future__ import annotations

import gc
import os


def main() -> None:
    """Runs the command line."""
    # The process converts one model and ends. Looking for garbage would only cost time: while modules and IR grow, and
    # once more at the end, when everything goes anyway.
    gc.disable()
    # Nor does it multiply large matrices: numpy's threads for that would only keep other cores busy, waiting for work.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from tfconvert.converter.cli.main import main as command

    try:
        command(prog_name="tfconvert")
    finally:
        gc.freeze()


if __name__ == "__main__":
    main()
