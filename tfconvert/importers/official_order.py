"""The orders in which TensorFlow's own converters have a signature's inputs and outputs.

That of TensorFlow 2 sorts by the 64-bit fingerprint (FarmHash) of the names. It is meant to look like no order at all,
yet scripts that use inputs and outputs by their number depend on it. That of TensorFlow 1 sorts by the tensors' names.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from tfconvert.importers.graph.entry_points import GraphInput, GraphOutput, tensor_of

_MASK = (1 << 64) - 1
_K0, _K1, _K2 = 0xC3A5C85C97CB3127, 0xB492B66FBE98F273, 0x9AE16A3B2F90404F

_BLOCK = 64


def by_fingerprint(each: GraphInput | GraphOutput) -> int:
    """Returns what the converter of TensorFlow 2 sorts by."""
    return fingerprint(each.name)


def label_v1(each: GraphInput | GraphOutput) -> str:
    """Returns what the converter of TensorFlow 1 calls an input or output: a node's first result as the node."""
    return tensor_of(each).removesuffix(":0")


@dataclass(frozen=True, slots=True)
class Ordering:
    """An order of a signature's inputs and outputs, and what belongs to it.

    Attributes:
        sort_key: What inputs and outputs are sorted by; `None` for the order of the function's arguments and results.
        label: Returns what TensorFlow's own converter calls an input or output.
        second_names: Names that a function has only if it isn't `serving_default`, too, or if they are asked for;
            `None` for any.
    """

    sort_key: Callable[[GraphInput | GraphOutput], Any] | None = None
    label: Callable[[GraphInput | GraphOutput], str] = tensor_of
    second_names: Collection[str] | None = None


# What TensorFlow's own converter leaves out beside `serving_default`: the other name of models that Keras exports.
_SECOND_NAMES = ("serve",)

ORDERINGS: Mapping[str, Ordering] = {
    "written": Ordering(),
    "flattened": Ordering(),
    "official": Ordering(by_fingerprint, second_names=_SECOND_NAMES),
    "official-v1": Ordering(tensor_of, label_v1, _SECOND_NAMES),
}
"""The orders that `Selection.order` names."""


def fingerprint(name: str) -> int:
    """Returns the fingerprint of a name, as `tf.fingerprint` has it."""
    text = name.encode()
    if len(text) <= 16:
        return _up_to_16(text)
    if len(text) <= 32:
        return _up_to_32(text)
    return _up_to_64(text) if len(text) <= _BLOCK else _longer(text)


def _word(text: bytes, at: int, size: int = 8) -> int:
    at = at if at >= 0 else len(text) + at
    return int.from_bytes(text[at : at + size], "little")


def _rotated(value: int, by: int) -> int:
    value &= _MASK
    return (value >> by) | (value << (64 - by) & _MASK)


def _shifted(value: int) -> int:
    value &= _MASK
    return value ^ (value >> 47)


def _mixed(one: int, other: int, factor: int) -> int:
    first = _shifted((one ^ other) * factor)
    second = _shifted((other ^ first) * factor)
    return second * factor & _MASK


def _up_to_16(text: bytes) -> int:
    size = len(text)
    factor = _K2 + size * 2
    if size >= 8:
        a, b = _word(text, 0) + _K2 & _MASK, _word(text, -8)
        c, d = _rotated(b, 37) * factor + a, (_rotated(a, 25) + b) * factor
        return _mixed(c & _MASK, d & _MASK, factor)
    if size >= 4:
        return _mixed(size + (_word(text, 0, 4) << 3), _word(text, -4, 4), factor)
    if not size:
        return _K2
    y, z = text[0] + (text[size >> 1] << 8), size + (text[-1] << 2)
    return _shifted((y * _K2 ^ z * _K0) & _MASK) * _K2 & _MASK


def _up_to_32(text: bytes) -> int:
    factor = _K2 + len(text) * 2
    a, b, c, d = _word(text, 0) * _K1 & _MASK, _word(text, 8), _word(text, -8) * factor, _word(text, -16) * _K2
    one = _rotated(a + b, 43) + _rotated(c, 30) + d
    return _mixed(one & _MASK, a + _rotated(b + _K2, 18) + c & _MASK, factor)


def _up_to_64(text: bytes) -> int:
    factor = _K2 + len(text) * 2
    a, b, c, d = _word(text, 0) * _K2 & _MASK, _word(text, 8), _word(text, -8) * factor, _word(text, -16) * _K2
    y = _rotated(a + b, 43) + _rotated(c, 30) + d & _MASK
    z = _mixed(y, a + _rotated(b + _K2, 18) + c & _MASK, factor)
    e, f = _word(text, 16) * factor & _MASK, _word(text, 24)
    g, h = (y + _word(text, -32)) * factor & _MASK, (z + _word(text, -24)) * factor & _MASK
    one = _rotated(e + f, 43) + _rotated(g, 30) + h
    return _mixed(one & _MASK, e + _rotated(f + a, 18) + g & _MASK, factor)


class _State:
    """The state that a long text is mixed into, a block at a time."""

    def __init__(self, text: bytes) -> None:
        self.x = 81 * _K2 + _word(text, 0)
        self.y = 81 * _K1 + 113
        self.z = _shifted(self.y * _K2 + 113) * _K2
        self.v = self.w = (0, 0)

    def mix(self, block: bytes, factor: int, last: int = 1) -> None:
        """Mixes in a block; the last one counts some of the state `last` times."""
        x = _rotated(self.x + self.y + self.v[0] + _word(block, 8), 37) * factor
        y = _rotated(self.y + self.v[1] + _word(block, 48), 42) * factor
        x ^= self.w[1] * last
        y += self.v[0] * last + _word(block, 40)
        z = _rotated(self.z + self.w[0], 33) * factor
        self.v = _weakly(block[:32], self.v[1] * factor, x + self.w[0])
        self.w = _weakly(block[32:], z + self.w[1], y + _word(block, 16))
        self.x, self.y, self.z = z & _MASK, y & _MASK, x & _MASK


def _weakly(text: bytes, a: int, b: int) -> tuple[int, int]:
    first, second, third, fourth = (_word(text, at) for at in (0, 8, 16, 24))
    a += first
    b = _rotated(b + a + fourth, 21)
    whole = a + second + third
    return whole + fourth & _MASK, b + _rotated(whole, 44) + a & _MASK


def _longer(text: bytes) -> int:
    state = _State(text)
    for at in range(0, (len(text) - 1) // _BLOCK * _BLOCK, _BLOCK):
        state.mix(text[at : at + _BLOCK], _K1)
    factor = _K1 + ((state.z & 0xFF) << 1)
    (v, second), (w, fourth) = state.v, state.w
    w += (len(text) - 1) & (_BLOCK - 1)
    v += w
    w += v
    state.v, state.w = (v & _MASK, second), (w & _MASK, fourth)
    state.mix(text[-_BLOCK:], factor, 9)
    one = _mixed(state.v[0], state.w[0], factor) + _shifted(state.y) * _K0 + state.z
    other = _mixed(state.v[1], state.w[1], factor) + state.x
    return _mixed(one & _MASK, other & _MASK, factor)
