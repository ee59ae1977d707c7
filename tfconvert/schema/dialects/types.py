"""Element and tensor types: one table for what four vocabularies call the same thing.

A row of `ELEMENT_TYPES` ties TensorFlow's `DataType` number, the MLIR element type as TensorFlow's dialects print
it, numpy's dtype and LiteRT's `TensorType` enumerator together. Shapes are plain tuples on the Python side: an
unknown dimension is -1, an unknown rank is `None`; xDSL's own marker for unknown dimensions stays in this file.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import ml_dtypes
import numpy as np
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    BFloat16Type,
    ComplexType,
    Float8E4M3FNType,
    Float8E5M2Type,
    Float16Type,
    Float32Type,
    Float64Type,
    IntegerType,
    Signedness,
    TensorType,
    UnrankedTensorType,
)
from xdsl.ir import Attribute, BuiltinAttribute, ParametrizedAttribute, SSAValue, TypeAttribute
from xdsl.irdl import irdl_attr_definition

if TYPE_CHECKING:
    from xdsl.parser import AttrParser
    from xdsl.printer import Printer

Shape = tuple[int, ...]
"""Dimensions, -1 where unknown."""

REF_OFFSET = 100
"""A reference type's `DataType` number is its base type's plus this."""


class _NamedType(ParametrizedAttribute, TypeAttribute):
    """A `tf_type` type without parameters."""


@irdl_attr_definition
class StringType(_NamedType):
    """`!tf_type.string`: a variable-length byte string."""

    name = "tf_type.string"


@irdl_attr_definition
class QInt8Type(_NamedType):
    """`!tf_type.qint8`."""

    name = "tf_type.qint8"


@irdl_attr_definition
class QUInt8Type(_NamedType):
    """`!tf_type.quint8`."""

    name = "tf_type.quint8"


@irdl_attr_definition
class QInt16Type(_NamedType):
    """`!tf_type.qint16`."""

    name = "tf_type.qint16"


@irdl_attr_definition
class QUInt16Type(_NamedType):
    """`!tf_type.quint16`."""

    name = "tf_type.quint16"


@irdl_attr_definition
class QInt32Type(_NamedType):
    """`!tf_type.qint32`."""

    name = "tf_type.qint32"


@irdl_attr_definition
class RefType(ParametrizedAttribute, TypeAttribute, BuiltinAttribute):
    """A TensorFlow reference type such as `!tf_type.f32ref`, as ref variables yield it."""

    name = "tf_type.ref"
    base: Attribute

    def print_builtin(self, printer: Printer) -> None:
        """Prints the name of the type, which has the base type's in it."""
        row = from_mlir(self.base)
        assert row is not None
        printer.print_string(f"!tf_type.{_REF_NAMES.get(row.name, row.name)}ref")


_REF_NAMES = {"float": "f32", "double": "f64", "float8_e5m2": "float8e5m2", "float8_e4m3fn": "float8e4m3fn"}
"""What a reference type is called after, where it is not TensorFlow's own name of its base type."""


@cache
def ref_syntax(name: str) -> type[RefType] | None:
    """Returns what xDSL's parser needs to read a reference type.

    Args:
        name: The name as in the text (`tf_type.f32ref`).

    Returns:
        A class that parses nothing more and makes a plain `RefType`; `None` if there is no such type.
    """
    for row in ELEMENT_TYPES:
        if name == f"tf_type.{_REF_NAMES.get(row.name, row.name)}ref":
            return type(name, (_RefSyntax,), {"parsed": RefType(row.mlir)})
    return None


class _RefSyntax(ParametrizedAttribute, TypeAttribute):
    parsed: ClassVar[RefType]

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        return []

    @classmethod
    def new(cls, params: Sequence[Attribute]) -> Any:
        return cls.parsed


class _HandleType(ParametrizedAttribute, TypeAttribute):
    """A type that may carry the tensor types behind a handle."""

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        """Parses the optional `<subtype, ...>`."""
        if parser.parse_optional_punctuation("<") is None:
            return [_NO_SUBTYPES]
        subtypes = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
        parser.parse_punctuation(">")
        return [ArrayAttr(subtypes)]

    def print_parameters(self, printer: Printer) -> None:
        """Prints the subtypes if there are any."""
        (subtypes,) = self.parameters
        if isinstance(subtypes, ArrayAttr) and subtypes.data:
            with printer.in_angle_brackets():
                printer.print_list(subtypes.data, printer.print_attribute)


_NO_SUBTYPES: ArrayAttr[Attribute] = ArrayAttr([])


@irdl_attr_definition
class ResourceType(_HandleType):
    """`!tf_type.resource` or `!tf_type.resource<tensor<...>>`: a handle of a variable, table, ..."""

    name = "tf_type.resource"
    subtypes: ArrayAttr[Attribute]


