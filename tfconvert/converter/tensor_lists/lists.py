"""Tensor lists: the groups of values that are the same list, and lowerings of the ops to tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tfconvert.converter.control_flow.calls import Calls
from tfconvert.converter.ir.constants import Scalar, constant_array, constant_int, is_enumeration
from tfconvert.converter.ir.tf_builder import TFBuilder
from tfconvert.converter.shapes.list_ops import FORWARDING, OPS, ListClass, ListOp, changes_length
from tfconvert.schema.diagnostics import ConversionError, Diagnostic
from tfconvert.schema.dialects import tensor_data, tf, types
from tfconvert.schema.dialects.dims import MismatchError, merge
from tfconvert.schema.dialects.locations import error_at, found_at
from tfconvert.schema.dialects.types import Shape
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value


class ValueSets:
    """Disjoint sets of values (union-find). At first each value is alone in a set."""

    __slots__ = ("_parents",)

    def __init__(self) -> None:
        self._parents: dict[Value, Value] = {}

    def find(self, value: Value) -> Value:
        """Returns the representative of a value's set."""
        parents = self._parents
        root = value
        while (parent := parents.setdefault(root, root)) is not root:
            root = parent
        while (parent := parents[value]) is not root:
            parents[value] = root
            value = parent
        return root

    def join(self, values: Iterable[Value]) -> None:
        """Merges the sets of some values."""
        roots = [self.find(value) for value in values]
        for other in roots[1:]:
            # A value may occur twice, so look up its representative again.
            self._parents[self.find(other)] = self.find(roots[0])

    def sets(self) -> dict[Value, list[Value]]:
        """Returns the sets by their representatives."""
        found: dict[Value, list[Value]] = {}
        for value in self._parents:
            found.setdefault(self.find(value), []).append(value)
        return found

    def retype(self, roots: Iterable[Value], kind: Attribute) -> None:
        """Sets the type of all values of the sets of some representatives."""
        wanted = set(roots)
        for root, values in self.sets().items():
            if root in wanted:
                for value in values:
                    value.type = kind


def groups_of(calls: Calls, is_one: Callable[[Value], bool], joined: Callable[[Operation], list[Value]]) -> ValueSets:
    """Returns the sets of values that are the same object at different points.

    Args:
        calls: The calls of the module.
        is_one: Returns whether a value matters.
        joined: Returns the operands and results of an op that belong to one set.
    """
    groups = ValueSets()
    for function in calls.functions.values():
        for op in function.body.block.ops:
            groups.join(joined(op))
            for call in calls.of.get(op, ()):
                for pair in call.same():
                    if is_one(pair[0]) or is_one(pair[1]):
                        groups.join(pair)
    return groups


def merged_shape(op: Operation, known: Shape | None, shapes: Iterable[Shape | None], container: str) -> Shape | None:
    """Returns the shape of a container's elements, refined by the shapes that an op implies.

    Raises:
        ConversionError: The shapes contradict each other (`list-elements-differ`).
    """
    try:
        for shape in shapes:
            known = merge(known, shape)
    except MismatchError as mismatch:
        raise error_at(
            op,
            "list-elements-differ",
            f"the elements of the {container} differ: {mismatch}",
            f"{'stacks' if container == 'stack' else 'lists'} become tensors: all elements must have one shape",
        ) from None
    return known


def is_variant(value: Value) -> bool:
    """Returns whether a value may be a list."""
    return isinstance(value.element, types.VariantType)


def _lists_of(op: Operation) -> list[Value]:
    entry = OPS.get(op.name)
    if entry is not None:
        return [*(op.operands[index] for index in entry.lists), *op.results[: int(entry.creates)]]
    if op.name in FORWARDING and op.results and is_variant(op.results[0]):
        if op.name == "tf.AddN":
            return [*op.operands, *op.results]
        return [op.operands[0], op.results[0]] if len(op.results) == 1 else []
    return []


def find(calls: Calls) -> dict[Value, ListClass]:
    """Returns the class of every list.

    Raises:
        ConversionError: A list can't become a tensor: it is an operand of an op without tensors (`list-escapes`), its
            elements are lists (`nested-list`), their shapes or types contradict each other (`list-elements-differ`),
            or their rank isn't known (`list-rank`); one error for all.
    """
    groups = groups_of(calls, is_variant, _lists_of)
    by_root: dict[Value, ListClass] = {}
    for function in calls.functions.values():
        for op in function.body.block.ops:
            if op.name in OPS:
                by_root.setdefault(groups.find(_lists_of(op)[0]), ListClass()).ops.append(op)
    classes: dict[Value, ListClass] = {}
    for root, values in groups.sets().items():
        if root in by_root:
            by_root[root].values = values
            classes.update(dict.fromkeys(values, by_root[root]))
    problems = [problem for found in by_root.values() for problem in _describe(found)]
    problems += list(_escapes(calls, classes))
    if problems:
        raise ConversionError(problems)
    return classes


