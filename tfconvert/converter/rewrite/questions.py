"""The questions about an op that match patterns, one at a time.

A position is a path of operand indices from the root: `(1, 0)` is the first operand of the root's second operand's op.
Questions are values, so that patterns with equal questions can share the answer. `compiled` turns a question into a
function, which reads and writes a list of the ops found so far. Every position that has an op has a slot in this list.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np

from tfconvert.converter.rewrite import op_info
from tfconvert.schema.dialects import tensor_data, types
from tfconvert.schema.dialects.tensor_data import constant_of
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import OpResult, Value

Path = tuple[int, ...]
Found = list[Any]
"""The ops found so far, by slot."""

Ask = Callable[[Found], Hashable]

# Relative difference up to which a constant equals a number in a pattern.
_CLOSE = 1e-6


class QuestionKind(IntEnum):
    """Kinds of questions; on a position they are asked in this order."""

    PRODUCER = 0
    """The name of the defining op of a value; finds the op."""
    SAME_OP = 1
    """Whether the defining op of a value is the one at another position; finds the op."""
    ARITY = 2
    """The number of operands of an op."""
    AT_LEAST = 3
    """Whether an op has this many operands."""
    INDEX = 4
    """The result number of a value."""
    SAME = 5
    """Whether a value is the one at another position."""
    CONSTANT = 6
    """Whether a value is a constant."""
    ARRAY = 7
    """Whether a value is a constant small enough to look into."""
    NUMBER = 8
    """Whether a value is a constant of one element."""
    ONCE = 9
    """Whether a value has one use."""
    ELEMENT = 10
    """A value's element type."""
    RANK = 11
    """The number of dimensions of a value."""
    DIM = 12
    """One of a value's dimensions."""
    STATIC = 13
    """Whether all of a value's dimensions are known."""
    ATTRIBUTE = 14
    """An attribute of an op by its name, or its default."""
    SAME_ATTRIBUTE = 15
    """Whether two ops' attributes are equal."""
    EQUALS = 16
    """Whether all elements of a constant are one number."""
    ALL_ONCE = 17
    """Whether an op's results have one use in total."""


STRUCTURE = frozenset((QuestionKind.PRODUCER, QuestionKind.SAME_OP, QuestionKind.ARITY, QuestionKind.AT_LEAST))
"""The first questions, which are cheap: one lookup for any number of patterns."""


class Question(NamedTuple):
    """One question.

    Attributes:
        kind: The kind of the question.
        path: The position.
        argument: Another position, a number, or an attribute's name and default, if the kind needs it.
    """

    kind: QuestionKind
    path: Path
    argument: Hashable = None

    @property
    def order(self) -> tuple[bool, int, Path, int]:
        """The sort key among a pattern's questions: structure first, from the root to its producers.

        The numbers of producers' operands come with the next level, so that names decide first.
        """
        level = len(self.path)
        if level and self.kind in (QuestionKind.ARITY, QuestionKind.AT_LEAST):
            level += 1
        return (self.kind not in STRUCTURE, level, self.path, self.kind)


def value_at(found: Found, slots: Mapping[Path, int], path: Path) -> Value:
    """Returns the value at a position; at the root that is its first result."""
    if not path:
        result: Value = found[0].results[0]
        return result
    operand: Value = found[slots[path[:-1]]].operands[path[-1]]
    return operand


def compiled(question: Question, slots: Mapping[Path, int]) -> Ask:
    """Returns the function that asks a question.

    Args:
        question: The question.
        slots: Slots of the positions that have an op.
    """
    kind, path, argument = question.kind, question.path, question.argument
    if kind is QuestionKind.PRODUCER:
        return _producer(slots[path[:-1]], path[-1], slots[path])
    if kind is QuestionKind.SAME_OP:
        return _same_op(slots[path[:-1]], path[-1], slots[path], slots[argument])  # type: ignore[index]
    if kind in _OF_OP:
        return _OF_OP[kind](slots[path], argument, slots)
    if kind is QuestionKind.SAME:
        other: Any = argument
        return lambda found: value_at(found, slots, path) is value_at(found, slots, other)
    of_value = _OF_VALUE[kind]
    if not path:
        return lambda found: of_value(found[0].results[0], argument)
    slot, index = slots[path[:-1]], path[-1]
    if kind is QuestionKind.CONSTANT:
        return lambda found: constant_of(found[slot].operands[index]) is not None
    return lambda found: of_value(found[slot].operands[index], argument)


