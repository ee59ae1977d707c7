"""Options of custom operators as flexbuffers: a map from name to value, which kernels read by name."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

import numpy as np
from flatbuffers import flexbuffers

_SCALARS = (bool, int, float, str)

# How many values a map that is shown may have.
_MAX_VALUES = 256


def encode(options: Mapping[str, Any]) -> bytes:
    """Returns a map as a flexbuffer, which a kernel reads by name; names keep their order.

    Lists of numbers and of booleans are typed vectors, as kernels written for the official converter's files
    read them.

    Raises:
        TypeError: It is not a map, or a value is not a number, text, boolean or list of one kind of these.
        ValueError: A name is not plain text.
    """
    if not isinstance(options, Mapping):
        raise TypeError(f"options are a map from name to value, not {options!r}")
    values = {name: _plain(name, value) for name, value in options.items()}
    builder = flexbuffers.Builder()
    with builder.Map():
        for name, value in values.items():
            builder.Key(name)
            if isinstance(value, list) and value and not isinstance(value[0], str):
                builder.TypedVectorFromElements(value)
            else:
                builder.Add(value)
    return bytes(builder.Finish())


def decode(data: bytes) -> dict[str, Any] | None:
    """Returns the map that a flexbuffer holds; `None` if it holds none, or more than options would."""
    left = _MAX_VALUES

    def plain(value: flexbuffers.Ref) -> Any:
        nonlocal left
        left -= 1
        if left < 0:
            raise ValueError("too many values")
        if value.IsMap:
            entries = value.AsMap
            return {key: plain(each) for key, each in zip(entries.Keys.Value, entries.Values, strict=True)}
        if value.IsVector or value.IsTypedVector or value.IsFixedTypedVector:
            found = value.AsVector if value.IsVector else value.AsTypedVector
            return [plain(found[index]) for index in range(min(len(found), left + 1))]
        return value.Value

    try:
        found = plain(flexbuffers.GetRoot(data))
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError, struct.error):
        return None  # The bytes are anyone's.
    return found if isinstance(found, dict) else None


def _plain(name: str, value: Any) -> Any:
    """Returns an option's value as flatbuffers takes it."""
    if not name.isascii() or "\0" in name:
        raise ValueError(f"no option can have the name {name!r}")
    value = value.tolist() if isinstance(value, np.generic | np.ndarray) else value
    items = list(value) if isinstance(value, tuple | list) else [value]
    if not all(isinstance(item, _SCALARS) for item in items) or len(set(map(type, items))) > 1:
        raise TypeError(f"the option {name!r} is not a number, text, boolean or list of one kind of them: {value!r}")
    return items if isinstance(value, tuple | list) else value
