"""Random values of the types that a function takes, to run it on."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence

import numpy as np

from tfconvert.converter.executor.litert_ops import OUTSIDE
from tfconvert.ops.call import Array
from tfconvert.schema.dialects import types
from tfconvert.schema.ir.attribute import Attribute

DRAWS = 3
"""How many different kinds of values there are."""

_LEADING = (2, 1, 3)
# Sizes of unknown dimensions, a draw each: the first is most often a batch, the others are wide or odd.
_OTHER = (32, 5, 8)

_WORDS = (b"", b"a", b"two words", "gr\u00fc\u00df".encode(), b"a longer text, with 42.")


REFUSED_INPUT = frozenset(
    {
        "bad-operand",
        "integer-division-by-zero",
        "assertion-failed",
        "endless-loop",
        "dead-fetch",
        "runtime-error",
        "uninitialized-variable",
        "call-depth",
        "empty-tensor",
        "outside-of-tensor",
        "unequal-sizes",
        OUTSIDE,
    }
)
"""Codes of errors that say that random inputs don't suit a function, rather than that it can't be run at all."""


def draws(kinds: Sequence[Attribute], names: Sequence[str], seed: int = 0) -> Iterator[list[Array]]:
    """Yields values for a function's arguments, several times; once without arguments, never if there is a handle.

    Args:
        kinds: The arguments' types.
        names: Distinguish arguments of the same type.
        seed: Distinguishes runs.
    """
    for draw in range(DRAWS if kinds else 1):
        values = [value_of(kind, name, draw, seed) for kind, name in zip(kinds, names, strict=True)]
        made = [value for value in values if value is not None]
        if len(made) == len(values):
            yield made


def value_of(tensor_type: Attribute, name: str, draw: int, seed: int = 0) -> Array | None:
    """Returns a random value, the same for the same arguments.

    Args:
        tensor_type: The type. Dimensions that it doesn't know get a size by their place, an unknown rank is a scalar.
        name: Distinguishes values of the same type.
        draw: 0 draws small numbers, as networks are fed; 1 wider ones; 2 has zeros, equal values and the like.
        seed: Distinguishes runs.

    Returns:
        The value; `None` if there is none: a handle of a resource, a variant.
    """
    element = types.element_of(tensor_type)
    entry = types.from_mlir(element)
    if entry is None or entry.name in ("resource", "variant"):
        return None
    sizes = types.shape_of(tensor_type) or ()
    shape = tuple((_OTHER if axis else _LEADING)[draw % DRAWS] if dim < 0 else dim for axis, dim in enumerate(sizes))
    random = np.random.default_rng([zlib.crc32(name.encode()), draw, seed])
    if entry.dtype.kind == "O":
        value = np.empty(shape, object)
        value.reshape(-1)[:] = [_WORDS[at] for at in random.integers(0, len(_WORDS), value.size)]
        return value
    if entry.dtype.kind == "b":
        return np.asarray(random.random(shape) < 0.5)
    if entry.dtype.kind in "iu" or entry.name in ("int4", "uint4"):
        low = 0 if entry.dtype.kind == "u" or draw == 0 or entry.name == "uint4" else -8
        return random.integers(low, 8, shape).astype(entry.dtype)
    numbers = random.uniform(-1, 1, shape) * (1.0, 20.0, 1.0)[draw % DRAWS]
    if draw % DRAWS == 2:
        numbers = np.round(numbers * 2) / 2
    return numbers.astype(entry.dtype)
