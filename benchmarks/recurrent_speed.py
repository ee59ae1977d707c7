"""Times recurrent layers in LiteRT, fused and as loops, and prints the table that a conversion chooses by.

    python -m benchmarks.recurrent_speed > tfconvert/converter/targets/litert/recurrent/speed.tsv

A row is a layer, with the milliseconds that it takes as one operator and as its own steps: one thread, minima of runs
in turns.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import tfconvert
from benchmarks.commands import parser_of
from benchmarks.zoo import QUIET_TENSORFLOW
from tfconvert.converter.targets.litert.recurrent.speed import LOOP, UNROLLED, Sizes
from tfconvert.converter.targets.litert.tuning.form_timing import microseconds_of_files

CELLS = ("lstm", "rnn")
UNITS = (8, 32, 64, 128, 256, 512)
BATCHES = (1, 4, 32)
STEPS = (5, 50)

# How long each pair of files is timed.
SECONDS = 0.4


def save(cell: str, units: int, steps: int, batch: int, unrolled: bool, folder: Path) -> None:
    """Saves a layer of Keras with as many features as units, for inputs of one size."""
    import keras
    import tensorflow as tf

    make = {"lstm": keras.layers.LSTM, "rnn": keras.layers.SimpleRNN}[cell]
    layer = make(units, return_sequences=True, unroll=unrolled)
    layer.build((batch, steps, units))
    module = tf.Module()
    module.layer = layer.variables
    module.run = tf.function(lambda x: {"y": layer(x)}, input_signature=[tf.TensorSpec((batch, steps, units))])
    tf.saved_model.save(module, str(folder), signatures=module.run)


def measured(cell: str, form: str, units: int, steps: int, batch: int) -> list[float]:
    """Returns the microseconds that a layer takes as an operator and as its own steps."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        save(cell, units, steps, batch, form == UNROLLED, folder / "model")
        files = []
        for recurrent in ("fused", "loop"):
            files.append(folder / f"{recurrent}.tflite")
            tfconvert.convert(folder / "model", target=tfconvert.LiteRT(recurrent=recurrent)).save(files[-1])
        return microseconds_of_files([file.read_bytes() for file in files], SECONDS)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns its exit status."""
    parser = parser_of("recurrent_speed", __doc__)
    parser.parse_args(arguments)
    os.environ.update(QUIET_TENSORFLOW)
    print(*Sizes._fields, "fused", "kept", sep="\t")
    for row in product(CELLS, (LOOP, UNROLLED), UNITS, STEPS, BATCHES):
        if row[1] == LOOP or row[3] == STEPS[0]:
            fused, kept = measured(*row)
            print(*row, f"{fused / 1e3:.3f}", f"{kept / 1e3:.3f}", sep="\t", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
