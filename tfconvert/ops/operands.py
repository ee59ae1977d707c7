"""The view that shape functions have of an op, and the facts of values while a function is swept."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from itertools import count, islice
from typing import Any

from tfconvert.schema.dialects import tensor_data, tf
from tfconvert.schema.dialects.dims import UNKNOWN, MismatchError, Partial, element_of_dim, symbol
from tfconvert.schema.dialects.types import Shape
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.attributes import ArrayAttr, IntegerAttr, StringAttr
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

MAX_PARTIAL = 64
"""Vectors up to this length are followed element by element."""


_EMPTY: Attribute = ArrayAttr.get([])


class Known:
    """The facts of the values of a module.

    Attributes:
        shapes: A value's shape, with symbols for unknown dimensions; `None` for an unknown rank.
        constants: The values that are compile-time constants.
        partials: Integer scalars and vectors of which some elements are known.
        answers: Answers to questions about values that follow many ops, by question and value. Whoever changes a fact
            of a value that is in use clears them.
        smallest: The smallest size that an unknown dimension may have.
    """

    __slots__ = (
        "_arrays",
        "_holders",
        "_numbers",
        "_seen",
        "_symbols",
        "answers",
        "constants",
        "partials",
        "shapes",
        "smallest",
    )

    def __init__(self) -> None:
        self.shapes: dict[Value, Shape | None] = {}
        self.constants: dict[Value, tensor_data.Constant] = {}
        self.partials: dict[Value, Partial] = {}
        self.answers: dict[Hashable, Any] = {}
        self.smallest = 0
        self._arrays: dict[Value, tensor_data.Array] = {}
        self._symbols: dict[Hashable, int] = {}
        # Symbol -> the values whose facts have it; the facts that are in there, which are the first ones.
        self._holders: dict[int, list[Value]] = {}
        self._seen = [0, 0]
        self._numbers = count()

    def note(self, value: Value, shape: Shape | None) -> None:
        """Notes a value's shape; dimensions that are unknown become symbols of their own, the same ones each time."""
        if shape is not None and -1 in shape:
            shape = tuple([self.symbol_of((value, axis)) if dim == -1 else dim for axis, dim in enumerate(shape)])
        self.shapes[value] = shape

    def fresh(self) -> int:
        """Returns the symbol of another dimension."""
        return symbol(next(self._numbers))

    def symbol_of(self, key: Hashable) -> int:
        """Returns the symbol of a dimension that a key stands for, the same one each time."""
        found = self._symbols.get(key)
        if found is None:
            found = self._symbols[key] = self.fresh()
        return found

    def equate(self, one: int, other: int) -> None:
        """Notes that two sizes, a symbol among them, are the same from here on."""
        if one == other:
            return
        self.answers.clear()
        self._find_holders()
        holders = self._holders
        # The symbol of fewer values goes, so that a value changes rarely.
        old, new = sorted((one, other), key=lambda size: (size > UNKNOWN, len(holders.get(size, ()))))
        moved = holders.pop(old, [])
        for value in moved:
            for facts in (self.shapes, self.partials):
                sizes = facts.get(value)
                if sizes is not None and old in sizes:
                    facts[value] = tuple([new if size == old else size for size in sizes])
        holders.setdefault(new, []).extend(moved)

    def _find_holders(self) -> None:
        """Notes the symbols of the facts that came since the last time."""
        tables: tuple[dict[Value, Shape | None] | dict[Value, Partial], ...] = (self.shapes, self.partials)
        for index, facts in enumerate(tables):
            for value in islice(reversed(facts), max(len(facts) - self._seen[index], 0)):
                for size in {*(facts[value] or ())}:
                    if size < UNKNOWN:
                        self._holders.setdefault(size, []).append(value)
            self._seen[index] = len(facts)

    def forget(self, value: Value) -> None:
        """Drops the known elements of a value."""
        self.constants.pop(value, None)
        self.partials.pop(value, None)
        self._arrays.pop(value, None)

    def array(self, value: Value) -> tensor_data.Array | None:
        """Returns a constant's value if it is small enough to hold shapes."""
        found = self._arrays.get(value)
        if found is None:
            constant = self.constants.get(value)
            if constant is None or not tensor_data.is_small(constant):
                return None
            found = self._arrays[value] = tensor_data.to_array(constant)
        return found

    def partial(self, value: Value) -> Partial | None:
        """Returns the elements of an integer scalar or vector as far as they are known."""
        found = self.partials.get(value)
        if found is None:
            array = self.array(value)
            if array is not None and array.ndim <= 1 and array.size <= MAX_PARTIAL and array.dtype.kind in "iu":
                found = self.partials[value] = tuple(array.reshape(-1).tolist())
        return found


