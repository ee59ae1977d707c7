"""The classes of values that are the same list at different times, and the facts of its elements.

All elements of a list must have one shape, since it becomes a tensor. What any op that reads or writes
the list implies about its elements holds for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from tfconvert.converter.control_flow.calls import Calls
from tfconvert.converter.ir.constants import constant_array, constant_int
from tfconvert.converter.shapes.list_ops import FORWARDING, OPS, ListClass, ListOp, changes_length
from tfconvert.schema.diagnostics import ConversionError, Diagnostic
from tfconvert.schema.dialects import types
from tfconvert.schema.dialects.dims import MismatchError, merge
from tfconvert.schema.dialects.locations import found_at
from tfconvert.schema.dialects.types import Shape
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value


class Groups:
    """Disjoint sets of values; each value is a set of its own until it is joined with another."""

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
            # A value may occur twice: its set must not get a merged set as its parent.
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


def groups_of(calls: Calls, is_one: Callable[[Value], bool], joined: Callable[[Operation], list[Value]]) -> Groups:
    """Returns the sets of values that are the same at different times.

    Args:
        calls: The calls of the module.
        is_one: Returns whether a value matters.
        joined: Returns the operands and results of an op that belong into one set.
    """
    groups = Groups()
    for function in calls.functions.values():
        for op in function.body.block.ops:
            groups.join(joined(op))
            for call in calls.of.get(op, ()):
                for pair in call.same():
                    if is_one(pair[0]) or is_one(pair[1]):
                        groups.join(pair)
    return groups


def is_variant(value: Value) -> bool:
    """Returns whether a value may be a list."""
    return isinstance(types.element_of(value.type), types.VariantType)


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
            or their rank isn't known (`list-rank`); all of these at once.
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
    """Merges what ops imply about a list's elements; yields what is wrong with them."""
    for op in found.ops:
        entry = OPS[op.name]
        if any(is_variant(item) for item in _items(op, entry)) or isinstance(_declared(op), types.VariantType):
            yield found_at(op, "nested-list", "the elements of the list are lists")
            return
        for element in (_declared(op), *(types.element_of(item.type) for item in _items(op, entry))):
            if element is not None and found.element is not None and element != found.element:
                yield found_at(
                    op, "list-elements-differ", f"an element of type {element} gets into a list of type {found.element}"
                )
                return
            found.element = found.element or element
        try:
            for shape in _shapes(op, entry):
                found.shape = merge(found.shape, shape)
        except MismatchError as mismatch:
            yield found_at(
                op,
                "list-elements-differ",
                f"the elements of the list differ: {mismatch}",
                "lists become tensors, so that all their elements must have one shape",
            )
            return
    if found.shape is None or found.element is None:
        yield found_at(
            found.ops[0],
            "list-rank",
            "the rank of the elements of the list isn't known",
            "give the TensorArray an element_shape",
        )
    found.length = _length(found.ops)


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
        elif array is None and (vector := types.shape_of(op.operands[entry.shape].type)) and vector[0] >= 0:
            yield (-1,) * vector[0]
    kinds = {"item": entry.item, "stack": entry.stack, "joined": entry.joined}
    for kind, index in kinds.items():
        if index is not None:
            yield _element_shape(kind, types.shape_of(op.operands[index].type))
    for result, kind in zip(op.results, entry.results, strict=False):
        yield _element_shape(kind, types.shape_of(result.type))


def _element_shape(kind: str, shape: Shape | None) -> Shape | None:
    """Returns the shape of an element that the shape of an operand or result implies."""
    if shape is None or not kind:
        return None
    if kind == "item":
        return shape
    return shape[1:] if kind == "stack" else (-1, *shape[1:])


def _length(ops: Iterable[Operation]) -> int:
    """Returns how many elements lists have, -1 if it isn't known or changes."""
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
    return (types.shape_of(op.operands[2].type) or (-1,))[0]


# Op that creates a list -> its length.
_LENGTHS: Mapping[str, Callable[[Operation], int]] = {
    "tf.EmptyTensorList": lambda op: 0,
    "tf.TensorListFromTensor": lambda op: (types.shape_of(op.operands[0].type) or (-1,))[0],
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
                yield found_at(op, "list-escapes", "a list of tensors is an operand of an op that doesn't take any")
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
                "take a tensor, and create a list from it inside",
            )
