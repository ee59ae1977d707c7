"""Rules that many ops have, each made from the names of arguments."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from tfconvert.schema.dialects import types
from tfconvert.schema.dialects.relations.view import View
from tfconvert.schema.dialects.types import Shape

Rule = Callable[[View], None]
"""Refuses an op that breaks it with a `VerifyError`."""


def rank(name: str, *ranks: int) -> Rule:
    """Returns the rule that the values of an argument have one of some ranks."""
    expected = " or ".join(map(str, ranks))

    def rule(view: View) -> None:
        for value in view.values(name):
            shape = value.shape
            if shape is not None and len(shape) not in ranks:
                view.fail(f"{name!r} must have rank {expected}, found {value.type}")

    return rule


def is_scalar(*names: str) -> Rule:
    """Returns the rule that arguments are scalars."""
    return every(*[rank(name, 0) for name in names])


def is_vector(*names: str) -> Rule:
    """Returns the rule that arguments are vectors."""
    return every(*[rank(name, 1) for name in names])


def rank_at_least(name: str, minimum: int) -> Rule:
    """Returns the rule that an argument has at least some rank."""

    def rule(view: View) -> None:
        shape = view.shape(name)
        if shape is not None and len(shape) < minimum:
            view.fail(f"{name!r} must have at least rank {minimum}, found {view.type(name)}")

    return rule


def rank_at_most(name: str, maximum: int) -> Rule:
    """Returns the rule that an argument has at most some rank."""

    def rule(view: View) -> None:
        shape = view.shape(name)
        if shape is not None and len(shape) > maximum:
            view.fail(f"{name!r} must have at most rank {maximum}, found {view.type(name)}")

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


def same_shapes(*names: str) -> Rule:
    """Returns the rule that the shapes of all values of some arguments agree."""

    def rule(view: View) -> None:
        first: Shape | None = None
        for name in names:
            for value in view.values(name):
                shape = value.shape
                if first is None:
                    first = shape
                elif shape is not None and contradict(first, shape):
                    found = ", ".join(str(each.type) for name in names for each in view.values(name))
                    view.fail(f"{' and '.join(map(repr, names))} must have one shape, found {found}")

    return rule


def attribute_between(name: str, minimum: int, maximum: int) -> Rule:
    """Returns the rule that an attribute is in a range, both ends included."""

    def rule(view: View) -> None:
        found = view.attribute(name)
        if isinstance(found, int) and not minimum <= found <= maximum:
            view.fail(f"the attribute {name!r} must be from {minimum} to {maximum}, found {found}")

    return rule


def at_least(name: str, minimum: int) -> Rule:
    """Returns the rule that the elements of an operand are at least a number, as far as they are constant."""

    def rule(view: View) -> None:
        for number in view.integers(name) or ():
            if number < minimum:
                view.fail(f"the elements of {name!r} must be at least {minimum}, found {number}")

    return rule


def list_at_least(name: str, minimum: int) -> Rule:
    """Returns the rule that the items of an attribute are at least a number."""

    def rule(view: View) -> None:
        found = view.list(name)
        if min(found, default=minimum) < minimum:
            view.fail(f"the attribute {name!r} must be at least {minimum}, found {found}")

    return rule


def holds_one(name: str, *, may_be_unknown: bool = False) -> Rule:
    """Returns the rule that a handle's type has exactly one subtype; or none, if that may be unknown."""

    def rule(view: View) -> None:
        element = types.element_of(view.type(name) or types.VARIANT)
        count = len(element.subtypes) if isinstance(element, types.HandleType) else 1
        if count != 1 and not (may_be_unknown and not count):
            view.fail(f"{name!r} must have one subtype, found {view.type(name)}")

    return rule


def constant_axis_of(name: str, of: str) -> Rule:
    """Returns the rule that the elements of an operand are axes of another, as far as they are constant."""

    def rule(view: View) -> None:
        shape, axes = view.shape(of), view.integers(name)
        if shape is not None and axes is not None:
            for axis in axes:
                check_axis(view, repr(name), axis, len(shape))

    return rule


def check_axis(view: View, what: str, axis: int, rank: int) -> None:
    """Checks that a number is an axis of a value of some rank."""
    if not -rank <= axis < rank:
        view.fail(f"{what} must be an axis from {-rank} to {rank - 1}, found {axis}")


def contradict(one: Sequence[int], other: Sequence[int]) -> bool:
    """Returns whether two shapes can't be those of one value."""
    return len(one) != len(other) or any(a != b and a >= 0 and b >= 0 for a, b in zip(one, other, strict=True))


def elements(shape: Shape | None) -> int:
    """Returns the number of elements, -1 if it is unknown."""
    return math.prod(shape) if shape is not None and all(dim >= 0 for dim in shape) else -1
