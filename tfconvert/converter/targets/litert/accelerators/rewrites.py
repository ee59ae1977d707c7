"""The table of all rewrites: which module has those of an operator. A module is imported with the first such op.

A module has its rewrites in `REWRITES`. Each starts at one operator. Those that say so are made by default, whatever a
file is for: they add no operator, and the CPU is at least as fast. The others are tried for the accelerators that are
named, if one of these does not take the operator.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache

from tfconvert.converter.rewrite.lazy_table import LazyModule, LazyTable
from tfconvert.converter.targets.litert.accelerators.builder import Rewrite
from tfconvert.schema.dialects import tfl

NARROWED = (
    "abs add arg_max arg_min cast concatenation cumsum div dynamic_update_slice embedding_lookup equal expand_dims "
    "floor_div floor_mod gather gather_nd greater greater_equal less less_equal maximum minimum mul neg not_equal "
    "one_hot pack pad padv2 reduce_max reduce_min reduce_prod reshape reverse_v2 scatter_nd select select_v2 sign "
    "slice split split_v squeeze strided_slice sub sum tile topk_v2 transpose unpack"
)
"""The operators of integers of 64 bits that are computed in 32."""

_WITH_CONSTANTS = (
    "add broadcast_to div equal floor_div floor_mod fully_connected greater greater_equal less less_equal logical_and "
    "logical_or maximum minimum mul not_equal select_v2 sub"
)

# A module, the operators with which there may be something to rewrite by default, and those at which its rewrites
# start: in the order in which rewrites of one operator and one benefit are tried.
_MODULES = (
    ("numbers", "", NARROWED),
    ("operands", _WITH_CONSTANTS, _WITH_CONSTANTS),
    (
        "slices",
        "split split_v strided_slice",
        "concatenation fully_connected pack reverse_v2 slice split split_v strided_slice unpack",
    ),
    ("regions", "rsqrt sqrt", "reshape"),
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
        "abs add atan2 cast ceil cos dequantize div elu equal exp floor floor_div floor_mod gelu greater "
        "greater_equal hard_swish leaky_relu less less_equal log logical_and logical_not logical_or logistic "
        "maximum minimum mul neg not_equal pow prelu quantize relu relu6 relu_n1_to_1 right_shift round rsqrt "
        "select select_v2 sign sin sqrt square squared_difference sub tanh",
    ),
    (
        "ranks",
        "reduce_max reduce_min transpose",
        "batch_matmul concatenation cumsum expand_dims fully_connected log_softmax mean pad padv2 reduce_all "
        "reduce_any reduce_max reduce_min reduce_prod reshape softmax split squeeze sum transpose",
    ),
    ("indexing", "", "dynamic_update_slice embedding_lookup gather gather_nd"),
    (
        "padding",
        "mirror_pad pad padv2",
        "batch_to_space_nd depth_to_space mirror_pad pad padv2 space_to_batch_nd space_to_depth",
    ),
    ("ranking", "", "arg_max arg_min bucketize cumsum one_hot topk_v2"),
    (
        "formulas",
        "add_n prelu",
        "add_n bitwise_xor equal greater greater_equal l2_normalization l2_pool_2d less less_equal "
        "local_response_normalization log_softmax mean not_equal prelu relu_0_to_1 relu_n1_to_1 softmax "
        "squared_difference sub",
    ),
    (
        "scattering",
        "",
        "fill matrix_diag rank reverse_v2 scatter_nd segment_sum shape strided_slice unsorted_segment_sum zeros_like",
    ),
    (
        "substitutes",
        "neg",
        "ceil elu exp floor gelu log mean neg pow reduce_any reduce_min reduce_prod relu6 round rsqrt select select_v2 "
        "sign sqrt square",
    ),
)

_PACKAGE = "tfconvert.converter.targets.litert.accelerators"
_ALWAYS = LazyTable(_PACKAGE, tfl.PREFIX, [LazyModule(name, ops) for name, ops, _ in _MODULES if ops])
_ALL = LazyTable(_PACKAGE, tfl.PREFIX, [LazyModule(name, ops) for name, _, ops in _MODULES])


@cache
def rewrites_of(name: str) -> Sequence[Rewrite]:
    """Returns the rewrites that may start at an op, those with the highest benefit first.

    Args:
        name: The op's full name.
    """
    rows = [row for file in _ALL.load(_ALL.by_op.get(name, frozenset())) for row in file.REWRITES]
    return _by_benefit([row for row in rows if tfl.PREFIX + row.root == name])


def made_by_default(names: Iterable[str]) -> Mapping[str, Sequence[Rewrite]]:
    """Returns the rewrites that are made by default, by the op's full name.

    Args:
        names: The names of the ops that there are.
    """
    return _made_by_default(_ALWAYS.needed(names))


@cache
def _made_by_default(modules: frozenset[LazyModule]) -> Mapping[str, Sequence[Rewrite]]:
    found: dict[str, list[Rewrite]] = {}
    for file in _ALWAYS.load(modules):
        for row in file.REWRITES:
            if row.default:
                found.setdefault(tfl.PREFIX + row.root, []).append(row)
    return {name: _by_benefit(rows) for name, rows in found.items()}


def _by_benefit(rows: Iterable[Rewrite]) -> Sequence[Rewrite]:
    return sorted(rows, key=lambda row: -row.benefit)
