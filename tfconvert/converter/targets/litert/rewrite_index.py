"""The operators that need a module of rewrites, separated by spaces; empty if it is always needed.

Made by `python -m tfconvert.converter.targets.litert.make_rewrite_index`; don't edit.
"""

from __future__ import annotations

from collections.abc import Mapping

OPTIMIZATIONS: Mapping[str, str] = {
    "activations": "",
    "arithmetic": "",
    "bidirectional": (
        "bidirectional_sequence_lstm bidirectional_sequence_rnn shape unidirectional_sequence_lstm "
        "unidirectional_sequence_rnn"
    ),
    "booleans": "logical_and logical_not logical_or select select_v2",
    "broadcasts": "",
    "dilation": "batch_to_space_nd",
    "fake_quantized": "dequantize fake_quant",
    "fold_constants": "",
    "fold_into_weights": "",
    "normalization": "neg rsqrt sqrt sub",
    "one_hot": "one_hot",
    "pads": "pad padv2",
    "products": "batch_matmul",
    "reductions": "",
    "reshape_motion": "reshape",
    "reshapes": "",
    "rows": "concatenation cumsum gather_nd scatter_nd split split_v unpack",
    "simplifications": "abs div exp floor_div log_softmax logistic neg pow softmax sqrt square squared_difference sub",
    "slices": "slice strided_slice",
    "transposes": "transpose",
}
"""The modules of the optimizer."""

FAST: Mapping[str, str] = {
    "borders.FAST": "mirror_pad",
    "branches.FAST_CHANNELS": "conv_2d depthwise_conv_2d",
    "branches.FAST_WEIGHTS": "conv_2d depthwise_conv_2d",
    "broadcasts.FAST_FLOATS": "broadcast_to",
    "convolution.FAST_BYTES": "transpose_conv",
    "convolution_groups.FAST_BYTES": "concatenation",
    "formulas.FAST_FLOATS": "l2_normalization log_softmax softmax squared_difference",
    "formulas.FAST_INTEGERS": "squared_difference",
    "groups.FAST": "mean sum",
    "masks.FAST_FLOATS": "select_v2",
    "means.FAST": "mean",
    "narrowing.FAST": "gather gather_nd slice strided_slice",
    "patches.FAST_BYTES": "conv_2d",
    "patches.FAST_PRODUCTS": "conv_2d",
    "repetition.FAST": "resize_nearest_neighbor tile",
    "scatters.FAST_FLOATS": "equal gather unsorted_segment_max",
    "segments.FAST_FLOATS": (
        "scatter_nd unsorted_segment_max unsorted_segment_min unsorted_segment_prod unsorted_segment_sum"
    ),
    "slices.FAST": "concatenation pack split_v strided_slice",
}
"""The patterns of forms that are faster on a processor."""

BY_DEFAULT: Mapping[str, str] = {
    "borders": "mirror_pad pad padv2",
    "convolution": "transpose_conv",
    "elementwise": "bitcast",
    "formulas": "add_n neg prelu",
    "indexing": "",
    "operands": (
        "add broadcast_to div equal floor_div floor_mod fully_connected greater greater_equal less less_equal "
        "logical_and logical_or maximum minimum mul not_equal select_v2 squared_difference sub"
    ),
    "products": "",
    "ranking": "",
    "ranks": "reduce_max reduce_min rsqrt sqrt transpose",
    "repetition": "tile",
    "slices": "split split_v strided_slice",
}
"""The modules of forms that are made by default."""

REWRITES: Mapping[str, str] = {
    "borders": "batch_to_space_nd depth_to_space mirror_pad pad padv2 space_to_batch_nd space_to_depth",
    "convolution": "add conv_2d conv_3d depthwise_conv_2d div fully_connected mul sub transpose_conv",
    "elementwise": (
        "abs add arg_max arg_min atan2 bitwise_xor cast ceil concatenation cos cumsum dequantize div "
        "dynamic_update_slice elu embedding_lookup equal exp expand_dims floor floor_div floor_mod gather gather_nd "
        "gelu greater greater_equal hard_swish leaky_relu less less_equal log logical_and logical_not logical_or "
        "logistic maximum minimum mul neg not_equal one_hot pack pad padv2 pow prelu quantize reduce_max reduce_min "
        "reduce_prod relu relu6 relu_0_to_1 relu_n1_to_1 reshape reverse_v2 right_shift round rsqrt scatter_nd select "
        "select_v2 sign sin slice split split_v sqrt square squared_difference squeeze strided_slice sub sum tanh tile "
        "topk_v2 transpose unpack"
    ),
    "formulas": (
        "add_n bitwise_xor ceil elu equal exp floor gelu greater greater_equal l2_normalization l2_pool_2d less "
        "less_equal local_response_normalization log log_softmax mean neg not_equal pow prelu reduce_any reduce_min "
        "reduce_prod relu6 relu_0_to_1 relu_n1_to_1 round rsqrt select select_v2 sign softmax sqrt square "
        "squared_difference sub"
    ),
    "indexing": (
        "dynamic_update_slice embedding_lookup fill gather gather_nd matrix_diag rank reverse_v2 scatter_nd "
        "segment_sum shape strided_slice unsorted_segment_sum zeros_like"
    ),
    "operands": (
        "add broadcast_to div equal floor_div floor_mod fully_connected greater greater_equal less less_equal "
        "logical_and logical_or maximum minimum mul not_equal select_v2 squared_difference sub"
    ),
    "products": "batch_matmul fully_connected",
    "ranking": "arg_max arg_min bucketize cumsum one_hot topk_v2",
    "ranks": (
        "batch_matmul concatenation cumsum expand_dims fully_connected log_softmax mean pad padv2 reduce_all "
        "reduce_any reduce_max reduce_min reduce_prod reshape softmax split squeeze sum transpose"
    ),
    "repetition": "broadcast_to concatenation reshape tile",
    "slices": "concatenation fully_connected pack reverse_v2 slice split split_v strided_slice unpack",
}
"""All of these."""
