"""The recurrent zoo: its networks by name, and the inputs of each.

A name is a network's description: `k3/lstm/seq+mask/dynamic` is an LSTM layer of Keras 3 which returns its sequence,
behind a Masking layer, with open batch and time.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from benchmarks.samples import Arrays

FEATURES, UNITS, TIME, LONG = 5, 4, 8, 200
# The size of an embedding's vocabulary; word 0 is padding.
WORDS = 9
BATCH = 2
# Height and width of images in a sequence.
SIDE = 5

# The batches and times that a network is run with in turn, by the open dimensions of its shape.
SHAPES = {
    "static": ((BATCH, TIME),),
    "batch": ((1, TIME), (3, TIME), (2, TIME)),
    "time": ((BATCH, TIME), (BATCH, TIME + 5), (BATCH, 1)),
    "dynamic": ((1, TIME), (3, TIME + 5), (2, 1)),
}

# Library, cell and options; and those of `SHAPES` that each is built with.
TABLE = """
k3/lstm   last                      static batch time dynamic
k3/lstm   seq                       static batch time dynamic
k3/lstm   seq+states                static dynamic
k3/lstm   states                    batch
k3/lstm   seq+init                  static dynamic
k3/lstm   seq+mask                  static dynamic
k3/lstm   mask                      batch
k3/lstm   seq+embed                 dynamic
k3/lstm   back                      static dynamic
k3/lstm   seq+back                  batch
k3/lstm   back+mask                 dynamic
k3/lstm   seq+bidi                  static dynamic
k3/lstm   bidi                      static batch
k3/lstm   seq+bidi-sum              batch
k3/lstm   seq+bidi-ave              static
k3/lstm   seq+bidi-mul              dynamic
k3/lstm   bidi-none                 batch
k3/lstm   seq+bidi+mask             dynamic
k3/lstm   seq+stacked               static dynamic
k3/lstm   stacked+mask              batch
k3/lstm   stacked+bidi              dynamic
k3/lstm   seq+nobias                static dynamic
k3/lstm   seq+relu                  static dynamic
k3/lstm   seq+hard                  batch
k3/lstm   dropout+stacked           batch
k3/lstm   seq+unroll                static batch
k3/lstm   unroll                    batch
k3/lstm   seq+stateful              static
k3/lstm   stateful+mask             static
k3/lstm   seq+long                  static dynamic
k3/lstm   embed+bidi+dense          dynamic
k3/lstm-cell  seq                   static dynamic
k3/gru    last                      static batch time dynamic
k3/gru    seq                       static batch dynamic
k3/gru    seq+before                static dynamic
k3/gru    seq+states                dynamic
k3/gru    init                      batch
k3/gru    seq+mask                  static dynamic
k3/gru    embed                     dynamic
k3/gru    seq+back                  static dynamic
k3/gru    seq+bidi                  static dynamic
k3/gru    bidi-sum+mask             batch
k3/gru    seq+stacked               batch dynamic
k3/gru    seq+nobias                static
k3/gru    before+nobias             batch
k3/gru    seq+relu                  batch
k3/gru    unroll                    static batch
k3/gru    seq+stateful              static
k3/gru    seq+long                  dynamic
k3/rnn    last                      static batch dynamic
k3/rnn    seq                       static batch time dynamic
k3/rnn    seq+states                dynamic
k3/rnn    seq+init                  batch
k3/rnn    seq+mask                  static dynamic
k3/rnn    back                      batch
k3/rnn    seq+bidi                  static dynamic
k3/rnn    seq+nobias                batch
k3/rnn    seq+relu                  static batch
k3/rnn    stacked                   dynamic
k3/rnn    unroll                    static
k3/rnn    seq+stateful              static
k3/rnn    seq+long                  batch
k3/conv   last                      static batch dynamic
k3/conv   seq                       static dynamic
k3/conv   seq+same                  batch
k3/conv   seq+bidi                  static
k3/conv   seq+mask+same             static
k3/conv   seq+stateful              static
k3/custom seq                       static dynamic
k3/custom mask                      batch
k3/custom bidi                      static
k3/cells  seq                       static dynamic
k3/cells  states                    batch
k3/cells  mask                      batch
tfk/lstm  last                      static batch time dynamic
tfk/lstm  seq                       static batch dynamic
tfk/lstm  seq+states                static dynamic
tfk/lstm  seq+init                  static batch
tfk/lstm  seq+mask                  static dynamic
tfk/lstm  embed                     dynamic
tfk/lstm  seq+back                  static batch
tfk/lstm  seq+bidi                  static dynamic
tfk/lstm  bidi-sum                  batch
tfk/lstm  seq+bidi+mask             static
tfk/lstm  seq+stacked               static dynamic
tfk/lstm  seq+nobias                static batch
tfk/lstm  seq+relu                  static
tfk/lstm  seq+hard                  static
tfk/lstm  seq+major                 static dynamic
tfk/lstm  seq+impl1                 static batch
tfk/lstm  unroll                    static
tfk/lstm  seq+stateful              static
tfk/lstm  seq+long                  static
tfk/lstm-cell  seq                  static batch
tfk/gru   last                      static batch dynamic
tfk/gru   seq                       static dynamic
tfk/gru   seq+before                static batch
tfk/gru   seq+mask                  static
tfk/gru   seq+bidi                  static dynamic
tfk/gru   seq+impl1                 static
tfk/gru   seq+major                 batch
tfk/gru   states                    dynamic
tfk/gru   unroll                    static
tfk/gru   seq+stateful              static
tfk/rnn   last                      static batch
tfk/rnn   seq                       static dynamic
tfk/rnn   seq+mask                  batch
tfk/rnn   seq+bidi                  static
tfk/rnn   seq+major                 dynamic
tfk/rnn   seq+stateful              static
tfk/conv  seq                       static batch
tfk/conv  last                      static
tfk/custom seq                      static dynamic
tfk/custom mask                     static
tfk/cells seq                       static batch
tf1/basic-lstm  dynamic             static batch dynamic
tf1/basic-lstm  dynamic+lengths     static dynamic
tf1/basic-lstm  dynamic+states      static dynamic
tf1/basic-lstm  dynamic+v2          static dynamic
tf1/basic-lstm  static              static
tf1/basic-lstm  static+lengths      static
tf1/basic-lstm  bidi                static dynamic
tf1/basic-lstm  dynamic+stacked           static batch
tf1/basic-lstm  dynamic+init        batch
tf1/basic-lstm  dynamic+long        static
tf1/lstm        dynamic             static dynamic
tf1/lstm        dynamic+project     static dynamic
tf1/lstm        dynamic+peep        static dynamic
tf1/lstm        dynamic+clip        static
tf1/lstm        dynamic+states+lengths batch
tf1/lstm        dynamic+major       dynamic
tf1/lstm        static+project+peep static
tf1/lstm        bidi+lengths        dynamic
tf1/gru         dynamic             static dynamic
tf1/gru         dynamic+lengths     batch
tf1/gru         static+states       static
tf1/gru         bidi                static
tf1/rnn         dynamic             static dynamic
tf1/rnn         dynamic+states      dynamic
tf1/rnn         dynamic+lengths+v2  batch
tf1/rnn         static              static
tf/while        seq                 static dynamic
tf/scan         seq                 static dynamic
tf/foldl        last                static batch
tf/autograph    seq                 static dynamic
tf/decoder     seq                 static batch
"""


@dataclass(frozen=True, slots=True)
class Case:
    """One network of the zoo."""

    library: str  # `k3` and `tfk` for layers of Keras 3 and of tf_keras, `tf1` for graphs, `tf` for functions.
    cell: str  # The cell that runs over the sequence.
    options: frozenset[str]  # Its options.
    shape: str  # The open dimensions, see `SHAPES`.
    name: str

    def __str__(self) -> str:
        return self.name

    def __contains__(self, option: object) -> bool:
        return option in self.options

    @property
    def merge(self) -> str | None:
        """The merge mode of a bidirectional layer's directions, `None` if there is one only."""
        return next(
            (option.partition("-")[2] or "concat" for option in self.options if option.startswith("bidi")), None
        )

    @property
    def time(self) -> int:
        """Steps of its usual sequence."""
        return LONG if "long" in self else TIME

    @property
    def batch(self) -> int | None:
        """Its batch, `None` where that is open."""
        return BATCH if self.shape in ("static", "time") else None

    @property
    def steps(self) -> int | None:
        """Its sequences' length, `None` where that is open."""
        return self.time if self.shape in ("static", "batch") else None

    @property
    def tolerance(self) -> float:
        """The tolerance against TensorFlow, relative to the largest number."""
        return 1e-3 if "long" in self else 1e-4

    @property
    def seed(self) -> int:
        """The seed of its random numbers."""
        return zlib.crc32(self.name.encode())

    def sizes(self) -> list[tuple[int, int]]:
        """Returns the batches and times to run it with."""
        return [(batch, time if self.steps is None else self.time) for batch, time in SHAPES[self.shape]]

    def element(self) -> tuple[int, ...]:
        """Returns the shape of one step's input; empty for words."""
        if "embed" in self:
            return ()
        return (SIDE, SIDE, 2) if self.cell == "conv" else (FEATURES,)

    def inputs(self) -> Iterator[Arrays]:
        """Yields inputs of each of its sizes, the same at each call."""
        random = np.random.default_rng(self.seed)
        for batch, time in self.sizes():
            yield self._inputs(random, batch, time)

    def _inputs(self, random: np.random.Generator, batch: int, time: int) -> Arrays:
        lengths = random.integers(0, time + 1, batch)
        if "embed" in self:
            x = random.integers(1, WORDS, (batch, time)).astype(np.int32)
        else:
            x = random.normal(0, 1, (batch, time, *self.element())).astype(np.float32)
        if {"embed", "mask"} & self.options:
            x[np.arange(time) >= lengths[:, None]] = 0
            x[:, time // 3] *= time < 3
        inputs = {"x": x.swapaxes(0, 1) if "major" in self else x}
        if "lengths" in self:
            inputs["lengths"] = lengths.astype(np.int32)
        if "init" in self:
            names = ("h", "c") if "lstm" in self.cell else ("h",)
            inputs |= {name: random.normal(0, 1, (batch, UNITS)).astype(np.float32) for name in names}
        return inputs

    def specs(self) -> dict[str, tuple[tuple[int | None, ...], str]]:
        """Returns its inputs' shapes and types by name."""
        sequence = (self.steps, self.batch) if "major" in self else (self.batch, self.steps)
        specs: dict[str, tuple[tuple[int | None, ...], str]] = {}
        for name, array in next(self.inputs()).items():
            shape = (*sequence, *array.shape[2:]) if name == "x" else (self.batch, *array.shape[1:])
            specs[name] = (shape, array.dtype.name)
        return specs


def cases() -> list[Case]:
    """Returns the zoo."""
    found = []
    for line in TABLE.strip().splitlines():
        kind, options, *shapes = line.split()
        library, cell = kind.split("/")
        found += [
            Case(library, cell, frozenset(options.split("+")), shape, f"{kind}/{options}/{shape}") for shape in shapes
        ]
    return found
