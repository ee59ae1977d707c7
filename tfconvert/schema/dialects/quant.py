"""The types of MLIR's `quant` dialect: integers that represent real numbers by a scale and a zero point.

`!quant.uniform<i8:f32, 0.5:3>` has one scale (and a zero point, left out if it is 0) for a whole tensor,
`!quant.uniform<i8:f32:1, {0.5, 0.25:3}>` one for each slice of an axis. Scales are written with as many digits as
round-trip a 32-bit number. `i8<-127:127>` are integers within limits, which the file format doesn't have.

If there is a scale for each block of elements, the scales are a tensor, and so are zero points. MLIR
has no such types; ours, `!quant.blockwise<i4:f32, 32, [], dense<0.5> : tensor<8x2xf16>>`, hold them as constants.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Self

import numpy as np

from tfconvert.schema.dialects import tensor_data, types
from tfconvert.schema.dialects.tensor_data import Constant, DenseElementsAttr, TensorData
from tfconvert.schema.ir.attribute import Attribute, AttributePrinter, Type
from tfconvert.schema.ir.dialect import Dialect
from tfconvert.schema.ir.types import FloatType, IntegerType, Signedness

if TYPE_CHECKING:
    from tfconvert.schema.ir.attribute_parser import AttributeParser


class Uniform(NamedTuple):
    """The mapping of stored integers to real numbers: `real = scale * (stored - zero_point)`."""

    storage: IntegerType  # The type of the stored integers.
    scales: tuple[float, ...]  # One scale, or one for each slice of `axis`; values that an `f32` has.
    zero_points: tuple[int, ...]  # As many as scales.
    axis: int | None = None  # The axis that the scales go along, `None` if there is one scale for all.
    limits: tuple[int, int] | None = None  # The minimum and maximum stored integer; `None` for those of the storage.

    @property
    def range(self) -> tuple[int, int]:
        """The minimum and maximum stored integer."""
        return storage_range(self.storage) if self.limits is None else self.limits


class UniformType(Type):
    """`!quant.uniform<...>`: the element type of quantised tensors, expressed in `f32`."""

    __slots__ = ("data",)

    NAME = "quant.uniform"

    data: Uniform

    @classmethod
    def get(cls, data: Uniform) -> UniformType:
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
            limits = _parse_limits(parser, storage)
            parser.parse_punctuation(":")
            if parser.parse_type() is not types.F32:
                parser.raise_error("expected f32, the only supported expressed type")
            axis = parser.parse_integer(False, False) if parser.parse_optional_punctuation(":") else None
            parser.parse_punctuation(",")
            if axis is None:
                pairs = [_parse_pair(parser)]
            else:
                pairs = parser.parse_comma_separated_list(parser.Delimiter.BRACES, lambda: _parse_pair(parser))
        scales, zero_points = tuple(scale for scale, _ in pairs), tuple(zero for _, zero in pairs)
        return cls.get(Uniform(storage, scales, zero_points, axis, limits))

    def print_parameters(self, printer: AttributePrinter) -> None:
        uniform = self.data
        limits = "" if uniform.limits is None else f"<{uniform.limits[0]}:{uniform.limits[1]}>"
        printer.write(f"<{_storage_text(uniform.storage)}{limits}:f32")
        pairs = [
            _scale_text(scale) + (f":{zero}" if zero else "")
            for scale, zero in zip(uniform.scales, uniform.zero_points, strict=True)
        ]
        if uniform.axis is None:
            printer.write(f", {pairs[0]}>")
        else:
            printer.write(f":{uniform.axis}, {{{','.join(pairs)}}}>")


def tensor(uniform: Uniform, shape: types.Shape | None) -> Attribute:
    """Returns the type of a tensor of a mapping's integers; of an unranked one if the shape is `None`."""
    return types.tensor(UniformType.get(uniform), shape)


class Blocks(NamedTuple):
    """The mapping of stored integers to real numbers with a scale for each block."""

    storage: IntegerType  # The type of the stored integers.
    block_size: int  # The number of elements in a block.
    dimensions: tuple[int, ...]  # The shape of blocks, or the dimensions along which there are scales.
    scales: Constant  # The scales.
    zero_points: Constant | None = None  # The zero points, `None` if they are all 0.


