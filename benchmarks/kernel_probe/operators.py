"""The operators of each kind that the probes try, from the table of operators, with the options that they need."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tfconvert.schema.tflite import operators

NO_OPTIONS: Mapping[str, Any] = {}
NO_ACTIVATION = {"fused_activation_function": "NONE"}
SUM = {**NO_ACTIVATION, "pot_scale_int16": False}
MASKS = {f"{name}_mask": 0 for name in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")}
SAME = {**NO_ACTIVATION, "padding": "SAME", "stride_w": 1, "stride_h": 1}
POOL = {**NO_ACTIVATION, "padding": "VALID", "stride_w": 2, "stride_h": 2, "filter_width": 2, "filter_height": 2}
NOT_ALIGNED = {"align_corners": False, "half_pixel_centers": False}

_OPTIONS: Mapping[str, Mapping[str, Any]] = {
    **dict.fromkeys(("ADD", "SUB"), SUM),
    **dict.fromkeys(("DIV", "L2_NORMALIZATION", "MUL"), NO_ACTIVATION),
    "GELU": {"approximate": False},
    "LEAKY_RELU": {"alpha": 0.2},
    "SOFTMAX": {"beta": 1.0},
}


def _with_options(names: Iterable[str]) -> Mapping[str, Mapping[str, Any]]:
    return {name: _OPTIONS.get(name, NO_OPTIONS) for name in sorted(map(str.upper, names))}


_ALONG_ROWS = {"l2_normalization", "log_softmax", "softmax"}

ALONG_ROWS = frozenset(map(str.upper, _ALONG_ROWS))
COMPARISONS = tuple(map(str.upper, operators.having("opposite")))
POSITIVE = ("LOG", "RSQRT", "SQRT")
"""Operators of numbers above zero."""

# Of numbers and numbers; those of one operand but of booleans, and of two but for comparisons.
UNARY = _with_options((operators.elementwise(1) | _ALONG_ROWS | {"zeros_like"}) - {"logical_not"})
BINARY = _with_options(operators.elementwise(2) - operators.having("opposite").keys())
LOGIC = ("LOGICAL_AND", "LOGICAL_OR")
BITS = ("BITWISE_XOR", "RIGHT_SHIFT")
ARITHMETIC = {name: options for name, options in BINARY.items() if name not in (*LOGIC, *BITS)}

OF_BOOLEANS = ("REDUCE_ALL", "REDUCE_ANY")
REDUCTIONS = tuple(name for name in map(str.upper, operators.having("reduction")) if name not in OF_BOOLEANS)
