"""The modules of forms that are faster on a processor: a stage looks at the names of their ops without loading them."""

from __future__ import annotations

from tfconvert.schema.dialects import tfl

# A module, the operators with which there may be a faster form, and the name of the patterns: of those for all numbers,
# for floats and 8-bit integers, for floats, for weights that stay floats, for those that become 8-bit integers, for
# those whose channels get scales of their own then, and for what becomes integers.
FAST_ROWS = (
    ("narrowing", "gather gather_nd slice strided_slice", "FAST"),
    ("slices", "concatenation pack split_v strided_slice", "FAST"),
    ("repetition", "resize_nearest_neighbor tile", "FAST"),
    ("borders", "mirror_pad", "FAST"),
    ("groups", "mean sum", "FAST"),
    ("means", "mean", "FAST"),
    ("convolution", "transpose_conv", "FAST_BYTES"),
    ("convolution_groups", "concatenation", "FAST_BYTES"),
    ("patches", "conv_2d", "FAST_BYTES"),
    ("patches", "conv_2d", "FAST_PRODUCTS"),
    # Its pattern starts at a sum, but of convolutions.
    ("branches", "conv_2d depthwise_conv_2d", "FAST_WEIGHTS"),
    ("branches", "conv_2d depthwise_conv_2d", "FAST_CHANNELS"),
    ("broadcasts", "broadcast_to", "FAST_FLOATS"),
    ("masks", "select_v2", "FAST_FLOATS"),
    ("scatters", "equal gather unsorted_segment_max", "FAST_FLOATS"),
    (
        "segments",
        "scatter_nd unsorted_segment_max unsorted_segment_min unsorted_segment_prod unsorted_segment_sum",
        "FAST_FLOATS",
    ),
    ("formulas", "l2_normalization log_softmax softmax squared_difference", "FAST_FLOATS"),
    ("formulas", "squared_difference", "FAST_INTEGERS"),
)

FAST_ROOTS = tuple(dict.fromkeys(tfl.PREFIX + name for _, ops, _ in FAST_ROWS for name in ops.split()))
"""The ops without which no form is faster."""