class Operands:
    """An op as shape functions see it.

    Attributes:
        op: The op.
        values: Its operands.
        is_by_shapes: Whether nothing was read yet but the op's name, types and attributes, and its operands' shapes.
    """

    __slots__ = ("_known", "is_by_shapes", "op", "values")

    def __init__(self, op: Operation, known: Known) -> None:
        self.op = op
        self.values: tuple[Value, ...] = tuple(op.operands)
        self.is_by_shapes = True
        self._known = known

    @property
    def count(self) -> int:
        """Number of operands."""
        return len(self.values)

    @property
    def results(self) -> list[Shape | None]:
        """The results' shapes as their types have them."""
        return [result.shape for result in self.op.results]

    def _operand(self, index: int) -> Value:
        try:
            return self.values[index]
        except IndexError:
            raise MismatchError(f"it has {len(self.values)} operands, which is too few") from None

    def shape(self, index: int) -> Shape | None:
        """Returns an operand's shape, `None` if its rank is unknown."""
        return self._known.shapes.get(self._operand(index))

    def shapes(self, start: int = 0, stop: int | None = None) -> list[Shape | None]:
        """Returns the shapes of a range of operands."""
        shapes = self._known.shapes
        return [shapes.get(value) for value in self.values[start:stop]]

    def value(self, index: int) -> tensor_data.Array | None:
        """Returns an operand's value if it is a (small) compile-time constant."""
        self.is_by_shapes = False
        return self._known.array(self._operand(index))

    def partial(self, index: int) -> Partial | None:
        """Returns the elements of an integer scalar or vector as far as they are known, `None` if nothing is."""
        self.is_by_shapes = False
        return self._known.partial(self._operand(index))

    def partial_of(self, value: Value) -> Partial | None:
        """Returns the elements of any value before the op, as `partial` does."""
        self.is_by_shapes = False
        return self._known.partial(value)

    def elements(self, index: int) -> Partial | None:
        """Returns an operand's elements as `partial` does, all unknown where only their number is known."""
        found = self.partial(index)
        if found is None:
            shape = self.shape(index)
            if shape is not None and len(shape) == 1 and 0 <= shape[0] <= MAX_PARTIAL:
                return (element_of_dim(-1),) * shape[0]
        return found

    def scalar(self, index: int) -> int | None:
        """Returns an integer operand of one element, `None` if it is unknown."""
        found = self.partial(index)
        if found is None or len(found) != 1 or found[0] <= element_of_dim(-1):
            return None
        return found[0]

    def ints(self, index: int) -> tuple[int, ...] | None:
        """Returns a list of integers, such as axes, of which every one is known; else `None`."""
        found = self.partial(index)
        if found is None or any(element <= element_of_dim(-1) for element in found):
            return None
        return found

    def producer(self, index: int) -> Operation | None:
        """Returns the defining op of an operand, `None` for a function's argument."""
        self.is_by_shapes = False
        owner = self._operand(index).owner
        return owner if isinstance(owner, Operation) else None

    def attribute(self, name: str, default: Any = None) -> Any:
        """Returns an OpDef attribute as a Python value.

        Raises:
            MismatchError: It has no Python counterpart.
        """
        try:
            return tf.get(self.op, name, default)
        except TypeError:
            raise MismatchError(f"its attribute {name!r} has no value") from None

    def declared_shape(self, name: str, op: Operation | None = None) -> Shape | None:
        """Returns an attribute that is a shape, `None` if it is absent or of unknown rank.

        Args:
            name: The attribute.
            op: Whose attribute it is if not the op's own: the producer of an operand, for example.

        Raises:
            MismatchError: It is something else.
        """
        attribute = (op or self.op).properties.get(name)
        if attribute is None:
            return None
        if type(attribute) is not tf.ShapeAttr:
            raise MismatchError(f"the attribute {name!r} is not a shape")
        return attribute.shape

    def integer(self, name: str, default: int = 0) -> int:
        """Returns an integer attribute.

        Raises:
            MismatchError: It is something else.
        """
        attribute = self.op.properties.get(name)
        if attribute is None:
            return default
        if type(attribute) is not IntegerAttr:
            raise MismatchError(f"its attribute {name!r} is not an integer")
        return attribute.value

    def text(self, name: str, default: str = "") -> str:
        """Returns a string attribute."""
        attribute = self.op.properties.get(name)
        return attribute.data if type(attribute) is StringAttr else default

    def integers(self, name: str, length: int | None = None) -> tuple[int, ...]:
        """Returns an attribute that is a list of integers, empty if it is absent.

        Raises:
            MismatchError: It is something else, or has another length than it should.
        """
        attribute = self.op.properties.get(name, _EMPTY)
        items = attribute.data if type(attribute) is ArrayAttr else None
        if items is None or not all(type(item) is IntegerAttr for item in items):
            raise MismatchError(f"its attribute {name!r} is not a list of integers")
        if length is not None and len(items) != length:
            raise MismatchError(f"its attribute {name!r} should have {length} elements, but has {len(items)}")
        return tuple([item.value for item in items if type(item) is IntegerAttr])


ShapeFunction = Callable[[Operands], Sequence[Shape | None]]
"""Returns the results' shapes as far as the op determines them; raises `MismatchError` on a contradiction."""

Partials = list[Partial | None]

ValueFunction = Callable[[Operands], Partials]
"""Returns the results' elements as far as they are known."""
