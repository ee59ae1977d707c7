"""Constants that MLIR can't hold as numbers: TensorFlow writes their TensorProto as text into an attribute.

`#tf_type<tensor_proto : "0x..."> : type` holds `tftensor$` and the text form of the proto, in hexadecimal. Tensors of
quantised types become constants like all others when they are read; what else there may be (variants) is kept as it
is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from google.protobuf import text_format
from xdsl.dialects.builtin import BytesAttr, NoneType, TensorType
from xdsl.ir import Attribute, BuiltinAttribute, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition

from tfconvert.schema.dialects import tensor_data, types
from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb

if TYPE_CHECKING:
    from xdsl.parser import AttrParser
    from xdsl.printer import Printer

_PREFIX = b"tftensor$"


@irdl_attr_definition
class TensorProtoAttr(ParametrizedAttribute, BuiltinAttribute):
    """`#tf_type<tensor_proto : "0x..."> : type`: a tensor as the text of its proto."""

    name = "tf_type.tensor_proto"
    contents: BytesAttr
    type: Attribute

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        """Parses what is between the angle brackets; the type behind them is `typed`'s matter."""
        parser.parse_punctuation(":")
        digits = parser.parse_str_literal()
        if not digits.startswith("0x"):
            parser.raise_error("expected a string of hexadecimal digits that begins with 0x")
        try:
            return [BytesAttr(bytes.fromhex(digits[2:])), NoneType()]
        except ValueError:
            parser.raise_error("expected hexadecimal digits")

    def print_builtin(self, printer: Printer) -> None:
        """Prints the contents and the type."""
        printer.print_string(f'#tf_type<tensor_proto : "0x{self.contents.data.hex().upper()}"> : ')
        printer.print_attribute(self.type)


def typed(attribute: TensorProtoAttr, tensor_type: Attribute) -> Attribute:
    """Returns the constant that an attribute holds, or the attribute with its type if it holds no numbers.

    Args:
        attribute: What was parsed.
        tensor_type: The type that the text gives.

    Raises:
        ValueError: The contents are no tensor of that type.
    """
    if not attribute.contents.data.startswith(_PREFIX):
        raise ValueError("the contents are no tensor")
    proto = pb.TensorProto()
    try:
        text_format.Parse(attribute.contents.data[len(_PREFIX) :], proto)
    except (text_format.ParseError, UnicodeDecodeError) as problem:
        raise ValueError(f"the contents are no tensor: {problem}") from problem
    row = types.from_number(proto.dtype)
    if row is None or row.mlir != types.element_of(tensor_type):
        raise ValueError("the tensor has another element type")
    if "int" not in row.name or not isinstance(tensor_type, TensorType):
        return TensorProtoAttr(attribute.contents, tensor_type)
    return tensor_data.of_array(_value(proto, row, types.shape_of(tensor_type) or ()), row.mlir)


def _value(proto: pb.TensorProto, row: types.ElementType, shape: types.Shape) -> tensor_data.Array:
    count = int(np.prod(shape))
    if proto.tensor_content:
        values = np.frombuffer(proto.tensor_content, np.uint8)
        if len(values) != count * row.dtype.itemsize:
            raise ValueError("the tensor has another size")
        return values.view(row.dtype).reshape(shape)
    numbers = list(proto.int_val)
    if len(numbers) > count or not types.is_static(shape):
        raise ValueError("the tensor has another size")
    # The last number stands for all that follow.
    numbers += (numbers[-1:] or [0]) * (count - len(numbers))
    return np.array(numbers, np.int64).astype(row.dtype).reshape(shape)


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
    return TensorProtoAttr(BytesAttr(_PREFIX + text), tensor_type)
