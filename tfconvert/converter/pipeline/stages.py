"""The stages that every target begins with: from an imported module to plain TensorFlow ops with known shapes.

A target's `stages.py` has its whole pipeline, made of these parts and its own stages.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tfconvert.converter.pipeline.stage import Stage
from tfconvert.schema.dialects.cut import CUT
from tfconvert.schema.dialects.tf_saved_model import BOUND_INPUT

_V1 = (
    "tf_executor.Switch",
    "tf_executor._SwitchN",
    "tf_executor.Merge",
    "tf_executor.Enter",
    "tf_executor.ControlTrigger",
)
_V1_LOOPS = ("tf_executor.Enter", "tf_executor.Exit", "tf_executor.LoopCond", "tf_executor.NextIteration")
_REGIONS = ("tf.IfRegion", "tf.CaseRegion", "tf.WhileRegion")
LOOPS = ("tf.While", "tf.StatelessWhile")
BRANCHES = ("tf.If", "tf.StatelessIf", "tf.Case", "tf.StatelessCase")
_LISTS = ("tf.TensorList", "tf.EmptyTensorList")
_ARRAYS = ("tf.TensorArray",)
_STACKS = ("tf.Stack",)
FUNCTIONAL = (*BRANCHES, *LOOPS)
"""Ops that run functions conditionally or repeatedly."""

CONTROL_FLOW = (*_V1, *FUNCTIONAL, *_LISTS, *_ARRAYS, *_STACKS, "tfl.if", "tfl.while")
"""Conditionals, loops and the containers of their results, of any kind."""

# Ops that only occur in MLIR text.
_FOREIGN = ("arith.", "tfl.yield", "tfl.NumericVerify", "stablehlo.constant", "mhlo.", "vhlo.", "quantfork.", "tensor.")

STABLEHLO = ("stablehlo.", "chlo.")
"""Ops of StableHLO."""

# TensorFlow's ops of XLA, which old versions of JAX write.
_XLA = (
    "tf.XlaConv",
    "tf.XlaDot",
    "tf.XlaGather",
    "tf.XlaKeyValueSort",
    "tf.XlaOptimizationBarrier",
    "tf.XlaPad",
    "tf.XlaReduce",
    "tf.XlaScatter",
    "tf.XlaSelectAndScatter",
    "tf.XlaSort",
    "tf.XlaVariadic",
)

# Ops that write a variable, or read a part of one.
_RESOURCE_OPS = ("tf.Resource", "tf.Assign", "tf.DisableCopyOnRead", "tf.Rng", "tf.VariableShape")

TO_FUNCTIONS: Sequence[Stage] = (
    Stage("dialects-to-tf", "later passes handle only the ops of model files", (_FOREIGN,)),
    Stage("unbind-inputs", "afterwards a function's inputs are those that callers feed", ((BOUND_INPUT,),)),
    Stage("merge-functions", "equal signatures are found while they still call the same functions"),
    Stage("functionalize-loops", "the switches and merges of loops must not be taken for conditionals", (_V1_LOOPS,)),
    Stage("functionalize-conditionals", "conditional code is outlined, so that only islands are left", (_V1,)),
    Stage(
        "executor-to-functional",
        "every later pass works on plain ops in program order",
        (("tf_executor.graph",),),
        forbids=("tf_executor.",),
    ),
    Stage(
        "cut",
        "names of nodes include calls; ops that are cut off need not be converted",
        ((CUT,),),
        keeps_results=False,
    ),
    Stage(
        "expand-xla-call-modules",
        "the cut has left out what need not be read; from here on programs of StableHLO are functions like others",
        (("tf.XlaCallModule",),),
        forbids=("tf.XlaCallModule",),
    ),
)
"""From dataflow graphs to functions; marked ones are kept."""

STANDARD: Sequence[Stage] = (
    Stage("regions-to-functional", "later passes handle one form of control flow", (_REGIONS,), forbids=_REGIONS),
    Stage(
        "tensor-arrays-to-lists",
        "afterwards lists have one form, and handles belong to variables",
        (_ARRAYS,),
        forbids=_ARRAYS,
    ),
    Stage(
        "inline", "folding and fusing see through calls", forbids=("tf.PartitionedCall", "tf.StatefulPartitionedCall")
    ),
    Stage("verify-control-flow", "later passes rely on it, and no branch has been erased yet", (FUNCTIONAL,)),
    Stage("unique-callees", "the arguments of a branch or a loop are the operands of one op", (FUNCTIONAL,)),
    Stage(
        "stacks-to-lists", "the stack of a push is visible if its function has one caller", (_STACKS,), forbids=_STACKS
    ),
    Stage("sink-handles", "the variable that a loop reads is visible where it reads it", (FUNCTIONAL,)),
    Stage(
        "decompose-resource-ops", "a variable that is gathered from is only read, and may be frozen", (_RESOURCE_OPS,)
    ),
    Stage("freeze-variables", "weights are constants from here on"),
    Stage("forward-variables", "variables that are still read are written, maybe just before", (_RESOURCE_OPS,)),
    Stage("canonicalize", "no identity is between a constant and its use"),
    Stage("mark-stateless", "without asserts, most control flow has no effects", (FUNCTIONAL,)),
    Stage("shape-inference", "legalization requires shapes and constant operands"),
    Stage("xla-to-stablehlo", "they are raised by the same rows", ((*_XLA, "tfl.stablehlo_"),)),
    Stage(
        "stablehlo-to-tf",
        "calls are inlined, weights are constants, and sizes are those of the ops before it",
        (STABLEHLO,),
        ("target=name",),
    ),
    Stage("regions-to-functional", "StableHLO's conditionals and loops have regions", (STABLEHLO,), forbids=_REGIONS),
    Stage("shape-inference", "the ops that StableHLO has become need shapes", (STABLEHLO,)),
    Stage("simplify-control-flow", "constants decide branches; loops should forward only live values", (FUNCTIONAL,)),
    Stage(
        "lower-tensor-lists",
        "it requires the ranks of elements; the targets have only tensors",
        (_LISTS,),
        forbids=_LISTS,
    ),
    Stage("share-shapes", "lists have become tensors, whose shapes others have", (CONTROL_FLOW,)),
    Stage(
        "find-training-mode",
        "all ops are TensorFlow's, and whatever nothing reads is not yet erased",
        (("tf.AssignVariableOp", "tf.FusedBatchNorm", "tf.Random", "tf.StatelessRandom", "tf.TruncatedNormal"),),
    ),
)
"""From functions to plain ops and functional control flow on tensors, with the shapes that are known."""

USER_PATTERNS: Sequence[Stage] = (
    Stage(
        "canonicalize",
        "the user's patterns see shapes and constants, before kernels' limits apply",
        takes=("patterns", "allow_custom_ops"),
        only_with="patterns",
    ),
    Stage("shape-inference", "ops that the user's patterns create need shapes", only_with="patterns"),
)
"""The user's rewrites of TensorFlow's ops."""


def names_of(stages: Iterable[Stage]) -> list[str]:
    return [stage.run for stage in stages]


def before(stages: Sequence[Stage], name: str) -> Sequence[Stage]:
    return stages[: names_of(stages).index(name)]
