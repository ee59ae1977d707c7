"""TensorProto to constants."""

from __future__ import annotations

from typing import Any

import numpy as np

from tfconvert.schema.diagnostics import ConversionError, error
from tfconvert.schema.dialects import tensor_data, types
from tfconvert.schema.limits import budget
from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb

MAX_BYTES = 1 << 33
"""No constant may be larger than this; a hostile file can claim any shape in a few bytes."""

_MAX_RANK = 64
# The limits of numpy; the second even where one dimension is 0.
_MAX_ELEMENTS = 1 << 58

# `DataType` number -> the TensorProto field that holds its elements one by one.
_FIELDS: dict[int, str] = {
    1: "float_val",
    2: "double_val",
    3: "int_val",
    4: "int_val",
    5: "int_val",
    6: "int_val",
    7: "string_val",
    8: "scomplex_val",
    9: "int64_val",
    10: "bool_val",
    11: "int_val",
    12: "int_val",
    13: "int_val",
    14: "half_val",
    15: "int_val",
    16: "int_val",
    17: "int_val",
    18: "dcomplex_val",
    19: "half_val",
    22: "uint32_val",
    23: "uint64_val",
    24: "float8_val",
    25: "float8_val",
    29: "int_val",
    30: "int_val",
}


def shape_of(shape: pb.TensorShapeProto) -> types.Shape | None:
    """Returns a shape proto's dimensions, -1 where unknown; `None` if the rank is unknown."""
    return None if shape.unknown_rank else tuple([max(dim.size, -1) for dim in shape.dim])


def import_tensor(tensor: pb.TensorProto, node: str) -> tensor_data.Constant:
    """Returns the constant that a TensorProto holds.

    Args:
        tensor: The proto; `tensor_content`, or one of the `_val` fields whose last element repeats.
        node: The node whose attribute it is, for error messages.

    Raises:
        ConversionError: Unknown dtype, a shape that is not static or absurd, or contents that don't fill the shape.
    """
    row = types.from_number(tensor.dtype)
    if row is None or (tensor.dtype not in _FIELDS):
        raise _bad(node, f"has element type {tensor.dtype}, which can't be a constant")
    shape = shape_of(tensor.tensor_shape)
    if not types.is_static(shape):
        raise _bad(node, "has a shape that is not static")
    assert shape is not None
    elements, most = 1, 1
    for dim in shape:
        elements *= dim
        most *= dim or 1
    if len(shape) > _MAX_RANK or most > _MAX_ELEMENTS or elements * max(row.dtype.itemsize, 1) > MAX_BYTES:
        raise _bad(node, f"claims the absurd shape {list(shape)}")
    if tensor.tensor_content and row.dtype != object:
        content = tensor.tensor_content
        if len(content) != elements * row.dtype.itemsize:
            raise _bad(
                node, f"holds {len(content)} bytes, but its shape {list(shape)} needs {elements * row.dtype.itemsize}"
            )
        return tensor_data.of_array(np.frombuffer(content, row.dtype).reshape(shape), row.mlir)
    return _from_values(tensor, row, shape, elements, node)


def _from_values(
    tensor: pb.TensorProto, row: types.ElementType, shape: types.Shape, elements: int, node: str
) -> tensor_data.Constant:
    field: Any = getattr(tensor, _FIELDS[row.number])
    values = _decode(field, row)
    if len(values) > elements:
        raise _bad(node, f"holds {len(values)} values for {elements} elements")
    if len(values) == elements:
        return tensor_data.of_array(values.reshape(shape), row.mlir)
    last = values[-1:] if len(values) else np.array([b""] if row.dtype == object else [0], row.dtype)
    if len(values) <= 1:
        return tensor_data.of_array(np.broadcast_to(last.reshape(()), shape), row.mlir)
    rest = np.broadcast_to(last, elements - len(values))
    if row.dtype == object or elements * row.dtype.itemsize <= tensor_data.MAX_READ_BYTES:
        # Strings take a pointer each; few values of anything are read as they are.
        budget().take_bytes(elements * row.dtype.itemsize, f"the constant of the node {node!r}")
        return tensor_data.of_array(np.concatenate((values, rest)).reshape(shape), row.mlir)
    pieces = tuple(tensor_data.of_array(piece, row.mlir) for piece in (values, rest))
    whole = tensor_data.defer("concat", pieces, (elements,), 0)
    return tensor_data.defer("reshape", (whole,), shape, shape)


def _decode(field: Any, row: types.ElementType) -> tensor_data.Array:
    if row.name in ("half", "bfloat16"):
        return np.array(field, np.uint16).view(row.dtype)
    if row.name.startswith("float8"):
        return np.frombuffer(field, row.dtype)
    if row.name.startswith("complex"):
        return np.array(field, np.float64 if row.name == "complex128" else np.float32).view(row.dtype)
    if row.dtype == object:
        values = np.empty(len(field), object)
        values[:] = list(field)
        return values
    if row.dtype.kind in "iu" and row.dtype.itemsize < 4:
        return np.array(field, np.int64).astype(row.dtype)
    return np.array(field, row.dtype)


def _bad(node: str, what: str) -> ConversionError:
    return error("bad-tensor", f"the tensor {what}", op="tf.Const", node=node, hint="the model file is damaged")
