"""Ops with channels first: transposed to channels last, done there, and transposed back.

Two transposes that meet become one, or none where they undo each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tfconvert.converter.rewrite.pattern import Failure
from tfconvert.converter.targets.litert.legalize.entry import Entry, Lowering
from tfconvert.converter.targets.litert.legalize.litert_builder import LiteRTBuilder
from tfconvert.schema.dialects import tensor_data, tf, types
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

_LAST = {"NCHW": "NHWC", "NCDHW": "NDHWC"}
_PER_DIMENSION = ("strides", "dilations", "ksize")


def _channels_first(op: Operation) -> Failure | None:
    return None if str(tf.get(op, "data_format", "")) in _LAST else Failure("its channels are last")


def _rank_of(op: Operation) -> int:
    """Returns the rank; `BiasAdd` and batch norms take any, and their data_format is NCHW all the same."""
    shape = op.results[0].shape
    return len(str(tf.get(op, "data_format"))) if shape is None else len(shape)


def _moved(values: Sequence[Any], permutation: Sequence[int]) -> list[Any]:
    """Returns values per dimension in another order; pairs stay together."""
    size = len(values) // len(permutation)
    return [values[size * axis + i] for axis in permutation for i in range(size)]


def _with_channels_last(emit: LiteRTBuilder, op: Operation, operand: int, sizes: int | None = None) -> list[Value]:
    rank = _rank_of(op)
    to_last = (0, *range(2, rank), 1)
    to_first = (0, rank - 1, *range(1, rank - 1))
    operands = list(op.operands)
    operands[operand] = emit.transpose(operands[operand], to_last)
    if sizes is not None:
        operands[sizes] = _moved_sizes(emit, operands[sizes], to_last)
    attributes: dict[str, Any] = dict(op.properties)
    attributes["data_format"] = _LAST[str(tf.get(op, "data_format"))]
    for name in (*_PER_DIMENSION, "explicit_paddings"):
        values = tf.get(op, name)
        if values:
            attributes[name] = _moved(values, to_last)
    shape = op.results[0].shape
    moved = None if shape is None else tuple(shape[axis] for axis in to_last)
    result_types = [types.tensor(op.results[0].element, moved), *(r.type for r in op.results[1:])]
    created = emit.tf_op(op.name.removeprefix("tf."), operands, result_types, attributes)
    return [emit.transpose(created.results[0], to_first), *created.results[1:]]


def _moved_sizes(emit: LiteRTBuilder, sizes: Value, permutation: Sequence[int]) -> Value:
    if sizes.shape == (2,):
        return sizes  # They are height and width wherever the channels are.
    constant = tensor_data.constant_of(sizes)
    if constant is not None:
        return emit.constant(tensor_data.to_array(constant)[list(permutation)].astype(np.int32))
    axis = emit.constant(np.array(0, np.int32))
    return emit.tf("GatherV2", (emit.i32(sizes), emit.ints(permutation), axis), types.tensor(types.I32, (4,)))


def _first_operand(op: Operation, emit: LiteRTBuilder) -> list[Value]:
    return _with_channels_last(emit, op, 0)


def _third_operand(op: Operation, emit: LiteRTBuilder) -> list[Value]:
    return _with_channels_last(emit, op, 2, sizes=0)


def _permutations(op: Operation) -> tuple[Operation, list[int]] | None:
    """Returns the transpose that computes the operand, and both permutations combined; `None` if unknown."""
    before = op.operands[0].owner
    if not isinstance(before, Operation) or before.name not in ("tf.Transpose", "tfl.transpose"):
        return None
    constants = [tensor_data.constant_of(transpose.operands[1]) for transpose in (before, op)]
    if constants[0] is None or constants[1] is None:
        return None
    first, second = (
        tensor_data.to_array(constant).reshape(-1).tolist() for constant in constants if constant is not None
    )
    if any(sorted(order) != list(range(len(second))) for order in (first, second)):
        return None
    return before, [first[axis] for axis in second]


def _follows_transpose(op: Operation) -> Failure | None:
    return Failure("no transpose comes before it") if _permutations(op) is None else None


def _merge_transposes(op: Operation, emit: LiteRTBuilder) -> Value:
    found = _permutations(op)
    assert found is not None
    before, permutation = found
    return emit.transpose(before.operands[0], permutation)


_FIRST = (
    "Conv2D",
    "DepthwiseConv2dNative",
    "Conv3D",
    "MaxPool",
    "AvgPool",
    "MaxPool3D",
    "AvgPool3D",
    "BiasAdd",
    "FusedBatchNorm",
    "FusedBatchNormV2",
    "FusedBatchNormV3",
    "SpaceToDepth",
    "DepthToSpace",
)

ENTRIES: tuple[Entry, ...] = (
    *(
        Lowering(op, "Transpose", _first_operand, constraint=_channels_first, benefit=3, name=f"{op}-channels-last")
        for op in _FIRST
    ),
    Lowering(
        "Conv2DBackpropInput",
        "Transpose",
        _third_operand,
        constraint=_channels_first,
        benefit=3,
        name="Conv2DBackpropInput-channels-last",
    ),
    Lowering("Transpose", "Transpose", _merge_transposes, constraint=_follows_transpose, benefit=3),
)