def _describe(found: ListClass) -> Iterator[Diagnostic]:
    """Merges the types and shapes that ops imply for a list's elements; yields contradictions."""
    for op in found.ops:
        entry = OPS[op.name]
        if any(is_variant(item) for item in _items(op, entry)) or isinstance(_declared(op), types.VariantType):
            yield found_at(op, "nested-list", "the elements of the list are lists")
            return
        for element in (_declared(op), *(item.element for item in _items(op, entry))):
            if element is not None and found.element is not None and element != found.element:
                yield found_at(
                    op, "list-elements-differ", f"an element of type {element} gets into a list of type {found.element}"
                )
                return
            found.element = found.element or element
        try:
            found.shape = merged_shape(op, found.shape, _shapes(op, entry), "list")
        except ConversionError as problem:
            yield from problem.diagnostics
            return
    if found.shape is None or found.element is None:
        yield found_at(
            found.ops[0],
            "list-rank",
            "the rank of the elements of the list isn't known",
            "give the TensorArray an element_shape",
        )
    found.length = _common_length(found.ops)


def _declared(op: Operation) -> Attribute | None:
    """Returns the elements' type from an attribute or the type of the list."""
    held = types.held_by(op.results[0].type) if op.results else None
    return op.properties.get("element_dtype") or (None if held is None else types.element_of(held))


def _items(op: Operation, entry: ListOp) -> list[Value]:
    """Returns the operands and results that hold elements."""
    found = [op.operands[index] for index in (entry.item, entry.stack, entry.joined) if index is not None]
    return found + [result for result, kind in zip(op.results, entry.results, strict=False) if kind]


def _shapes(op: Operation, entry: ListOp) -> Iterator[Shape | None]:
    """Yields the shapes of an element that an op implies."""
    held = types.held_by(op.results[0].type) if entry.creates else None
    if held is not None:
        yield types.shape_of(held)
    if entry.shape is not None:
        array = constant_array(op.operands[entry.shape])
        if array is not None and array.ndim == 1:
            yield tuple(max(int(dim), -1) for dim in array)
        elif array is None and (vector := op.operands[entry.shape].shape) and vector[0] >= 0:
            yield (-1,) * vector[0]
    kinds = {"item": entry.item, "stack": entry.stack, "joined": entry.joined}
    for kind, index in kinds.items():
        if index is not None:
            yield _implied_shape(kind, op.operands[index].shape)
    for result, kind in zip(op.results, entry.results, strict=False):
        yield _implied_shape(kind, result.shape)


def _implied_shape(kind: str, shape: Shape | None) -> Shape | None:
    """Returns the shape of an element that the shape of an operand or result implies."""
    if shape is None or not kind:
        return None
    if kind == "item":
        return shape
    return shape[1:] if kind == "stack" else (-1, *shape[1:])


def _common_length(ops: Iterable[Operation]) -> int:
    """Returns the length of a list, or -1 if it is unknown or changes."""
    lengths: set[int] = set()
    for op in ops:
        if changes_length(op):
            return -1
        if op.name in _LENGTHS:
            lengths.add(_LENGTHS[op.name](op))
    return lengths.pop() if len(lengths) == 1 else -1


def _constant_length(index: int) -> Callable[[Operation], int]:
    def length(op: Operation) -> int:
        value = constant_int(op.operands[index])
        return -1 if value is None else max(value, -1)

    return length


def _split_length(op: Operation) -> int:
    return (op.operands[2].shape or (-1,))[0]


# Op that creates a list -> its length.
_LENGTHS: Mapping[str, Callable[[Operation], int]] = {
    "tf.EmptyTensorList": lambda op: 0,
    "tf.TensorListFromTensor": lambda op: (op.operands[0].shape or (-1,))[0],
    "tf.TensorListReserve": _constant_length(1),
    "tf.TensorListScatter": lambda op: -1,
    "tf.TensorListScatterV2": _constant_length(3),
    "tf.TensorListSplit": _split_length,
}


