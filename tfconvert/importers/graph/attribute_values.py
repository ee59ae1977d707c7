"""AttrValues and small constant nodes, for nodes that the importer creates."""

from __future__ import annotations

from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb


def of_type(number: pb.DataType) -> pb.AttrValue:
    """Returns the AttrValue of an element type."""
    return pb.AttrValue(type=number)


def integers(name: str, *values: int) -> pb.NodeDef:
    """Returns a constant node: a scalar of one value, a vector of more."""
    tensor = pb.TensorProto(dtype=pb.DT_INT32, int_val=values)
    if len(values) > 1:
        tensor.tensor_shape.dim.add(size=len(values))
    return pb.NodeDef(name=name, op="Const", attr={"dtype": of_type(pb.DT_INT32), "value": pb.AttrValue(tensor=tensor)})
