"""Element and tensor types: one table for the names that four vocabularies have for them.

A row of `ELEMENT_TYPES` ties TensorFlow's `DataType` number, the MLIR element type as TensorFlow's dialects print
it, numpy's dtype and LiteRT's `TensorType` enumerator together. Shapes are plain tuples on the Python side: an
unknown dimension is -1, an unknown rank is `None`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, lru_cache, partial
from typing import TYPE_CHECKING, Self

import numpy as np

from tfconvert.schema.ir.attribute import Attribute, AttributePrinter, Type
from tfconvert.schema.ir.types import (
    BF16,
    F16,
    F32,
    F64,
    I1,
    I8,
    I16,
    I32,
    I64,
    ComplexType,
    FloatType,
    IndexType,
    IntegerType,
    Shape,
    Signedness,
    TensorType,
    UnrankedTensorType,
)

if TYPE_CHECKING:
    from tfconvert.schema.ir.attribute_parser import AttributeParser

__all__ = [
    "BF16",
    "ELEMENT_TYPES",
    "F16",
    "F32",
    "F64",
    "I1",
    "I8",
    "I16",
    "I32",
    "I64",
    "REF_OFFSET",
    "RESOURCE",
    "STRING",
    "TYPES",
    "VARIANT",
    "AnyTensor",
    "ElementType",
    "HandleType",
    "QuantizedType",
    "RefType",
    "ResourceType",
    "Shape",
    "StringType",
    "VariantType",
    "dereferenced",
    "element_of",
    "element_type",
    "from_dtype",
    "from_mlir",
    "from_number",
    "held_by",
    "is_static",
    "list_of",
    "most_specific",
    "numpy_dtype",
    "resource_of",
    "shape_of",
    "tensor",
]

MAX_RANK = 64
"""Maximum number of a constant's dimensions: the limit of numpy. LiteRT's kernels take fewer."""

REF_OFFSET = 100
"""A reference type's `DataType` number is its base type's plus this."""


class StringType(Type):
    """`!tf_type.string`: a variable-length byte string."""

    __slots__ = ()

    NAME = "tf_type.string"


class QuantizedType(Type):
    """`!tf_type.qint8` and similar types: TensorFlow's integers that represent numbers of a range known elsewhere."""

    __slots__ = ("keyword",)

    keyword: str

    @classmethod
    def get(cls, keyword: str) -> QuantizedType:
        """Returns the type of a name, `qint8`."""
        return cls.intern(keyword)

    def print(self, printer: AttributePrinter) -> None:
        printer.write(f"!tf_type.{self.keyword}")


class RefType(Type):
    """A TensorFlow reference type such as `!tf_type.f32ref`, as ref variables yield it."""

    __slots__ = ("base",)

    base: Attribute

    @classmethod
    def get(cls, base: Attribute) -> RefType:
        return cls.intern(base)

    def print(self, printer: AttributePrinter) -> None:
        row = from_mlir(self.base)
        assert row is not None
        printer.write(f"!tf_type.{_ref_name(row)}")


# Names of reference types that are not derived from TensorFlow's own name of the base type.
_REF_NAMES = {"float": "f32", "double": "f64", "float8_e5m2": "float8e5m2", "float8_e4m3fn": "float8e4m3fn"}


def _ref_name(row: ElementType) -> str:
    return f"{_REF_NAMES.get(row.name, row.name)}ref"


class HandleType(Type):
    """A type that may carry the subtypes of a handle."""

    __slots__ = ()

    subtypes: tuple[Attribute, ...]

    @classmethod
    def get(cls, subtypes: Sequence[Attribute] = ()) -> Self:
        return cls.intern(tuple(subtypes))

    @classmethod
    def parse_parameters(cls, parser: AttributeParser) -> Self:
        """Parses the optional `<subtype, ...>`."""
        if parser.parse_optional_punctuation("<") is None:
            return cls.get()
        subtypes = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
        parser.parse_punctuation(">")
        return cls.get(subtypes)

    def print_parameters(self, printer: AttributePrinter) -> None:
        if self.subtypes:
            printer.write("<")
            printer.attributes(self.subtypes)
            printer.write(">")


