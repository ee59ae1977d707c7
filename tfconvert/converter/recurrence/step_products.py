"""What all steps of a sequence do alike, from its elements and constants only, is done once for the whole sequence.

unpack(x)[t] @ w  for all t                   ->  unpack(x @ w)[t]
unpack(x)[t] + b  for all t, b a vector       ->  unpack(x + b)[t]
split(unpack(x)[t], last axis)  for all t     ->  unpack(split(x, last axis))[t]
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tfconvert.converter.ir.constants import constant_int
from tfconvert.converter.ir.edit import erase_dead, replace_op
from tfconvert.converter.ir.tf_builder import TFBuilder
from tfconvert.schema.dialects import tensor_data, tf, types
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.block import Block
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value


def hoist_products(block: Block) -> int:
    """Rewrites the steps of a block, in which equal ops are one; returns how many ops became parts of one."""
    todo = [op for op in block.ops if op.name == "tf.Unpack"]
    hoisted = 0
    while todo:
        apart = todo.pop()
        rank = len(types.shape_of(apart.operands[0].type) or ())
        if rank != 3 or tf.get(apart, "axis", 0) not in (0, 1):
            continue
        for alike in _alike(apart):
            hoisted += len(alike)
            todo += _at_once(apart, alike)
    if hoisted:
        erase_dead(block)
    return hoisted


def _alike(apart: Operation) -> list[list[Operation]]:
    """Returns ops that do the same with each step, in the order of the steps."""
    steps = [[use.operation for use in result.uses if _takes(use.operation, result)] for result in apart.results]
    if len(steps) < 2:
        return []
    found = []
    for op in steps[0]:
        alike = [next((other for other in ops if _is_like(other, op)), None) for ops in steps]
        same = [other for other in alike if other is not None]
        if len(same) == len(steps):
            found.append(same)
    return found


def _is_like(op: Operation, other: Operation) -> bool:
    data = _DATA[op.name]
    return (
        op.name == other.name
        and op.properties == other.properties
        and all(
            one is another or index == data
            for index, (one, another) in enumerate(zip(op.operands, other.operands, strict=True))
        )
    )


def _is_vector(value: Value) -> bool:
    return tensor_data.constant_of(value) is not None and len(types.shape_of(value.type) or (0, 0)) == 1


# The ops that can take a whole sequence, and which operand that is.
_DATA: Mapping[str, int] = {"tf.MatMul": 0, "tf.BiasAdd": 0, "tf.AddV2": 0, "tf.Split": 1}

_FITS: Mapping[str, Callable[[Operation], bool]] = {
    "tf.MatMul": lambda op: tensor_data.constant_of(op.operands[1]) is not None and not tf.get(op, "transpose_a"),
    "tf.BiasAdd": lambda op: _is_vector(op.operands[1]) and tf.get(op, "data_format", "NHWC") == "NHWC",
    "tf.AddV2": lambda op: _is_vector(op.operands[1]),
    "tf.Split": lambda op: constant_int(op.operands[0]) in (1, -1),
}


def _takes(op: Operation, step: Value) -> bool:
    data = _DATA.get(op.name)
    return data is not None and op.operands[data] is step and _FITS[op.name](op)


def _at_once(apart: Operation, alike: Sequence[Operation]) -> list[Operation]:
    """Replaces ops by one that takes the whole sequence; returns what takes its results apart."""
    block, members, first = apart.parent, set(alike), alike[0]
    assert block is not None
    insert = TFBuilder(next(op for op in block.ops if op in members))
    sequence, axis = apart.operands[0], int(tf.get(apart, "axis", 0))
    length = len(alike)
    kinds = [_whole(result.type, axis, length) for result in first.results]
    if first.name == "tf.MatMul":
        options = {"adj_x": False, "adj_y": bool(tf.get(first, "transpose_b", False))}
        made = insert.tf_op("BatchMatMulV2", (sequence, first.operands[1]), kinds, options)
    elif first.name == "tf.Split":
        made = insert.tf_op("Split", (2, sequence), kinds)
    else:
        made = insert.tf_op(first.name.removeprefix(tf.PREFIX), (sequence, first.operands[1]), kinds, first.properties)
    parts = []
    for whole, result in zip(made.results, first.results, strict=True):
        parts.append(insert.tf_op("Unpack", (whole,), [result.type] * length, {"axis": axis}))
    for step, op in enumerate(alike):
        replace_op(op, [part.results[step] for part in parts])
    return parts


def _whole(row: Attribute, axis: int, length: int) -> Attribute:
    """Returns the type of a sequence of rows."""
    dims = types.shape_of(row) or ()
    return types.tensor(types.element_of(row), (*dims[:axis], length, *dims[axis:]))
