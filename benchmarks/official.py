"""Converts a SavedModel by the official converter: `python -m benchmarks.official SAVED_MODEL RESULT`.

Kept as small as a user's own script would be, since the whole process is what gets measured.
"""

from __future__ import annotations

import sys
from pathlib import Path


def main() -> None:
    """Runs the command line."""
    import tensorflow as tf

    source, target = sys.argv[1:]
    Path(target).write_bytes(tf.lite.TFLiteConverter.from_saved_model(source).convert())


if __name__ == "__main__":
    main()
