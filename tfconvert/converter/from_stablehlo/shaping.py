"""Constants, and ops that move elements: broadcasts, reshapes, transposes."""

from __future__ import annotations

from tfconvert.converter.from_stablehlo.raised_op import RaisedOp, Rows
from tfconvert.converter.ir.tensors import EmittedTensor
from tfconvert.schema.dialects import tensor_data


def _constant(raised: RaisedOp) -> EmittedTensor:
    value = raised.op.properties["value"]
    assert tensor_data.is_constant(value)
    return raised.constant_of(value)


def _broadcast_in_dim(raised: RaisedOp) -> EmittedTensor:
    shape = raised.declared()
    (operand,) = raised.operands
    aligned = _aligned(raised, operand, len(shape))
    return raised.broadcast(aligned, raised.constant(shape, "int32"), shape)


def _aligned(raised: RaisedOp, operand: EmittedTensor, rank: int) -> EmittedTensor:
    """Returns an operand whose dimensions are the last ones of the result, by dimensions of size 1 between them."""
    axes = raised.ints("broadcast_dimensions")
    if axes == tuple(range(rank - len(axes), rank)):
        return operand
    sizes = raised.sizes(operand)
    order = sorted(range(len(axes)), key=axes.__getitem__)
    if order != list(range(len(axes))):
        operand = operand.op("Transpose", operand, order)
    target = [1] * (rank - min(axes, default=rank))
    first = rank - len(target)
    for axis, into in enumerate(axes):
        target[into - first] = sizes[axis]
    return raised.reshaped(operand, target)


ROWS: Rows = {"broadcast_in_dim": _broadcast_in_dim, "constant": _constant}
