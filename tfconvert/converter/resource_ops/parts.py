"""Ops that look up, replace or change a part of a variable, or add to all of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from tfconvert.converter.resource_ops.access import Access
from tfconvert.schema.dialects import tf, types
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

_INTEGERS = frozenset({types.I32, types.I64})
_OF_INTEGERS = {"RealDiv": "TruncateDiv"}
_MASKS = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")


def _update(compute: str, access: Access) -> None:
    operand = access.op.operands[1]
    old = access.read(element=types.element_of(operand.type))
    access.assign(access.tf(compute, (old, operand), old.type))


def _scatter(compute: str, access: Access) -> None:
    """Each index is that of a row: a vector of one for the op that takes vectors."""
    old = access.read(element=types.element_of(access.op.operands[2].type))
    indices, updates = access.op.operands[1], _rows(access, old)
    shape = types.shape_of(indices.type)
    vectors = types.tensor(types.element_of(indices.type), None if shape is None else (*shape, 1))
    indices = access.tf("ExpandDims", (indices, access.number(-1)), vectors)
    if shape == ():
        indices, updates = (_as_one(access, value) for value in (indices, updates))
    access.assign(access.tf(compute, (old, indices, updates), old.type))


def _as_one(access: Access, value: Value) -> Value:
    """Returns a value with a leading dimension of 1: kernels don't take single updates."""
    shape = types.shape_of(value.type)
    result = types.tensor(types.element_of(value.type), None if shape is None else (1, *shape))
    return access.tf("ExpandDims", (value, access.number(0)), result)


def _rows(access: Access, old: Value) -> Value:
    """Returns the updates that are scattered, each a row; one scalar may represent all of them."""
    indices, updates = access.op.operands[1:3]
    if not _is_one_for_all(access.op):
        return updates
    row, named = (types.shape_of(old.type) or ())[1:], types.shape_of(indices.type)
    if types.is_static(named):
        shape = access.ints((*(named or ()), *row))
    else:
        counts = access.tf("Shape", (indices,), types.tensor(types.I32, (-1 if named is None else len(named),)))
        whole = types.tensor(types.I32, (-1 if named is None else len(named) + len(row),))
        shape = access.tf("ConcatV2", (counts, access.ints(row), access.number(0)), whole)
    result = types.tensor(types.element_of(updates.type), None if named is None else (*named, *row))
    return access.tf("Fill", (shape, updates), result)


def _is_one_for_all(op: Operation) -> bool:
    is_vector = len(Access(op).held_shape() or (0,)) == 1
    return types.shape_of(op.operands[2].type) == () and not (is_vector and types.shape_of(op.operands[1].type) == ())


def _scatter_product(compute: str, access: Access) -> None:
    """Rows are multiplied with, or divided by, the product of all that is scattered to them."""
    old = access.read(element=types.element_of(access.op.operands[2].type))
    if types.element_of(old.type) in _INTEGERS:
        compute = _OF_INTEGERS.get(compute, compute)
    count = access.number((types.shape_of(old.type) or (0,))[0])
    product = access.tf("UnsortedSegmentProd", (_rows(access, old), access.op.operands[1], count), old.type)
    access.assign(access.tf(compute, (old, product), old.type))


def _scatter_nd(compute: str, access: Access) -> None:
    indices, updates = access.op.operands[1:3]
    old = access.read(element=types.element_of(updates.type))
    access.assign(access.tf(compute, (old, indices, updates), old.type))


def _slice_assign(access: Access) -> None:
    _, begin, end, strides, value = access.op.operands
    old = access.read(element=types.element_of(value.type))
    masks = {name: tf.get(access.op, name, 0) for name in _MASKS}
    access.assign(access.tf("TensorStridedSliceUpdate", (old, begin, end, strides, value), old.type, masks))


def _gather(access: Access) -> None:
    op = access.op
    table = access.read(element=types.element_of(op.results[0].type))
    batch_dims = tf.get(op, "batch_dims", 0)
    operands = (table, op.operands[1], access.number(batch_dims))
    results = [result.type for result in op.results]
    access.replace_results(access.tf_op("GatherV2", operands, results, {"batch_dims": batch_dims}).results)


def _gather_nd(access: Access) -> None:
    op = access.op
    table = access.read(element=types.element_of(op.results[0].type))
    access.replace_results(access.tf_op("GatherNd", (table, op.operands[1]), op.result_types).results)


def _shape(access: Access) -> None:
    wanted = access.op.results[0].type
    shape = access.held_shape()
    if types.is_static(shape):
        access.replace_results([access.ints(shape or (), types.element_of(wanted))])
    else:
        access.replace_results([access.tf("Shape", (access.read(),), wanted)])


def _drop(access: Access) -> None:
    """No-op: a memory hint."""


_COMBINED = ("Update", "Add", "Sub", "Min", "Max")

PARTS: Mapping[str, Callable[[Access], None]] = {
    "tf.AssignAddVariableOp": partial(_update, "AddV2"),
    "tf.AssignSubVariableOp": partial(_update, "Sub"),
    "tf.DisableCopyOnRead": _drop,
    "tf.ResourceGather": _gather,
    "tf.ResourceGatherNd": _gather_nd,
    "tf.ResourceScatterDiv": partial(_scatter_product, "RealDiv"),
    "tf.ResourceScatterMul": partial(_scatter_product, "Mul"),
    **{f"tf.ResourceScatter{name}": partial(_scatter, f"TensorScatter{name}") for name in _COMBINED},
    **{f"tf.ResourceScatterNd{name}": partial(_scatter_nd, f"TensorScatter{name}") for name in _COMBINED},
    "tf.ResourceStridedSliceAssign": _slice_assign,
    "tf.VariableShape": _shape,
}
"""Op -> the function that expands it, before it is erased."""


def can_be_written(op: Operation) -> bool:
    """Returns whether an op of `PARTS` can be expanded: some require the variable's shape or type."""
    if op.name == "tf.VariableShape":
        return Access(op).held_element() is not None
    if not op.name.startswith("tf.ResourceScatter") or op.name.startswith("tf.ResourceScatterNd"):
        return True
    needs_shape = op.name in ("tf.ResourceScatterMul", "tf.ResourceScatterDiv") or _is_one_for_all(op)
    return not needs_shape or types.is_static(Access(op).held_shape())