def _escapes(calls: Calls, classes: Mapping[Value, ListClass]) -> Iterator[Diagnostic]:
    """Yields the ops and functions through which lists escape."""
    for name, function in calls.functions.items():
        block = function.body.block
        is_called = block in calls.to
        for op in block.ops:
            used = [value for value in (*op.operands, *op.results) if value in classes]
            if not used or op.name in OPS or op.name in FORWARDING or calls.of.get(op):
                continue
            if op is not block.last_op:
                yield found_at(op, "list-escapes", "a list of tensors is an operand of an op without lists")
            elif not is_called:
                source = used[0].owner
                at = source if isinstance(source, Operation) else function
                yield found_at(
                    at,
                    "list-escapes",
                    f"a list of tensors is a result of function {name!r}",
                    "stack it, and return the tensor",
                )
        if not is_called and any(argument in classes for argument in block.args):
            yield found_at(
                function,
                "list-escapes",
                f"a list of tensors is an argument of function {name!r}",
                "pass a tensor, and create a list from it in the function",
            )


# Element types that LiteRT updates in place; a tensor of others is copied for each update.
_UPDATED = frozenset(
    row.mlir
    for row in types.ELEMENT_TYPES
    if row.name in ("float", "half", "int8", "uint8", "int16", "int32", "uint32", "int64", "bool")
)


@dataclass(frozen=True, slots=True)
class Lowered:
    """An op of a list that has become a tensor.

    Attributes:
        op: The op.
        of: The list that it uses or creates.
        insert: Inserts before it.
    """

    op: Operation
    of: ListClass
    insert: TFBuilder

    @property
    def element(self) -> Attribute:
        assert self.of.element is not None
        return self.of.element

    @property
    def shape(self) -> Shape:
        assert self.of.shape is not None
        return self.of.shape

    def tensor(self, *leading: int) -> Attribute:
        """Returns the type of elements with leading dimensions."""
        return types.tensor(self.element, (*leading, *self.shape))

    def scalar(self, index: int) -> Value:
        """Returns an integer operand of any rank as a scalar `i32`."""
        value = self.insert.i32(self.op.operands[index])
        if value.shape == ():
            return value
        return self.insert.tf("Reshape", (value, self.insert.ints([])), types.tensor(types.I32, ()))

    def sizes(self, value: Value) -> list[Scalar]:
        return [dim if dim >= 0 else self.insert.size(value, axis) for axis, dim in enumerate(self.shape, 1)]

    def padding(self, value: Value, count: Scalar) -> Value:
        """Returns `count` zero elements with the shape of those of a list."""
        return self.insert.zeros([count, *self.sizes(value)], self.element)

    def part(self, value: Value, begin: Scalar, size: Scalar) -> Value:
        """Returns some consecutive elements."""
        rest = [0] * len(self.shape)
        all_of_rest = [-1] * len(self.shape)
        count = constant_int(size)
        bounds = (self.insert.pack([begin, *rest]), self.insert.pack([size, *all_of_rest]))
        return self.insert.tf("Slice", (value, *bounds), self.tensor(-1 if count is None else count))

    def take(self, value: Value, index: Scalar, leading: Shape = ()) -> Value:
        """Returns the elements at indices of some shape."""
        return self.insert.tf("GatherV2", (value, index, 0), self.tensor(*leading), {"batch_dims": 0})


Results = Sequence[Value]


def _same(one: Lowered) -> Results:
    return [one.op.operands[0]]


def _get_item(one: Lowered) -> Results:
    return [one.take(one.op.operands[0], one.scalar(1))]


def _gather(one: Lowered) -> Results:
    indices = one.op.operands[1]
    return [one.take(one.op.operands[0], indices, indices.shape or (-1,))]


def _set_item(one: Lowered) -> Results:
    value, index, item = one.op.operands[0], one.scalar(1), one.op.operands[2]
    if tf.get(one.op, "resize_if_index_out_of_bounds", False):
        value = _grown(one, value, one.insert.compute("add", index, 1))
    row = one.insert.tf("ExpandDims", (item, 0), one.tensor(1))
    if one.of.length == 1:
        return [row]
    if one.element in _UPDATED:
        place = one.insert.pack([index, *[0] * len(one.shape)])
        return [one.insert.tf("XlaDynamicUpdateSlice", (value, row, place), one.of.type)]
    if types.numpy_dtype(one.element).kind != "O":
        return [_chosen(one, value, index, row)]
    before = one.part(value, 0, index)
    after = one.part(value, one.insert.compute("add", index, 1), -1)
    return [one.insert.concat([before, row, after], (one.of.length, *one.shape))]


