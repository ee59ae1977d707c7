"""Fake quantization: rounding to what integers of few bits can represent, as models are trained with that run on them.

Everything is computed as TensorFlow's kernels do, operation by operation in 32 bits: the last bit of a scale decides
which integer a number halfway between two becomes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from tfconvert.ops.call import Array, scalar, typed
from tfconvert.ops.computed import ComputedTensor
from tfconvert.ops.declaration import Decomposition, OpDeclaration, op
from tfconvert.ops.formula import Tensor
from tfconvert.ops.operands import Operands
from tfconvert.ops.requirements import rank_is_known
from tfconvert.ops.shape_functions import Shapes, all_equal, same
from tfconvert.schema.dialects import tensor_data, tf, types
from tfconvert.schema.dialects.dims import merge_all, merge_dim, with_rank, with_rank_at_least
from tfconvert.schema.dialects.relations.rules import attribute_between, is_scalar
from tfconvert.schema.dialects.relations.view import View
from tfconvert.schema.dialects.types import Shape
from tfconvert.schema.ir.operation import Operation

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


class Scaled(NamedTuple):
    """The numbers that a range of `QuantizeAndDequantize*` has: multiples of a scale.

    Attributes:
        factor: What a number is multiplied with before it is rounded.
        scale: The distance of two numbers.
        least: The least number.
        greatest: The greatest number.
    """

    factor: Any
    scale: Any
    least: Any
    greatest: Any


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
    found = _scaled(ComputedTensor(least), ComputedTensor(greatest), integers)
    return Scaled(*(each.array for each in found))


def _scaled(least: Tensor, greatest: Tensor, integers: tuple[int, int]) -> Scaled:
    low, high = map(float, integers)
    largest = float(np.finfo(least.dtype).max)
    from_greatest = (greatest * high > 0).where(high / greatest, largest)
    scale = greatest / high
    if not low:
        return Scaled(from_greatest, scale, scale * low, greatest)
    from_least = (least * low > 0).where(low / least, largest)
    is_least = from_least < from_greatest
    scale = is_least.where(least / low, scale)
    return Scaled(
        is_least.where(from_least, from_greatest),
        scale,
        is_least.where(least, scale * low),
        is_least.where(scale * high, greatest),
    )


def quantize_and_dequantize(
    x: Tensor, *operands: Tensor, attributes: Mapping[str, Any] = MappingProxyType({})
) -> Tensor:
    """Rounds to multiples of the scale of the range that is given, or that the numbers have.

    The operands are the ends of the range, scalars or vectors, and the number of bits; attributes may have both.
    """
    bits, axis = _bits(attributes, operands), int(attributes.get("axis", -1))
    is_given = bool(attributes.get("range_given", len(operands) > 2))
    if not is_given:
        axes = [at for at in range(x.rank) if at != axis]
        ends = [x.reduce(name, axes, keep_dims=True) for name in ("Min", "Max")]
    elif operands:
        ends = [each if axis < 0 else each.reshape([-1, *[1] * (x.rank - axis - 1)]) for each in operands[:2]]
    else:
        ends = [x.of(typed(attributes.get(f"input_{end}", 0.0), x.dtype)) for end in ("min", "max")]
    is_signed = bool(attributes.get("signed_input", True))
    integers = limits(is_signed, bits, bool(attributes.get("narrow_range")))
    factor, scale, least, greatest = _scaled(ends[0], ends[1], integers)
    product = (x.minimum(greatest).maximum(least) if is_given else x) * factor
    is_up = attributes.get("round_mode") == HALF_UP
    found: Tensor = ((product + 0.5).floor() if is_up else product.round()) * scale
    return found


def _bits(attributes: Mapping[str, Any], operands: Sequence[Tensor]) -> int:
    if len(operands) < 3:
        bits = int(attributes.get("num_bits", 8))
    else:
        constant = operands[2].constant
        assert constant is not None, "required of the op"
        bits = int(scalar(constant))
    if not 1 <= bits <= _MANY:
        raise ValueError(f"num_bits is {bits}")
    return bits


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
    attributes = {"num_bits": bits, "narrow_range": narrow}
    found = _nudged(ComputedTensor(np.asarray(least)), ComputedTensor(np.asarray(greatest)), attributes)
    scale, inverse, zero = found.is_empty.where(0, found.scale), found.inverse, found.zero
    return Steps(scale.array, inverse.array, zero.array, int(found.low), int(found.high))


class _Nudged(NamedTuple):
    """As `Steps`, in a formula, where the scale of a range that is nothing but 0 is not 0."""

    is_empty: Any
    scale: Any
    inverse: Any
    zero: Any
    low: float
    high: float

    @property
    def ends(self) -> tuple[Any, Any]:
        """The least and the greatest number."""
        return (self.low - self.zero) * self.scale, (self.high - self.zero) * self.scale


def _nudged(least: Tensor, greatest: Tensor, attributes: Mapping[str, Any]) -> _Nudged:
    bits = int(attributes.get("num_bits", 8))
    if not 2 <= bits <= MAX_BITS:
        raise ValueError(f"num_bits is {bits}, not 2 to {MAX_BITS}")
    low, high = float(bool(attributes.get("narrow_range"))), 2.0**bits - 1
    is_empty = least.equal(0) & greatest.equal(0)
    span = is_empty.where(1, greatest - least)
    scale = span / (high - low)
    from_least = low - least / scale
    whole = from_least.floor()
    zero = (from_least - whole >= 0.5).where(whole + 1, whole).clip(low, high)
    return _Nudged(is_empty, scale, (high - low) / span, zero, low, high)


def _range_in_attributes(x: Tensor, attributes: Mapping[str, Any]) -> list[Tensor]:
    return [x.of(np.array(attributes.get(name, default), "f4")) for name, default in _DEFAULT_RANGE.items()]


def fake_quant(divides: bool, x: Tensor, *ends: Tensor, attributes: Mapping[str, Any] = MappingProxyType({})) -> Tensor:
    """Rounds to numbers of a range as TensorFlow's kernels do.

    Args:
        divides: Whether the op's kernel divides by the scale; others multiply by its inverse.
        x: The numbers.
        ends: The least and the greatest number of the range, or of the range of each slice; attributes may have them.
        attributes: The op's attributes.
    """
    least, greatest = ends or _range_in_attributes(x, attributes)
    steps = _nudged(least, greatest, attributes)
    bottom, top = steps.ends
    distance = x.minimum(top).maximum(bottom) - bottom
    count = distance / steps.scale if divides else distance * steps.inverse
    first = (-bottom * steps.inverse + 0.5).floor()
    found: Tensor = (count - first + 0.5).floor() * steps.is_empty.where(0, steps.scale)
    return found


def args_gradient(gradient: Tensor, x: Tensor, *, attributes: Mapping[str, Any] = MappingProxyType({})) -> Tensor:
    """Hands gradients on where numbers are inside of the range."""
    least, greatest = _range_in_attributes(x, attributes)
    bottom, top = _nudged(least, greatest, attributes).ends
    is_within: Tensor = (x >= bottom) & (x <= top)
    return is_within.where(gradient, 0)


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
    steps = _nudged(least, greatest, attributes)
    bottom, top = steps.ends
    is_below, is_above = ((x < bottom) & ~steps.is_empty, (x > top) & ~steps.is_empty)
    axes = range(x.rank - least.rank)
    sums = (side.where(gradient, 0).sum(axes) for side in (is_below, is_above))
    return ((is_below | is_above).where(0, gradient), *sums)


def range_fits(op: Operation) -> str | None:
    """Returns why `FakeQuant*` can't be computed with the range that an op has, `None` if it can."""
    bits, shape, ends = tf.get(op, "num_bits", 8), op.operands[0].shape, op.operands[1:3]
    if not 2 <= bits <= MAX_BITS:
        return f"num_bits is {bits}, not 2 to {MAX_BITS}"
    known = [tensor_data.to_array(found) for end in ends if (found := tensor_data.constant_of(end)) is not None]
    if len(known) > 1 and not is_range(*known):
        return "its range is empty or not finite"
    wanted = () if not op.name.endswith("PerChannel") else None if not shape else shape[-1:]
    fits = wanted is not None and all(end.shape is not None and end.shape == wanted for end in ends)
    return None if fits else "there isn't one range for all, or one for each slice of the last dimension"