@irdl_attr_definition
class VariantType(_HandleType):
    """`!tf_type.variant` or `!tf_type.variant<tensor<...>>`: an opaque value, a tensor list for example."""

    name = "tf_type.variant"
    subtypes: ArrayAttr[Attribute]


NAMED_TYPES: tuple[type[TypeAttribute], ...] = (
    StringType, QInt8Type, QUInt8Type, QInt16Type, QUInt16Type, QInt32Type, ResourceType, VariantType,
)  # fmt: skip
"""The types of `tf_type`, but for the reference types (`ref_syntax`)."""

STRING = StringType()
RESOURCE = ResourceType(_NO_SUBTYPES)
VARIANT = VariantType(_NO_SUBTYPES)
F32 = Float32Type()
I1 = IntegerType(1)
I8 = IntegerType(8)
I32 = IntegerType(32)
I64 = IntegerType(64)


class ElementType(NamedTuple):
    """One element type in all vocabularies.

    Attributes:
        number: TensorFlow's `DataType` number.
        name: TensorFlow's name in attribute values, without `DT_`, lower case.
        mlir: The MLIR element type.
        dtype: numpy's (or ml_dtypes') dtype; `object` for what has no fixed width.
        tflite: LiteRT's `TensorType` enumerator, empty where LiteRT has none.
    """

    number: int
    name: str
    mlir: Attribute
    dtype: np.dtype[np.generic]
    tflite: str


def _row(number: int, name: str, mlir: Attribute, dtype: object, tflite: str = "") -> ElementType:
    return ElementType(number, name, mlir, np.dtype(dtype), tflite)  # type: ignore[call-overload]


def _unsigned(width: int) -> IntegerType:
    return IntegerType(width, Signedness.UNSIGNED)


ELEMENT_TYPES: tuple[ElementType, ...] = (
    _row(1, "float", F32, np.float32, "FLOAT32"),
    _row(2, "double", Float64Type(), np.float64, "FLOAT64"),
    _row(3, "int32", I32, np.int32, "INT32"),
    _row(4, "uint8", _unsigned(8), np.uint8, "UINT8"),
    _row(5, "int16", IntegerType(16), np.int16, "INT16"),
    _row(6, "int8", I8, np.int8, "INT8"),
    _row(7, "string", STRING, object, "STRING"),
    _row(8, "complex64", ComplexType(F32), np.complex64, "COMPLEX64"),
    _row(9, "int64", I64, np.int64, "INT64"),
    _row(10, "bool", I1, np.bool_, "BOOL"),
    _row(11, "qint8", QInt8Type(), np.int8),
    _row(12, "quint8", QUInt8Type(), np.uint8),
    _row(13, "qint32", QInt32Type(), np.int32),
    _row(14, "bfloat16", BFloat16Type(), ml_dtypes.bfloat16, "BFLOAT16"),
    _row(15, "qint16", QInt16Type(), np.int16),
    _row(16, "quint16", QUInt16Type(), np.uint16),
    _row(17, "uint16", _unsigned(16), np.uint16, "UINT16"),
    _row(18, "complex128", ComplexType(Float64Type()), np.complex128, "COMPLEX128"),
    _row(19, "half", Float16Type(), np.float16, "FLOAT16"),
    _row(20, "resource", RESOURCE, object, "RESOURCE"),
    _row(21, "variant", VARIANT, object, "VARIANT"),
    _row(22, "uint32", _unsigned(32), np.uint32, "UINT32"),
    _row(23, "uint64", _unsigned(64), np.uint64, "UINT64"),
    _row(24, "float8_e5m2", Float8E5M2Type(), ml_dtypes.float8_e5m2, "FLOAT8_E5M2"),
    _row(25, "float8_e4m3fn", Float8E4M3FNType(), ml_dtypes.float8_e4m3fn, "FLOAT8_E4M3FN"),
    _row(29, "int4", IntegerType(4), ml_dtypes.int4, "INT4"),
    _row(30, "uint4", _unsigned(4), ml_dtypes.uint4, "UINT4"),
    _row(31, "int2", IntegerType(2), ml_dtypes.int2, "INT2"),
)

_BY_NUMBER = {row.number: row for row in ELEMENT_TYPES}
_BY_MLIR = {row.mlir: row for row in ELEMENT_TYPES}
_BY_DTYPE: dict[np.dtype[np.generic], ElementType] = {
    row.dtype: row for row in reversed(ELEMENT_TYPES) if row.name[0] != "q"
}
_BY_DTYPE[np.dtype(object)] = _BY_NUMBER[7]


def from_number(number: int) -> ElementType | None:
    """Returns the row of a non-reference `DataType` number, `None` if the number is unknown."""
    return _BY_NUMBER.get(number)


