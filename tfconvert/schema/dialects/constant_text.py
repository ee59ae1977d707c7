"""Reads constants of MLIR's text, `dense<...>` and resources, and those that are TensorProtos in an attribute.

`#tf_type<tensor_proto : "0x..."> : type` holds `tftensor$` and the text form of the proto, in hexadecimal: TensorFlow
writes tensors in this form if MLIR can't hold them as numbers. When they are read, tensors of quantised types become
ordinary constants; others (variants) are kept as they are.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from google.protobuf import text_format

from tfconvert.schema.dialects import dense_text, tensor_data, types
from tfconvert.schema.dialects.tensor_data import DenseResourceAttr
from tfconvert.schema.ir.attribute import Attribute, AttributePrinter
from tfconvert.schema.ir.attribute_parser import UntypedAttr
from tfconvert.schema.ir.errors import VerifyError
from tfconvert.schema.ir.token_parser import STRING
from tfconvert.schema.ir.types import ComplexType, IndexType, IntegerType, Signedness, TensorType
from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb

if TYPE_CHECKING:
    from tfconvert.schema.ir.attribute_parser import AttributeParser


# The size of a resource's header, which holds the alignment.
_RESOURCE_HEADER = 4

MAX_BYTES = 1 << 30
"""Maximum size of a constant that is written as one number: a short text could state any size."""


def parse_dense(parser: AttributeParser) -> Attribute:
    """Parses what follows `dense`: elements and a type.

    Returns:
        The same constant as `tensor_data.of_array` returns.
    """
    position = parser.pos
    parser.parse_punctuation("<", " in dense attribute")
    shape, items = _Literal(parser).parse()
    parser.parse_punctuation(">", " in dense attribute")
    parser.parse_punctuation(":", " in dense attribute")
    tensor_type = parser.parse_type()
    if not isinstance(tensor_type, TensorType) or not dense_text.can_write(tensor_type.element_type):
        parser.raise_error("expected a tensor type of numbers or strings", position)
    if not tensor_type.is_static:
        parser.raise_error("expected a static shape", position)
    excess = _excess(tensor_type)
    if excess:
        parser.raise_error(f"expected {excess}", position)
    return tensor_data.of_array(_array(parser, items, shape, tensor_type, position), tensor_type.element_type)


def parse_dense_resource(parser: AttributeParser) -> Attribute:
    """Parses what follows `dense_resource`: a name and a type; `resource` finds the value at the end of the text."""
    parser.parse_punctuation("<", " in dense resource")
    handle = parser.parse_optional_str_literal()
    if handle is None:
        handle = parser.expect(parser.parse_optional_identifier, "expected the name of a resource")
    parser.parse_punctuation(">", " in dense resource")
    parser.parse_punctuation(":", " in dense resource")
    return DenseResourceAttr.get(handle, parser.parse_type())


def resource(parser: AttributeParser, attribute: DenseResourceAttr, digits: str) -> Attribute:
    """Returns the constant of a resource of the text.

    Args:
        parser: The parser, for errors.
        attribute: The attribute that names the resource.
        digits: Its value in the text.
    """
    kind = attribute.type
    if not isinstance(kind, TensorType) or not kind.is_static or not dense_text.can_write(kind.element_type):
        parser.raise_error(f"the resource {attribute.handle!r} can't be a {kind}")
    if len(kind.shape) > types.MAX_RANK:
        parser.raise_error(f"expected {_excess(kind)}")
    try:
        data = bytes.fromhex(digits.removeprefix("0x"))[_RESOURCE_HEADER:]
    except ValueError:
        parser.raise_error(f"the resource {attribute.handle!r} is not a string of hexadecimal digits")
    return tensor_data.of_array(_from_bytes(parser, data, kind, None), kind.element_type)


def _excess(kind: TensorType) -> str:
    """Returns the limit that a constant exceeds which a short text states; empty for others."""
    if len(kind.shape) > types.MAX_RANK:
        return f"at most {types.MAX_RANK} dimensions in a constant"
    # numpy limits the product of the other sizes where one is zero, too.
    size = math.prod([size for size in kind.shape if size]) * types.numpy_dtype(kind.element_type).itemsize
    return f"at most {MAX_BYTES} bytes in a constant" if size > MAX_BYTES else ""


class _Literal:
    """The elements between `dense<` and `>`: nested brackets of numbers or strings."""

    def __init__(self, parser: AttributeParser) -> None:
        self.parser = parser

    def parse(self) -> tuple[list[int], list[Any]]:
        """Parses nested brackets.

        Returns:
            The shape, and the elements, flattened; a lone element has the shape `[]`.
        """
        items: list[Any] = []
        open_rows: list[int] = []  # elements or rows so far in each open bracket
        shape: list[int] = []  # of closed brackets, by depth; -1 where unknown
        while True:
            while self.parser.parse_optional_punctuation("[") is not None:
                open_rows.append(0)
                if len(open_rows) > len(shape):
                    if items:
                        self.parser.raise_error("expected rows of equal depth")
                    shape.append(-1)
            closing = bool(open_rows) and open_rows[-1] == 0 and self.parser.parse_optional_punctuation("]") is not None
            if not closing:
                position = self.parser.pos
                element = self._optional_element()
                if element is None and (open_rows or items):
                    self.parser.raise_error("expected a number, a string, or a row of them")
                if element is None:
                    return [0], items
                if len(open_rows) != len(shape):
                    self.parser.raise_error("expected rows of equal depth", position)
                items.append(element)
            self._close_rows(open_rows, shape, closing)
            if not open_rows:
                return shape, items

    def _close_rows(self, open_rows: list[int], shape: list[int], closed: bool) -> None:
        """Parses `]`s up to and with the next comma."""
        while open_rows:
            if closed:
                count = open_rows.pop()
                depth = len(open_rows)
                if shape[depth] not in (-1, count):
                    self.parser.raise_error("expected rows of equal length")
                shape[depth] = count
                if not open_rows:
                    return
            open_rows[-1] += 1
            if self.parser.parse_optional_punctuation(",") is not None:
                return
            self.parser.parse_punctuation("]", " in dense attribute")
            closed = True

    def _optional_element(self) -> Any:
        """Parses a string (as bytes) or a number; digits in `0x` form are bits, not a value."""
        kind = self.parser.token[0]
        if kind == STRING:
            return self.parser.parse_optional_bytes_literal()
        if kind == "(":
            self.parser.advance()
            real = self._number()
            self.parser.parse_punctuation(",")
            imaginary = self._number()
            self.parser.parse_punctuation(")")
            return (real, imaginary)
        return self._optional_number()

    def _number(self) -> Any:
        return self.parser.expect(self._optional_number, "expected a number")

    def _optional_number(self) -> Any:
        if (truth := self.parser.parse_optional_boolean()) is not None:
            return truth
        position = self.parser.pos
        number = self.parser.parse_optional_number()
        if isinstance(number, int) and self.parser.text[position : position + 2] == "0x":
            return _Bits(number)
        return number


def _array(
    parser: AttributeParser, items: list[Any], shape: list[int], kind: TensorType, position: int
) -> tensor_data.Array:
    element, dims = kind.element_type, kind.shape
    dtype = types.numpy_dtype(element)
    if math.prod(dims) == 0 and not items:
        return np.zeros(dims, dtype)
    if not shape and isinstance(items[0], bytes) and element is not types.STRING:
        return _from_hexadecimal(parser, items[0], kind, position)
    if shape and tuple(shape) != dims:
        parser.raise_error(f"expected elements of shape {list(dims)}, got {shape}", position)
    try:
        values = _converted(items, element, dtype)
    except (TypeError, ValueError, OverflowError):
        parser.raise_error(f"expected elements of type {element}", position)
    return values.reshape(dims) if shape or not dims else np.broadcast_to(values.reshape(()), dims)


def _from_hexadecimal(parser: AttributeParser, digits: bytes, kind: TensorType, position: int) -> tensor_data.Array:
    try:
        if digits[:2] != b"0x":
            raise ValueError
        data = bytes.fromhex(digits[2:].decode())
    except ValueError:
        parser.raise_error("expected a string of hexadecimal digits that begins with 0x", position)
    return _from_bytes(parser, data, kind, position)


def _from_bytes(parser: AttributeParser, data: bytes, kind: TensorType, position: int | None) -> tensor_data.Array:
    values = dense_text.from_hexadecimal(data, math.prod(kind.shape), kind.element_type)
    if values is None:
        parser.raise_error(
            f"{len(data)} bytes don't fill a tensor of {kind.element_type} and shape {list(kind.shape)}", position
        )
    return values.reshape(kind.shape)


class _Bits(int):
    """A number that was written as its bits."""


def _converted(items: list[Any], element: Attribute, dtype: np.dtype[Any]) -> tensor_data.Array:
    """Returns parsed elements as a flat array."""
    if dtype.kind == "O":
        return _strings(items)
    if isinstance(element, ComplexType):
        part = np.dtype(np.float64 if dtype == np.complex128 else np.float32)
        parts = [_floating(number, part) for pair in items for number in pair]
        return np.array(parts, part).view(dtype)
    if dtype == np.bool_:
        return np.array([_integer(item, 0, 1) != 0 for item in items], dtype)
    if isinstance(element, IndexType):
        element = types.I64
    if isinstance(element, IntegerType):
        width, unsigned = element.width, element.signedness == Signedness.UNSIGNED
        # Signless numbers may be written signed or unsigned.
        numbers = [_integer(item, 0 if unsigned else -1 << (width - 1), (1 << width) - 1) for item in items]
        if unsigned:
            return np.array(numbers, np.uint64).astype(dtype)
        wrapped = [number - (1 << width) if number >> (width - 1) == 1 else number for number in numbers]
        return np.array(wrapped, np.int64).astype(dtype)
    # Numbers that are too large for the type are infinite, as MLIR has it.
    with np.errstate(over="ignore"):
        return np.array([_floating(item, dtype) for item in items], dtype)


def _strings(items: list[Any]) -> tensor_data.Array:
    if not all(isinstance(item, bytes) for item in items):
        raise TypeError
    values = np.empty(len(items), object)
    values[:] = items
    return values


def _integer(item: Any, minimum: int, maximum: int) -> int:
    if not isinstance(item, int) or (isinstance(item, bool) and maximum != 1):
        raise TypeError
    if not minimum <= item <= maximum:
        raise OverflowError
    return int(item)


def _floating(item: Any, dtype: np.dtype[Any]) -> Any:
    if isinstance(item, _Bits):
        return np.frombuffer(item.to_bytes(dtype.itemsize, "little"), dtype)[0]
    if isinstance(item, bool) or not isinstance(item, int | float):
        raise TypeError
    return dtype.type(float(item))


_PREFIX = b"tftensor$"


class TensorProtoAttr(Attribute):
    """`#tf_type<tensor_proto : "0x..."> : type`: a tensor as the text of its proto."""

    __slots__ = ("contents", "type")

    NAME = "tf_type.tensor_proto"

    contents: bytes
    type: Attribute

    @classmethod
    def get(cls, contents: bytes, type: Attribute) -> TensorProtoAttr:
        return cls.intern(contents, type)

    @classmethod
    def parse_parameters(cls, parser: AttributeParser) -> Attribute:
        """Parses the text between the angle brackets; the type follows."""
        parser.parse_punctuation(":")
        digits = parser.parse_str_literal()
        if not digits.startswith("0x"):
            parser.raise_error("expected a string of hexadecimal digits that begins with 0x")
        try:
            contents = bytes.fromhex(digits[2:])
        except ValueError:
            parser.raise_error("expected hexadecimal digits")
        return UntypedAttr.intern(partial(typed, contents))

    def print(self, printer: AttributePrinter) -> None:
        printer.write(f'#tf_type<tensor_proto : "0x{self.contents.hex().upper()}"> : ')
        printer.attribute(self.type)


def typed(contents: bytes, tensor_type: Attribute) -> Attribute:
    """Returns the constant in the attribute's contents, or the attribute itself if they are not numbers.

    Args:
        contents: The text between the angle brackets.
        tensor_type: The type after them.

    Raises:
        VerifyError: The contents are not a tensor of that type.
    """
    if not contents.startswith(_PREFIX):
        raise VerifyError("the contents are not a tensor")
    proto = pb.TensorProto()
    try:
        text_format.Parse(contents[len(_PREFIX) :], proto)
    except (text_format.ParseError, UnicodeDecodeError) as problem:
        raise VerifyError(f"the contents are not a tensor: {problem}") from problem
    row = types.from_number(proto.dtype)
    if row is None or row.mlir is not types.element_of(tensor_type):
        raise VerifyError("the tensor has another element type")
    if not isinstance(tensor_type, TensorType) or not ("int" in row.name or row.dtype.kind == "c"):
        return TensorProtoAttr.get(contents, tensor_type)
    excess = _excess(tensor_type)
    if excess:
        raise VerifyError(f"expected {excess}")
    return tensor_data.of_array(_value(proto, row, tensor_type.shape), row.mlir)


def _value(proto: pb.TensorProto, row: types.ElementType, shape: types.Shape) -> tensor_data.Array:
    count = int(np.prod(shape))
    if proto.tensor_content:
        values = np.frombuffer(proto.tensor_content, np.uint8)
        if len(values) != count * row.dtype.itemsize:
            raise VerifyError("the tensor has another size")
        return values.view(row.dtype).reshape(shape)
    if row.dtype.kind == "c":
        return _complex(proto, row, shape)
    numbers = [*proto.int_val, *proto.int64_val, *proto.uint32_val, *proto.uint64_val]
    if len(numbers) > count or not types.is_static(shape):
        raise VerifyError("the tensor has another size")
    # The last number is repeated for the rest.
    numbers += (numbers[-1:] or [0]) * (count - len(numbers))
    wide = np.uint64 if row.dtype.kind == "u" else np.int64
    return np.array(numbers, wide).astype(row.dtype).reshape(shape)


def _complex(proto: pb.TensorProto, row: types.ElementType, shape: types.Shape) -> tensor_data.Array:
    parts = np.array([*proto.scomplex_val, *proto.dcomplex_val], np.float64)
    count = int(np.prod(shape))
    if len(parts) % 2 or len(parts) > 2 * count or not types.is_static(shape):
        raise VerifyError("the tensor has another size")
    numbers = parts.view(np.complex128).astype(row.dtype)
    repeated = numbers[-1:] if len(numbers) else np.zeros(1, row.dtype)
    return np.concatenate([numbers, np.repeat(repeated, count - len(numbers))]).reshape(shape)


def of_constant(value: tensor_data.Array, tensor_type: Any) -> TensorProtoAttr:
    """Returns the attribute of a quantised constant.

    Args:
        value: The value.
        tensor_type: Its tensor type, of an element type of the table.
    """
    row = types.from_mlir(types.element_of(tensor_type))
    assert row is not None
    dims = [pb.TensorShapeProto.Dim(size=dim) for dim in value.shape]
    proto = pb.TensorProto(
        dtype=pb.DataType.Name(row.number), tensor_shape={"dim": dims}, tensor_content=value.tobytes()
    )
    text = text_format.MessageToString(proto, as_one_line=True).encode()
    return TensorProtoAttr.get(_PREFIX + text, tensor_type)
