"""Two graphs side by side: which of their nodes belong together, and how these differ."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Any

from tfconvert.report.graph import Function, Node

ADDED, REMOVED, CHANGED = "added", "removed", "changed"

# Longer runs of nodes without a common name are matched by their order alone, which takes no quadratic time.
_MAX_ALIGNED = 2000


def compared(first: Sequence[Function], second: Sequence[Function]) -> dict[str, Any]:
    """Returns two graphs as plain data, with the matches of the second one's nodes; nodes get their differences.

    Functions are matched by their signatures or names, else in order; nodes by their kinds and names, the others
    between them by their kinds in order.

    Args:
        first: The graphs of the one file.
        second: Those of the other.
    """
    links: list[dict[str, dict[str, list[list[int]]]]] = [{} for _ in second]
    partners = dict(_function_pairs(first, second))
    for number, function in enumerate(second):
        partner = partners.get(number)
        if partner is not None:
            pairs = _node_pairs(first[partner].nodes, function.nodes)
            links[number] = {str(b): {"from": [[partner, a]], "folded": []} for a, b in pairs}
            for a, b in pairs:
                one, other = first[partner].nodes[a], function.nodes[b]
                one.changes = other.changes = list(_changes(one, other))
                one.change = other.change = CHANGED if one.changes else ""
            _mark(first[partner].nodes, {a for a, _ in pairs}, REMOVED)
            _mark(function.nodes, {b for _, b in pairs}, ADDED)
        else:
            _mark(function.nodes, set(), ADDED)
    for number in set(range(len(first))) - set(partners.values()):
        _mark(first[number].nodes, set(), REMOVED)
    return {
        "before": [function.to_dict() for function in first],
        "after": [function.to_dict() | {"links": found} for function, found in zip(second, links, strict=True)],
        "stages": [],
    }


def _mark(nodes: Sequence[Node], matched: set[int], change: str) -> None:
    for index, node in enumerate(nodes):
        if index not in matched:
            node.change = change


def _function_pairs(first: Sequence[Function], second: Sequence[Function]) -> Iterator[tuple[int, int]]:
    """Yields the functions of the second file that have one in the first, with that."""
    left = dict(enumerate(first))
    rest = []
    for number, function in enumerate(second):
        names = {*function.keys, function.name}
        found = next((key for key, other in left.items() if names & {*other.keys, other.name}), None)
        if found is None:
            rest.append(number)
        else:
            del left[found]
            yield number, found
    yield from zip(rest, left, strict=False)


def _node_pairs(first: Sequence[Node], second: Sequence[Node]) -> list[tuple[int, int]]:
    """Returns the nodes that belong together: those that are unique by kind and name, then others in between."""
    ours, theirs = _unique(first), _unique(second)
    fixed = sorted((index, theirs[key]) for key, index in ours.items() if key in theirs)
    pairs = _increasing(fixed)
    taken = dict(pairs)
    crossed = [(a, b) for a, b in fixed if taken.get(a) != b]
    found = [*pairs, *crossed]
    known = {a for a, _ in found}, {b for _, b in found}
    a = b = 0
    for end_a, end_b in [*pairs, (len(first), len(second))]:
        between = (
            [index for index in range(a, end_a) if index not in known[0]],
            [index for index in range(b, end_b) if index not in known[1]],
        )
        found += _aligned(first, second, *between)
        a, b = end_a + 1, end_b + 1
    return sorted(found)


def _unique(nodes: Sequence[Node]) -> dict[tuple[str, str], int]:
    places: dict[tuple[str, str], list[int]] = {}
    for index, node in enumerate(nodes):
        if node.name:
            places.setdefault((node.op, node.name), []).append(index)
    return {key: found[0] for key, found in places.items() if len(found) == 1}


def _increasing(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Returns pairs, sorted by the first, without those whose second goes back."""
    found: list[tuple[int, int]] = []
    for pair in pairs:
        if not found or pair[1] > found[-1][1]:
            found.append(pair)
    return found


def _aligned(
    first: Sequence[Node], second: Sequence[Node], ours: Sequence[int], theirs: Sequence[int]
) -> list[tuple[int, int]]:
    """Returns pairs of nodes of one kind, in order."""
    if not ours or not theirs:
        return []
    kinds = [first[index].op for index in ours], [second[index].op for index in theirs]
    if max(map(len, kinds)) > _MAX_ALIGNED:
        return [(a, b) for a, b in zip(ours, theirs, strict=False) if first[a].op == second[b].op]
    blocks = SequenceMatcher(None, *kinds, autojunk=False).get_matching_blocks()
    return [(ours[a + step], theirs[b + step]) for a, b, size in blocks for step in range(size)]


def _changes(one: Node, other: Node) -> Iterator[str]:
    """Yields how two nodes differ, in words."""
    if one.types != other.types:
        yield f"result: {', '.join(one.types) or 'none'} -> {', '.join(other.types) or 'none'}"
    for name in sorted(one.attributes.keys() | other.attributes.keys()):
        before, after = one.attributes.get(name, "none"), other.attributes.get(name, "none")
        if before != after:
            yield f"{name}: {before} -> {after}"
    if len(one.operands) != len(other.operands):
        yield f"inputs: {len(one.operands)} -> {len(other.operands)}"
    for number, (before_operand, after_operand) in enumerate(zip(one.operands, other.operands, strict=False)):
        texts = [_constant(each) for each in (before_operand, after_operand)]
        if texts[0] != texts[1]:
            yield f"input {number}: {texts[0]} -> {texts[1]}"
        elif isinstance(before_operand, dict) and isinstance(after_operand, dict):
            figures = before_operand.get("histogram"), after_operand.get("histogram")
            if None not in figures and figures[0] != figures[1]:
                yield f"input {number}: other numbers in {texts[0]}"


def _constant(operand: tuple[int, int] | dict[str, Any]) -> str:
    if not isinstance(operand, dict):
        return "computed"
    return " ".join(str(operand[key]) for key in ("type", "value") if operand.get(key))