def _chosen(one: Lowered, value: Value, index: Value, row: Value) -> Value:
    """Returns a list with one element replaced, by selecting between old and new elements."""
    length = one.insert.size(value, 0)
    numbers = one.insert.tf("Range", (0, length, 1), types.tensor(types.I32, (one.of.length,)))
    flags = (one.of.length, *(1,) * len(one.shape))
    is_it = one.insert.tf(
        "Equal", (numbers, index), types.tensor(types.I1, (one.of.length,)), {"incompatible_shape_error": True}
    )
    flag = one.insert.tf("Reshape", (is_it, one.insert.pack([length, *flags[1:]])), types.tensor(types.I1, flags))
    return one.insert.tf("SelectV2", (flag, row, value), one.of.type)


def _grown(one: Lowered, value: Value, length: Scalar) -> Value:
    """Returns a list padded with zeros to a minimum length."""
    missing = one.insert.compute("subtract", length, one.insert.size(value, 0))
    count = one.insert.compute("maximum", missing, 0)
    return one.insert.concat([value, one.padding(value, count)], (-1, *one.shape))


def _push_back(one: Lowered) -> Results:
    value, item = one.op.operands[:2]
    row = one.insert.tf("ExpandDims", (item, 0), one.tensor(1))
    if types.is_static(one.shape) and any(op.name == "tf.EmptyTensorList" for op in one.of.ops):
        # LiteRT's loops fail on a variable that is empty at first and then has a static shape, so the number of rows,
        # which is 1, is computed at run time.
        count = one.insert.size(value, 0)
        rows = one.insert.compute("subtract", one.insert.compute("add", count, 1), count)
        row = one.insert.tf("Tile", (row, one.insert.pack([rows, *[1] * len(one.shape)])), one.tensor(-1))
    return [one.insert.concat([value, row], (-1, *one.shape))]


def _pop_back(one: Lowered) -> Results:
    value = one.op.operands[0]
    last = one.insert.compute("subtract", one.insert.size(value, 0), 1)
    return [one.part(value, 0, last), one.take(value, last)]


def _resize(one: Lowered) -> Results:
    value, length = one.op.operands[0], one.scalar(1)
    own, wanted = constant_int(one.insert.size(value, 0)), constant_int(length)
    if own is not None and wanted is not None:
        if wanted <= own:
            return [value if wanted == own else one.part(value, 0, length)]
        return [one.insert.concat([value, one.padding(value, (wanted - own))], (wanted, *one.shape))]
    kept = one.part(value, 0, one.insert.compute("minimum", length, one.insert.size(value, 0)))
    return [_grown(one, kept, length)]


def _concat_lists(one: Lowered) -> Results:
    return [one.insert.concat(one.op.operands[:2], (-1, *one.shape))]


def _lower_length(one: Lowered) -> Results:
    return [one.insert.value(one.insert.size(one.op.operands[0], 0))]


def _lower_element_shape(one: Lowered) -> Results:
    return [_as(one, one.insert.part(one.insert.shape(one.op.operands[0]), 1, None), 0)]


def _as(one: Lowered, value: Value, result: int) -> Value:
    """Casts a value to the element type of a result."""
    return one.insert.cast(value, one.op.results[result].element)


def _concat(one: Lowered) -> Results:
    """Joins elements of equal length, by a reshape."""
    value = one.op.operands[0]
    if not one.shape:
        raise error_at(one.op, "list-elements-differ", "scalars can't be joined")
    count, (first, *inner) = one.insert.size(value, 0), one.sizes(value)
    rows = one.insert.compute("multiply", count, first)
    lengths = (one.of.length, one.shape[0])
    known = -1 if -1 in lengths else lengths[0] * lengths[1]
    target = one.insert.ints([known, *one.shape[1:]]) if known >= 0 and types.is_static(one.shape[1:]) else None
    joined_type = types.tensor(one.element, (known, *one.shape[1:]))
    joined = one.insert.tf("Reshape", (value, target or one.insert.pack([rows, *inner])), joined_type)
    if one.op.results[1].first_use is None:
        return [joined, one.insert.ints([])]
    filled = one.insert.tf("Fill", (one.insert.pack([count]), first), types.tensor(types.I32, (one.of.length,)))
    return [joined, _as(one, filled, 1)]