def from_dtype(dtype: np.dtype[np.generic]) -> ElementType:
    """Returns the row of a numpy dtype; `object` and bytes dtypes are strings."""
    return _BY_DTYPE[np.dtype(object)] if dtype.kind in "SU" else _BY_DTYPE[dtype]


def from_mlir(element: Attribute) -> ElementType | None:
    """Returns the row of an MLIR element type (handles with any subtype), `None` if there is none."""
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
    return RefType(row.mlir) if is_reference else row.mlir


def held_by(handle: Attribute) -> Attribute | None:
    """Returns the tensor type behind the type of a handle, `None` if it is none or doesn't tell one."""
    element = element_of(handle)
    if isinstance(element, ResourceType | VariantType) and len(element.subtypes.data) == 1:
        return element.subtypes.data[0]
    return None


@cache
def list_of(held: Attribute) -> AnyTensor:
    """Returns the (interned) scalar type of a list of tensors of one type."""
    return tensor(VariantType(ArrayAttr([held])), ())


def numpy_dtype(element: Attribute) -> np.dtype[np.generic]:
    """Returns numpy's dtype of an MLIR element type.

    Raises:
        KeyError: The element type has no numpy counterpart.
    """
    row = from_mlir(element)
    if row is None:
        raise KeyError(element)
    return row.dtype


_SHAPES: dict[int, tuple[TensorType[Attribute], Shape]] = {}
"""Interned types with their shapes by id, which stays theirs since they are kept; hashing one would be slow."""


@cache
def _ranked(element: Attribute, shape: Shape) -> TensorType[Attribute]:
    made = TensorType(element, [DYNAMIC_INDEX if dim < 0 else int(dim) for dim in shape])
    _SHAPES[id(made)] = (made, tuple(-1 if dim < 0 else int(dim) for dim in shape))
    return made


@cache
def _unranked(element: Attribute) -> UnrankedTensorType[Attribute]:
    return UnrankedTensorType(element)


_OF_ELEMENT: dict[int, dict[Shape, TensorType[Attribute]]] = {id(row.mlir): {} for row in ELEMENT_TYPES}
"""The same types by the id of the table's element type, without hashing that one."""

AnyTensor = TensorType[Attribute] | UnrankedTensorType[Attribute]


def tensor(element: Attribute, shape: Iterable[int] | None) -> AnyTensor:
    """Returns the (interned) tensor type of an element type and a shape; `None` is unknown rank."""
    if shape is None:
        return _unranked(element)
    dims = tuple(shape)
    known = _OF_ELEMENT.get(id(element))
    if known is None:
        return _ranked(element, dims)
    made = known.get(dims)
    if made is None:
        made = known[dims] = _ranked(element, dims)
    return made


@cache
def resource_of(held: Attribute) -> AnyTensor:
    """Returns the (interned) scalar type of a resource that holds a tensor, as a variable's handle has it."""
    return tensor(ResourceType(ArrayAttr([held])), ())


def shape_of(tensor_type: Attribute) -> Shape | None:
    """Returns a tensor type's dimensions, -1 where unknown; `None` if the rank is unknown or it is no tensor."""
    interned = _SHAPES.get(id(tensor_type))
    if interned is not None:
        return interned[1]
    return _shape_of(tensor_type) if isinstance(tensor_type, TensorType) else None


def _shape_of(tensor_type: TensorType[Attribute]) -> Shape:
    return tuple(-1 if dim == DYNAMIC_INDEX else dim for dim in tensor_type.get_shape())


def element_of(tensor_type: Attribute) -> Attribute:
    """Returns a tensor type's element type; any other type is its own element."""
    return tensor_type.element_type if isinstance(tensor_type, TensorType | UnrankedTensorType) else tensor_type


def most_specific(one: Attribute, other: Attribute) -> Attribute:
    """Returns the tensor type that knows what either of two types of one value knows; `one` where they contradict."""
    if one is other or one == other or not isinstance(other, TensorType):
        return one
    if not isinstance(one, TensorType):
        return other
    a, b = _shape_of(one), _shape_of(other)
    if len(a) != len(b):
        return one
    merged = tuple(y if x < 0 else x for x, y in zip(a, b, strict=True))
    return one if merged == a else tensor(one.element_type, merged)


def retype(value: SSAValue, type: Attribute) -> None:
    """Gives a value another type, which all its users see at once."""
    value._type = type  # noqa: SLF001  # xDSL has no setter, and a new value would cost a rewrite of every user


def dereferenced(element: Attribute | None) -> Attribute | None:
    """Returns the element type behind a reference type; handles without what they hold."""
    if isinstance(element, RefType):
        element = element.base
    if isinstance(element, ResourceType):
        return RESOURCE
    return VARIANT if isinstance(element, VariantType) else element


def is_static(shape: Shape | None) -> bool:
    """Tells whether every dimension is known."""
    return shape is not None and -1 not in shape