def is_range(least: Array, greatest: Array) -> bool:
    """Returns whether numbers are the ends of ranges: finite, and the greatest ones greater, or 0 as the least ones."""
    ordered = (least < greatest) | ((least == 0) & (greatest == 0))
    return bool((np.isfinite(least) & np.isfinite(greatest) & ordered).all())


class Settings(NamedTuple):
    """The settings of `QuantizeAndDequantize*`.

    Attributes:
        signed: Whether integers are signed.
        bits: Bits of an integer; 0 if they are computed.
        narrow: Whether the lowest of the signed integers isn't used.
        axis: The axis along which there are ranges, -1 if there is one for all.
        given: Whether the op has the range; else it is that of the values.
    """

    signed: bool
    bits: int
    narrow: bool
    axis: int
    given: bool

    @property
    def integers(self) -> tuple[int, int]:
        """The least and the greatest integer."""
        return limits(self.signed, self.bits, self.narrow)


def settings_of(op: Operation) -> Settings:
    """Returns the settings of an op."""
    bits, is_third = tf.get(op, "num_bits", 8), len(op.operands) > 3
    if is_third:
        constant = tensor_data.constant_of(op.operands[3])
        bits = 0 if constant is None else int(scalar(tensor_data.to_array(constant)))
    signed = bool(tf.get(op, "signed_input", True))
    narrow, axis = signed and bool(tf.get(op, "narrow_range", False)), tf.get(op, "axis", -1)
    return Settings(signed, bits, narrow, axis, bool(tf.get(op, "range_given", is_third)))


