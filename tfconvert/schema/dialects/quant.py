"""The types of MLIR's `quant` dialect: integers that stand for real numbers by a scale and a zero point.

`!quant.uniform<i8:f32, 0.5:3>` has one scale (and a zero point, left out if it is 0) for a whole tensor,
`!quant.uniform<i8:f32:1, {0.5, 0.25:3}>` one for each slice of an axis. Scales are written with as many digits as it
takes to read the same 32-bit number back.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tfconvert.schema.dialects import types
from tfconvert.schema.ir.attribute import Attribute, AttributePrinter, Type
from tfconvert.schema.ir.dialect import Dialect
from tfconvert.schema.ir.types import IntegerType, Signedness

if TYPE_CHECKING:
    from tfconvert.schema.ir.attribute_parser import AttributeParser


class Uniform(NamedTuple):
    """How stored integers stand for real numbers: `real = scale * (stored - zero_point)`.

    Attributes:
        storage: The type of the stored integers.
        scales: One scale, or one for each slice of `axis`; values that an `f32` has.
        zero_points: As many as scales.
        axis: The axis that the scales go along, `None` if there is one scale for all.
    """

    storage: IntegerType
    scales: tuple[float, ...]
    zero_points: tuple[int, ...]
    axis: int | None = None


class UniformType(Type):
    """`!quant.uniform<...>`: the element type of quantised tensors, expressed in `f32`."""

    __slots__ = ("data",)

    NAME = "quant.uniform"

    data: Uniform

    @classmethod
    def get(cls, data: Uniform) -> UniformType:
        """Returns the type of a rule."""
        return cls.intern(data)

    @property
    def storage(self) -> IntegerType:
        """The type of the stored integers."""
        return self.data.storage

    @classmethod
    def parse_parameters(cls, parser: AttributeParser) -> UniformType:
        """Parses what is between the angle brackets."""
        with parser.in_angle_brackets():
            storage = _parse_storage(parser)
            parser.parse_punctuation(":")
            if parser.parse_type() is not types.F32:
                parser.raise_error("expected f32, the only type that is expressed")
            axis = parser.parse_integer(False, False) if parser.parse_optional_punctuation(":") else None
            parser.parse_punctuation(",")
            if axis is None:
                pairs = [_parse_pair(parser)]
            else:
                pairs = parser.parse_comma_separated_list(parser.Delimiter.BRACES, lambda: _parse_pair(parser))
        return cls.get(Uniform(storage, tuple(scale for scale, _ in pairs), tuple(zero for _, zero in pairs), axis))

    def print_parameters(self, printer: AttributePrinter) -> None:
        """Prints what `parse_parameters` takes."""
        uniform = self.data
        unsigned = uniform.storage.signedness is Signedness.UNSIGNED
        printer.write(f"<{'u' if unsigned else 'i'}{uniform.storage.width}:f32")
        pairs = [
            _scale_text(scale) + (f":{zero}" if zero else "")
            for scale, zero in zip(uniform.scales, uniform.zero_points, strict=True)
        ]
        if uniform.axis is None:
            printer.write(f", {pairs[0]}>")
        else:
            printer.write(f":{uniform.axis}, {{{','.join(pairs)}}}>")


def _parse_storage(parser: AttributeParser) -> IntegerType:
    # `u8` is no type by itself.
    word = parser.expect(parser.parse_optional_identifier, "expected the type of the stored integers")
    if word[0] not in "iu" or not word[1:].isdecimal() or not 0 < int(word[1:]) <= 32:
        parser.raise_error("expected the type of the stored integers, such as i8 or u8")
    return IntegerType.get(int(word[1:]), Signedness.UNSIGNED if word[0] == "u" else Signedness.SIGNLESS)


def _parse_pair(parser: AttributeParser) -> tuple[float, int]:
    scale = float(np.float32(float(parser.parse_number(allow_boolean=False))))
    if not 0 < scale < math.inf:
        parser.raise_error("expected a scale, a positive number")
    zero = parser.parse_integer(False, True) if parser.parse_optional_punctuation(":") else 0
    return scale, zero


def _scale_text(scale: float) -> str:
    """Returns the shortest decimal that is the same `f32`; MLIR wants a point in it."""
    text = str(np.float32(scale))
    mantissa, exponent, power = text.partition("e")
    return f"{mantissa}{'' if '.' in mantissa else '.0'}{exponent}{power}"


def storage_of(element: Attribute) -> Attribute:
    """Returns the type in which elements are stored: of quantised ones the integers', else the type itself."""
    return element.storage if isinstance(element, UniformType) else element


QUANT = Dialect("quant", types={"uniform": UniformType.parse_parameters})
