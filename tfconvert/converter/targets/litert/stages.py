"""LiteRT's pipeline: the passes, their order and the reasons."""

from __future__ import annotations

from collections.abc import Sequence

from tfconvert.converter.composites.marks import API_IMPLEMENTS, IMPLEMENTS
from tfconvert.converter.pipeline.stage import HALVES, OPEN_SIZES, Stage
from tfconvert.converter.pipeline.stages import (
    CONTROL_FLOW,
    FUNCTIONAL,
    LOOPS,
    STABLEHLO,
    STANDARD,
    TO_FUNCTIONS,
    USER_PATTERNS,
)
from tfconvert.converter.targets.litert.rewrite_index import FAST

# The ops without which no form is faster.
_FAST_ROOTS = tuple(dict.fromkeys(f"tfl.{name}" for ops in FAST.values() for name in ops.split()))

_PRODUCTS = ("tf.MatMul",)
# Ops that read single steps of a sequence.
# Ops that make complex numbers, or take their parts.
_COMPLEX = ("tf.Angle", "tf.Complex", "tf.Conj", "tf.FFT", "tf.IFFT", "tf.IRFFT", "tf.Imag", "tf.RFFT")

_ROWS = ("tf.GatherV2", "tf.StridedSlice", "tf.Unpack")

# Ops that read rows of constants.
_READS = ("tf.GatherV2", "tf.Slice", "tf.StridedSlice")

# Handles of variables and tables, and what runs their initializers.
_STATE = (
    "tf.VarHandleOp",
    "tf.HashTable",
    "tfl.var_handle",
    "tfl.hashtable",
    "tf_saved_model.asset",
    "tf_saved_model.session_initializer",
)

# Operators that overwrite one of their operands.
_WITH_STATE = ("tfl.unidirectional_sequence_", "tfl.bidirectional_sequence_", "tfl.lstm", "tfl.rnn", "tfl.svdf")

# Reasons for integer activations: that they were requested, or that the model was trained for them.
_STATIC = (("options.quantizes_activations", "tfl.fake_quant"),)

# The settings for the storage of weights.
_WEIGHTS = tuple(
    f"quantize.{name}"
    for name in ("mode", "weights", "per_channel", "exclude", "hybrid_only", "trained_only", "accumulation")
)