def _producer(parent: int, index: int, slot: int) -> Ask:
    def ask(found: Found) -> Hashable:
        value = found[parent].operands[index]
        if type(value) is not OpResult:
            return None
        op = found[slot] = value.op
        return op.name

    return ask


def _same_op(parent: int, index: int, slot: int, other: int) -> Ask:
    def ask(found: Found) -> Hashable:
        value = found[parent].operands[index]
        if type(value) is not OpResult or value.op is not found[other]:
            return False
        found[slot] = value.op
        return True

    return ask


def _attribute(slot: int, argument: Any, slots: Mapping[Path, int]) -> Ask:
    name = argument

    def ask(found: Found) -> Hashable:
        return attribute_of(found[slot], name)

    return ask


def attribute_of(op: Operation, name: str) -> Attribute | None:
    """Returns an op's attribute or its default, or `None`."""
    found = op.properties.get(name) or op.attributes.get(name)
    return op_info.default_of(op.name, name) if found is None else found


def _same_attribute(slot: int, argument: Any, slots: Mapping[Path, int]) -> Ask:
    name, other, other_name = argument[0], slots[argument[1]], argument[2]

    def ask(found: Found) -> Hashable:
        return attribute_of(found[slot], name) == attribute_of(found[other], other_name)

    return ask


def _uses_once(op: Operation) -> bool:
    if len(op.results) == 1:
        return op.results[0].has_one_use()
    used = [result for result in op.results if result.first_use is not None]
    return len(used) == 1 and used[0].has_one_use()


_OF_OP: Mapping[QuestionKind, Callable[[int, Any, Mapping[Path, int]], Ask]] = {
    QuestionKind.ARITY: lambda slot, _, __: lambda found: len(found[slot].operands),
    QuestionKind.AT_LEAST: lambda slot, minimum, _: lambda found: len(found[slot].operands) >= minimum,
    QuestionKind.ATTRIBUTE: _attribute,
    QuestionKind.SAME_ATTRIBUTE: _same_attribute,
    QuestionKind.ALL_ONCE: lambda slot, _, __: lambda found: _uses_once(found[slot]),
}


def _is_small(value: Value, _: Any) -> bool:
    constant = constant_of(value)
    return constant is not None and tensor_data.is_small(constant)


def _is_number(value: Value, _: Any) -> bool:
    constant = constant_of(value)
    if constant is None or not types.is_static(dims := constant.shape):
        return False
    return math.prod(dims or ()) == 1 and types.numpy_dtype(types.element_of(constant.type)).kind in "fiub"


def _equals(value: Value, number: Any) -> bool:
    constant = constant_of(value)
    if constant is None or not tensor_data.is_small(constant):
        return False
    held = tensor_data.to_array(constant)
    if held.dtype.kind not in "fiub" or not held.size:
        return False
    exact = held.dtype.kind != "f"
    return bool((held == number).all() if exact else np.isclose(held, number, rtol=_CLOSE, atol=0).all())


def _dim(value: Value, index: Any) -> int | None:
    dims = value.shape
    return None if dims is None or index >= len(dims) else dims[index]


def _rank(value: Value, _: Any) -> int | None:
    dims = value.shape
    return None if dims is None else len(dims)


_OF_VALUE: Mapping[QuestionKind, Callable[[Value, Any], Hashable]] = {
    QuestionKind.INDEX: lambda value, _: value.index if isinstance(value, OpResult) else None,
    QuestionKind.CONSTANT: lambda value, _: constant_of(value) is not None,
    QuestionKind.ARRAY: _is_small,
    QuestionKind.NUMBER: _is_number,
    QuestionKind.ONCE: lambda value, _: value.has_one_use(),
    QuestionKind.ELEMENT: lambda value, _: value.element,
    QuestionKind.RANK: _rank,
    QuestionKind.DIM: _dim,
    QuestionKind.STATIC: lambda value, _: types.is_static(value.shape),
    QuestionKind.EQUALS: _equals,
}
