"""Values that must have one scale, in groups.

Each value starts in its own group. An operator that needs one scale joins groups, unless one would lose numbers that
other operators use: they would round away all that is compared if -1e9 replaced some of it. A group's mapping is given
by a kernel or by training, or else follows from the range of all its members.
"""

from __future__ import annotations

from collections.abc import Callable

from tfconvert.converter.targets.litert.quantize.observers import Range
from tfconvert.converter.targets.litert.quantize.parameters import uniform_of
from tfconvert.schema.dialects.quant import Uniform
from tfconvert.schema.ir.types import IntegerType
from tfconvert.schema.ir.values import Value

# How many times as wide a range must be to take away the precision of a value.
_MUCH_WIDER = 64


class _Group:
    __slots__ = ("given", "is_centered", "is_shared", "parent", "range")

    def __init__(self, seen: Range | None, *, is_shared: bool) -> None:
        self.parent: _Group = self
        self.range = seen
        self.is_shared = is_shared
        self.given: Uniform | None = None
        self.is_centered = False


class Groups:
    """The groups of one function's values.

    Args:
        storage: The integer type of activations.
        needs: Returns the numbers of a value that its integers have to represent.
    """

    def __init__(self, storage: IntegerType, needs: Callable[[Value], Range | None]) -> None:
        self._storage, self._needs = storage, needs
        self._groups: dict[Value, _Group] = {}

    def given(self, value: Value) -> Uniform | None:
        """Returns the given mapping of a value's group, or `None`."""
        return self._find(value).given

    def give(self, value: Value, uniform: Uniform) -> bool:
        """Gives a value's group a mapping unless it has another one; returns whether it has that mapping now."""
        group = self._find(value)
        if group.given is None:
            group.given = uniform
        return group.given == uniform

    def center(self, value: Value) -> None:
        """Asks for a mapping of a value's group with the zero point 0; declines if that costs too much precision."""
        self._find(value).is_centered = True

    def loses(self, value: Value, joined: Value) -> bool:
        """Returns whether a value that has several users would lose its precision in another value's group."""
        group, other = self._find(value), self._find(joined)
        if group is other or not group.is_shared or group.given or group.range is None or other.range is None:
            return False
        return 0 < _MUCH_WIDER * group.range.width < other.range.width

    def join(self, one: Value, other: Value) -> None:
        """Joins two groups whose given mappings don't contradict each other."""
        first, second = self._find(one), self._find(other)
        if first is second:
            return
        second.parent = first
        first.given = first.given or second.given
        first.is_centered |= second.is_centered
        first.is_shared |= second.is_shared
        self._widen(first, second.range)

    def widen(self, value: Value, seen: Range | None) -> None:
        """Widens the range of a value's group so that it includes another range."""
        self._widen(self._find(value), seen)

    def range(self, value: Value) -> Range | None:
        """Returns the range of all values of a group, `None` if it is unknown."""
        return self._find(value).range

    def uniform(self, value: Value) -> Uniform | None:
        """Returns a value's mapping, `None` if its range is unknown."""
        group = self._find(value)
        if group.given is None and group.range is not None and group.range.is_countable:
            return uniform_of(group.range, self._storage, is_centered=group.is_centered)
        return group.given

    def _find(self, value: Value) -> _Group:
        group = self._groups.get(value)
        if group is None:
            is_shared = len({use.operation for use in value.uses}) > 1
            group = self._groups[value] = _Group(self._needs(value), is_shared=is_shared)
        while group.parent is not group:
            group.parent = group.parent.parent
            group = group.parent
        return group

    @staticmethod
    def _widen(group: _Group, seen: Range | None) -> None:
        if seen is not None:
            group.range = seen if group.range is None else group.range.joined(seen)
