"""The attributes and types of an artifact: those of VHLO become StableHLO's; each is decoded when it is first used.

An attribute refers to others by index. The depth of that is bounded, and so is what an attribute amounts to when its
parts are counted wherever they occur: a few shared parts could be a text without end.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np

from tfconvert.importers.stablehlo.bytecode import Bytecode, BytecodeEntry
from tfconvert.importers.stablehlo.cursor import MAX_MESSAGE, Cursor, malformed
from tfconvert.schema.diagnostics import ConversionError, error
from tfconvert.schema.dialects import quant, types
from tfconvert.schema.dialects.boxes import Array
from tfconvert.schema.dialects.foreign import OpaqueAttr
from tfconvert.schema.dialects.sources import BufferSource, FileSlice
from tfconvert.schema.dialects.stablehlo import ENUMERATORS, EnumeratorAttr
from tfconvert.schema.dialects.stablehlo_types import BoundsAttr, FutureType, StructAttr, TokenType
from tfconvert.schema.dialects.tensor_data import SMALL, Constant, DenseElementsAttr, SplatSource, TensorData
from tfconvert.schema.files import InputFile
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.attributes import (
    FALSE,
    TRUE,
    UNIT,
    ArrayAttr,
    BytesAttr,
    DenseArrayAttr,
    DictionaryAttr,
    FloatAttr,
    IntegerAttr,
    StringAttr,
    SymbolRefAttr,
    float_of_bits,
    round_to,
)
from tfconvert.schema.ir.types import (
    BF16,
    DYNAMIC,
    F16,
    F32,
    F64,
    I1,
    I8,
    I16,
    I32,
    I64,
    INDEX,
    NONE,
    ComplexType,
    FloatType,
    FunctionType,
    IndexType,
    IntegerType,
    MemRefType,
    Signedness,
    TensorType,
    TupleType,
    UnrankedTensorType,
)
from tfconvert.schema.limits import budget

# How deep attributes may be nested, and of how many parts one may consist.
_MAX_DEPTH = 64
_MAX_PARTS = 1 << 16

# The limits of types.
_MAX_WIDTH = 1024
_MAX_ELEMENTS = 1 << 40

# Characters that a name in a text can't have.
_NO_NAME = re.compile(r"\W", re.ASCII)

# A dynamic size.
_OPEN = -(1 << 63)

NEWEST_VERSION: Final = (1, 20, 0)
"""The newest StableHLO whose ops, attributes and types are known."""


class Attributes:
    """The attributes and types of a file.

    Args:
        file: The file.
        version: The version of StableHLO that wrote it.
        place: The file that it is in and its offset there, if large constants are to be read from there.
    """

    def __init__(self, file: Bytecode, version: tuple[int, ...], place: tuple[InputFile, int] | None = None) -> None:
        self.file = file
        self._place = place
        self.version = version
        self._attributes: list[Attribute | None] = [None] * len(file.attributes)
        self._types: list[Attribute | None] = [None] * len(file.types)
        # Several attributes may be one long string.
        self._strings: dict[int, Attribute] = {}
        # The number of parts of each attribute and type that has several, and of the one that is being decoded.
        self._parts: dict[Attribute, int] = {}
        self._counted = 0
        self._depth = 0

    def attribute(self, index: int) -> Attribute:
        """Returns an attribute."""
        found = self._attributes[index] if index < len(self._attributes) else None
        if found is None:
            found = self._decoded(self.file.attributes.at(index), _ATTRIBUTES)
            self._attributes[index] = found
        return found

    def type(self, index: int) -> Attribute:
        """Returns a type."""
        found = self._types[index] if index < len(self._types) else None
        if found is None:
            found = self._decoded(self.file.types.at(index), _TYPES)
            self._types[index] = found
        return found

    def types(self, indices: Sequence[int]) -> list[Attribute]:
        """Returns several types."""
        known = self._types
        if len(indices) == 1:
            index = indices[0]
            return [(known[index] if index < len(known) else None) or self.type(index)]
        return [(known[index] if index < len(known) else None) or self.type(index) for index in indices]

    def part(self, cursor: Cursor) -> Attribute:
        """Returns the attribute that an attribute refers to next."""
        return self._count(self.attribute(cursor.varint()))

    def parts(self, cursor: Cursor) -> list[Attribute]:
        """Returns a list of attributes."""
        return [self._count(self.attribute(index)) for index in cursor.varints()]

    def type_part(self, cursor: Cursor) -> Attribute:
        """Returns the type that an attribute or type refers to next."""
        return self._count(self.type(cursor.varint()))

    def type_parts(self, cursor: Cursor) -> list[Attribute]:
        """Returns a list of types."""
        return [self._count(self.type(index)) for index in cursor.varints()]

    def string(self, cursor: Cursor) -> Attribute:
        """Returns the string that comes next, which may be any bytes."""
        index = cursor.varint()
        found = self._strings.get(index)
        if found is None:
            data = self.file.bytes_of_string(index)
            try:
                found = StringAttr.get(data.decode())
            except UnicodeDecodeError:
                found = BytesAttr.get(data)
            self._strings[index] = found
        return found

    def _count(self, part: Attribute) -> Attribute:
        self._counted += self._parts.get(part, 1)
        if self._counted > _MAX_PARTS:
            raise malformed(f"an attribute consists of more than {_MAX_PARTS} parts")
        return part

    def _decoded(self, entry: BytecodeEntry, decoders: Mapping[str, Mapping[int, _Decoder]]) -> Attribute:
        dialect = entry.dialect
        cursor = Cursor(self.file.data, entry.start, entry.end)
        known = decoders.get(dialect) if entry.is_custom else None
        if known is None and decoders is _ATTRIBUTES:
            return self._opaque(entry)
        if known is None:
            raise _unsupported(f"a type of the dialect {dialect!r}")
        code = cursor.varint()
        decode = known.get(code)
        if decode is None and dialect == "builtin" and decoders is _ATTRIBUTES:
            return self._opaque(entry)
        if decode is None:
            raise self.unknown(f"{dialect}'s {'type' if decoders is _TYPES else 'attribute'} {code}")
        if self._depth >= _MAX_DEPTH:
            raise malformed(f"attributes are nested more than {_MAX_DEPTH} deep, or in a circle")
        outside, self._counted, self._depth = self._counted, 1, self._depth + 1
        found = decode(self, cursor)
        if self._counted > 1:
            self._parts[found] = max(self._counted, self._parts.get(found, 1))
        self._counted, self._depth = outside, self._depth - 1
        if cursor.left:
            raise self.unknown(f"{dialect}'s attribute {code} with {cursor.left} more bytes")
        return found

    def constant(self, kind: TensorType, start: int, size: int) -> Constant:
        """Returns a constant whose elements are a part of the artifact: a handle, unless it is small.

        Args:
            kind: The constant's type.
            start: The first byte.
            size: The number of bytes.
        """
        try:
            dtype = types.numpy_dtype(kind.element_type)
        except KeyError:
            raise _unsupported(f"a constant of type {kind.element_type}") from None
        count = math.prod(kind.shape)
        # numpy limits the product of the other sizes where one is zero, too.
        is_large = math.prod([each for each in kind.shape if each]) > _MAX_ELEMENTS
        if not kind.is_static or is_large or dtype.hasobject:
            raise malformed(f"a constant has the type {kind}")
        if self._place is not None and size == count * dtype.itemsize > SMALL and dtype != np.bool_:
            file, offset = self._place
            return TensorData.get(kind, FileSlice(file, offset + start, size))
        values: Array | None = None
        if dtype == np.bool_:
            values = _booleans(np.frombuffer(self.file.data, np.uint8, size, start), count)
        elif size in (dtype.itemsize, count * dtype.itemsize):
            values = np.frombuffer(self.file.data, dtype, size // dtype.itemsize, start)
        if values is None:
            raise malformed(f"a constant of type {kind} has {size} bytes")
        is_splat = len(values) == 1 and count > 1
        if count * dtype.itemsize > SMALL:
            return TensorData.get(kind, SplatSource(values.reshape(())) if is_splat else BufferSource(values))
        data = values.tobytes()
        return DenseElementsAttr.get(kind, data * count if is_splat else data[: count * dtype.itemsize])

    def _opaque(self, entry: BytecodeEntry) -> Attribute:
        """Returns an attribute that nothing here reads, with its bytes as digits; a reader of text finds it opaque."""
        digits = self.file.data[entry.start : entry.end].hex().upper()
        return OpaqueAttr.get(f"opaque.{_NO_NAME.sub('_', entry.dialect)}", f'<"0x{digits}">')

    def unknown(self, what: str) -> ConversionError:
        """Returns the error of something that this reader doesn't know: the artifact is newer, or damaged."""
        if self.version <= NEWEST_VERSION:
            return malformed(f"the artifact contains {what}, which StableHLO {version_text(self.version)} doesn't have")
        return newer(f"{what} of StableHLO {version_text(self.version)}")


