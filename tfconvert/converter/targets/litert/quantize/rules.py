"""Quantization rules of the operators: their weights, and the scales of their results.

One entry per operator. Operands that are not 32-bit floats (shapes, axes, conditions) don't change. All others are
activations, constant or not, unless the entry names them as the weight or the bias. An operator without an entry stays
float, and so does one whose entry lacks the requested element type.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import NamedTuple

from tfconvert.converter.targets.litert.quantize import lstm
from tfconvert.schema.dialects import tfl
from tfconvert.schema.dialects.quant import Uniform
from tfconvert.schema.ir.types import I8, I16, IntegerType
from tfconvert.schema.tflite import kernels, operators


class Scales(Enum):
    """How an operator's scales are related."""

    OWN = "own"
    """Each operand and result has its own."""
    SAME = "same"
    """They are the same for its operands and results: it moves numbers, or compares them."""
    FIXED = "fixed"
    """Those of the results are fixed by the kernel."""


class Rule(NamedTuple):
    """How an operator is quantized.

    Attributes:
        scales: How its scales are related.
        types: The types of activations that its kernel computes correctly.
        weight: Index of the operand that must be a constant of symmetric 8-bit integers, or `None`.
        axis: The axis of the weight along which there is a scale for each channel.
        bias: Index of the bias, a constant of wide integers.
        fixed: Of `FIXED` results: the scale and the zero point, by type.
        needs_bias: Whether the integer kernel requires a bias.
        few_bits: Whether it is as fast with 4-bit weights.
        below: An exclusive upper bound for the scales of its operands.
        gates: Instead of `weight` and `bias`: those of each gate of an LSTM; any may be absent.
        centered: Index of the activation that XNNPACK takes only with the zero point 0, or `None`.
        others: Other operands of an LSTM, which `lstm` quantizes.
    """

    scales: Scales = Scales.OWN
    types: tuple[IntegerType, ...] = (I8, I16)
    weight: int | None = None
    axis: int | None = None
    bias: int | None = None
    fixed: Mapping[IntegerType, tuple[float, int]] = {}
    needs_bias: bool = False
    few_bits: bool = False
    below: float = math.inf
    gates: tuple[tuple[int, int | None], ...] = ()
    others: tuple[int, ...] = ()
    centered: int | None = None

    @property
    def weights(self) -> tuple[tuple[int, int | None], ...]:
        """The index of each weight, with that of its bias."""
        return self.gates if self.weight is None else ((self.weight, self.bias),)

    @property
    def is_product(self) -> bool:
        """Whether it adds up products with a weight; these profit most from integers."""
        return self.axis is not None or bool(self.gates)

    def fixed_type(self, storage: IntegerType) -> Uniform | None:
        """Returns the required mapping of its results, or `None`."""
        row = self.fixed.get(storage)
        return None if row is None else Uniform(storage, (row[0],), (row[1],))


SIZES_ONLY = frozenset(("tfl.shape", "tfl.rank"))
"""Operators that read shapes only: they take operands of any type."""

# The operators whose operands and results have scales of their own.
_ANY = "abs add assign_variable gelu leaky_relu mean mul read_variable reduce_prod relu relu6 sqrt sub sum"
_ANY_I8 = "arg_max arg_min elu exp hard_swish log relu_0_to_1 relu_n1_to_1 rsqrt squared_difference"
_COMPARED = Rule(types=(I8,), below=1.0)
_SAME = Rule(Scales.SAME)


def _fixed(operator: str) -> Rule:
    """Returns the rule of an operator whose kernels fix the scale of its result."""
    rows = {storage: kernels.fixed_result(operator, name) for storage, name in ((I8, "INT8"), (I16, "INT16"))}
    fixed = {storage: row for storage, row in rows.items() if row is not None}
    return Rule(Scales.FIXED, tuple(fixed), fixed=fixed)


def _filtered(operator: str, *, needs_bias: bool = False, few_bits: bool = False) -> Rule:
    """Returns the rule of an operator with a filter."""
    row = operators.filters()[operator]
    return Rule(weight=row.operand, axis=row.output_axis, bias=row.bias, needs_bias=needs_bias, few_bits=few_bits)


def _alike(rule: Rule, names: Iterable[str]) -> Mapping[str, Rule]:
    """Returns the entries of operators that have the same rule."""
    return {tfl.PREFIX + name: rule for name in names}


RULES: Mapping[str, Rule] = {
    "tfl.conv_2d": _filtered("conv_2d", needs_bias=True),
    "tfl.depthwise_conv_2d": _filtered("depthwise_conv_2d", needs_bias=True),
    "tfl.fully_connected": _filtered("fully_connected", few_bits=True),
    "tfl.transpose_conv": _filtered("transpose_conv"),
    "tfl.prelu": Rule(weight=1),  # The 16-bit kernel only accepts 8-bit slopes.
    "tfl.batch_matmul": Rule(centered=1),
    "tfl.unidirectional_sequence_lstm": Rule(types=(I8,), gates=lstm.GATES, needs_bias=True, others=lstm.OTHERS),
    **_alike(Rule(), _ANY.split()),
    **_alike(Rule(types=(I8,)), _ANY_I8.split()),
    **_alike(_COMPARED, operators.having("swapped")),
    **_alike(_COMPARED._replace(types=(I16, I8)), ("equal", "not_equal")),
    **_alike(_SAME, (*operators.having("moves"), *operators.having("picks"))),
    **_alike(_SAME, ("average_pool_2d", "resize_bilinear", "topk_v2")),
    **_alike(_SAME._replace(types=(I8,)), ("space_to_depth", "depth_to_space", "embedding_lookup")),
    **_alike(_SAME._replace(types=(I16,)), ("reverse_sequence",)),
    "tfl.softmax": _fixed("SOFTMAX"),
    "tfl.logistic": _fixed("LOGISTIC"),
    "tfl.tanh": _fixed("TANH"),
    "tfl.log_softmax": _fixed("LOG_SOFTMAX"),
    "tfl.l2_normalization": _fixed("L2_NORMALIZATION"),
}

ANY_SCALE: Mapping[str, Rule] = {"tfl.tanh": Rule(types=(I8,))}
"""The rules on processors, once ranges are known, of operators whose result has a fixed scale for other devices: small
numbers get smaller steps."""
