"""Fake quantization: rounding to what integers of few bits can represent, as models are trained with that run on them.

Scales are computed as TensorFlow's kernels do, operation by operation in 32 bits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from tfconvert.ops.call import Array, Call, Results, scalar, typed
from tfconvert.ops.declaration import Decomposition, op, ops_like
from tfconvert.ops.formula import Tensor
from tfconvert.ops.operands import Operands
from tfconvert.ops.requirements import rank_is_known
from tfconvert.ops.shape_functions import Shapes, all_equal, same
from tfconvert.schema.dialects.dims import merge_all, merge_dim, with_rank, with_rank_at_least
from tfconvert.schema.dialects.relations.rules import attribute_between, is_scalar
from tfconvert.schema.dialects.relations.view import View

MAX_BITS = 16
"""The most bits that `FakeQuant*` can have; 2 is the least."""
HALF_UP = "HALF_UP"
"""The rounding mode other than that to even numbers."""
# The most bits whose integers can be computed.
_MANY = 62


def _per_channel_shape(operands: Operands) -> Shapes:
    """The ranges are vectors, as long as the last dimension."""
    shape = with_rank_at_least(operands.shape(0), 1)
    channels = merge_all([with_rank(limit, 1, "a range") for limit in operands.shapes(1)])
    if shape is None or channels is None:
        return (shape,)
    return ((*shape[:-1], merge_dim(shape[-1], channels[0])),)


def _fake_quant(call: Call) -> Results:
    if call.op == "FakeQuantWithMinMaxArgs":
        least, greatest = (typed(call.number(*each), np.dtype("f4")) for each in _DEFAULT_RANGE.items())
    else:
        least, greatest = call.inputs[1:3]
    bits = call.integer("num_bits", 8)
    if not 2 <= bits <= MAX_BITS:
        raise call.bad(f"num_bits is {bits}, not 2 to {MAX_BITS}")
    steps = nudged(least, greatest, bits, call.flag("narrow_range"))
    bottom = (np.float32(steps.low) - steps.zero_point) * steps.scale
    top = (np.float32(steps.high) - steps.zero_point) * steps.scale
    clamped = np.maximum(np.minimum(call.inputs[0], top), bottom)
    zero = np.floor(-bottom * steps.inverse + np.float32(0.5))
    rounded = np.floor((clamped - bottom) * steps.inverse - zero + np.float32(0.5)) * steps.scale
    return (np.where(steps.scale == 0, np.float32(0), rounded),)


class Scaled(NamedTuple):
    """The numbers that a range of `QuantizeAndDequantize*` has: multiples of a scale.

    Attributes:
        factor: What a number is multiplied with before it is rounded.
        scale: The distance of two numbers.
        least: The least number.
        greatest: The greatest number.
    """

    factor: Array
    scale: Array
    least: Array
    greatest: Array


def limits(signed: bool, bits: int, narrow: bool) -> tuple[int, int]:
    """Returns the least and the greatest integer of `QuantizeAndDequantize*`."""
    return (-(2 ** (bits - 1)) + narrow, 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)


def scaled(least: Array, greatest: Array, integers: tuple[int, int]) -> Scaled:
    """Returns the scale of `QuantizeAndDequantize*`: the range is widened on one side so that 0 stays exact.

    Args:
        least: The least real numbers.
        greatest: The greatest real numbers.
        integers: The least and the greatest integer.
    """
    low, high = (least.dtype.type(integer) for integer in integers)
    largest = np.finfo(least.dtype).max
    from_least = np.where(low * least > 0, low / least, largest)
    from_greatest = np.where(high * greatest > 0, high / greatest, largest)
    is_least = from_least < from_greatest
    scale = np.where(is_least, least / low, greatest / high)
    return Scaled(
        np.where(is_least, from_least, from_greatest),
        scale,
        np.where(is_least, least, low * scale),
        np.where(is_least, high * scale, greatest),
    )


def _quantize_and_dequantize(call: Call) -> Results:
    x, given = call.inputs[0], call.flag("range_given", call.op == "QuantizeAndDequantizeV3")
    axis = call.integer("axis", -1)
    bits = scalar(call.inputs[3]) if call.op == "QuantizeAndDequantizeV3" else call.integer("num_bits", 8)
    if not 1 <= bits <= _MANY:
        raise call.bad(f"num_bits is {bits}")
    aligned = (1,) * x.ndim if axis < 0 else tuple(-1 if at == axis else 1 for at in range(x.ndim))
    if not given:
        axes = tuple(at for at in range(x.ndim) if at != axis)
        least, greatest = x.min(axes), x.max(axes)
    elif call.op == "QuantizeAndDequantize":
        least, greatest = (typed(call.number(f"input_{end}"), x.dtype) for end in ("min", "max"))
    else:
        least, greatest = call.inputs[1:3]
    integers = limits(call.flag("signed_input", True), bits, call.flag("narrow_range"))
    factor, scale, bottom, top = (each.reshape(aligned) for each in scaled(least, greatest, integers))
    clamped = np.maximum(np.minimum(x, top), bottom) if given else x
    is_up = call.text("round_mode", "HALF_TO_EVEN") == HALF_UP
    multiplied = clamped * factor
    rounded = np.floor(multiplied + x.dtype.type(0.5)) if is_up else np.rint(multiplied)
    return (typed(rounded * scale, x.dtype),)


class Steps(NamedTuple):
    """The numbers that a range of `FakeQuant*` has: `scale * (integer - zero_point)`.

    Attributes:
        scale: The distance of two numbers; 0 where the range is nothing but 0.
        inverse: Its inverse.
        zero_point: The integer that represents 0, counted from 0.
        low: The least integer.
        high: The greatest integer.
    """

    scale: Array
    inverse: Array
    zero_point: Array
    low: int
    high: int


def nudged(least: Array, greatest: Array, bits: int, narrow: bool) -> Steps:
    """Returns the steps of `FakeQuant*`: ranges are shifted so that 0 is one of the numbers.

    Args:
        least: The least real numbers.
        greatest: The greatest real numbers.
        bits: Bits of an integer.
        narrow: Whether the lowest integer isn't used.
    """
    low, high = int(narrow), 2**bits - 1
    span = np.float32(high) - np.float32(low)
    scale: Array = (greatest - least) / span
    inverse: Array = span / (greatest - least)
    from_least = np.float32(low) - least / scale
    zero_point = np.clip(np.floor(from_least.astype(np.float64) + 0.5), low, high)
    empty = (least == 0) & (greatest == 0)
    scale, inverse = np.where(empty, np.float32(0), scale), np.where(empty, np.float32(1), inverse)
    return Steps(scale, inverse, np.where(empty, low, zero_point).astype(np.float32), low, high)


def _representable(least: Tensor, greatest: Tensor, attributes: Mapping[str, Any]) -> tuple[Tensor, Tensor]:
    """Returns the least and the greatest number of ranges that may be computed, as `nudged` shifts them."""
    low, high = float(bool(attributes.get("narrow_range"))), 2.0 ** int(attributes.get("num_bits", 8)) - 1
    scale = (greatest - least) / (high - low)
    from_least = low - least / scale
    whole = from_least.floor()
    zero_point = (from_least - whole >= 0.5).where(whole + 1, whole).clip(low, high)
    return (low - zero_point) * scale, (high - zero_point) * scale


def args_gradient(gradient: Tensor, x: Tensor, *, attributes: Mapping[str, Any] = MappingProxyType({})) -> Tensor:
    """Hands gradients on where numbers are inside of the range."""
    least, greatest = (x.of(np.array(attributes.get(name, default), "f4")) for name, default in _DEFAULT_RANGE.items())
    bottom, top = _representable(least, greatest, attributes)
    return ((x >= bottom) & (x <= top)).where(gradient, 0)


def vars_gradient(
    gradient: Tensor,
    x: Tensor,
    least: Tensor,
    greatest: Tensor,
    *,
    attributes: Mapping[str, Any] = MappingProxyType({}),
) -> Sequence[Tensor]:
    """Hands gradients on where numbers are inside of the range, and sums those of both sides for its ends.

    A range is a scalar or has the size of the last axis. One that is nothing but 0 leaves numbers as they are.
    """
    is_empty = least.equal(0) & greatest.equal(0)
    bottom, top = _representable(least, is_empty.where(1, greatest), attributes)
    is_below, is_above = ((x < bottom) & ~is_empty, (x > top) & ~is_empty)
    axes = range(x.rank - least.rank)
    sums = (side.where(gradient, 0).sum(axes) for side in (is_below, is_above))
    return ((is_below | is_above).where(0, gradient), *sums)


def _gradient_shapes(operands: Operands) -> Shapes:
    return (merge_all(operands.shapes(0, 2)), operands.shape(2), operands.shape(3))


def _range_of(view: View) -> None:
    minimum, maximum = view.attribute("min"), view.attribute("max")
    if isinstance(minimum, int | float) and isinstance(maximum, int | float) and minimum >= maximum:
        view.fail(f"the attribute 'min' must be less than 'max', found {minimum} and {maximum}")


_DEFAULT_RANGE = {"min": -6.0, "max": 6.0}

_BITS = attribute_between("num_bits", 2, MAX_BITS)


OPS = (
    op("FakeQuantWithMinMaxArgs", shape=same, compute=_fake_quant, relations=(_range_of, _BITS), verified=True),
    op("FakeQuantWithMinMaxArgsGradient", shape=all_equal, decompose=args_gradient, verified=True),
    op("FakeQuantWithMinMaxVars", shape=same, compute=_fake_quant, relations=(is_scalar("min", "max"), _BITS)),
    op(
        "FakeQuantWithMinMaxVarsPerChannel",
        shape=_per_channel_shape,
        compute=_fake_quant,
        relations=(_BITS,),
        verified=True,
    ),
    *(
        op(
            f"FakeQuantWithMinMaxVars{which}Gradient",
            shape=_gradient_shapes,
            decompose=(Decomposition(vars_gradient, requires=rank_is_known, example=((4, 3), (4, 3), ends, ends)),),
        )
        for which, ends in {"": (), "PerChannel": (3,)}.items()
    ),
    op("QuantizeAndDequantize", shape=same, compute=_quantize_and_dequantize, verified=True),
    *ops_like(
        "QuantizeAndDequantizeV2 QuantizeAndDequantizeV3 QuantizeAndDequantizeV4",
        shape=same,
        compute=_quantize_and_dequantize,
    ),
)