class ResourceType(HandleType):
    """`!tf_type.resource` or `!tf_type.resource<tensor<...>>`: a handle of a variable, table, ..."""

    __slots__ = ("subtypes",)

    NAME = "tf_type.resource"


class VariantType(HandleType):
    """`!tf_type.variant` or `!tf_type.variant<tensor<...>>`: an opaque value, a tensor list for example."""

    __slots__ = ("subtypes",)

    NAME = "tf_type.variant"


STRING = StringType.intern()
RESOURCE = ResourceType.get()
VARIANT = VariantType.get()


class ElementType:
    """One element type in all vocabularies.

    Args:
        number: TensorFlow's `DataType` number.
        name: TensorFlow's name in attribute values, without `DT_`, lower case.
        mlir: The MLIR element type.
        dtype: numpy's dtype, or the name of ml_dtypes'; `object` for types without a fixed width.
        tflite: LiteRT's `TensorType` enumerator, empty where LiteRT has none.

    Attributes:
        dtype: numpy's dtype, or ml_dtypes'.
        is_foreign: Whether it is one of ml_dtypes', which is loaded when somebody asks for it.
    """

    __slots__ = ("_foreign", "dtype", "is_foreign", "mlir", "name", "number", "tflite")

    dtype: np.dtype[np.generic]

    def __init__(self, number: int, name: str, mlir: Attribute, dtype: type | str, tflite: str = "") -> None:
        self.number = number
        self.name = name
        self.mlir = mlir
        self.tflite = tflite
        self.is_foreign = isinstance(dtype, str)
        self._foreign = dtype
        if not isinstance(dtype, str):
            self.dtype = np.dtype(dtype)

    def __getattr__(self, name: str) -> np.dtype[np.generic]:
        # Called for `dtype` that isn't set yet. Few models need such types, and their module takes a tenth of numpy's
        # time to load.
        if name != "dtype":
            raise AttributeError(name)
        import ml_dtypes

        self.dtype = np.dtype(getattr(ml_dtypes, str(self._foreign)))
        return self.dtype


def _unsigned(width: int) -> IntegerType:
    return IntegerType.get(width, Signedness.UNSIGNED)


ELEMENT_TYPES: tuple[ElementType, ...] = (
    ElementType(1, "float", F32, np.float32, "FLOAT32"),
    ElementType(2, "double", F64, np.float64, "FLOAT64"),
    ElementType(3, "int32", I32, np.int32, "INT32"),
    ElementType(4, "uint8", _unsigned(8), np.uint8, "UINT8"),
    ElementType(5, "int16", I16, np.int16, "INT16"),
    ElementType(6, "int8", I8, np.int8, "INT8"),
    ElementType(7, "string", STRING, object, "STRING"),
    ElementType(8, "complex64", ComplexType.get(F32), np.complex64, "COMPLEX64"),
    ElementType(9, "int64", I64, np.int64, "INT64"),
    ElementType(10, "bool", I1, np.bool_, "BOOL"),
    ElementType(11, "qint8", QuantizedType.get("qint8"), np.int8),
    ElementType(12, "quint8", QuantizedType.get("quint8"), np.uint8),
    ElementType(13, "qint32", QuantizedType.get("qint32"), np.int32),
    ElementType(14, "bfloat16", BF16, "bfloat16", "BFLOAT16"),
    ElementType(15, "qint16", QuantizedType.get("qint16"), np.int16),
    ElementType(16, "quint16", QuantizedType.get("quint16"), np.uint16),
    ElementType(17, "uint16", _unsigned(16), np.uint16, "UINT16"),
    ElementType(18, "complex128", ComplexType.get(F64), np.complex128, "COMPLEX128"),
    ElementType(19, "half", F16, np.float16, "FLOAT16"),
    ElementType(20, "resource", RESOURCE, object, "RESOURCE"),
    ElementType(21, "variant", VARIANT, object, "VARIANT"),
    ElementType(22, "uint32", _unsigned(32), np.uint32, "UINT32"),
    ElementType(23, "uint64", _unsigned(64), np.uint64, "UINT64"),
    ElementType(24, "float8_e5m2", FloatType.get("f8E5M2"), "float8_e5m2", "FLOAT8_E5M2"),
    ElementType(25, "float8_e4m3fn", FloatType.get("f8E4M3FN"), "float8_e4m3fn", "FLOAT8_E4M3FN"),
    ElementType(29, "int4", IntegerType.get(4), "int4", "INT4"),
    ElementType(30, "uint4", _unsigned(4), "uint4", "UINT4"),
    ElementType(31, "int2", IntegerType.get(2), "int2", "INT2"),
)