def settings_fit(op: Operation) -> str | None:
    """Returns why `QuantizeAndDequantize*` can't be computed with the settings of an op, `None` if it can."""
    settings, shape = settings_of(op), op.operands[0].shape
    if not settings.bits:
        return "the number of bits is not a constant"
    if not 1 + settings.signed <= settings.bits <= MAX_BITS:
        return f"num_bits is {settings.bits}, not {1 + settings.signed} to {MAX_BITS}"
    if settings.axis >= 0 and (shape is None or settings.axis >= len(shape)):
        return "the dimension that has several ranges is not known"
    if not settings.given:
        return None if shape is not None else "the operand's rank is not known"
    known = [constant for end in op.operands[1:3] if (constant := tensor_data.constant_of(end)) is not None]
    if not all(np.isfinite(tensor_data.to_array(end)).all() for end in known):
        return "its range is not finite"
    shapes = [end.shape for end in op.operands[1:3]]
    counts = [math.prod(each) if each is not None and types.is_static(each) else -1 for each in shapes]
    wanted = 1 if settings.axis < 0 else (shape or ())[settings.axis]
    return None if all(count == wanted for count in counts) else "there isn't one range for each slice"


def _gradient_shapes(operands: Operands) -> Shapes:
    return (merge_all(operands.shapes(0, 2)), operands.shape(2), operands.shape(3))


def _range_of(view: View) -> None:
    minimum, maximum = view.attribute("min"), view.attribute("max")
    if isinstance(minimum, int | float) and isinstance(maximum, int | float) and minimum >= maximum:
        view.fail(f"the attribute 'min' must be less than 'max', found {minimum} and {maximum}")


_DEFAULT_RANGE = {"min": -6.0, "max": 6.0}

_BITS = attribute_between("num_bits", 2, MAX_BITS)


_TENSOR, _CHANNELS = (4, 3), (3,)
_BITS_OF_EXAMPLE = np.array(8, np.int32)


def _fake_quant_op(name: str, *, divides: bool = False, ends: Sequence[Shape] = (), **more: Any) -> OpDeclaration:
    formula = Decomposition(partial(fake_quant, divides), "f32", range_fits, example=(_TENSOR, *ends))
    return op(name, decompose=(formula,), verified=name != "FakeQuantWithMinMaxVars", **more)


def _and_back(name: str, *operands: Any, **more: Any) -> OpDeclaration:
    formula = Decomposition(quantize_and_dequantize, "float", settings_fit, example=(_TENSOR, *operands))
    return op(name, shape=same, decompose=(formula,), **more)


OPS = (
    _fake_quant_op("FakeQuantWithMinMaxArgs", shape=same, relations=(_range_of, _BITS)),
    op("FakeQuantWithMinMaxArgsGradient", shape=all_equal, decompose=args_gradient, verified=True),
    _fake_quant_op(
        "FakeQuantWithMinMaxVars", divides=True, ends=((), ()), shape=same, relations=(is_scalar("min", "max"), _BITS)
    ),
    _fake_quant_op(
        "FakeQuantWithMinMaxVarsPerChannel", ends=(_CHANNELS, _CHANNELS), shape=_per_channel_shape, relations=(_BITS,)
    ),
    *(
        op(
            f"FakeQuantWithMinMaxVars{which}Gradient",
            shape=_gradient_shapes,
            decompose=(Decomposition(vars_gradient, requires=rank_is_known, example=(_TENSOR, _TENSOR, ends, ends)),),
        )
        for which, ends in {"": (), "PerChannel": _CHANNELS}.items()
    ),
    _and_back("QuantizeAndDequantize", verified=True),
    _and_back("QuantizeAndDequantizeV2", (), ()),
    _and_back("QuantizeAndDequantizeV3", (), (), _BITS_OF_EXAMPLE),
    _and_back("QuantizeAndDequantizeV4", (), ()),
)
