"""Constants that MLIR can't hold as numbers: TensorFlow writes their TensorProto as text into an attribute.

`#tf_type<tensor_proto : "0x..."> : type` holds `tftensor$` and the text form of the proto, in hexadecimal. Tensors of
quantised types become constants like all others when they are read; others (variants) are kept as they
are.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from google.protobuf import text_format

from tfconvert.schema.dialects import tensor_data, types
from tfconvert.schema.ir.attribute import Attribute, AttributePrinter
from tfconvert.schema.ir.attribute_parser import UntypedAttr
from tfconvert.schema.ir.errors import VerifyError
from tfconvert.schema.ir.types import TensorType
from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb

if TYPE_CHECKING:
    from tfconvert.schema.ir.attribute_parser import AttributeParser

_PREFIX = b"tftensor$"


class TensorProtoAttr(Attribute):
    """`#tf_type<tensor_proto : "0x..."> : type`: a tensor as the text of its proto."""

    __slots__ = ("contents", "type")

    NAME = "tf_type.tensor_proto"

    contents: bytes
    type: Attribute

    @classmethod
    def get(cls, contents: bytes, type: Attribute) -> TensorProtoAttr:
        """Returns the attribute of a tensor."""
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
        return UntypedAttr.get(partial(typed, contents))

    def print(self, printer: AttributePrinter) -> None:
        printer.write(f'#tf_type<tensor_proto : "0x{self.contents.hex().upper()}"> : ')
        printer.attribute(self.type)


def typed(contents: bytes, tensor_type: Attribute) -> Attribute:
    """Returns the constant that the attribute's contents are, or the attribute itself if they are not numbers.

    Args:
        contents: What is between the angle brackets.
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
    # The last number is repeated for all that follow.
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