def newer(what: str) -> ConversionError:
    """Returns the error of an artifact of a version that is not known here."""
    return error(
        "newer-artifact",
        f"{what[:MAX_MESSAGE]} is not known, only what StableHLO {version_text(NEWEST_VERSION)} has",
        hint="serialize the model for an older version of StableHLO, or update tfconvert",
    )


def version_text(version: Sequence[int]) -> str:
    """Returns a version as it is written."""
    return ".".join(map(str, version))


_Decoder = Callable[[Attributes, Cursor], Attribute]


def _integer(known: Attributes, cursor: Cursor) -> Attribute:
    kind = known.type_part(cursor)
    if not isinstance(kind, IntegerType | IndexType):
        raise malformed(f"an integer has the type {kind}")
    width = 64 if isinstance(kind, IndexType) else kind.width
    value = cursor.bits(width)
    is_unsigned = isinstance(kind, IntegerType) and (kind.width == 1 or kind.signedness is Signedness.UNSIGNED)
    if value >> (width - 1) and not is_unsigned:
        value -= 1 << width
    return IntegerAttr.get(value, kind)


def _float(known: Attributes, cursor: Cursor) -> Attribute:
    kind = known.type_part(cursor)
    if not isinstance(kind, FloatType):
        raise malformed(f"a float has the type {kind}")
    bits = cursor.bits(kind.width)
    if kind in (F16, BF16, F32, F64):
        return FloatAttr.get(float_of_bits(bits, kind), kind)
    try:
        dtype = types.numpy_dtype(kind)
    except KeyError:
        raise _unsupported(f"a number of type {kind}") from None
    return FloatAttr.get(float(np.frombuffer(bytes([bits]), dtype)[0]), kind)


