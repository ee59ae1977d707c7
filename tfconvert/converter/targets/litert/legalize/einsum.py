"""Einstein sums as transposes, sums, and one batched matrix product for each pair of operands.

    bqhd,bkhd->bhqk

has the batch labels `b` and `h` (in both operands and the result), sums over `d`, and keeps `q` of the left and `k` of
the right operand: transposed to `bhqd` and `bhdk` it is a batched product. Labels of one kind that follow each other
are merged to one dimension for it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import groupby, product
from typing import NamedTuple

from tfconvert.converter.ir.constants import constant_ints
from tfconvert.converter.rewrite.pattern import Failure
from tfconvert.converter.targets.litert import fake_quant
from tfconvert.converter.targets.litert.legalize.entry import Entry, Lowering
from tfconvert.converter.targets.litert.legalize.litert_builder import LiteRTBuilder
from tfconvert.ops.matmul import einsum_labels
from tfconvert.schema.dialects import tf, types
from tfconvert.schema.dialects.dims import MismatchError, constant_target
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

_MAX_BATCH = 3


class _Plan(NamedTuple):
    """How a product of matrices is computed."""

    is_swapped: bool  # Whether the right operand is the first.
    turns_left: bool  # Whether the first operand's matrices are transposed by the kernel.
    turns_right: bool  # Whether the second one's are.
    batch: str  # The labels of both operands and the result, in order.
    rows: str  # Those of the first operand and the result.
    columns: str  # Those of the second operand and the result.
    contracted: str  # Those of both operands alone.

    @property
    def left(self) -> str:
        """The labels of the first operand as the kernel takes it."""
        return self.batch + (self.contracted + self.rows if self.turns_left else self.rows + self.contracted)

    @property
    def right(self) -> str:
        """The labels of the second operand as the kernel takes it."""
        return self.batch + (self.columns + self.contracted if self.turns_right else self.contracted + self.columns)


class Labelled(NamedTuple):
    """A value whose dimensions have names."""

    value: Value  # The value.
    labels: str  # A letter for each dimension.

    def size(self, label: str) -> int:
        """Returns a dimension's size, -1 if unknown."""
        return (self.value.shape or ())[self.labels.index(label)]


def _constraint(op: Operation) -> Failure | None:
    shapes = [operand.shape for operand in op.operands]
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
    ranks = [len(operand.shape or ()) for operand in op.operands]
    labels, result = einsum_labels(str(tf.get(op, "equation")), ranks)
    terms = _unstretched(emit, [Labelled(value, term) for value, term in zip(op.operands, labels, strict=True)])
    if len(terms) > 1:
        left, right = map(_untransposed, terms)
        together = _pair(emit, left, right, _wanted(op, result))
    else:
        together = _sum(emit, terms[0], set(result))
    return _arrange(emit, together, result).value


def _untransposed(term: Labelled) -> Labelled:
    """Returns what a term is a transpose of."""
    permutation = _permutation(term.value.owner)
    if permutation is None:
        return term
    assert isinstance(term.value.owner, Operation)
    labels = dict(zip(permutation, term.labels, strict=True))
    return Labelled(term.value.owner.operands[0], "".join(labels[axis] for axis in range(len(labels))))


def _wanted(op: Operation, result: str) -> str:
    """Returns the order of the result's labels behind a transpose that is its only use."""
    uses = list(op.results[0].uses)
    permutation = _permutation(uses[0].operation) if len(uses) == 1 else None
    return result if permutation is None else "".join(result[axis] for axis in permutation)


def _permutation(op: object) -> tuple[int, ...] | None:
    """Returns the permutation of a transpose, `None` for other ops."""
    if not isinstance(op, Operation) or op.name not in ("tf.Transpose", "tfl.transpose"):
        return None
    return constant_ints(op.operands[1])


def _unstretched(emit: LiteRTBuilder, terms: Sequence[Labelled]) -> list[Labelled]:
    """Drops dimensions of size 1 that are larger in another operand."""
    longer = {label for term in terms for label in term.labels if term.size(label) not in (-1, 1)}
    result = []
    for term in terms:
        dropped = [axis for axis, label in enumerate(term.labels) if label in longer and term.size(label) == 1]
        value = term.value
        if dropped:
            shape = [dim for axis, dim in enumerate(value.shape or ()) if axis not in dropped]
            kept = types.tensor(value.element, shape)
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


def _pair(emit: LiteRTBuilder, left: Labelled, right: Labelled, wanted: str) -> Labelled:
    """Multiplies two operands and sums over the labels that only they have."""
    needed = set(wanted)
    left = _sum(emit, left, needed | set(right.labels))
    right = _sum(emit, right, needed | set(left.labels))
    shared = [label for label in left.labels if label in right.labels]
    if all(label in needed for label in shared):
        return _product(emit, left, right)
    return _matrix_product(emit, left, right, _best_plan(left, right, wanted))


def _best_plan(left: Labelled, right: Labelled, wanted: str) -> _Plan:
    """Returns the plan with the fewest transposes of values that are no constants."""

    def cost(plan: _Plan) -> float:
        first, second = (right, left) if plan.is_swapped else (left, right)
        is_constant = [fake_quant.constant_behind(term.value) is not None for term in (first, second)]
        moved = (first.labels != plan.left and not is_constant[0]) + (
            second.labels != plan.right and not is_constant[1]
        )
        moved += plan.batch + plan.rows + plan.columns != wanted
        if plan.batch or not any(is_constant):
            return moved
        # A layer has constant weights on its right side, and rows on its left one.
        return moved + plan.turns_left if is_constant[1] else moved + 0.5

    return min(_plans(left.labels, right.labels, wanted), key=cost)


