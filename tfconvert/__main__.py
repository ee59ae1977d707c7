"""`python -m tfconvert` and the `tfconvert` command."""

from __future__ import annotations

import gc


def main() -> None:
    """Runs the command line."""
    # The process converts one model and ends: looking for garbage would only cost time, from the first import on.
    gc.disable()
    from converter.cli import main as command

    command(prog_name="tfconvert")


if __name__ == "__main__":
    main()
