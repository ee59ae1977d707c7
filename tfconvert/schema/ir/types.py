"""The builtin types: numbers, tensors, tuples, functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum

from tfconvert.schema.ir.attribute import Attribute, AttributePrinter, Type, interned, keep

DYNAMIC = -1
"""The size of a dimension that is not known."""

Shape = tuple[int, ...]
"""Dimensions, -1 where unknown."""


class Signedness(Enum):
    """The signedness of an integer type."""

    SIGNLESS = "i"
    SIGNED = "si"
    UNSIGNED = "ui"


class IntegerType(Type):
    """`i32`, `si32`, `ui32`."""

    __slots__ = ("signedness", "width")

    width: int
    signedness: Signedness

    @classmethod
    def get(cls, width: int, signedness: Signedness = Signedness.SIGNLESS) -> IntegerType:
        return cls.intern(width, signedness)

    def print(self, printer: AttributePrinter) -> None:
        printer.write(f"{self.signedness.value}{self.width}")


class IndexType(Type):
    """`index`: an integer of the target's width."""

    __slots__ = ()

    def print(self, printer: AttributePrinter) -> None:
        printer.write("index")


class FloatType(Type):
    """`f32`, `bf16`, `f8E5M2`, ..."""

    __slots__ = ("keyword",)

    keyword: str

    @classmethod
    def get(cls, keyword: str) -> FloatType:
        """Returns the type that a keyword names, one of `FLOAT_WIDTHS`."""
        assert keyword in FLOAT_WIDTHS, keyword
        return cls.intern(keyword)

    @property
    def width(self) -> int:
        """The width in bits."""
        return FLOAT_WIDTHS[self.keyword]

    def print(self, printer: AttributePrinter) -> None:
        printer.write(self.keyword)


FLOAT_WIDTHS = {
    "f16": 16,
    "bf16": 16,
    "f32": 32,
    "f64": 64,
    "tf32": 19,
    "f80": 80,
    "f128": 128,
    "f8E5M2": 8,
    "f8E4M3": 8,
    "f8E4M3FN": 8,
    "f8E5M2FNUZ": 8,
    "f8E4M3FNUZ": 8,
    "f8E4M3B11FNUZ": 8,
    "f8E3M4": 8,
    "f8E8M0FNU": 8,
    "f6E2M3FN": 6,
    "f6E3M2FN": 6,
    "f4E2M1FN": 4,
}
"""The keywords of float types with their widths in bits."""


class ComplexType(Type):
    """`complex<f32>`."""

    __slots__ = ("element_type",)

    element_type: Attribute

    @classmethod
    def get(cls, element_type: Attribute) -> ComplexType:
        return cls.intern(element_type)

    def print(self, printer: AttributePrinter) -> None:
        printer.write("complex<")
        printer.attribute(self.element_type)
        printer.write(">")


class NoneType(Type):
    """`none`: the type of a value that represents no value."""

    __slots__ = ()

    def print(self, printer: AttributePrinter) -> None:
        printer.write("none")


class TensorType(Type):
    """`tensor<2x?xf32>`: a tensor of known rank.

    Attributes:
        element_type: The type of its elements.
        shape: Its dimensions, `DYNAMIC` where unknown.
        encoding: An attribute that a dialect attaches, or `None`.
    """

    __slots__ = ("element_type", "encoding", "shape")

    element_type: Attribute
    shape: Shape
    encoding: Attribute | None

    @classmethod
    def get(cls, element_type: Attribute, shape: Shape, encoding: Attribute | None = None) -> TensorType:
        # Inlined, since shape inference creates a type for every value.
        entry = (TensorType, element_type, shape, encoding)
        found = interned(entry)
        if found is not None:
            return found  # type: ignore[no-any-return]
        instance = object.__new__(TensorType)
        instance.element_type = element_type
        instance.shape = shape
        instance.encoding = encoding
        return keep(entry, instance)

    @property
    def is_static(self) -> bool:
        """Whether every dimension is known."""
        return DYNAMIC not in self.shape

    def print(self, printer: AttributePrinter) -> None:
        printer.write("tensor<")
        printer.write(dimension_list(self.shape))
        printer.attribute(self.element_type)
        if self.encoding is not None:
            printer.write(", ")
            printer.attribute(self.encoding)
        printer.write(">")