def _plans(left: str, right: str, wanted: str) -> Iterator[_Plan]:
    """Yields the ways to compute a product, those that swap and transpose the least first."""
    shared = {*left} & {*right}
    batch = _orders(shared & {*wanted}, left, right, wanted)
    contracted = _orders(shared - {*wanted}, left, right)
    for is_swapped, (first, second) in ((False, (left, right)), (True, (right, left))):
        rows = _orders({*first} - shared, first, wanted)
        columns = _orders({*second} - shared, second, wanted)
        for turns_left, turns_right in product((False, True), repeat=2):
            for labels in product(batch, rows, columns, contracted):
                yield _Plan(is_swapped, turns_left, turns_right, *labels)


def _orders(labels: set[str], *terms: str) -> list[str]:
    """Returns the different orders that labels have in terms."""
    return list(dict.fromkeys("".join(label for label in term if label in labels) for term in terms))


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


def _matrix_product(emit: LiteRTBuilder, left: Labelled, right: Labelled, plan: _Plan) -> Labelled:
    if plan.is_swapped:
        left, right = right, left
    batch, rows, columns, contracted = plan.batch, plan.rows, plan.columns, plan.contracted
    left, right = _arrange(emit, left, plan.left), _arrange(emit, right, plan.right)
    # Without a batch the rows need no merging: the kernels take any number of them.
    at = len(batch)
    kept = [(0, at)] if at > _MAX_BATCH else [(axis, 1) for axis in range(at)]
    keeps_rows = not batch and not plan.turns_left and 0 < len(rows) <= _MAX_BATCH
    first = _groups(at, len(rows), len(contracted), plan.turns_left)
    x = _dims(
        emit, left.value, [*([(axis, 1) for axis in range(len(rows))] if keeps_rows else kept + first[:1]), first[1]]
    )
    y = _dims(emit, right.value, kept + _groups(at, len(contracted), len(columns), plan.turns_right))
    shapes = x.shape or (), y.shape or ()
    counts = shapes[0][-1 if plan.turns_left else -2], shapes[1][-2 if plan.turns_right else -1]
    result_type = types.tensor(x.element, (*shapes[0][:-2], *counts))
    options = {"adj_x": plan.turns_left, "adj_y": plan.turns_right}
    multiplied = emit.tf("BatchMatMulV2", (x, y), result_type, options)
    labels = batch + rows + columns
    sizes = [left.size(label) if label in left.labels else right.size(label) for label in labels]
    return Labelled(_split(emit, multiplied, left, right, labels, sizes), labels)


def _groups(at: int, outer: int, inner: int, is_turned: bool) -> list[tuple[int, int]]:
    """Returns the dimensions of a matrix behind a batch, for `_dims`."""
    first, second = (inner, outer) if is_turned else (outer, inner)
    return [(at, first), (at + first, second)]


def _dims(emit: LiteRTBuilder, value: Value, groups: Sequence[tuple[int, int]]) -> Value:
    """Merges dimensions: each group is a first dimension and how many follow; none at all is a new dimension."""
    shape = value.shape or ()
    if len(groups) == len(shape) and all(count == 1 for _, count in groups):
        return value
    merged = []
    for first, count in groups:
        part = shape[first : first + count]
        merged.append(-1 if -1 in part else math.prod(part))
    if constant_target(tuple(merged)) is not None:
        return emit.reshape(value, merged)
    places = [(value, *group) for group in groups]
    return _reshape(emit, value, places, merged)


def _split(
    emit: LiteRTBuilder, joined: Value, left: Labelled, right: Labelled, labels: str, sizes: Sequence[int]
) -> Value:
    """Gives every label its own dimension again."""
    if joined.shape == tuple(sizes):
        return joined
    if constant_target(tuple(sizes)) is not None:
        return emit.reshape(joined, sizes)
    sources = [left if label in left.labels else right for label in labels]
    places = [(source.value, source.labels.index(label), 1) for source, label in zip(sources, labels, strict=True)]
    return _reshape(emit, joined, places, sizes)


def _reshape(
    emit: LiteRTBuilder, value: Value, places: Sequence[tuple[Value, int, int]], shape: Sequence[int]
) -> Value:
    """Reshapes to sizes that only running tells.

    Args:
        emit: Inserts the ops.
        value: The value.
        places: For each dimension the value that has it, its first dimension there, and how many are merged.
        shape: The dimensions as far as they are known.
    """
    parts: list[Value] = []
    # Dimensions that follow each other in one value are cut out at once.
    keys = [
        size >= 0 or (source, first - number, number if count > 1 else -1)
        for number, (size, (source, first, count)) in enumerate(zip(shape, places, strict=True))
    ]
    for key, run in groupby(range(len(keys)), keys.__getitem__):
        numbers = list(run)
        source, first, count = places[numbers[0]]
        if key is True:
            parts.append(emit.ints([shape[number] for number in numbers]))
        elif count > 1:
            parts.append(emit.reduce("Prod", _cut(emit, source, first, count), (0,), keep_dims=True))
        else:
            parts.append(_cut(emit, source, first, len(numbers)))
    sizes = parts[0]
    if len(parts) > 1:
        sizes = emit.tfl("concatenation", parts, types.tensor(types.I32, (len(shape),)), {"axis": 0})
    return emit.tf("Reshape", (value, sizes), types.tensor(value.element, shape))


def _cut(emit: LiteRTBuilder, value: Value, first: int, count: int) -> Value:
    operands = (emit.shape(value), emit.ints((first,)), emit.ints((count,)))
    return emit.tf("Slice", operands, types.tensor(types.I32, (count,)))


ENTRIES: tuple[Entry, ...] = (Lowering("Einsum", "Transpose Sum BatchMatMulV2", _einsum, "f32 i32 i64", _constraint),)
