"""Suggestions for names of tensors that a model doesn't have."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

# How many similar names are suggested.
_NEAR = 4

# How many results are suggested.
_RESULTS = 8


def tensor_hint(name: str, nodes: Iterable[str], results: Sequence[str]) -> str:
    """Returns a hint with the names that were perhaps meant.

    Args:
        name: The name that no tensor has.
        nodes: The names that there are.
        results: Those of the model's results.
    """
    near = _near(name, list(dict.fromkeys(nodes)))
    parts = [f"did you mean {', '.join(near)}?"] if near else []
    if results:
        more = ", ..." if len(results) > _RESULTS else ""
        parts.append(f"the results are: {', '.join(results[:_RESULTS])}{more}")
    return "; ".join(parts) or "name a node, or node:index"


def _near(name: str, nodes: Sequence[str]) -> list[str]:
    """Returns similar names: first those that end as the name does, then those of which it is a part."""
    wanted = name.lower()
    last = wanted.rpartition("/")[2]
    ending = [each for each in nodes if each.lower().rpartition("/")[2] == last]
    holding = [each for each in nodes if wanted in each.lower()]
    near = [*sorted(ending, key=len), *sorted(holding, key=len), *difflib.get_close_matches(name, nodes, _NEAR)]
    return list(dict.fromkeys(near))[:_NEAR]
