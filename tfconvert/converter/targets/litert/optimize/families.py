"""The families of patterns, a file each: `registry.py` loads one when an op is met without which it matches nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Family(NamedTuple):
    """A file of patterns.

    Attributes:
        module: The file's name; it has `PATTERNS`.
        ops: Ops without which none of them matches, separated by spaces: one of these is enough to load them. Empty
            if most networks need them.
    """

    module: str
    ops: str = ""


FAMILIES: tuple[Family, ...] = (
    Family("fold_bias"),
    Family("fold_scale"),
    Family("fold_input"),
    Family("fuse_activation"),
    Family("activations"),
    Family("arithmetic"),
    Family("broadcasts"),
    Family("depthwise"),
    Family("pads", "pad padv2"),
    Family("products", "batch_matmul"),
    Family("dilation", "batch_to_space_nd"),
    Family("reshapes"),
    Family("fake_quantized", "dequantize fake_quant"),
    Family("transposes", "transpose"),
    Family("transpose_motion", "transpose"),
    Family("identities"),
    Family("layer_normalization", "neg sub"),
    Family("normalization", "rsqrt sqrt"),
    Family("reductions"),
    Family("hoist_over_reshape", "reshape"),
    Family("over_reshapes", "reshape"),
    Family(
        "bidirectional",
        "bidirectional_sequence_lstm bidirectional_sequence_rnn shape unidirectional_sequence_lstm "
        "unidirectional_sequence_rnn",
    ),
    Family("slices", "slice strided_slice"),
    Family("fold_constants"),
    Family("broadcast_motion", "broadcast_to"),
    Family("softmax", "exp log_softmax softmax"),
    Family("choices", "logical_and logical_not logical_or select select_v2"),
    Family("one_hot", "one_hot"),
    Family("rows", "concatenation cumsum gather_nd scatter_nd split split_v unpack"),
    Family("shorter", "abs div exp floor_div logistic neg pow softmax sqrt square squared_difference sub"),
)
"""In the order in which patterns of one root and one benefit are tried."""


def _by_op() -> Mapping[str, frozenset[Family]]:
    found: dict[str, frozenset[Family]] = {}
    for family in FAMILIES:
        alone = frozenset((family,))
        for op in family.ops.split():
            name = f"tfl.{op}"
            found[name] = found[name] | alone if name in found else alone
    return found


BY_OP: Mapping[str, frozenset[Family]] = _by_op()
"""Op with its dialect's prefix -> the families that are loaded for it."""

COMMON = frozenset(family for family in FAMILIES if not family.ops)
"""The families that are always loaded."""
