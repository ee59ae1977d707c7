"""The rows of calls on plain numbers: the ranks for which a kernel takes them, and the conditions that matter."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from tfconvert.schema.tflite import kernels
from tfconvert.schema.tflite.kernels import ANY_RANK, OUTCOMES, Outcome

Words = frozenset[str]
# The outcomes with the builtin kernels and with XNNPACK.
Pair = tuple[str, str]

# The outcomes of one signature by the conditions that held, and by rank.
Seen = Mapping[tuple[Words, int], Pair]


def rows_of(seen: Seen) -> list[Outcome]:
    """Returns the fewest rows that tell all calls what became of them.

    Ranks that were not tried are taken to be like the nearest lower one that was.
    """
    known = sorted(frozenset[str]().union(*(words for words, _ in seen)))
    subsets = (frozenset(words) for count in range(len(known) + 1) for words in combinations(known, count))
    for telling in subsets:
        by_words = _projected(seen, telling)
        if by_words is not None:
            rows = [row for words, ranks in by_words.items() for row in _intervals(words, ranks)]
            if all(_decides(rows, words, rank, pair) for (words, rank), pair in seen.items()):
                return _needed(rows, seen)
    raise ValueError(f"no rows distinguish these: {seen}")


def without_luck(seen: Seen) -> Seen:
    """Returns outcomes of which those of ranks 0 and 1 are not better than wrong results of rank 2.

    Of one or two numbers nonsense may be right by chance.
    """
    result = dict(seen)
    for words, rank in seen:
        matrix = seen.get((words, 2))
        if rank < 2 and matrix is not None and kernels.WRONG in matrix:
            result[words, rank] = worst([seen[words, rank], matrix])
    return result


def _projected(seen: Seen, telling: Words) -> Mapping[Words, Mapping[int, Pair]] | None:
    """Returns the outcomes by some conditions and by rank, `None` if these don't determine them."""
    result: dict[Words, dict[int, Pair]] = defaultdict(dict)
    for (words, rank), pair in seen.items():
        if result[words & telling].setdefault(rank, pair) != pair:
            return None
    return result


def _intervals(words: Words, ranks: Mapping[int, Pair]) -> Iterator[Outcome]:
    """Yields a row for each run of ranks with the same outcome."""
    order = sorted(ranks)
    starts = [rank for index, rank in enumerate(order) if index == 0 or ranks[rank] != ranks[order[index - 1]]]
    for index, start in enumerate(starts):
        low = start if index else 0
        high = starts[index + 1] - 1 if index + 1 < len(starts) else ANY_RANK
        yield Outcome(*ranks[start], words, low, high)


def _decides(rows: Sequence[Outcome], holding: Words, rank: int, pair: Pair) -> bool:
    found = kernels.decide(rows, holding, rank)
    return found is not None and (found.builtin, found.xnnpack) == pair


def _needed(rows: list[Outcome], seen: Seen) -> list[Outcome]:
    for row in sorted(rows, key=lambda row: len(row.conditions), reverse=True):
        rest = [other for other in rows if other is not row]
        if all(_decides(rest, words, rank, pair) for (words, rank), pair in seen.items()):
            rows = rest
    return rows


def worst(pairs: Sequence[Pair]) -> Pair:
    """Returns the worst outcomes of several calls."""
    builtin, xnnpack = (max(each, key=OUTCOMES.index) for each in zip(*pairs, strict=True))
    return builtin, xnnpack


def words_of(row: Outcome) -> str:
    """Returns a row's conditions as the table has them."""
    words = sorted(row.conditions)
    if (row.low, row.high) != (0, ANY_RANK):
        words.append(f"rank{row.low}-{'' if row.high == ANY_RANK else row.high}")
    return " ".join(words) or "-"