STAGES: Sequence[Stage] = (
    *TO_FUNCTIONS,
    Stage(
        "prepare-composite-functions",
        "the marked functions aren't inlined yet, and their bodies need not be converted",
        ((IMPLEMENTS, API_IMPLEMENTS, "options.fusions"),),
        ("allow_custom_ops", "composites=fusions", "fuses_recurrent"),
    ),
    *STANDARD,
    Stage(
        "widen-halves",
        "recurrent layers and operators are recognised as f32",
        (("tf.Cast", HALVES),),
        keeps_results=False,
    ),
    Stage(
        "unroll-layers",
        "weights are constants, and recurrent layers of one step are not yet looked for",
        (LOOPS, _READS),
        only_with="fuses_recurrent",
    ),
    Stage(
        "fuse-recurrent-loops",
        "sequences are tensors, and cells are still TensorFlow's ops",
        (LOOPS,),
        ("recurrent_by_speed", "tune"),
        "fuses_recurrent",
    ),
    Stage(
        "fuse-unrolled-layers",
        "equal shapes are known, and cells are still TensorFlow's ops",
        (_PRODUCTS,),
        ("recurrent_by_speed", "tune"),
        "fuses_recurrent",
        left=_ROWS,
    ),
    Stage(
        "unroll-loops",
        "sequences are tensors, so that steps are slices of them",
        ((*LOOPS, *_ROWS),),
        only_with="unrolls_loops",
    ),
    Stage("cse", "loop variables with equal initial values get the same one", (CONTROL_FLOW,)),
    Stage("merge-loop-variables", "variables with one initial value may be one variable", (LOOPS,)),
    Stage(
        "loop-steps",
        "loops that became operators or steps are gone, and transposes are not yet merged with other operators",
        (LOOPS, ("tf.StridedSlice", "tf.Transpose")),
    ),
    *USER_PATTERNS,
    Stage("prepare-control-flow", "shapes decide which conditions are booleans; LiteRT has no Case", (FUNCTIONAL,)),
    Stage(
        "lower-tables", "their entries are constants by now, and lookups become plain ops in part", (("tf.HashTable",),)
    ),
    Stage("initialize-state", "the remaining state is known: state that is never written is a constant", left=_STATE),
    Stage(
        "complex-to-parts",
        "shapes and lengths are known, and all that is left of complex numbers is legalized",
        (_COMPLEX,),
    ),
    Stage(
        "default-sizes", "ops are still TensorFlow's, whose shapes are known for any sizes of inputs", ((OPEN_SIZES,),)
    ),
    Stage(
        "separate-activations",
        "operators that come in as LiteRT's have fused activations that no kernel computes",
        (("tfl.",),),
        keeps_results=False,
    ),
    Stage(
        "legalize",
        "leaves only ops that LiteRT has",
        takes=("allow_custom_ops", "allow_flex", "flex_ops"),
        forbids=("tf.",),
    ),
    Stage(
        "fold-dequantize",
        "weights of a file are constants for all that follows, however they are stored",
        (("tfl.dequantize", "tfl.densify", "tfl.cast"),),
        ("quantize",),
        "quantize",
    ),
    Stage(
        "sink-constants",
        "weights are constants, and are quantized where they are read",
        (("tfl.if", "tfl.while"),),
        only_with="quantize",
    ),
    Stage("cse", "a duplicate op is a second use of its operand, which prevents fusing"),
    Stage("optimize", "fusing needs the target's ops, which have fused forms", takes=("patterns", "allow_custom_ops")),
    Stage(
        "fast-forms",
        "fused operators are known, and integers follow, whose kernels are others",
        (_FAST_ROOTS,),
        ("quantize", "tune", "target_runtime"),
        "is_for_processors",
    ),
    Stage(
        "portable-forms",
        "fused operators are known, and quantizing follows",
        takes=("quantize", "accelerators=accelerator"),
    ),
    Stage("cse", "folding leaves duplicates behind"),
    Stage("keep-nan", "operators are fused, and patterns that match constants are done", (STABLEHLO,)),
    Stage("fit-kernels", "the kernels' limits are the operators', which are final but for copies and integers"),
    Stage(
        "fit-accelerators",
        "what quantizes operators finds those that accelerators take, and new ones get ranges like all others",
        (("options.quantize",),),
        ("accelerators=accelerator", "quantize"),
        "accelerator",
    ),
    Stage(
        "prepare-quantize",
        "ops without an integer kernel are replaced by ops that have one",
        _STATIC,
        ("quantize",),
        "quantize",
    ),
    Stage("separate-reads", "reads of one variable may be merged until here, but crash", (("tfl.read_variable",),)),
    Stage(
        "separate-results",
        "inserts copies for the runtime, which every pass before would remove, and calibrating needs",
        (("tfl.if", "tfl.while"),),
    ),
    Stage(
        "separate-state",
        "every pass before would merge states that begin alike",
        (_WITH_STATE,),
        ("quantize.recurrent_state",),
    ),
    Stage("calibrate", "the model can be run as it is from here on", _STATIC, ("quantize",), "quantize"),
    Stage(
        "equalize",
        "the ranges of channels are known by now, where they can be, and constants are still floats",
        takes=("quantize",),
        only_with="quantize",
    ),
    Stage(
        "quantize",
        "the ranges of numbers are known by now",
        _STATIC,
        ("quantize", "for_processors=is_for_processors"),
        "quantize",
    ),
    Stage(
        "fast-forms",
        "what is still floats will not become integers",
        (*_STATIC, _FAST_ROOTS),
        ("tune", "target_runtime"),
        "is_for_processors",
    ),
    Stage("separate-state", "states of integers are constants so far", (*_STATIC, _WITH_STATE)),
    Stage("quantize-io", "inputs and outputs have kept their types so far", _STATIC, ("quantize",), "quantize"),
    Stage(
        "portable-forms",
        "the ranges of integers may be those of activations",
        (*_STATIC, ("tfl.transpose_conv",)),
        ("quantize", "accelerators=accelerator"),
    ),
    Stage(
        "fold-fake-quant",
        "what quantizes a model has seen the ranges",
        (("tfl.fake_quant", "tfl.quantize"),),
        ("quantize",),
    ),
    Stage(
        "quantize-weights",
        "weights are final, and still floats unless integers are needed",
        takes=(*_WEIGHTS, "accelerators=accelerator"),
        only_with="quantize",
    ),
    Stage(
        "separate-boxes",
        "quantizing would give these boxes and those of the image one scale",
        left=("tfl.non_max_suppression_v",),
    ),
    Stage(
        "fit-accelerators",
        "operators and the types of their numbers are final; copies would hide what belongs together",
        takes=("accelerators=accelerator",),
        only_with="accelerator",
    ),
    Stage("separate-results", "forms of integers and of accelerators have lost copies", (("tfl.if", "tfl.while"),)),
    Stage("separate-outputs", "any pass before would remove copies, and quantizing would round them"),
    Stage(
        "verify-quantized",
        "the runtime doesn't check what its kernels support",
        (("options.quantize", "tfl.pseudo_qconst"),),
        ("quantize",),
    ),
    Stage("sparse-weights", "weights are final, and checked while they are whole", only_with="sparse_weights"),
    Stage(
        "outline-composites",
        "every pass before rewrites the operators that composites hide, or would have to know composites",
        only_with="writes_composites",
    ),
    Stage("check-gpu", "the forms of operators are final", takes=("accelerators=accelerator",)),
    Stage("order-operators", "every pass before may add operators, or change the sizes of their results"),
)
