"""Options of custom operators as flexbuffers: a map from name to value, which kernels read by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from flatbuffers import flexbuffers
from xdsl.ir import Attribute

from schema.dialects import tf

_SCALARS = (bool, int, float, str)


def plain(attribute: Attribute) -> Any:
    """Returns an attribute as what a flexbuffer can hold: a number, a string, or a list of one kind of these.

    Raises:
        TypeError: A flexbuffer can't hold it.
    """
    value = tf.python_value(attribute)
    if isinstance(value, _SCALARS):
        return value
    if isinstance(value, tuple) and len(kinds := {type(item) for item in value}) <= 1 and kinds <= set(_SCALARS):
        return list(value)
    raise TypeError(str(attribute))


def why_not(attributes: Mapping[str, Attribute]) -> str | None:
    """Returns which attribute can't be an option, `None` if all can."""
    for name, attribute in attributes.items():
        try:
            plain(attribute)
        except TypeError:
            return f"the attribute {name!r} is no number, string, boolean or list of one kind of them"
    return None


def encode(options: Mapping[str, Any]) -> bytes:
    """Returns a map as a flexbuffer, its keys in alphabetical order.

    Lists of numbers and of booleans are typed vectors, as kernels that were made for the official converter's files
    read them.
    """
    builder = flexbuffers.Builder()
    with builder.Map():
        for name in sorted(options):
            value = options[name]
            builder.Key(name)
            if isinstance(value, list) and value and not isinstance(value[0], str):
                builder.TypedVectorFromElements(value)
            else:
                builder.Add(value)
    return bytes(builder.Finish())


def chosen(attributes: Mapping[str, Attribute], names: Iterable[str]) -> dict[str, Any]:
    """Returns some of a function's attributes as options; those that aren't there are left out."""
    return {name: plain(attributes[name]) for name in names if name in attributes}
