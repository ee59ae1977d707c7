"""Einstein sums as transposes, sums, and one batched matrix product for each pair of operands.

    bqhd,bkhd->bhqk

has the batch labels `b` and `h` (in both operands and the result), sums over `d`, and keeps `q` of the left and `k` of
the right operand: transposed to `bhqd` and `bhdk` it is a batched product. Labels of one kind that follow each other
are merged to one dimension for it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from tfconvert.converter.rewrite.pattern import Failure
from tfconvert.converter.targets.litert.legalize.entry import Entry, Lowering
from tfconvert.converter.targets.litert.legalize.litert_builder import LiteRTBuilder
from tfconvert.ops.matmul import einsum_labels
from tfconvert.schema.dialects import tf, types
from tfconvert.schema.dialects.dims import MismatchError, constant_target
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

_MAX_BATCH = 3


class Labelled(NamedTuple):
    """A value whose dimensions have names.

    Attributes:
        value: The value.
        labels: A letter for each dimension.
    """

    value: Value
    labels: str

    def size(self, label: str) -> int:
        """Returns a dimension's size, -1 if unknown."""
        return (types.shape_of(self.value.type) or ())[self.labels.index(label)]


def _constraint(op: Operation) -> Failure | None:
    shapes = [types.shape_of(operand.type) for operand in op.operands]
    ranks = [len(shape) for shape in shapes if shape is not None]
    if len(ranks) != len(shapes) or len(ranks) > 2:
        return Failure("an operand's rank is not known, or there are more than two")
    try:
        labels, result = einsum_labels(str(tf.get(op, "equation")), ranks)
    except MismatchError as problem:
        return Failure(str(problem))
    if any(len(set(term)) != len(term) for term in (*labels, result)):
        return Failure("a label occurs twice in one operand")
    sizes: dict[str, set[int]] = {}
    for term, shape in zip(labels, shapes, strict=True):
        for label, size in zip(term, shape or (), strict=True):
            sizes.setdefault(label, set()).add(size)
    if any(len(found - {-1, 1}) > 1 for found in sizes.values()):
        return Failure("the operands' dimensions differ")
    return None if set(result) <= set(sizes) else Failure("a label of the result is in no operand")


def _einsum(op: Operation, emit: LiteRTBuilder) -> Value:
    ranks = [len(types.shape_of(operand.type) or ()) for operand in op.operands]
    labels, result = einsum_labels(str(tf.get(op, "equation")), ranks)
    terms = _unstretched(emit, [Labelled(value, term) for value, term in zip(op.operands, labels, strict=True)])
    together = _pair(emit, terms[0], terms[1], set(result)) if len(terms) > 1 else _sum(emit, terms[0], set(result))
    return _arrange(emit, together, result).value


def _unstretched(emit: LiteRTBuilder, terms: Sequence[Labelled]) -> list[Labelled]:
    """Drops dimensions of size 1 that are larger in another operand."""
    longer = {label for term in terms for label in term.labels if term.size(label) not in (-1, 1)}
    result = []
    for term in terms:
        dropped = [axis for axis, label in enumerate(term.labels) if label in longer and term.size(label) == 1]
        value = term.value
        if dropped:
            shape = [dim for axis, dim in enumerate(types.shape_of(value.type) or ()) if axis not in dropped]
            kept = types.tensor(types.element_of(value.type), shape)
            value = emit.tf("Squeeze", (value,), kept, {"squeeze_dims": dropped})
        result.append(Labelled(value, "".join(label for at, label in enumerate(term.labels) if at not in dropped)))
    return result


def _sum(emit: LiteRTBuilder, term: Labelled, needed: set[str]) -> Labelled:
    """Sums over the labels that are in no other operand nor in the result."""
    axes = [axis for axis, label in enumerate(term.labels) if label not in needed]
    if not axes:
        return term
    labels = "".join(label for label in term.labels if label in needed)
    return Labelled(emit.reduce("Sum", term.value, axes), labels)


def _arrange(emit: LiteRTBuilder, term: Labelled, labels: str) -> Labelled:
    return Labelled(emit.transpose(term.value, [term.labels.index(label) for label in labels]), labels)


def _pair(emit: LiteRTBuilder, left: Labelled, right: Labelled, needed: set[str]) -> Labelled:
    """Multiplies two operands and sums over the labels that only they have."""
    left = _sum(emit, left, needed | set(right.labels))
    right = _sum(emit, right, needed | set(left.labels))
    shared = [label for label in left.labels if label in right.labels]
    contracted = "".join(label for label in shared if label not in needed)
    if not contracted:
        return _product(emit, left, right)
    batch = "".join(label for label in shared if label in needed)
    rows = "".join(label for label in left.labels if label not in shared)
    columns = "".join(label for label in right.labels if label not in shared)
    return _matrix_product(emit, left, right, (batch, rows, columns, contracted))


