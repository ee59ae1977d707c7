"""The words of the tables: rules that many ops have, each made from the names of arguments."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from tfconvert.schema.dialects import types
from tfconvert.schema.dialects.relations.view import View
from tfconvert.schema.dialects.tf_executor.base import compatible
from tfconvert.schema.dialects.types import Shape

Rule = Callable[[View], None]
"""Refuses an op that breaks it with a `VerifyError`."""


def rank(name: str, *ranks: int) -> Rule:
    """Returns the rule that the values of an argument have one of some ranks."""
    expected = " or ".join(map(str, ranks))

    def rule(view: View) -> None:
        for value in view.values(name):
            shape = types.shape_of(value.type)
            if shape is not None and len(shape) not in ranks:
                view.fail(f"{name!r} must have rank {expected}, found {value.type}")

    return rule


def scalar(*names: str) -> Rule:
    """Returns the rule that arguments are scalars."""
    return every(*[rank(name, 0) for name in names])


def vector(*names: str) -> Rule:
    """Returns the rule that arguments are vectors."""
    return every(*[rank(name, 1) for name in names])


def rank_at_least(name: str, least: int) -> Rule:
    """Returns the rule that an argument has at least some rank."""

    def rule(view: View) -> None:
        shape = view.shape(name)
        if shape is not None and len(shape) < least:
            view.fail(f"{name!r} must have at least rank {least}, found {view.type(name)}")

    return rule


def rank_at_most(name: str, most: int) -> Rule:
    """Returns the rule that an argument has at most some rank."""

    def rule(view: View) -> None:
        shape = view.shape(name)
        if shape is not None and len(shape) > most:
            view.fail(f"{name!r} must have at most rank {most}, found {view.type(name)}")

    return rule


def every(*rules: Rule) -> Rule:
    """Returns the rule that all of some rules hold."""

    def rule(view: View) -> None:
        for each in rules:
            each(view)

    return rule


def same_dims(one: str, index: int, other: str, other_index: int) -> Rule:
    """Returns the rule that a dimension of one argument is that of another."""

    def rule(view: View) -> None:
        a, b = view.dim(one, index), view.dim(other, other_index)
        if a != b and a >= 0 and b >= 0:
            view.fail(
                f"dimension {index} of {one!r} ({a}) must be dimension {other_index} of {other!r} ({b}), "
                f"found {view.type(one)} and {view.type(other)}"
            )

    return rule


def size(name: str, index: int, *sizes: int) -> Rule:
    """Returns the rule that a dimension of an argument is one of some numbers."""
    expected = " or ".join(map(str, sizes))

    def rule(view: View) -> None:
        dim = view.dim(name, index)
        if dim >= 0 and dim not in sizes:
            view.fail(f"dimension {index} of {name!r} must be {expected}, found {view.type(name)}")

    return rule


def prefix(shorter: str, longer: str) -> Rule:
    """Returns the rule that the dimensions of one argument are the first ones of another."""

    def rule(view: View) -> None:
        short, long = view.shape(shorter), view.shape(longer)
        if short is None or long is None:
            return
        if len(short) > len(long) or contradict(short, long[: len(short)]):
            view.fail(
                f"the shape of {shorter!r} must be a prefix of that of {longer!r}, "
                f"found {view.type(shorter)} and {view.type(longer)}"
            )

    return rule


def same_shapes(*names: str) -> Rule:
    """Returns the rule that the shapes of all values of some arguments agree."""

    def rule(view: View) -> None:
        first: Shape | None = None
        for name in names:
            for value in view.values(name):
                shape = types.shape_of(value.type)
                if first is None:
                    first = shape
                elif shape is not None and contradict(first, shape):
                    found = ", ".join(str(each.type) for name in names for each in view.values(name))
                    view.fail(f"{' and '.join(map(repr, names))} must have one shape, found {found}")

    return rule


def same_types(*names: str) -> Rule:
    """Returns the rule that the types of some arguments may be those of one value."""

    def rule(view: View) -> None:
        found = [value.type for name in names for value in view.values(name)]
        for other in found[1:]:
            if not compatible(found[0], other):
                view.fail(f"{' and '.join(map(repr, names))} must have one type, found {found[0]} and {other}")

    return rule


def attribute_between(name: str, least: int, most: int) -> Rule:
    """Returns the rule that an attribute is in a range, both ends included."""

    def rule(view: View) -> None:
        found = view.attribute(name)
        if isinstance(found, int) and not least <= found <= most:
            view.fail(f"the attribute {name!r} must be from {least} to {most}, found {found}")

    return rule


def axis_of(name: str, of: str, *, beyond: int = 0) -> Rule:
    """Returns the rule that an attribute is an axis of an argument.

    Args:
        name: The attribute.
        of: The argument.
        beyond: How many dimensions more than the argument there are.
    """

    def rule(view: View) -> None:
        shape, axis = view.shape(of), view.attribute(name)
        if shape is not None and isinstance(axis, int):
            check_axis(view, f"the attribute {name!r}", axis, len(shape) + beyond)

    return rule


def constant_axis_of(name: str, of: str, *, beyond: int = 0) -> Rule:
    """Returns the rule that the elements of an operand are axes of another, as far as they are constant."""

    def rule(view: View) -> None:
        shape, axes = view.shape(of), view.integers(name)
        if shape is not None and axes is not None:
            for axis in axes:
                check_axis(view, repr(name), axis, len(shape) + beyond)

    return rule


def at_least(name: str, least: int) -> Rule:
    """Returns the rule that the elements of an operand are at least a number, as far as they are constant."""

    def rule(view: View) -> None:
        for number in view.integers(name) or ():
            if number < least:
                view.fail(f"the elements of {name!r} must be at least {least}, found {number}")

    return rule


def check_axis(view: View, what: str, axis: int, rank: int) -> None:
    """Checks that a number is an axis of a value of some rank."""
    if not -rank <= axis < rank:
        view.fail(f"{what} must be an axis from {-rank} to {rank - 1}, found {axis}")


def contradict(one: Sequence[int], other: Sequence[int]) -> bool:
    """Returns whether two shapes can't be those of one value."""
    return len(one) != len(other) or any(a != b and a >= 0 and b >= 0 for a, b in zip(one, other, strict=True))


def broadcast(one: Sequence[int], other: Sequence[int]) -> Shape | None:
    """Returns the shape to which two are broadcast, -1 where it is unknown; `None` if they contradict each other."""
    rank = max(len(one), len(other))
    result = []
    for a, b in zip((1,) * (rank - len(one)) + tuple(one), (1,) * (rank - len(other)) + tuple(other), strict=True):
        if b in (a, 1):
            result.append(a)
        elif a == 1:
            result.append(b)
        elif a < 0 or b < 0:
            result.append(max(a, b) if max(a, b) > 1 else -1)
        else:
            return None
    return tuple(result)


def elements(shape: Shape | None) -> int:
    """Returns the number of elements, -1 if it is unknown."""
    return math.prod(shape) if shape is not None and all(dim >= 0 for dim in shape) else -1
