"""Hints for ops that can't be legalized, where there is more to say than for any other op."""

from __future__ import annotations

import re
from collections.abc import Mapping

CUSTOM = "allow custom ops if your runtime registers an operator of this name"
"""The hint for any op."""

_ADVICE: Mapping[str, str] = {
    r"tf\.(String.*|StaticRegex.*|Regex.*|Unicode.*|Substr|AsString|ReduceJoin|UnsortedSegmentJoin|.*codeBase64)": (
        "LiteRT can't process strings: split, clean and hash text before it gets to the model, which takes tokens or "
        f"their numbers then, or {CUSTOM}"
    ),
    r"tf\.((Anonymous)?Mutable(Dense)?HashTable.*|LookupTable(Insert|Remove).*)": (
        "LiteRT's tables are filled once, before anything is looked up: use a tf.lookup.StaticHashTable"
    ),
    r"tf\.Ragged.*": (
        "LiteRT has no ragged tensors: let the model take padded ones, and the rows' lengths if it needs them"
    ),
    r"tf\.(FakeQuantWithMinMax|QuantizeAndDequantize).*": (
        "save the model as it is used after training, so that the ranges are variables that nothing writes to any more"
    ),
    r"tf\.(Parse.*Example.*|Decode(CSV|Raw|Proto.*))": f"let the model take the parsed tensors, or {CUSTOM}",
}
"""Names of ops, as regular expressions -> hint."""


def advice(op_name: str) -> str:
    """Returns a hint for an op that can't be converted.

    Args:
        op_name: The op's name, `tf.StringLower`.
    """
    return next((text for names, text in _ADVICE.items() if re.fullmatch(names, op_name)), CUSTOM)