def _split(one: Lowered) -> Results:
    """Splits a tensor into parts of equal length, by a reshape."""
    tensor, lengths = one.op.operands[0], constant_array(one.op.operands[2])
    if lengths is None or len(set(lengths.tolist())) != 1:
        raise error_at(
            one.op,
            "list-elements-differ",
            "a tensor is split into parts that are not known to be equally long",
            "lists become tensors: all elements must have one shape",
        )
    inner = [one.insert.size(tensor, axis) for axis in range(1, len(one.shape))]
    target = one.insert.pack([(lengths.size), (int(lengths.flat[0])), *inner])
    shape = (lengths.size, int(lengths.flat[0]), *one.shape[1:])
    return [one.insert.tf("Reshape", (tensor, target), types.tensor(one.element, shape))]


def _scatter(one: Lowered) -> Results:
    """Creates a list from rows and their indices; elements without an index are zeros."""
    tensor, indices = one.op.operands[:2]
    count = one.scalar(3) if len(one.op.operands) > 3 else -1
    order, length = constant_array(indices), constant_int(count)
    rows = (tensor.shape or (-1,))[0]
    if order is not None and length is not None and rows >= 0:
        wanted = max([-1, *order.reshape(-1).tolist()]) + 1 if length < 0 else length
        return [_arranged(one, tensor, order, wanted, rows)]
    if is_enumeration(indices) and length is not None and length < 0:
        return [tensor]
    raise error_at(
        one.op,
        "list-scatter",
        "the elements' indices in the list are not known at compile time",
        "create the list from a whole tensor (TensorArray.unstack)",
    )


def _arranged(one: Lowered, tensor: Value, order: tensor_data.Array, length: int, rows: int) -> Value:
    """Returns a list of rows at constant indices."""
    source = np.full(length, rows, np.int32)
    source[order.reshape(-1)] = np.arange(order.size, dtype=np.int32)
    if np.array_equal(source, np.arange(rows)):
        return tensor
    if rows in source:
        zero = one.insert.zeros([1, *one.sizes(tensor)], one.element)
        tensor = one.insert.concat([tensor, zero], (rows + 1, *one.shape))
    return one.take(tensor, one.insert.constant(source), (length,))


def _scatter_into(one: Lowered) -> Results:
    """Writes rows into a list; rows for its first elements, in order, are concatenated with the rest."""
    value, tensor, indices = one.op.operands
    if is_enumeration(indices):
        count = one.insert.size(tensor, 0)
        lengths = (one.of.length, (tensor.shape or (-1,))[0])
        if -1 not in lengths and lengths[0] <= lengths[1]:
            return [tensor]
        left = one.insert.compute("subtract", one.insert.size(value, 0), count)
        rest = one.part(value, count, one.insert.compute("maximum", left, 0))
        return [one.insert.concat([tensor, rest], (one.of.length, *one.shape))]
    order, rows = constant_array(indices), (tensor.shape or (-1,))[0]
    if order is not None and one.of.length >= 0 and rows >= 0 and np.all((order >= 0) & (order < one.of.length)):
        source = np.arange(one.of.length, dtype=np.int32)
        source[order.reshape(-1)] = one.of.length + np.arange(order.size, dtype=np.int32)
        both = one.insert.concat([value, tensor], (one.of.length + rows, *one.shape))
        return [one.take(both, one.insert.constant(source), (one.of.length,))]
    shape = indices.shape or (-1,)
    places = one.insert.tf("ExpandDims", (indices, 1), types.tensor(indices.element, (*shape, 1)))
    return [one.insert.tf("TensorScatterUpdate", (value, places, tensor), one.of.type)]


LOWERINGS: Mapping[str, Callable[[Lowered], Results]] = {
    "tf.TensorListConcat": _concat,
    "tf.TensorListConcatLists": _concat_lists,
    "tf.TensorListConcatV2": _concat,
    "tf.TensorListElementShape": _lower_element_shape,
    "tf.TensorListFromTensor": _same,
    "tf.TensorListGather": _gather,
    "tf.TensorListGetItem": _get_item,
    "tf.TensorListLength": _lower_length,
    "tf.TensorListPopBack": _pop_back,
    "tf.TensorListPushBack": _push_back,
    "tf.TensorListResize": _resize,
    "tf.TensorListScatter": _scatter,
    "tf.TensorListScatterIntoExistingList": _scatter_into,
    "tf.TensorListScatterV2": _scatter,
    "tf.TensorListSetItem": _set_item,
    "tf.TensorListSplit": _split,
    "tf.TensorListStack": _same,
}
"""Op -> its lowering; new lists are created where they are first used."""
