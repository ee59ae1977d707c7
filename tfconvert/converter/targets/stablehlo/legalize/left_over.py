"""The diagnostics of the ops that have no form in StableHLO, all at once."""

from __future__ import annotations

from collections.abc import Mapping

from tfconvert.schema.diagnostics import ConversionError, Diagnostic
from tfconvert.schema.dialects.locations import place_of
from tfconvert.schema.ir.operation import Operation

# How many further nodes of one kind a message names.
_NAMED = 3

_HINTS = {
    "strings": "export a function that begins behind what works on texts, or keep that part in TensorFlow",
    "constant": "pass it as a constant, or pin the sizes of the inputs that it is computed from (--input-shape)",
    "not known": "pin the sizes of the inputs that it depends on (--input-shape)",
}


def unsupported(left: Mapping[Operation, str]) -> ConversionError:
    """Returns the error about ops that stay.

    Args:
        left: The ops, with why each one stays.
    """
    groups: dict[tuple[str, str], list[Operation]] = {}
    for op, reason in left.items():
        groups.setdefault((op.name, reason), []).append(op)
    return ConversionError([_diagnostic(reason, ops) for (_, reason), ops in groups.items()])


def _diagnostic(reason: str, ops: list[Operation]) -> Diagnostic:
    places = [place_of(op.location) for op in ops]
    others = [place.node for place in places[1 : 1 + _NAMED] if place.node]
    also = f"; also at {', '.join(others)}" if others else ""
    more = len(places) - 1 - len(others)
    also += f" and {more} more" if others and more > 0 else ""
    hint = next((hint for words, hint in _HINTS.items() if words in reason), "")
    return Diagnostic(
        "unsupported-op",
        f"{ops[0].name} can't be taken to StableHLO: {reason}{also}",
        ops[0].name,
        places[0].node,
        str(places[0]),
        hint=hint,
    )