class UnrankedTensorType(Type):
    """`tensor<*xf32>`: a tensor of unknown rank."""

    __slots__ = ("element_type",)

    element_type: Attribute

    @classmethod
    def get(cls, element_type: Attribute) -> UnrankedTensorType:
        return cls.intern(element_type)

    def print(self, printer: AttributePrinter) -> None:
        printer.write("tensor<*x")
        printer.attribute(self.element_type)
        printer.write(">")


class VectorType(Type):
    """`vector<4xf32>`."""

    __slots__ = ("element_type", "shape")

    element_type: Attribute
    shape: Shape

    @classmethod
    def get(cls, element_type: Attribute, shape: Shape) -> VectorType:
        return cls.intern(element_type, shape)

    def print(self, printer: AttributePrinter) -> None:
        printer.write(f"vector<{dimension_list(self.shape)}")
        printer.attribute(self.element_type)
        printer.write(">")


class MemRefType(Type):
    """`memref<2x?xf32>`; layouts and memory spaces are not read."""

    __slots__ = ("element_type", "shape")

    element_type: Attribute
    shape: Shape

    @classmethod
    def get(cls, element_type: Attribute, shape: Shape) -> MemRefType:
        return cls.intern(element_type, shape)

    def print(self, printer: AttributePrinter) -> None:
        printer.write(f"memref<{dimension_list(self.shape)}")
        printer.attribute(self.element_type)
        printer.write(">")


class TupleType(Type):
    """`tuple<i32, f32>`."""

    __slots__ = ("types",)

    types: tuple[Attribute, ...]

    @classmethod
    def get(cls, types: Sequence[Attribute]) -> TupleType:
        return cls.intern(tuple(types))

    def print(self, printer: AttributePrinter) -> None:
        printer.write("tuple<")
        printer.attributes(self.types)
        printer.write(">")


class FunctionType(Type):
    """`(i32) -> f32`."""

    __slots__ = ("inputs", "results")

    inputs: tuple[Attribute, ...]
    results: tuple[Attribute, ...]

    @classmethod
    def get(cls, inputs: Sequence[Attribute], results: Sequence[Attribute]) -> FunctionType:
        return cls.intern(tuple(inputs), tuple(results))

    def print(self, printer: AttributePrinter) -> None:
        print_function_type(printer, self.inputs, self.results)


def print_function_type(printer: AttributePrinter, inputs: Sequence[Attribute], results: Sequence[Attribute]) -> None:
    """Prints `(i32) -> f32`; a single result has no parentheses, unless it is a function type itself."""
    printer.write("(")
    printer.attributes(inputs)
    if len(results) == 1 and not isinstance(results[0], FunctionType):
        printer.write(") -> ")
        printer.attribute(results[0])
    else:
        printer.write(") -> (")
        printer.attributes(results)
        printer.write(")")


def dimension_list(shape: Sequence[int]) -> str:
    """Returns `2x?x` for dimensions 2 and unknown: the prefix of an element type."""
    return "".join(["?x" if dim < 0 else f"{dim}x" for dim in shape])


INDEX = IndexType.intern()
NONE = NoneType.intern()
I1 = IntegerType.get(1)
I8 = IntegerType.get(8)
I16 = IntegerType.get(16)
I32 = IntegerType.get(32)
I64 = IntegerType.get(64)
BF16 = FloatType.get("bf16")
F16 = FloatType.get("f16")
F32 = FloatType.get("f32")
F64 = FloatType.get("f64")

PLAIN_TYPES: Mapping[str, Type] = {
    "index": INDEX,
    "none": NONE,
    **{keyword: FloatType.get(keyword) for keyword in FLOAT_WIDTHS},
    **{
        f"{signedness.value}{width}": IntegerType.get(width, signedness)
        for signedness in Signedness
        for width in (1, 2, 4, 8, 16, 32, 64)
    },
}
"""Types that are one word; integers of other widths are not among them."""
