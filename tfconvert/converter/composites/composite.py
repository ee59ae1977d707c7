"""A function that declares what it implements, with the predicates that checks use."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tfconvert.schema.dialects import tensor_data, tf, types
from tfconvert.schema.dialects.dims import compatible_types
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.dialects.locations import LocationParts, place_of
from tfconvert.schema.dialects.tf_traits import ZERO_PRESERVING, full_names
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.attributes import SymbolRefAttr
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

_ZERO_PRESERVING = full_names(ZERO_PRESERVING)

Handed = Callable[[Value], Sequence[Value]]
"""Returns the operands that all callers pass for an argument; empty if some callers are unknown."""


@dataclass(frozen=True, slots=True)
class Composite:
    """A marked function.

    Attributes:
        name: The interface that it implements.
        function: The function, with one block.
        attributes: The mark's other attributes.
        calls: The ops that call it.
        runs_in_loop: Whether a loop may run it.
        is_run_otherwise: Whether it has other users: a conditional, a loop, or a user of the model.
        handed: Returns the operands that callers pass for an argument of a function.
        arguments: The types of its arguments, as far as the calls determine them.
        results: The types of its results, as far as the calls determine them.
    """

    name: str
    function: FuncOp
    attributes: Mapping[str, Attribute]
    calls: Sequence[Operation] = ()
    runs_in_loop: bool = False
    is_run_otherwise: bool = False
    handed: Handed = lambda argument: ()
    arguments: tuple[Attribute, ...] = field(init=False)
    results: tuple[Attribute, ...] = field(init=False)

    def __post_init__(self) -> None:
        block = self.function.body.block
        returned = block.last_op.operands if block.last_op is not None else ()
        calls = [] if self.is_run_otherwise else self.calls
        operands = [[value.type for value in call.operands] for call in calls]
        wanted = [[value.type for value in call.results] for call in calls]
        object.__setattr__(self, "arguments", _types([value.type for value in block.args], operands))
        object.__setattr__(self, "results", _types([value.type for value in returned], wanted))

    @property
    def function_name(self) -> str:
        """The function's name."""
        return self.function.sym_name

    @property
    def place(self) -> LocationParts:
        """Where the function is called first, or else where it is defined."""
        return place_of(self.calls[0].location if self.calls else self.function.location)

    def get(self, name: str, default: Any = None) -> Any:
        """Returns an attribute of the mark, or else of the function; `default` if it is missing.

        The attribute becomes a Python value if it has a counterpart.
        """
        value = self.attributes.get(name, self.function.attributes.get(f"tf.{name}"))
        if value is None:
            return default
        try:
            return tf.python_value(value)
        except TypeError:
            return value

    def shape(self, index: int) -> types.Shape | None:
        """Returns an argument's shape, or `None` for an unknown rank."""
        return types.shape_of(self.arguments[index])

    def element(self, index: int) -> Attribute:
        """Returns an argument's element type."""
        return types.element_of(self.arguments[index])

    def is_used(self, result: int) -> bool:
        """Returns whether a result has uses."""
        return self.is_run_otherwise or any(call.results[result].first_use is not None for call in self.calls)

    def counts(self, arguments: int, results: int) -> str | None:
        """Returns why the numbers of arguments and results are wrong, or `None`."""
        for what, expected, found in (
            ("arguments", arguments, len(self.arguments)),
            ("results", results, len(self.results)),
        ):
            if found != expected:
                return f"it has {found} {what}, not {expected}"
        return None

    def ranks(self, expected: Mapping[int, int]) -> str | None:
        """Returns why arguments don't have the expected ranks, or `None`."""
        for index, rank in expected.items():
            shape = self.shape(index)
            if shape is None:
                return f"the rank of argument {index} is not known"
            if len(shape) != rank:
                return f"argument {index} has rank {len(shape)}, not {rank}"
        return None

    def elements(self, expected: Mapping[int, str]) -> str | None:
        """Returns why arguments don't have the expected element types, or `None`.

        Args:
            expected: Argument -> names of element types as MLIR prints them, separated by spaces.
        """
        for index, names in expected.items():
            found = str(self.element(index))
            if found not in names.split():
                return f"argument {index} holds {found}, not {' or '.join(names.split())}"
        return None

    def gives(self, result: int, element: Attribute, shape: types.Shape | None) -> str | None:
        """Returns why a result can't have an element type and a shape, or `None`.

        A fusion's results must have the types of the function's results.
        """
        wanted, made = self.results[result], types.tensor(element, shape)
        return f"result {result} is {wanted}, not {made}" if not compatible_types(wanted, made) else None

    def has(self, kinds: Mapping[str, type]) -> str | None:
        """Returns which attribute is missing or of another type, or `None`."""
        for name, kind in kinds.items():
            value = self.get(name)
            if value is None:
                return f"the attribute {name!r} is missing"
            if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
                return f"the attribute {name!r} is not of type {kind.__name__}"
        return None

    def is_always_zero(self, index: int) -> bool:
        """Returns whether every call is known to pass zeros for an argument."""
        return not self.is_run_otherwise and all(is_zero(call.operands[index], self.handed) for call in self.calls)