def _array(known: Attributes, cursor: Cursor) -> Attribute:
    return ArrayAttr.get(known.parts(cursor))


def _dictionary(known: Attributes, cursor: Cursor) -> Attribute:
    entries: dict[str, Attribute] = {}
    for _ in range(cursor.count(2)):
        name = text_of(known.part(cursor))
        if name in entries:
            raise malformed(f"a dictionary has {name!r} twice")
        entries[name] = known.part(cursor)
    return DictionaryAttr.get(entries)


def text_of(attribute: Attribute) -> str:
    """Returns the text of a string attribute."""
    if not isinstance(attribute, StringAttr):
        raise malformed(f"a name is {type(attribute).__name__}, not text")
    return attribute.data


def _string(known: Attributes, cursor: Cursor) -> Attribute:
    return known.string(cursor)


def _typed_string(known: Attributes, cursor: Cursor) -> Attribute:
    found = known.string(cursor)
    known.type_part(cursor)
    return found


def _symbol(known: Attributes, cursor: Cursor) -> Attribute:
    return SymbolRefAttr.get(text_of(known.part(cursor)))


def _nested_symbol(known: Attributes, cursor: Cursor) -> Attribute:
    root = text_of(known.part(cursor))
    nested = [each for each in known.parts(cursor) if isinstance(each, SymbolRefAttr)]
    return SymbolRefAttr.get(root, [each.root for each in nested])


def _dense_array(known: Attributes, cursor: Cursor) -> Attribute:
    element = known.type_part(cursor)
    count = cursor.varint()
    size = cursor.varint()
    start = cursor.skip(size)
    if element not in (I1, I8, I16, I32, I64, F32, F64):
        raise malformed(f"an array can't have elements of type {element}")
    dtype = types.numpy_dtype(element)
    if count * dtype.itemsize != size:
        raise malformed(f"an array of {count} {element} has {size} bytes")
    return DenseArrayAttr.get(element, np.frombuffer(cursor.data, dtype, count, start).tolist())


