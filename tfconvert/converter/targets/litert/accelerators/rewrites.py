"""The rewrites for accelerators: which module has those of an operator. A module is imported with the first such op.

A module has its rewrites in `PATTERNS`: each starts at one operator, and is tried if an accelerator does not take it.
"""

from __future__ import annotations

from functools import cache

from tfconvert.converter.rewrite.lazy_table import LazyModule, LazyTable
from tfconvert.converter.rewrite.pattern_set import PatternSet

# In the order in which rewrites of one operator and one benefit are tried.
_MODULES = (
    LazyModule(
        "numbers",
        "abs add arg_max arg_min cast concatenation cumsum div dynamic_update_slice embedding_lookup equal expand_dims "
        "floor_div floor_mod gather gather_nd greater greater_equal less less_equal maximum minimum mul neg not_equal "
        "one_hot pack pad padv2 reduce_max reduce_min reduce_prod reshape reverse_v2 scatter_nd select select_v2 sign "
        "slice split split_v squeeze strided_slice sub sum tile topk_v2 transpose unpack",
    ),
    LazyModule("recurrent", "dynamic_update_slice zeros_like"),
    LazyModule("tables", "embedding_lookup gather"),
    LazyModule("repetition", "concatenation tile"),
    LazyModule("products", "batch_matmul fully_connected"),
    LazyModule("convolution", "add conv_2d conv_3d depthwise_conv_2d div fully_connected mul sub transpose_conv"),
    LazyModule(
        "elementwise",
        "abs add atan2 cast ceil cos dequantize div elu equal exp floor floor_div floor_mod gelu greater greater_equal "
        "hard_swish leaky_relu less less_equal log logical_and logical_not logical_or logistic maximum minimum mul neg "
        "not_equal pow prelu quantize relu relu6 relu_n1_to_1 right_shift round rsqrt select select_v2 sign sin sqrt "
        "square squared_difference sub tanh",
    ),
    LazyModule(
        "ranks",
        "arg_max arg_min batch_matmul broadcast_to concatenation cumsum expand_dims fully_connected gather log_softmax "
        "mean pack pad padv2 reduce_all reduce_any reduce_max reduce_min reduce_prod reshape reverse_v2 slice softmax "
        "split split_v squeeze strided_slice sum tile transpose unpack",
    ),
    LazyModule("indexing", "dynamic_update_slice embedding_lookup gather gather_nd reverse_v2 slice strided_slice"),
    LazyModule("joining", "concatenation split split_v"),
    LazyModule("padding", "batch_to_space_nd depth_to_space mirror_pad pad padv2 space_to_batch_nd space_to_depth"),
    LazyModule("ranking", "arg_max arg_min bucketize cumsum one_hot topk_v2"),
    LazyModule(
        "formulas",
        "add_n bitwise_xor equal greater greater_equal l2_normalization l2_pool_2d less less_equal "
        "local_response_normalization log_softmax mean not_equal prelu relu_0_to_1 "
        "relu_n1_to_1 softmax squared_difference sub",
    ),
    LazyModule(
        "scattering", "fill matrix_diag rank reverse_v2 scatter_nd segment_sum shape strided_slice unsorted_segment_sum"
    ),
    LazyModule(
        "substitutes",
        "ceil elu exp floor gelu log mean neg pow reduce_any reduce_min reduce_prod relu6 round rsqrt select select_v2 "
        "sign sqrt square",
    ),
)

_TABLE = LazyTable("tfconvert.converter.targets.litert.accelerators", "tfl.", _MODULES)


def patterns_for(name: str) -> PatternSet:
    """Returns the rewrites that may start at an op.

    Args:
        name: The op's full name.
    """
    return _patterns(_TABLE.by_op.get(name, frozenset()))


@cache
def _patterns(modules: frozenset[LazyModule]) -> PatternSet:
    return PatternSet(pattern for file in _TABLE.load(modules) for pattern in file.PATTERNS)
