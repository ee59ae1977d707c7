"""The fewest rows that give each form its outcome."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

from benchmarks.accelerator_probe.judge import Found
from tfconvert.schema.tflite.accelerators.acceptance import OK, OUTCOMES, AcceptanceRow, AcceptanceTable, decisive
from tfconvert.schema.tflite.accelerators.forms import ANY, CONDITIONS, conditions

# The maximum number of conditions of a row.
_MAX_WORDS = 4

_ORDER = {word: at for at, word in enumerate(CONDITIONS)}


class Sample(NamedTuple):
    """One outcome: the signature, the conditions that hold, the outcome, and what was said."""

    signature: str
    words: frozenset[str]
    outcome: str
    said: str


def samples_of(found: Iterable[Found]) -> dict[str, list[Sample]]:
    """Returns the distinct outcomes by operator; where equal forms differ, the worst."""
    worst: dict[str, dict[tuple[str, frozenset[str]], Sample]] = defaultdict(dict)
    for each in found:
        form = each.form
        sample = Sample(form.signature, conditions(form), each.outcome, each.said)
        known = worst[each.operator].get(sample[:2])
        if known is None or _weight(sample.outcome) > _weight(known.outcome):
            worst[each.operator][sample[:2]] = sample
    return {operator: list(samples.values()) for operator, samples in worst.items()}


def _weight(outcome: str) -> int:
    return OUTCOMES.index(outcome)


def rows_of(samples: Sequence[Sample]) -> list[AcceptanceRow]:
    """Returns the rows of one operator."""
    signatures = sorted({sample.signature for sample in samples})
    best = {
        signature: min((each.outcome for each in samples if each.signature == signature), key=_weight)
        for signature in signatures
    }
    rows = []
    outcomes = set(best.values())
    if len(outcomes) == 1 and OK not in outcomes:
        rows.append(_row((), frozenset((ANY,)), outcomes.pop(), samples))
    else:
        for outcome in sorted(outcomes, key=_weight):
            own = frozenset(signature for signature in signatures if best[signature] == outcome)
            rows.append(_row((), own, outcome, [each for each in samples if each.signature in own]))
    while rest := [each for each in samples if _decided(rows, each) != each.outcome]:
        added = _best(samples, rest, signatures)
        if added is None:
            # A form differs from ones that look alike by a rare condition: the row has all of its conditions.
            worst = max(rest, key=lambda each: (_weight(each.outcome), len(each.words)))
            added = _row(
                sorted(worst.words, key=_ORDER.__getitem__), frozenset((worst.signature,)), worst.outcome, rest
            )
            samples = [
                each for each in samples if not _fits(added, each) or _weight(each.outcome) >= _weight(worst.outcome)
            ]
        rows.append(added)
    return rows


def _row(words: Sequence[str], signatures: frozenset[str], outcome: str, samples: Sequence[Sample]) -> AcceptanceRow:
    said = Counter(each.said for each in samples if each.outcome == outcome and each.said)
    return AcceptanceRow(tuple(words), outcome, signatures, said.most_common(1)[0][0] if said else "")


def _fits(row: AcceptanceRow, sample: Sample) -> bool:
    return (ANY in row.signatures or sample.signature in row.signatures) and sample.words.issuperset(row.words)


def _decided(rows: Sequence[AcceptanceRow], sample: Sample) -> str:
    found = decisive(row for row in rows if _fits(row, sample))
    return "" if found is None else found.outcome


def _best(samples: Sequence[Sample], rest: Sequence[Sample], signatures: Sequence[str]) -> AcceptanceRow | None:
    """Returns the row that explains most of the rest, with the fewest conditions, for all signatures if possible."""
    for size in range(1, _MAX_WORDS + 1):
        for scope in (frozenset((ANY,)), None):
            found = max(_candidates(samples, rest, size, scope), key=lambda pair: pair[0], default=None)
            if found is not None:
                return found[1]
    return None


Score = tuple[int, tuple[int, ...]]


def _candidates(
    samples: Sequence[Sample], rest: Sequence[Sample], size: int, scope: frozenset[str] | None
) -> Iterator[tuple[Score, AcceptanceRow]]:
    known = sorted({word for each in rest for word in each.words}, key=_ORDER.__getitem__)
    for words in combinations(known, size):
        wanted = frozenset(words)
        fitting = [each for each in samples if wanted <= each.words]
        for outcome in {each.outcome for each in rest if wanted <= each.words}:
            signatures = scope
            if signatures is None:
                good: dict[str, bool] = defaultdict(lambda: True)
                for each in fitting:
                    good[each.signature] &= _weight(each.outcome) >= _weight(outcome)
                signatures = frozenset(name for name, is_good in good.items() if is_good)
            chosen = [each for each in fitting if ANY in signatures or each.signature in signatures]
            covered = [each for each in chosen if each.outcome == outcome and each in rest]
            if covered and all(_weight(each.outcome) >= _weight(outcome) for each in chosen):
                row = _row(words, signatures, outcome, covered)
                yield (len(covered), tuple(-_ORDER[word] for word in words)), row


def merged(by_operator: dict[str, Sequence[AcceptanceRow]]) -> list[str]:
    """Returns the lines of a table: operators that share a row stand in one line."""
    operators: dict[AcceptanceRow, list[str]] = defaultdict(list)
    for operator, rows in sorted(by_operator.items()):
        for row in rows:
            operators[row].append(operator)
    return sorted(
        "\t".join(
            (
                " ".join(names),
                " ".join(row.words) or "-",
                row.outcome,
                " ".join(sorted(row.signatures)),
                row.said or "-",
            )
        )
        for row, names in operators.items()
    )


def table_of(found: Iterable[Found], release: str, kind: str, kept: AcceptanceTable | None = None) -> str:
    """Returns the text of a table.

    Args:
        found: The outcomes.
        release: What they were found with.
        kind: The accelerator.
        kept: A table whose rows stay for operators without outcomes.
    """
    rows = {} if kept is None else {operator: kept.rows(operator) for operator in kept.operators}
    rows |= {operator: rows_of(samples) for operator, samples in samples_of(found).items()}
    head = (
        f"# {release}; written by `python -m benchmarks.accelerator_probe {kind}`.\n"
        "# Operators, conditions, outcome, signatures, what the accelerator says.\n"
    )
    return head + "".join(f"{line}\n" for line in merged(dict(rows)))
