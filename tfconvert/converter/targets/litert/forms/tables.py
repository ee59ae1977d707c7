"""The tables of all forms: which module has those of an operator. A module is imported with the first such op.

A module has its rewrites in `REWRITES`. Each starts at one operator. Those that say so are made by default, whatever a
file is for: they add no operator, and the CPU is at least as fast. The others are tried for the accelerators that are
named, if one of these does not take the operator. `FAST` and the like are patterns of forms that are faster on a
processor in the sizes for which they don't decline.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache

from tfconvert.converter.rewrite.lazy_table import LazyModule, LazyTable
from tfconvert.converter.rewrite.pattern_set import PatternSet
from tfconvert.converter.targets.litert.forms.fast_rows import FAST_ROWS
from tfconvert.converter.targets.litert.forms.form import Rewrite
from tfconvert.converter.targets.litert.optimize import reshapes
from tfconvert.schema.dialects import tfl
from tfconvert.schema.tflite import operators

_PACKAGE = "tfconvert.converter.targets.litert.forms"

NARROWED = (
    "abs add arg_max arg_min cast concatenation cumsum div dynamic_update_slice embedding_lookup equal expand_dims "
    "floor_div floor_mod gather gather_nd greater greater_equal less less_equal maximum minimum mul neg not_equal "
    "one_hot pack pad padv2 reduce_max reduce_min reduce_prod reshape reverse_v2 scatter_nd select select_v2 sign "
    "slice split split_v squeeze strided_slice sub sum tile topk_v2 transpose unpack"
)
"""The operators of integers of 64 bits that are computed in 32."""

_WITH_CONSTANTS = " ".join(
    sorted(
        operators.elementwise(2, 3) - {"atan2", "bitwise_xor", "pow", "right_shift"}
        | {"broadcast_to", "fully_connected"}
    )
)

# A module, the operators with which there may be something to rewrite by default, and those at which its rewrites
# start: in the order in which rewrites of one operator and one benefit are tried.
_REWRITES = (
    ("operands", _WITH_CONSTANTS, _WITH_CONSTANTS),
    (
        "slices",
        "split split_v strided_slice",
        "concatenation fully_connected pack reverse_v2 slice split split_v strided_slice unpack",
    ),
    ("repetition", "tile", "broadcast_to concatenation reshape tile"),
    ("products", "", "batch_matmul fully_connected"),
    (
        "convolution",
        "transpose_conv",
        "add conv_2d conv_3d depthwise_conv_2d div fully_connected mul sub transpose_conv",
    ),
    (
        "elementwise",
        "bitcast",
        " ".join(sorted({*NARROWED.split(), *operators.elementwise(1, 2, 3), "dequantize", "prelu", "quantize"})),
    ),
    (
        "ranks",
        "reduce_max reduce_min rsqrt sqrt transpose",
        "batch_matmul concatenation cumsum expand_dims fully_connected log_softmax mean pad padv2 reduce_all "
        "reduce_any reduce_max reduce_min reduce_prod reshape softmax split squeeze sum transpose",
    ),
    (
        "indexing",
        "",
        "dynamic_update_slice embedding_lookup fill gather gather_nd matrix_diag rank reverse_v2 scatter_nd "
        "segment_sum shape strided_slice unsorted_segment_sum zeros_like",
    ),
    (
        "borders",
        "mirror_pad pad padv2",
        "batch_to_space_nd depth_to_space mirror_pad pad padv2 space_to_batch_nd space_to_depth",
    ),
    ("ranking", "", "arg_max arg_min bucketize cumsum one_hot topk_v2"),
    (
        "formulas",
        "add_n neg prelu",
        "add_n bitwise_xor ceil elu equal exp floor gelu greater greater_equal l2_normalization l2_pool_2d less "
        "less_equal local_response_normalization log log_softmax mean neg not_equal pow prelu reduce_any reduce_min "
        "reduce_prod relu6 relu_0_to_1 relu_n1_to_1 round rsqrt select select_v2 sign softmax sqrt square "
        "squared_difference sub",
    ),
)

_FAST = LazyTable(_PACKAGE, tfl.PREFIX, (LazyModule(*row) for row in FAST_ROWS))
_FLOATS = frozenset(("FAST", "FAST_BYTES", "FAST_FLOATS"))
_WEIGHTS = _FLOATS | {"FAST_WEIGHTS"}
_DYNAMIC = _FLOATS | {"FAST_PRODUCTS"}
_INT8 = frozenset(("FAST", "FAST_BYTES", "FAST_INTEGERS", "FAST_PRODUCTS"))
_INT16 = frozenset(("FAST", "FAST_INTEGERS"))

_DEFAULT = LazyTable(_PACKAGE, tfl.PREFIX, [LazyModule(name, ops) for name, ops, _ in _REWRITES if ops])
_ALL = LazyTable(_PACKAGE, tfl.PREFIX, [LazyModule(name, ops) for name, _, ops in _REWRITES])

SCATTER_RELEASE = (2, 16)
"""The first release of the runtime whose `STABLEHLO_SCATTER` combines elements with updates."""

# The start of the names of the patterns that insert it.
_SCATTER = "scatter-"


def fast_forms(
    names: Iterable[str],
    *,
    only_floats: bool,
    has_int16: bool = False,
    keeps_weights: bool = True,
    per_channel: bool = True,
    has_scatter: bool = True,
) -> PatternSet:
    """Returns the patterns of faster forms that a module with ops of some names needs, and those that merge reshapes.

    `speed.tsv` has what each of them gains: the microseconds of the usual form and of the fast one for tensors of some
    sizes, measured by `python -m benchmarks.form_speed` on an x86-64 processor with one thread.

    Args:
        names: The names.
        only_floats: Whether no activations will become integers.
        has_int16: Whether they may become 16-bit integers.
        keeps_weights: Whether weights stay floats, where activations do.
        per_channel: Whether the channels of filters of 8-bit integers have scales of their own.
        has_scatter: Whether the runtime has `STABLEHLO_SCATTER`.
    """
    floats = _WEIGHTS if keeps_weights else _DYNAMIC
    kinds = floats if only_floats else _INT16 if has_int16 else _INT8
    if per_channel and "FAST_PRODUCTS" in kinds:
        kinds |= {"FAST_CHANNELS"}
    return _fast_forms(frozenset(row for row in _FAST.needed(names) if row.title in kinds), has_scatter)


@cache
def _fast_forms(needed: frozenset[LazyModule], has_scatter: bool) -> PatternSet:
    rows = [row for row in _FAST.modules if row in needed]
    found = [getattr(file, row.title) for row, file in zip(rows, _FAST.load(needed), strict=True)]
    patterns = [each for part in (*found, reshapes.PATTERNS if found else ()) for each in part]
    return PatternSet(each for each in patterns if has_scatter or not each.name.startswith(_SCATTER))


@cache
def rewrites_of(name: str) -> Sequence[Rewrite]:
    """Returns the rewrites that may start at an op, those with the highest benefit first.

    Args:
        name: The op's full name.
    """
    rows = [row for file in _ALL.load(_ALL.by_op.get(name, frozenset())) for row in file.REWRITES]
    return _by_benefit([row for row in rows if tfl.PREFIX + row.root == name])


def made_by_default(names: Iterable[str], *, is_for_gpu: bool = False) -> Mapping[str, Sequence[Rewrite]]:
    """Returns the rewrites that are made by default, by the op's full name.

    Args:
        names: The names of the ops that there are.
        is_for_gpu: Whether those only for GPUs are needed.
    """
    rows = _ALL if is_for_gpu else _DEFAULT
    return _made_by_default(rows, rows.needed(names))


@cache
def _made_by_default(rows: LazyTable, modules: frozenset[LazyModule]) -> Mapping[str, Sequence[Rewrite]]:
    found: dict[str, list[Rewrite]] = {}
    for file in rows.load(modules):
        for row in file.REWRITES:
            if row.default:
                found.setdefault(tfl.PREFIX + row.root, []).append(row)
    return {name: _by_benefit(rows) for name, rows in found.items()}


def _by_benefit(rows: Iterable[Rewrite]) -> Sequence[Rewrite]:
    return sorted(rows, key=lambda row: -row.benefit)
