"""Facts about a call besides its types that decide what the runtime's kernels make of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from tfconvert.schema.tflite import operators
from tfconvert.schema.tflite.versions import ABSENT as ABSENT_OPERAND
from tfconvert.schema.tflite.versions import Call, Operand

# The part of a bias's scale by which it may be off.
_BIAS_TOLERANCE = 1e-3

_FIXED: Mapping[str, Mapping[str, tuple[float, int]]] = {
    "LOGISTIC": {"INT8": (1 / 256, -128), "UINT8": (1 / 256, 0), "INT16": (1 / 32768, 0)},
    "SOFTMAX": {"INT8": (1 / 256, -128), "UINT8": (1 / 256, 0), "INT16": (1 / 32768, 0)},
    "LOG_SOFTMAX": {"INT8": (16 / 256, 127), "UINT8": (16 / 256, 255)},
    "TANH": {"INT8": (1 / 128, 0), "UINT8": (1 / 128, 128), "INT16": (1 / 32768, 0)},
    "L2_NORMALIZATION": {"INT8": (1 / 128, 0), "UINT8": (1 / 128, 128)},
}


def fixed_result(operator: str, type: str) -> tuple[float, int] | None:
    """Returns the scale and zero point that an operator's result should have, `None` if any will do.

    Args:
        operator: Enumerator of `BuiltinOperator`.
        type: Enumerator of `TensorType`.
    """
    return _FIXED.get(operator, {}).get(type)


def _has_same_scales(operator: str, call: Call) -> bool:
    quantized = [operand for operand in (*call.inputs, *call.outputs) if operand.scales]
    return operator not in _FIXED and all(
        operand.scales == quantized[0].scales and operand.zero_points == quantized[0].zero_points
        for operand in quantized
    )


def _has_no_offset(operator: str, call: Call) -> bool:
    return not any(any(operand.zero_points) for operand in (*call.inputs, *call.outputs))


def _has_offset_constant(operator: str, call: Call) -> bool:
    return any(operand.is_constant and any(operand.zero_points) for operand in call.inputs)


def _has_fixed_result(operator: str, call: Call) -> bool:
    result = call.result(0)
    return (result.scales, result.zero_points) == _one_scale(fixed_result(operator, result.type))


def _one_scale(fixed: tuple[float, int] | None) -> tuple[tuple[float, ...], tuple[int, ...]] | None:
    return None if fixed is None else ((fixed[0],), (fixed[1],))


# The names of the operand, of the weights and of the bias of the operators that have these.
_PRODUCT = (("input",), ("filter", "weights"), ("bias",))


def _has_other_bias(operator: str, call: Call) -> bool:
    """Returns whether a bias is not in units of the product of the operand's scale and the weights'."""
    named = _named(operator, call)
    x, weights, bias = (next((named[name] for name in names if name in named), ABSENT_OPERAND) for names in _PRODUCT)
    if not (x.scales and weights.scales and bias.scales):
        return False
    expected = [x.scales[0] * scale for scale in weights.scales]
    if len(expected) != len(bias.scales):
        return True
    off = any(abs(own - wanted) > _BIAS_TOLERANCE * wanted for own, wanted in zip(bias.scales, expected, strict=True))
    return off or any(bias.zero_points)


def _named(operator: str, call: Call) -> Mapping[str, Operand]:
    declared = operators.lookup(operator.lower())
    names = [value.name for value in declared.operands] if declared is not None else []
    return dict(zip(names, call.inputs, strict=False))


def _has_groups(operator: str, call: Call) -> bool:
    shapes = call.operand(0).shape, call.operand(1).shape
    return operator == "CONV_2D" and all(shapes) and shapes[0][-1:] != shapes[1][-1:]  # type: ignore[index]


def _has_powers_of_two(operator: str, call: Call) -> bool:
    scales = [scale for operand in (*call.inputs, *call.outputs) for scale in operand.scales]
    is_asked = operator in ("ADD", "SUB") and bool(call.options.get("pot_scale_int16", True))
    return is_asked and all(math.frexp(scale)[0] == 0.5 for scale in scales)


def _is_asymmetric(operator: str, call: Call) -> bool:
    return bool(call.options.get("asymmetric_quantize_inputs"))


def _is_adjoint(operator: str, call: Call) -> bool:
    return bool(call.options.get("adj_y"))


def _says_type_of_sums(operator: str, call: Call) -> bool:
    return call.options.get("quantized_bias_type") in ("INT32", "INT64")


CONDITIONS: Mapping[str, Callable[[str, Call], bool]] = {
    "same": _has_same_scales,
    "centred": _has_no_offset,
    "fixed": _has_fixed_result,
    "offset": _has_offset_constant,
    "other-bias": _has_other_bias,
    "grouped": _has_groups,
    "asymmetric": _is_asymmetric,
    "adjoint": _is_adjoint,
    "powers": _has_powers_of_two,
    "sums": _says_type_of_sums,
}
"""Facts about a call besides its types.

