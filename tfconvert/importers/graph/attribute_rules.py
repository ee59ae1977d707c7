"""Constraints of an OpDef on a node's attributes: the kind of value, the values that are allowed, the least one."""

from __future__ import annotations

from typing import NamedTuple

from tfconvert.schema.dialects import types
from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb

KINDS = {
    "string": "s",
    "int": "i",
    "float": "f",
    "bool": "b",
    "type": "type",
    "shape": "shape",
    "tensor": "tensor",
    "func": "func",
}
"""An OpDef attribute's type -> the AttrValue field that holds it; all others are lists."""

_LISTS = ("s", "i", "f", "b", "type", "shape", "tensor", "func")


class AttributeRule(NamedTuple):
    """The demands on one attribute.

    Attributes:
        field: The AttrValue field that must hold the value.
        is_required: Whether there is no default.
        items: The field of a list's items, or of the value itself where it is not a list.
        allowed: The allowed values, every item of a list; empty if there is no limit.
        minimum: The least value, of a list the least length; `None` if there is no limit.
        is_limited: Whether a value of the right kind may still be invalid.
    """

    field: str
    is_required: bool
    items: str
    allowed: frozenset[bytes | int]
    minimum: int | None
    is_limited: bool

    @classmethod
    def of(cls, attr: pb.OpDef.AttrDef) -> AttributeRule:
        """Returns the demands of an OpDef's attribute."""
        listed = attr.type.removeprefix("list(").removesuffix(")")
        values = attr.allowed_values.list
        return cls(
            KINDS.get(attr.type, "list"),
            not attr.HasField("default_value"),
            KINDS.get(listed, ""),
            frozenset([*values.s, *values.type]),
            attr.minimum if attr.has_minimum else None,
            attr.has_minimum or attr.HasField("allowed_values"),
        )

    def problem(self, value: pb.AttrValue) -> str:
        """Returns the reason why a value is invalid, empty if it is valid."""
        there = value.WhichOneof("value")
        if there == "placeholder" or (there is None and not self.is_required):
            return ""
        if there != self.field:
            return f"holds {there or 'nothing'!r} instead of {self.field!r}"
        return self._limit_problem(value) if self.is_limited else ""

    def _limit_problem(self, value: pb.AttrValue) -> str:
        is_list = self.field == "list"
        if self.minimum is not None:
            size = max(len(getattr(value.list, field)) for field in _LISTS) if is_list else value.i
            if size < self.minimum:
                return f"{'has the length' if is_list else 'is'} {size}, which must be at least {self.minimum}"
        if self.allowed:
            items = getattr(value.list, self.items) if is_list else (getattr(value, self.items),)
            wrong = [item for item in items if item not in self.allowed]
            if wrong:
                return f"is {_shown(wrong[0])}, which must be one of {', '.join(sorted(map(_shown, self.allowed)))}"
        return ""


def _shown(value: bytes | int) -> str:
    if isinstance(value, bytes):
        return repr(value.decode(errors="replace"))
    return str(types.element_type(value) or value)