_BY_NUMBER = {row.number: row for row in ELEMENT_TYPES}
_BY_MLIR = {row.mlir: row for row in ELEMENT_TYPES}
_BY_DTYPE: dict[np.dtype[np.generic], ElementType] = {
    row.dtype: row for row in reversed(ELEMENT_TYPES) if row.name[0] != "q" and not row.is_foreign
}
_BY_DTYPE[np.dtype(object)] = _BY_NUMBER[7]


def from_number(number: int) -> ElementType | None:
    """Returns the row of a non-reference `DataType` number, `None` if the number is unknown."""
    return _BY_NUMBER.get(number)


def from_dtype(dtype: np.dtype[np.generic]) -> ElementType:
    """Returns the row of a numpy dtype; `object` and bytes dtypes are strings."""
    if dtype.kind in "SU":
        return _BY_DTYPE[np.dtype(object)]
    found = _BY_DTYPE.get(dtype)
    if found is None:
        _BY_DTYPE.update({row.dtype: row for row in ELEMENT_TYPES if row.is_foreign})
        return _BY_DTYPE[dtype]
    return found


def from_mlir(element: Attribute) -> ElementType | None:
    """Returns the row of an MLIR element type (handles with any subtype), or `None`."""
    row = _BY_MLIR.get(element)
    if row is None and isinstance(element, ResourceType | VariantType):
        return _BY_NUMBER[20 if isinstance(element, ResourceType) else 21]
    return row


@cache
def element_type(number: int) -> Attribute | None:
    """Returns the MLIR element type of a `DataType` number, reference types included; `None` if unknown."""
    is_reference = number > REF_OFFSET  # There are no references to references.
    row = _BY_NUMBER.get(number - REF_OFFSET if is_reference else number)
    if row is None:
        return None
    return RefType.get(row.mlir) if is_reference else row.mlir


def held_by(handle: Attribute) -> Attribute | None:
    """Returns the subtype of a handle's type, `None` if it is not a handle or has none."""
    element = element_of(handle)
    if isinstance(element, ResourceType | VariantType) and len(element.subtypes) == 1:
        return element.subtypes[0]
    return None


def list_of(held: Attribute) -> AnyTensor:
    """Returns the scalar type of a list of tensors of one type."""
    return tensor(VariantType.get((held,)), ())


def numpy_dtype(element: Attribute) -> np.dtype[np.generic]:
    """Returns numpy's dtype of an MLIR element type.

    Raises:
        KeyError: The element type has no numpy counterpart.
    """
    row = _BY_MLIR.get(element) or from_mlir(element)
    return row.dtype if row is not None else _dtype_without_row(element)


@cache
def _dtype_without_row(element: Attribute) -> np.dtype[np.generic]:
    """Returns the dtype of an element type that only StableHLO has."""
    if isinstance(element, IndexType):
        return np.dtype(np.int64)
    name = ""
    if isinstance(element, FloatType) and element.width <= 8:
        # `f8E4M3FNUZ` is `float8_e4m3fnuz`.
        name = f"float{element.width}_{element.keyword[2:].lower()}"
    elif element is _unsigned(2):
        name = "uint2"
    if not name:
        raise KeyError(element)
    import ml_dtypes

    found: np.dtype[np.generic] = np.dtype(getattr(ml_dtypes, name))
    return found


