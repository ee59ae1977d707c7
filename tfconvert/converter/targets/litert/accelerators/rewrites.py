"""The rewrites for accelerators: which module has those of an operator. A module is imported with the first such op.

A module has its rewrites in `PATTERNS`: each starts at one operator, and is tried if an accelerator does not take it.
"""

from __future__ import annotations

from functools import cache

from tfconvert.converter.rewrite.lazy_table import LazyModule, LazyTable
from tfconvert.converter.rewrite.pattern_set import PatternSet

# In the order in which rewrites of one operator and one benefit are tried.
_MODULES = (
    LazyModule("numbers", "cast"),
    LazyModule("repetition", "tile concatenation"),
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
        "split squeeze sum tile transpose unpack",
    ),
    LazyModule(
        "formulas",
        "ceil elu floor gelu neg one_hot pow reduce_any reduce_min reduce_prod relu6 relu_0_to_1 relu_n1_to_1 round "
        "rsqrt select select_v2 sign square zeros_like",
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
