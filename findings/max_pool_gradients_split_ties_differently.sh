#!/usr/bin/env bash
# TensorFlow 2.21: where elements of a window are equal, the gradient of max_pool3d goes to each of them in full, that of
# max_pool2d to the first one only. So a step of training depends on whether frames are pooled in 2D or in 3D windows.
# Guess before the run: both give it to the first maximum. Seen: 2D [1, 0, 0, 0], 3D [1, 1, 1, 1] for four equal numbers.
set -euo pipefail
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
python3 -m venv "$scratch/venv"
"$scratch/venv/bin/pip" --disable-pip-version-check install --quiet tensorflow==2.21.0 2>"$scratch/pip" ||
    { cat "$scratch/pip" >&2; exit 1; }
cat >"$scratch/run.py" <<'END'
import sys

import tensorflow as tf


def gradient(pool, shape):
    x = tf.ones(shape)
    with tf.GradientTape() as tape:
        tape.watch(x)
        result = tf.reduce_sum(pool(x))
    return tape.gradient(result, x).numpy().ravel().tolist()


flat = gradient(lambda x: tf.nn.max_pool2d(x, 2, 2, "VALID"), (1, 2, 2, 1))
cube = gradient(lambda x: tf.nn.max_pool3d(x, [1, 2, 2], [1, 2, 2], "VALID"), (1, 1, 2, 2, 1))
print("tensorflow", tf.__version__)
print("max_pool2d of four equal numbers, gradient:", flat)
print("max_pool3d of the same numbers, gradient:  ", cube)
sys.exit([flat, cube] != [[1, 0, 0, 0], [1, 1, 1, 1]])
END
TF_CPP_MIN_LOG_LEVEL=3 "$scratch/venv/bin/python" "$scratch/run.py" 2>"$scratch/log" || { tail -5 "$scratch/log" >&2; exit 1; }
