"""All patterns of the optimizer. A module is imported with the first op that one of its patterns needs."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from tfconvert.converter.rewrite.lazy_table import LazyModule, LazyTable
from tfconvert.converter.rewrite.pattern_set import PatternSet

# In the order in which patterns of one root and one benefit are tried.
_MODULES = (
    LazyModule("fold_into_weights"),
    LazyModule("activations"),
    LazyModule("arithmetic"),
    LazyModule("broadcasts"),
    LazyModule("pads", "pad padv2"),
    LazyModule("products", "batch_matmul"),
    LazyModule("dilation", "batch_to_space_nd"),
    LazyModule("reshapes"),
    LazyModule("fake_quantized", "dequantize fake_quant"),
    LazyModule("transposes", "transpose"),
    LazyModule("normalization", "neg rsqrt sqrt sub"),
    LazyModule("reductions"),
    LazyModule("reshape_motion", "reshape"),
    LazyModule(
        "bidirectional",
        "bidirectional_sequence_lstm bidirectional_sequence_rnn shape unidirectional_sequence_lstm "
        "unidirectional_sequence_rnn",
    ),
    LazyModule("slices", "slice strided_slice"),
    LazyModule("fold_constants"),
    LazyModule("booleans", "logical_and logical_not logical_or select select_v2"),
    LazyModule("one_hot", "one_hot"),
    LazyModule("rows", "concatenation cumsum gather_nd scatter_nd split split_v unpack"),
    LazyModule(
        "simplifications",
        "abs div exp floor_div log_softmax logistic neg pow softmax sqrt square squared_difference sub",
    ),
)

_TABLE = LazyTable("tfconvert.converter.targets.litert.optimize", "tfl.", _MODULES)


def patterns() -> PatternSet:
    """Returns all patterns, ready for the driver."""
    return _patterns(frozenset(_TABLE.modules))


def patterns_for(names: Iterable[str]) -> PatternSet:
    """Returns the patterns that a module with ops of some names needs."""
    return _patterns(_TABLE.needed(names))


@cache
def _patterns(modules: frozenset[LazyModule]) -> PatternSet:
    return PatternSet(pattern for file in _TABLE.load(modules) for pattern in file.PATTERNS)