def _product(emit: LiteRTBuilder, left: Labelled, right: Labelled) -> Labelled:
    """Multiplies elementwise, each operand having ones where it has no label."""
    own = "".join(label for label in right.labels if label not in left.labels)
    labels = left.labels + own
    right = _arrange(emit, right, "".join(label for label in labels if label in right.labels))
    spread = [
        _dims(emit, term.value, [(term.labels.index(label), 1) if label in term.labels else (0, 0) for label in labels])
        for term in (left, right)
    ]
    return Labelled(emit.binary("Mul", *spread), labels)


def _matrix_product(
    emit: LiteRTBuilder, left: Labelled, right: Labelled, groups: tuple[str, str, str, str]
) -> Labelled:
    batch, rows, columns, contracted = groups
    transposed = right.labels == batch + columns + contracted
    left = _arrange(emit, left, batch + rows + contracted)
    right = right if transposed else _arrange(emit, right, batch + contracted + columns)
    # Without a batch the rows need no merging: the kernels take any number of them.
    merged_batch = len(batch) > _MAX_BATCH
    kept = [(0, len(batch))] if merged_batch else [(axis, 1) for axis in range(len(batch))]
    at = len(batch)
    keeps_rows = not batch and 0 < len(rows) <= _MAX_BATCH
    row_groups = [(axis, 1) for axis in range(len(rows))] if keeps_rows else [(at, len(rows))]
    x = _dims(emit, left.value, [*kept, *row_groups, (at + len(rows), len(contracted))])
    inner, outer = (at, len(contracted)), (at + len(contracted), len(columns))
    if transposed:
        outer, inner = (at, len(columns)), (at + len(columns), len(contracted))
    y = _dims(emit, right.value, [*kept, outer, inner] if transposed else [*kept, inner, outer])
    shapes = types.shape_of(x.type) or (), types.shape_of(y.type) or ()
    result_type = types.tensor(types.element_of(x.type), (*shapes[0][:-1], shapes[1][-2 if transposed else -1]))
    product = emit.tf("BatchMatMulV2", (x, y), result_type, {"adj_x": False, "adj_y": transposed})
    labels = batch + rows + columns
    sizes = [left.size(label) if label in left.labels else right.size(label) for label in labels]
    return Labelled(_split(emit, product, left, right, labels, sizes), labels)


def _dims(emit: LiteRTBuilder, value: Value, groups: Sequence[tuple[int, int]]) -> Value:
    """Merges dimensions: each group is a first dimension and how many follow; none at all is a new dimension."""
    shape = types.shape_of(value.type) or ()
    if len(groups) == len(shape) and all(count == 1 for _, count in groups):
        return value
    merged = []
    for first, count in groups:
        part = shape[first : first + count]
        merged.append(-1 if -1 in part else math.prod(part))
    if constant_target(tuple(merged)) is not None:
        return emit.reshape(value, merged)
    sizes = emit.shape(value)
    parts = []
    for (first, count), size in zip(groups, merged, strict=True):
        if size >= 0:
            parts.append(emit.ints((size,)))
        else:
            cut = _cut(emit, sizes, first, count)
            parts.append(cut if count == 1 else emit.reduce("Prod", cut, (0,), keep_dims=True))
    return _reshape(emit, value, parts, merged)


def _split(
    emit: LiteRTBuilder, product: Value, left: Labelled, right: Labelled, labels: str, sizes: Sequence[int]
) -> Value:
    """Gives every label its own dimension again."""
    if types.shape_of(product.type) == tuple(sizes):
        return product
    if constant_target(tuple(sizes)) is not None:
        return emit.reshape(product, sizes)
    parts = []
    for label, size in zip(labels, sizes, strict=True):
        source = left if label in left.labels else right
        known = emit.ints((size,)) if size >= 0 else _cut(emit, emit.shape(source.value), source.labels.index(label), 1)
        parts.append(known)
    return _reshape(emit, product, parts, sizes)


def _cut(emit: LiteRTBuilder, sizes: Value, first: int, count: int) -> Value:
    return emit.tf("Slice", (sizes, emit.ints((first,)), emit.ints((count,))), types.tensor(types.I32, (count,)))


def _reshape(emit: LiteRTBuilder, value: Value, parts: Sequence[Value], shape: Sequence[int]) -> Value:
    sizes = parts[0]
    if len(parts) > 1:
        sizes = emit.tfl("concatenation", parts, types.tensor(types.I32, (len(parts),)), {"axis": 0})
    return emit.tf("Reshape", (value, sizes), types.tensor(types.element_of(value.type), shape))


ENTRIES: tuple[Entry, ...] = (Lowering("Einsum", "Transpose Sum BatchMatMulV2", _einsum, "f32 i32 i64", _constraint),)
