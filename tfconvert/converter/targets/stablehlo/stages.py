"""StableHLO's pipeline: which passes run, in which order and why."""

from __future__ import annotations

from collections.abc import Sequence

from tfconvert.converter.pipeline.stage import Stage
from tfconvert.converter.pipeline.stages import CONTROL_FLOW, STANDARD, TO_FUNCTIONS, USER_PATTERNS

STAGES: Sequence[Stage] = (
    *TO_FUNCTIONS,
    *STANDARD,
    Stage(
        "tables-to-gathers",
        "their entries are constants by now; what initialises them is gone before state is seen",
        (("tf.HashTable",),),
    ),
    Stage(
        "carry-state",
        "nothing reads or assigns a variable in branches and loops any more; shapes are known",
        (("tf.VarHandleOp", "tf_saved_model.session_initializer"),),
        ("mlir_state=state",),
    ),
    Stage("cse", "loop variables with equal initial values get the same one", (CONTROL_FLOW,)),
    *USER_PATTERNS,
    Stage("decompose", "what a network means is decided; the rest is ops that have a form of their own"),
    Stage(
        "legalize-to-stablehlo",
        "leaves only what every engine of StableHLO takes",
        takes=("target=name", "check_indices"),
        forbids=("tf.",),
    ),
    Stage(
        "materialize-constraints",
        "what sizes have to be is asserted where functions begin; what is dead is removed",
        (("stablehlo.custom_call",),),
        ("target=name",),
    ),
    Stage("add-shape-functions", "nothing changes a size any more", only_with="shape_function"),
)
