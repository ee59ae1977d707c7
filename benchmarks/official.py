"""Converts a model by the official converter.

    python -m benchmarks.official SAVED_MODEL RESULT
    python -m benchmarks.official FROZEN_GRAPH RESULT INPUT OUTPUT

Kept as small as a user's own script would be, since the whole process is measured.
"""

from __future__ import annotations

import sys
from pathlib import Path


def main() -> None:
    """Runs the command line."""
    import tensorflow as tf

    source, target, *ends = sys.argv[1:]
    if ends:
        converter = tf.compat.v1.lite.TFLiteConverter.from_frozen_graph(source, ends[:1], ends[1:])
    else:
        converter = tf.lite.TFLiteConverter.from_saved_model(source)
    Path(target).write_bytes(converter.convert())


if __name__ == "__main__":
    main()
