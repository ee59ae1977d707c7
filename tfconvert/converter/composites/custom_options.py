"""A function's attributes as options of a custom operator."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tfconvert.converter.composites.composite import Composite
from tfconvert.schema.dialects import tf
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.attributes import SymbolRefAttr

_SCALARS = (bool, int, float, str)
# Attributes that could be mistaken for strings and lists of numbers.
_OTHERS = (tf.FunctionAttr, SymbolRefAttr, tf.ShapeAttr)


def plain(attribute: Attribute) -> Any:
    """Returns an attribute as what a flexbuffer can hold: a number, a string, or a list of one kind of these.

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


def why_not(attributes: Mapping[str, Attribute]) -> str | None:
    """Returns which attribute can't be an option, `None` if all can."""
    for name, attribute in attributes.items():
        if not name.isascii() or "\0" in name:
            return f"the attribute {name!r} has a name that no option can have"
        try:
            plain(attribute)
        except TypeError:
            return f"the attribute {name!r} is not a number, string, boolean or list of one kind of them"
    return None


def chosen(composite: Composite, names: Iterable[str]) -> dict[str, Any]:
    """Returns some of a function's attributes, which a check has validated, as options; absent ones are left out."""
    found = ((name, composite.get(name)) for name in names)
    return {name: list(value) if isinstance(value, tuple) else value for name, value in found if value is not None}
