"""Families of patterns that few networks need: `registry.py` loads each alone, when one of its ops is met."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Family(NamedTuple):
    """A file that is loaded when it is needed.

    Attributes:
        module: The file's name; it has `PATTERNS`.
        ops: Ops without which none of them matches, separated by spaces: one of these is enough to load them.
    """

    module: str
    ops: str


FAMILIES: tuple[Family, ...] = (
    Family("broadcast_motion", "broadcast_to"),
    Family("softmax", "exp log_softmax softmax"),
    Family("choices", "logical_and logical_not logical_or select select_v2"),
    Family("one_hot", "one_hot"),
    Family("rows", "concatenation cumsum gather_nd scatter_nd split split_v unpack"),
    Family("shorter", "abs div exp floor_div logistic neg pow softmax sqrt square squared_difference sub"),
)


def _by_op() -> Mapping[str, frozenset[Family]]:
    found: dict[str, frozenset[Family]] = {}
    for family in FAMILIES:
        alone = frozenset((family,))
        for op in family.ops.split():
            name = f"tfl.{op}"
            found[name] = found[name] | alone if name in found else alone
    return found


BY_OP: Mapping[str, frozenset[Family]] = _by_op()
"""Op with its dialect's prefix -> the families that are loaded for it."""