`same`: all scales and zero points are equal; `centred`: all zero points are 0; `fixed`: the result has the scale and
the zero point of `fixed_result`; `offset`: a constant has a zero point; `other-bias`: the bias's scale is not the
product of the other two; `grouped`: a convolution in groups; `asymmetric`: the kernel may quantize its float operand
with a zero point; `adjoint`: the second matrix is taken transposed; `powers`: all scales are
powers of two, and the option does not exclude that the kernel makes use of it; `sums`: an option says
of which type the bias and the sums of products are.
"""


def is_plain(call: Call) -> bool:
    """Returns whether a call's numbers are stored as they are: no integers represent real numbers."""
    return not any(operand.scales or operand.block_size for operand in (*call.inputs, *call.outputs))


PARAMETERS = frozenset(
    (
        "axes",
        "axis",
        "block_shape",
        "begin",
        "depth",
        "dim",
        "dims",
        "end",
        "k",
        "multiples",
        "output_shape",
        "pad",
        "padding",
        "paddings",
        "perm",
        "reduction_indices",
        "shape",
        "size",
        "size_splits",
        "split_dim",
        "strides",
    )
)
"""The names of operands that say what to do with the others."""


def rank_of(operator: str, call: Call) -> int | None:
    """Returns the greatest rank among a call's operands and results, `None` if one is unknown.

    Parameters don't count.
    """
    highest = 0
    for value in (*_data(operator, call), *call.outputs):
        if value.shape is None and value.type:
            return None
        highest = max(highest, len(value.shape or ()))
    return highest


def _data(operator: str, call: Call) -> Sequence[Operand]:
    """Returns the operands that aren't parameters."""
    declared = operators.lookup(operator.lower())
    names = () if declared is None else [value.name for value in declared.operands]
    at = {index for index, name in enumerate(names) if name in PARAMETERS}
    return [operand for index, operand in enumerate(call.inputs) if index not in at]


def _computes_parameters(operator: str, call: Call) -> bool:
    """Returns whether a shape or an axis is not known before the model runs."""
    return any(name in PARAMETERS and not operand.is_constant for name, operand in _named(operator, call).items())


def _broadcasts(operator: str, call: Call) -> bool:
    """Returns whether operands have different shapes."""
    named = _named(operator, call)
    shapes = [named[name].shape for name in ("condition", "lhs", "rhs", "x", "y") if name in named]
    return len(shapes) > 1 and any(shape != shapes[0] for shape in shapes)


def _is_empty(operator: str, call: Call) -> bool:
    return any(0 in (result.shape or ()) for result in call.outputs)


def _is_hollow(operator: str, call: Call) -> bool:
    """Returns whether the result has elements, though an operand has none."""
    return not _is_empty(operator, call) and any(
        0 in (operand.shape or ()) and name not in PARAMETERS for name, operand in _named(operator, call).items()
    )


PLAIN_CONDITIONS: Mapping[str, Callable[[str, Call], bool]] = {
    "computed": _computes_parameters,
    "broadcast": _broadcasts,
    "empty": _is_empty,
    "hollow": _is_hollow,
    "special": lambda operator, call: False,
}
"""Facts about a call on plain numbers besides its types and ranks.

`computed`: a parameter such as a shape or an axis is not a constant; `broadcast`: operands have different shapes;
`empty`: a result has no elements; `hollow`: an operand has none, but the result has some; `special`: there are infinite
numbers among the operands, or such that are none, which no call tells.
"""
