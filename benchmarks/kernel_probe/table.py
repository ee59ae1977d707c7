"""The table of all outcomes, in as few rows as distinguish them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import combinations

from benchmarks.kernel_probe import elementwise, movement, rank_rows, recurrent, weighted
from benchmarks.kernel_probe.case import Case
from benchmarks.kernel_probe.judge import Found
from benchmarks.kernel_probe.rank_rows import Pair, Words, words_of, worst
from tfconvert.schema.tflite import kernels
from tfconvert.schema.tflite.kernels import KernelTable, Outcome, rank_of

HEADER = (
    "# What LiteRT {version} makes of calls; written by `python -m benchmarks.kernel_probe`.\n"
    "# Operators, conditions, outcome with the builtin kernels, outcome with XNNPACK, signatures.\n"
)

# Conditions that make a call simpler.
RESTRICTIONS = frozenset(("same", "centred", "fixed"))


def all_cases() -> Iterator[Case]:
    """Yields the calls with quantized operands that the table is made of."""
    yield from elementwise.cases()
    yield from movement.cases()
    yield from weighted.cases()
    yield from recurrent.cases()


def _projected(seen: Mapping[Words, Pair], words: Words) -> dict[Words, set[Pair]]:
    result: dict[Words, set[Pair]] = defaultdict(set)
    for holding, pair in seen.items():
        result[holding & words].add(pair)
    return result


def _decides(rows: Mapping[Words, Pair], holding: Words, pair: Pair) -> bool:
    found = kernels.decide((Outcome(*each, words) for words, each in rows.items()), holding)
    return found is not None and (found.builtin, found.xnnpack) == pair


def _careful(seen: Mapping[Words, Pair], words: Words, telling: Words, pair: Pair) -> Words:
    """Returns the conditions of a row: what is right under some restrictions was not tried without them."""
    if not telling or pair != (kernels.OK, kernels.OK):
        return words
    alike = [holding for holding in seen if holding & telling == words]
    return words | (RESTRICTIONS & frozenset.intersection(*alike))


def rows_of(seen: Mapping[Words, Pair]) -> dict[Words, Pair]:
    """Returns the fewest conditions that distinguish the outcomes of one signature.

    Args:
        seen: The outcomes by the conditions that held.
    """
    known = sorted(frozenset[str]().union(*seen))
    subsets = (frozenset(words) for count in range(len(known) + 1) for words in combinations(known, count))
    telling = next(words for words in subsets if all(len(pairs) == 1 for pairs in _projected(seen, words).values()))
    rows = {_careful(seen, words, telling, pair): pair for words, (pair,) in _projected(seen, telling).items()}
    for holding in sorted(seen, key=_order):
        if not _decides(rows, holding, seen[holding]):
            rows[holding & (telling | RESTRICTIONS)] = seen[holding]
    for words in sorted(rows, key=_order, reverse=True):
        rest = {other: pair for other, pair in rows.items() if other != words}
        if all(_decides(rest, holding, pair) for holding, pair in seen.items()):
            rows = rest
    if not all(_decides(rows, holding, pair) for holding, pair in seen.items()):
        raise ValueError(f"no rows distinguish these: {seen}")
    return rows


def _order(words: Words) -> tuple[int, list[str]]:
    return len(words), sorted(words)


def gather(found: Sequence[Found]) -> dict[tuple[str, str], dict[Words, Pair]]:
    """Returns the outcomes by operator and signature, and by condition; of several the worst."""
    all_pairs: dict[tuple[str, str], dict[Words, list[Pair]]] = defaultdict(lambda: defaultdict(list))
    for each in found:
        holding = kernels.conditions(each.case.operator, each.case.call)
        all_pairs[each.case.key][holding].append((each.builtin, each.xnnpack))
    return {
        key: {holding: worst(pairs) for holding, pairs in by_condition.items()}
        for key, by_condition in all_pairs.items()
    }


def gather_plain(found: Sequence[Found]) -> dict[tuple[str, str], dict[tuple[Words, int], Pair]]:
    """Returns the outcomes of calls on plain numbers by operator and signature, by condition and rank."""
    all_pairs: dict[tuple[str, str], dict[tuple[Words, int], list[Pair]]] = defaultdict(lambda: defaultdict(list))
    for each in found:
        call = each.case.call
        words = kernels.conditions(each.case.operator, call) | ({"special"} if each.case.is_special else set())
        at = words, rank_of(each.case.operator, call) or 0
        all_pairs[each.case.key][at].append((each.builtin, each.xnnpack))
    return {key: {at: worst(pairs) for at, pairs in seen.items()} for key, seen in all_pairs.items()}


# The signatures by operator and outcome.
Rows = dict[tuple[str, Outcome], list[str]]


def rows(quantized: Sequence[Found], plain: Sequence[Found]) -> Rows:
    """Returns the rows of the table.

    Args:
        quantized: What became of the cases with quantized operands.
        plain: What became of those with plain numbers.
    """
    signatures: Rows = defaultdict(list)
    for (operator, signature), seen in sorted(gather(quantized).items()):
        for words, (builtin, xnnpack) in rows_of(seen).items():
            signatures[operator, Outcome(builtin, xnnpack, words)].append(signature)
    for (operator, signature), by_rank in sorted(gather_plain(plain).items()):
        for row in rank_rows.rows_of(rank_rows.without_luck(by_rank)):
            signatures[operator, row].append(signature)
    return signatures


def rows_in(table: KernelTable, without: Collection[str]) -> Rows:
    """Returns the rows of a table on plain numbers or not, but not those of some operators."""
    signatures: Rows = defaultdict(list)
    for operator in table.operators:
        if operator not in without:
            for signature, outcomes in table.rows(operator).items():
                for outcome in outcomes:
                    signatures[operator, outcome].append(signature)
    return signatures


def write(rows: Rows, version: str) -> str:
    """Returns the text of the table.

    Args:
        rows: The rows.
        version: The runtime's version.
    """
    operators: dict[tuple[Outcome, tuple[str, ...]], list[str]] = defaultdict(list)
    for (operator, outcome), each in sorted(rows.items(), key=lambda row: row[0][0]):
        operators[outcome, tuple(sorted(each))].append(operator)
    lines = [
        "\t".join((" ".join(names), words_of(outcome), outcome.builtin, outcome.xnnpack, " ".join(each)))
        for (outcome, each), names in operators.items()
    ]
    return HEADER.format(version=version) + "".join(f"{line}\n" for line in sorted(lines))