def _dense(known: Attributes, cursor: Cursor) -> Attribute:
    kind = known.type_part(cursor)
    size = cursor.varint()
    if not isinstance(kind, TensorType):
        raise malformed(f"a constant has the type {kind}")
    return known.constant(kind, cursor.skip(size), size)


def _booleans(data: Array, count: int) -> Array | None:
    """Returns booleans that are packed into bits, or take a byte each; a single one is that of all elements."""
    if len(data) == 1 and (count > 8 or (count != 1 and data[0] in (0, 0xFF))):
        # Up to eight bits look the same as one value for all; if they are equal, they mean the same.
        return np.not_equal(data, 0)
    if len(data) == -(-count // 8) and (len(data) != count or count == 0):
        budget().take_bytes(count, "a constant of booleans")
        return np.unpackbits(data, count=count, bitorder="little").view(np.bool_)
    return np.not_equal(data, 0) if len(data) == count else None


def _unsupported(what: str) -> ConversionError:
    return error("unsupported-artifact", f"the artifact contains {what[:MAX_MESSAGE]}, which is not supported")


def _boolean(known: Attributes, cursor: Cursor) -> Attribute:
    return TRUE if cursor.varint() else FALSE


def _enumerator(kind: str, first: int = 0) -> _Decoder:
    values = ENUMERATORS[kind]

    def decode(known: Attributes, cursor: Cursor) -> Attribute:
        index = cursor.varint() - first
        if not 0 <= index < len(values):
            raise known.unknown(f"the {kind} {index + first}")
        return EnumeratorAttr.get(kind, values[index])

    return decode


def _api_version(known: Attributes, cursor: Cursor) -> Attribute:
    value = cursor.varint()
    if value > 0x7FFFFFFF:
        raise known.unknown(f"version {value} of custom calls")
    return IntegerAttr.get(value, I32)


def _type(known: Attributes, cursor: Cursor) -> Attribute:
    return known.type_part(cursor)


def _bounds(known: Attributes, cursor: Cursor) -> Attribute:
    return BoundsAttr.get([DYNAMIC if bound == _OPEN else bound for bound in cursor.signeds()])


def _alias(known: Attributes, cursor: Cursor) -> Attribute:
    outputs, operand, inputs = tuple(cursor.signeds()), cursor.signed(), tuple(cursor.signeds())
    return StructAttr.get(
        "output_operand_alias",
        {"output_tuple_indices": outputs, "operand_index": operand, "operand_tuple_indices": inputs},
    )


def _accuracy(known: Attributes, cursor: Cursor) -> Attribute:
    absolute, relative = _double(cursor), _double(cursor)
    ulps, mode = cursor.signed(), known.part(cursor)
    entries = {"atol": absolute, "rtol": relative, "ulps": ulps}
    return StructAttr.get("result_accuracy", {name: value for name, value in entries.items() if value} | {"mode": mode})


def _double(cursor: Cursor) -> float:
    return float(struct.unpack("<d", cursor.bits(64).to_bytes(8, "little"))[0])


def _sub_axis(known: Attributes, cursor: Cursor) -> Attribute:
    return ArrayAttr.get([IntegerAttr.get(cursor.signed(), I64), IntegerAttr.get(cursor.signed(), I64)])


def _axis(known: Attributes, cursor: Cursor) -> Attribute:
    name = known.part(cursor)
    if not cursor.varint():
        return StructAttr.get("axis_ref", {"name": name})
    place = known.part(cursor)
    if not isinstance(place, ArrayAttr) or len(place) != 2:
        raise malformed("a part of an axis is malformed")
    first, size = (each.value if isinstance(each, IntegerAttr) else 0 for each in place)
    return StructAttr.get("axis_ref", {"name": name, "sub_axis_info": f"({first}){size}"})


def _mesh_axes(known: Attributes, cursor: Cursor) -> Attribute:
    mesh, axes = known.part(cursor), known.part(cursor)
    if isinstance(mesh, StringAttr):
        mesh = SymbolRefAttr.get(mesh.data)
    return StructAttr.get("replica_group_mesh_axes", {"mesh": mesh, "axes": axes})


def _mesh_axis(known: Attributes, cursor: Cursor) -> Attribute:
    name, size = known.part(cursor), cursor.signed()
    return DictionaryAttr.get({"name": name, "size": IntegerAttr.get(size, I64)})


def _mesh(known: Attributes, cursor: Cursor) -> Attribute:
    axes = known.part(cursor)
    index, has_devices = cursor.flagged()
    return ArrayAttr.get([axes, known.attribute(index)] if has_devices else [axes])


# Types.


def _plain(kind: Attribute) -> _Decoder:
    return lambda known, cursor: kind


def _unsigned(width: int) -> IntegerType:
    return IntegerType.get(width, Signedness.UNSIGNED)


def _integer_type(known: Attributes, cursor: Cursor) -> Attribute:
    value = cursor.varint()
    width, signedness = value >> 2, value & 3
    if not 0 < width <= _MAX_WIDTH or signedness > 2:
        raise malformed("an integer type is malformed")
    return IntegerType.get(width, tuple(Signedness)[signedness])


def _function(known: Attributes, cursor: Cursor) -> Attribute:
    inputs = known.type_parts(cursor)
    return FunctionType.get(inputs, known.type_parts(cursor))


def _complex(known: Attributes, cursor: Cursor) -> Attribute:
    element = known.type_part(cursor)
    if not isinstance(element, FloatType | IntegerType):
        raise malformed(f"a complex number can't be made of {element}")
    return ComplexType.get(element)


def _element(known: Attributes, cursor: Cursor) -> Attribute:
    element = known.type_part(cursor)
    scalars = (FloatType, IntegerType, IndexType, ComplexType, quant.UniformType)
    if not isinstance(element, scalars):
        raise malformed(f"a tensor can't have elements of type {element}")
    return element


def _shape(cursor: Cursor) -> tuple[int, ...]:
    sizes = cursor.signeds()
    if len(sizes) > types.MAX_RANK:
        raise malformed(f"a tensor has {len(sizes)} dimensions, more than the limit of {types.MAX_RANK}")
    if any(size < 0 and size != _OPEN for size in sizes):
        raise malformed("the size of a dimension is negative")
    return tuple([DYNAMIC if size == _OPEN else size for size in sizes])


def _tensor(known: Attributes, cursor: Cursor) -> Attribute:
    shape = _shape(cursor)
    return TensorType.get(_element(known, cursor), shape)


def _encoded_tensor(known: Attributes, cursor: Cursor) -> Attribute:
    encoding = known.part(cursor)
    shape = _shape(cursor)
    return TensorType.get(_element(known, cursor), shape, encoding)


def _unranked(known: Attributes, cursor: Cursor) -> Attribute:
    return UnrankedTensorType.get(_element(known, cursor))


def _tuple(known: Attributes, cursor: Cursor) -> Attribute:
    return TupleType.get(known.type_parts(cursor))


def _future(known: Attributes, cursor: Cursor) -> Attribute:
    return FutureType.get(known.type_parts(cursor))


def _buffer(known: Attributes, cursor: Cursor) -> Attribute:
    shape = _shape(cursor)
    return MemRefType.get(_element(known, cursor), shape)


def _quantized(known: Attributes, cursor: Cursor) -> Attribute:
    flags, storage, expressed = cursor.varint(), known.type_part(cursor), known.type_part(cursor)
    scale, zero = _double(cursor), cursor.signed()
    limits = cursor.signed(), cursor.signed()
    return _uniform(flags, storage, expressed, (scale,), (zero,), None, limits)


def _quantized_by_axis(known: Attributes, cursor: Cursor) -> Attribute:
    flags, storage, expressed = cursor.varint(), known.type_part(cursor), known.type_part(cursor)
    axis = cursor.varint()
    limits = cursor.signed(), cursor.signed()
    scales = tuple([_double(cursor) for _ in range(cursor.count())])
    zeros = tuple(cursor.signeds())
    if axis >= types.MAX_RANK or len(scales) != len(zeros):
        raise malformed("a quantized type is malformed")
    return _uniform(flags, storage, expressed, scales, zeros, axis, limits)


def _uniform(
    flags: int,
    storage: Attribute,
    expressed: Attribute,
    scales: tuple[float, ...],
    zeros: tuple[int, ...],
    axis: int | None,
    limits: tuple[int, int],
) -> Attribute:
    """Returns the type of quantized numbers; the only flag is that the storage is signed."""
    if not isinstance(storage, IntegerType) or not isinstance(expressed, FloatType) or storage.width > 64:
        raise malformed(f"a quantized type stores {storage} for {expressed}")
    if expressed is not F32:
        raise _unsupported(f"numbers of {expressed} that are quantized")
    kind = IntegerType.get(storage.width, Signedness.SIGNLESS if flags & 1 else Signedness.UNSIGNED)
    rounded = tuple([round_to(scale, F32) for scale in scales])
    if not all(0 < scale < math.inf for scale in rounded):
        raise malformed("a scale is not a positive number")
    if not quant.are_limits(kind, *limits):
        raise malformed(f"quantized numbers have the limits {limits}")
    return quant.UniformType.get(quant.Uniform(kind, rounded, zeros, axis, quant.limits_within(kind, *limits)))


_BUILTIN_ATTRIBUTES: Mapping[int, _Decoder] = {
    0: _array,
    1: _dictionary,
    2: _string,
    3: _typed_string,
    4: _symbol,
    5: _nested_symbol,
    6: _type,
    7: _plain(UNIT),
    8: _integer,
    9: _float,
    17: _dense_array,
    18: _dense,
}

_VHLO_ATTRIBUTES: Mapping[int, _Decoder] = {
    1: _array,
    2: _boolean,
    3: _enumerator("comparison_direction"),
    4: _enumerator("comparison_type"),
    5: _api_version,
    6: _dictionary,
    7: _enumerator("fft_type"),
    8: _float,
    9: _integer,
    10: _alias,
    11: _enumerator("precision"),
    12: _enumerator("rng_algorithm"),
    13: _enumerator("rng_distribution", 1),
    14: _string,
    15: _dense,
    16: _enumerator("transpose"),
    17: _type,
    18: _bounds,
    19: _enumerator("result_accuracy_mode"),
    20: _accuracy,
    21: _sub_axis,
    22: _axis,
    23: _mesh_axes,
    24: _mesh_axis,
    25: _mesh,
}

_BUILTIN_TYPES: Mapping[int, _Decoder] = {
    0: _integer_type,
    1: _plain(INDEX),
    2: _function,
    **{3 + index: _plain(kind) for index, kind in enumerate((BF16, F16, F32, F64))},
    9: _complex,
    12: _plain(NONE),
    13: _tensor,
    14: _encoded_tensor,
    15: _tuple,
    18: _unranked,
}

_VHLO_TYPES: Mapping[int, _Decoder] = {
    0: _plain(I1),
    1: _complex,
    **{2 + index: _plain(kind) for index, kind in enumerate((BF16, F16, F32, F64))},
    6: _plain(FloatType.get("f8E4M3FN")),
    7: _plain(FloatType.get("f8E5M2")),
    8: _function,
    9: _plain(INDEX),
    **{10 + index: _plain(IntegerType.get(width)) for index, width in enumerate((4, 8, 16, 32, 64))},
    **{15 + index: _plain(_unsigned(width)) for index, width in enumerate((4, 8, 16, 32, 64))},
    20: _tensor,
    21: _encoded_tensor,
    22: _plain(TokenType.intern()),
    23: _tuple,
    24: _quantized,
    25: _unranked,
    27: _plain(FloatType.get("f8E4M3FNUZ")),
    28: _plain(FloatType.get("f8E5M2FNUZ")),
    29: _plain(FloatType.get("f8E4M3B11FNUZ")),
    30: _quantized_by_axis,
    31: _plain(IntegerType.get(2)),
    32: _plain(_unsigned(2)),
    33: _plain(NONE),
    **{
        34 + index: _plain(FloatType.get(keyword))
        for index, keyword in enumerate(("tf32", "f8E4M3", "f8E3M4", "f4E2M1FN", "f6E2M3FN", "f6E3M2FN", "f8E8M0FNU"))
    },
    41: _buffer,
    42: _future,
}

_ATTRIBUTES: Mapping[str, Mapping[int, _Decoder]] = {"builtin": _BUILTIN_ATTRIBUTES, "vhlo": _VHLO_ATTRIBUTES}
_TYPES: Mapping[str, Mapping[int, _Decoder]] = {"builtin": _BUILTIN_TYPES, "vhlo": _VHLO_TYPES}
