"""Quantization rules of the operators: their weights, and the scales of their results.

One entry per operator. Operands that are not 32-bit floats (shapes, axes, conditions) don't change. All others are
activations, constant or not, unless the entry names them as the weight or the bias. An operator without an entry stays
float, and so does one whose entry lacks the requested element type.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple

from tfconvert.converter.targets.litert.quantize import lstm, operand_needs, variables
from tfconvert.converter.targets.litert.quantize.operand_needs import Need
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
        need: Which numbers of its activations matter, all if it is `None`; also of the operator with floats.
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
    need: Need | None = None

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

_ANY = Rule()
_ANY_I8 = Rule(types=(I8,))
_COMPARED = Rule(below=1.0, need=operand_needs.compared)
_COMPARED_I8 = _COMPARED._replace(types=(I8,))
_MIXED = Rule(Scales.SAME)
_SAME = Rule(Scales.SAME, need=operand_needs.picked)
_SAME_I8 = _SAME._replace(types=(I8,))


def _fixed(operator: str, need: Need | None) -> Rule:
    """Returns the rule of an operator whose kernels fix the scale of its result."""
    rows = {storage: kernels.fixed_result(operator, name) for storage, name in ((I8, "INT8"), (I16, "INT16"))}
    fixed = {storage: row for storage, row in rows.items() if row is not None}
    return Rule(Scales.FIXED, tuple(fixed), fixed=fixed, need=need)


def _filtered(operator: str, *, needs_bias: bool = False, few_bits: bool = False) -> Rule:
    """Returns the rule of an operator with a filter."""
    row = operators.filters()[operator]
    return Rule(weight=row.operand, axis=row.output_axis, bias=row.bias, needs_bias=needs_bias, few_bits=few_bits)


RULES: Mapping[str, Rule] = {
    "tfl.conv_2d": _filtered("conv_2d", needs_bias=True),
    "tfl.depthwise_conv_2d": _filtered("depthwise_conv_2d", needs_bias=True),
    "tfl.fully_connected": _filtered("fully_connected", few_bits=True),
    "tfl.transpose_conv": _filtered("transpose_conv"),
    "tfl.prelu": Rule(weight=1),  # The 16-bit kernel only accepts 8-bit slopes.
    "tfl.batch_matmul": Rule(centered=1),
    "tfl.add": Rule(need=operand_needs.added),
    "tfl.sub": Rule(need=operand_needs.subtracted),
    "tfl.mul": Rule(need=operand_needs.multiplied),
    "tfl.relu": Rule(need=operand_needs.rectified(0.0)),
    "tfl.relu6": Rule(need=operand_needs.rectified(0.0, 6.0)),
    "tfl.relu_n1_to_1": Rule(types=(I8,), need=operand_needs.rectified(-1.0, 1.0)),
    "tfl.relu_0_to_1": Rule(types=(I8,), need=operand_needs.rectified(0.0, 1.0)),
    "tfl.hard_swish": Rule(types=(I8,), need=operand_needs.hard_swish),
    "tfl.exp": Rule(types=(I8,), need=operand_needs.exp),
    "tfl.elu": Rule(types=(I8,), need=operand_needs.elu),
    "tfl.arg_min": Rule(types=(I8,), need=operand_needs.arg_min),
    "tfl.arg_max": Rule(types=(I8,), need=operand_needs.arg_max),
    "tfl.average_pool_2d": _MIXED,
    "tfl.resize_bilinear": _MIXED,
    "tfl.unidirectional_sequence_lstm": Rule(types=(I8,), gates=lstm.GATES, needs_bias=True, others=lstm.OTHERS),
    **dict.fromkeys(
        ("tfl.abs", "tfl.leaky_relu", "tfl.sqrt", "tfl.gelu", "tfl.mean", "tfl.sum", "tfl.reduce_prod"), _ANY
    ),
    **dict.fromkeys(("tfl.squared_difference", "tfl.log", "tfl.rsqrt"), _ANY_I8),
    **dict.fromkeys(("tfl.less", "tfl.less_equal", "tfl.greater", "tfl.greater_equal"), _COMPARED_I8),
    **dict.fromkeys(("tfl.equal", "tfl.not_equal"), _COMPARED),
    **dict.fromkeys(
        (
            "tfl.maximum",
            "tfl.minimum",
            "tfl.reduce_max",
            "tfl.reduce_min",
            "tfl.reshape",
            "tfl.squeeze",
            "tfl.expand_dims",
            "tfl.transpose",
            "tfl.pad",
            "tfl.padv2",
            "tfl.mirror_pad",
            "tfl.slice",
            "tfl.strided_slice",
            "tfl.split",
            "tfl.split_v",
            "tfl.pack",
            "tfl.unpack",
            "tfl.concatenation",
            "tfl.gather",
            "tfl.gather_nd",
            "tfl.tile",
            "tfl.reverse_v2",
            "tfl.broadcast_to",
            "tfl.select",
            "tfl.select_v2",
            "tfl.fill",
            "tfl.dynamic_update_slice",
            "tfl.max_pool_2d",
            "tfl.resize_nearest_neighbor",
            "tfl.space_to_batch_nd",
            "tfl.batch_to_space_nd",
        ),
        _SAME,
    ),
    **dict.fromkeys(("tfl.space_to_depth", "tfl.depth_to_space", "tfl.embedding_lookup"), _SAME_I8),
    "tfl.topk_v2": Rule(Scales.SAME, need=operand_needs.top),
    "tfl.reverse_sequence": Rule(Scales.SAME, (I16,)),
    **dict.fromkeys((variables.READ, variables.ASSIGN), _ANY),
    "tfl.softmax": _fixed("SOFTMAX", operand_needs.softmax),
    "tfl.logistic": _fixed("LOGISTIC", operand_needs.logistic),
    "tfl.tanh": _fixed("TANH", operand_needs.tanh),
    "tfl.log_softmax": _fixed("LOG_SOFTMAX", operand_needs.log_softmax),
    "tfl.l2_normalization": _fixed("L2_NORMALIZATION", None),
}

ANY_SCALE: Mapping[str, Rule] = {"tfl.tanh": Rule(types=(I8,), need=operand_needs.tanh)}
"""The rules on processors, once ranges are known, of operators whose result has a fixed scale for other devices: small
numbers get smaller steps."""