def is_zero(value: Value, handed: Handed) -> bool:
    """Returns whether a value is known to hold only zeros, whatever calls its function."""
    todo, seen = [value], {value}
    while todo:
        value = todo.pop()
        op = value.owner
        if not isinstance(op, Operation):
            sources = handed(value)
            if not sources:
                return False
            todo += [source for source in sources if source not in seen]
            seen.update(sources)
        elif (constant := tensor_data.constant_of(value)) is not None:
            if np.any(tensor_data.to_array(constant)):
                return False
        elif op.name == "tf.Fill":
            todo.append(op.operands[1])
        elif op.name in _ZERO_PRESERVING:
            todo.append(op.operands[0])
        elif op.name != "tf.ZerosLike":
            return False
    return True


def _types(own: Sequence[Attribute], others: Sequence[Sequence[Attribute]]) -> tuple[Attribute, ...]:
    """Returns types, each made more specific if all others are equal and compatible with it."""
    columns = zip(*others, strict=True) if others else ([] for _ in own)
    merged = []
    for mine, seen in zip(own, columns, strict=True):
        agreed = set(seen)
        merged.append(types.most_specific(mine, agreed.pop()) if len(agreed) == 1 else mine)
    return tuple(merged)


_SCALARS = (bool, int, float, str)
# Attributes that could be mistaken for strings and lists of numbers.
_OTHERS = (tf.FunctionAttr, SymbolRefAttr, tf.ShapeAttr)


def plain_option(attribute: Attribute) -> Any:
    """Returns an attribute as a value for a flexbuffer: a number, a string, or a list of either.

    Raises:
        TypeError: A flexbuffer can't hold it.
    """
    if isinstance(attribute, _OTHERS):
        raise TypeError(str(attribute))
    value = tf.python_value(attribute)
    if isinstance(value, _SCALARS):
        return value
    if isinstance(value, tuple) and len(kinds := {type(item) for item in value}) <= 1 and kinds <= set(_SCALARS):
        return list(value)
    raise TypeError(str(attribute))


def unfit_option(attributes: Mapping[str, Attribute]) -> str | None:
    """Returns why an attribute can't be an option, or `None`."""
    for name, attribute in attributes.items():
        if not name.isascii() or "\0" in name:
            return f"the attribute {name!r} has a name that no option can have"
        try:
            plain_option(attribute)
        except TypeError:
            return f"the attribute {name!r} is not a number, string, boolean or list of one kind of them"
    return None


def chosen_options(composite: Composite, names: Iterable[str]) -> dict[str, Any]:
    """Returns some of a function's attributes as options, without absent ones. A check has validated them."""
    found = ((name, composite.get(name)) for name in names)
    return {name: list(value) if isinstance(value, tuple) else value for name, value in found if value is not None}
