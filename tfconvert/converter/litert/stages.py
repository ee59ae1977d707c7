"""LiteRT's pipeline: which passes run, in which order and why."""

from __future__ import annotations

from collections.abc import Sequence

from tfconvert.converter.composites.marks import API_IMPLEMENTS, IMPLEMENTS
from tfconvert.converter.pipeline.stage import Stage
from tfconvert.converter.pipeline.stages import (
    CONTROL_FLOW,
    FUNCTIONAL,
    LOOPS,
    STANDARD,
    TO_FUNCTIONS,
    USER_PATTERNS,
)

_PRODUCTS = ("tf.MatMul",)
_ROWS = ("tf.GatherV2", "tf.StridedSlice", "tf.Unpack")
"""Ops that take single steps out of a sequence."""

_WITH_STATE = ("tfl.unidirectional_sequence_", "tfl.bidirectional_sequence_", "tfl.lstm", "tfl.rnn", "tfl.svdf")
"""Operators that overwrite one of their operands."""

STAGES: Sequence[Stage] = (
    *TO_FUNCTIONS,
    Stage("prepare-composite-functions",
          "marked functions still stand, and what is in their bodies need not be converted",
          ((IMPLEMENTS, API_IMPLEMENTS, "options.composites"),), ("allow_custom_ops", "composites", "fuse_recurrent")),
    *STANDARD,
    Stage("fuse-recurrent-loops", "sequences are tensors, and their cells still TensorFlow's ops", (LOOPS,),
          only_with="fuse_recurrent"),
    Stage("fuse-unrolled-layers", "which shapes are equal is known, and cells are still TensorFlow's ops",
          (_PRODUCTS, _ROWS), only_with="fuse_recurrent"),
    Stage("cse", "variables that begin alike begin as one value", (CONTROL_FLOW,)),
    Stage("merge-loop-variables", "what is one value before a loop may be one in it", (LOOPS,)),
    *USER_PATTERNS,
    Stage("prepare-control-flow", "which conditions are booleans only shapes tell; LiteRT has no Case", (FUNCTIONAL,)),
    Stage("lower-tables", "what fills them is constants by now, and looking up is plain ops partly",
          (("tf.HashTable",),)),
    Stage("initialize-state", "which state is left is certain: what is never written is a constant"),
    Stage("legalize", "only ops that LiteRT has are left", takes=("allow_custom_ops",), forbids=("tf.",)),
    Stage("cse", "what is computed twice reads its operand twice, which hinders fusing"),
    Stage("optimize", "fusing needs the target's ops, which have fused forms", takes=("patterns",)),
    Stage("cse", "what folding made twice is kept once"),
    Stage("separate-reads", "what reads one variable may be merged until here, but crashes",
          (("tfl.read_variable",),)),
    Stage("separate-results", "copies for the runtime's sake, which every pass before would take away",
          (("tfl.if", "tfl.while"),)),
    Stage("separate-state", "states that begin alike would be one to every pass before", (_WITH_STATE,)),
)  # fmt: skip