AnyTensor = TensorType | UnrankedTensorType


def tensor(element: Attribute, shape: Iterable[int] | None) -> AnyTensor:
    """Returns the tensor type of an element type and a shape; `None` is unknown rank."""
    return UnrankedTensorType.get(element) if shape is None else _ranked(element, tuple(shape))


@lru_cache(4096)
def _ranked(element: Attribute, shape: Shape) -> TensorType:
    return TensorType.get(element, tuple([-1 if dim < 0 else int(dim) for dim in shape]))


def resource_of(held: Attribute) -> AnyTensor:
    """Returns the scalar type of a resource that holds a tensor, as a variable's handle has it."""
    return tensor(ResourceType.get((held,)), ())


def shape_of(tensor_type: Attribute) -> Shape | None:
    """Returns a tensor type's dimensions, -1 where unknown; `None` if the rank is unknown or it is not a tensor."""
    return tensor_type.shape if type(tensor_type) is TensorType else None


def element_of(tensor_type: Attribute) -> Attribute:
    """Returns a tensor type's element type; any other type is its own element."""
    if type(tensor_type) is TensorType or type(tensor_type) is UnrankedTensorType:
        return tensor_type.element_type
    return tensor_type


def most_specific(one: Attribute, other: Attribute) -> Attribute:
    """Returns the meet of two types of one value: all that either knows; `one` where they contradict."""
    if one is other or one == other or not isinstance(other, TensorType):
        return one
    if not isinstance(one, TensorType):
        return other
    a, b = one.shape, other.shape
    if len(a) != len(b):
        return one
    merged = tuple(y if x < 0 else x for x, y in zip(a, b, strict=True))
    return one if merged == a else tensor(one.element_type, merged)


def dereferenced(element: Attribute | None) -> Attribute | None:
    """Returns the element type of a reference type; handles without their subtypes."""
    if isinstance(element, RefType):
        element = element.base
    if isinstance(element, ResourceType):
        return RESOURCE
    return VARIANT if isinstance(element, VariantType) else element


def is_static(shape: Shape | None) -> bool:
    """Returns whether every dimension is known."""
    return shape is not None and -1 not in shape


def _constant(type: Attribute, parser: AttributeParser) -> Attribute:
    """Parses the parameters of a type that has none."""
    return type


TYPES: Mapping[str, Callable[[AttributeParser], Attribute]] = {
    "string": partial(_constant, STRING),
    "resource": ResourceType.parse_parameters,
    "variant": VariantType.parse_parameters,
    **{row.name: partial(_constant, row.mlir) for row in ELEMENT_TYPES if isinstance(row.mlir, QuantizedType)},
    **{_ref_name(row): partial(_constant, RefType.get(row.mlir)) for row in ELEMENT_TYPES},
}
"""The types of `tf_type`: the parser of the parameters of each."""


def lowest(element: Attribute) -> float:
    """Returns the number below all others of an element type, infinity if it has that."""
    dtype = numpy_dtype(element)
    return float("-inf") if dtype.kind not in "iub" else 0 if dtype.kind in "ub" else int(np.iinfo(dtype.name).min)


def highest(element: Attribute) -> float:
    """Returns the number above all others of an element type, infinity if it has that."""
    dtype = numpy_dtype(element)
    return float("inf") if dtype.kind not in "iub" else 1 if dtype.kind == "b" else int(np.iinfo(dtype.name).max)


def lowest_finite(element: Attribute) -> float:
    """Returns the lowest finite number of an element type."""
    found = lowest(element)
    return found if found != float("-inf") else _LOWEST_FINITE.get(element, float(np.finfo(np.float32).min))


def highest_finite(element: Attribute) -> float:
    """Returns the highest finite number of an element type."""
    return -lowest_finite(element) if lowest(element) == float("-inf") else highest(element)


# Those of floats that are not `f32`.
_LOWEST_FINITE: Mapping[Attribute, float] = {
    F16: -65504.0,
    BF16: -float.fromhex("0x1.fep127"),
    F64: -sys.float_info.max,
}