class BlockedType(Type):
    """Base of the element types of tensors that are quantised by blocks, expressed in `f32`."""

    __slots__ = ()

    details: ClassVar[str]  # The table of the file format that holds them.
    dimensions_field: ClassVar[str]  # Its field for `Blocks.dimensions`.

    data: Blocks

    @classmethod
    def get(cls, data: Blocks) -> Self:
        return cls.intern(data)

    @property
    def storage(self) -> IntegerType:
        """The type of the stored integers."""
        return self.data.storage

    @classmethod
    def parse_parameters(cls, parser: AttributeParser) -> Self:
        """Parses what is between the angle brackets."""
        with parser.in_angle_brackets():
            storage = _parse_storage(parser)
            parser.parse_punctuation(":")
            if parser.parse_type() is not types.F32:
                parser.raise_error("expected f32, the only supported expressed type")
            parser.parse_punctuation(",")
            size = parser.parse_integer(False, False)
            parser.parse_punctuation(",")
            dimensions = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: parser.parse_integer(False))
            parser.parse_punctuation(",")
            scales = _parse_constant(parser)
            zero_points = _parse_constant(parser) if parser.parse_optional_punctuation(",") else None
        return cls.get(Blocks(storage, size, tuple(dimensions), scales, zero_points))

    def print_parameters(self, printer: AttributePrinter) -> None:
        blocks = self.data
        numbers = ", ".join(map(str, blocks.dimensions))
        printer.write(f"<{_storage_text(blocks.storage)}:f32, {blocks.block_size}, [{numbers}], ")
        printer.attribute(blocks.scales)
        if blocks.zero_points is not None:
            printer.write(", ")
            printer.attribute(blocks.zero_points)
        printer.write(">")


class BlockwiseType(BlockedType):
    """`!quant.blockwise<...>`: blocks of equal size."""

    __slots__ = ("data",)

    NAME = "quant.blockwise"
    details = "BlockwiseQuantization"
    dimensions_field = "block_shape"


class MultiAxisType(BlockedType):
    """`!quant.multi_axis<...>`: a scale for each position along several dimensions."""

    __slots__ = ("data",)

    NAME = "quant.multi_axis"
    details = "MultiAxisQuantization"
    dimensions_field = "quantized_dimensions"


def _parse_constant(parser: AttributeParser) -> Constant:
    constant = parser.parse_attribute()
    if not tensor_data.is_constant(constant):
        parser.raise_error("expected a constant")
    if isinstance(constant, TensorData) and isinstance(constant.type.element_type, IntegerType | FloatType):
        # A text repeats a type wherever it is used, and handles of equal values are not equal.
        return DenseElementsAttr.get(constant.type, constant.array().tobytes())
    return constant


def _storage_text(storage: IntegerType) -> str:
    return f"{'u' if storage.signedness is Signedness.UNSIGNED else 'i'}{storage.width}"


def _parse_storage(parser: AttributeParser) -> IntegerType:
    # `u8` is not a type by itself.
    word = parser.expect(parser.parse_optional_identifier, "expected the type of the stored integers")
    if word[0] not in "iu" or not word[1:].isdecimal() or not 0 < int(word[1:]) <= 64:
        parser.raise_error("expected the type of the stored integers, such as i8 or u8")
    return IntegerType.get(int(word[1:]), Signedness.UNSIGNED if word[0] == "u" else Signedness.SIGNLESS)


def storage_range(storage: IntegerType) -> tuple[int, int]:
    """Returns the minimum and maximum integer of a type."""
    if storage.signedness is Signedness.UNSIGNED:
        return 0, 2**storage.width - 1
    return -(2 ** (storage.width - 1)), 2 ** (storage.width - 1) - 1


def are_limits(storage: IntegerType, low: int, high: int) -> bool:
    """Returns whether stored integers can have limits."""
    minimum, maximum = storage_range(storage)
    return minimum <= low < high <= maximum


def limits_within(storage: IntegerType, low: int, high: int) -> tuple[int, int] | None:
    """Returns the limits of stored integers; `None` for those of the storage."""
    return None if (low, high) == storage_range(storage) else (low, high)


def _parse_limits(parser: AttributeParser, storage: IntegerType) -> tuple[int, int] | None:
    if not parser.parse_optional_punctuation("<"):
        return None
    low = parser.parse_integer(False, True)
    parser.parse_punctuation(":")
    high = parser.parse_integer(False, True)
    parser.parse_punctuation(">")
    if not are_limits(storage, low, high):
        minimum, maximum = storage_range(storage)
        parser.raise_error(f"expected limits within {minimum} and {maximum}, the lower one first")
    return limits_within(storage, low, high)


def _parse_pair(parser: AttributeParser) -> tuple[float, int]:
    scale = float(np.float32(float(parser.parse_number(allow_boolean=False))))
    if not 0 < scale < math.inf:
        parser.raise_error("expected a scale, a positive number")
    zero = parser.parse_integer(False, True) if parser.parse_optional_punctuation(":") else 0
    return scale, zero


def _scale_text(scale: float) -> str:
    """Returns the shortest decimal that is the same `f32`; MLIR requires a point in it."""
    text = str(np.float32(scale))
    mantissa, exponent, power = text.partition("e")
    return f"{mantissa}{'' if '.' in mantissa else '.0'}{exponent}{power}"


def storage_of(element: Attribute) -> Attribute:
    """Returns the storage element type of a quantized type; any other element type is returned as it is."""
    return element.storage if isinstance(element, UniformType | BlockedType) else element


QUANT = Dialect(
    "quant",
    types={
        "uniform": UniformType.parse_parameters,
        "blockwise": BlockwiseType.parse_parameters,
        "multi_axis": MultiAxisType.parse_parameters,
    },
)
