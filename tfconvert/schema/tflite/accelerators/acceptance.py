"""The verdicts on calls: whether an accelerator takes them, and computes them correctly.

A row of a table is: operators, conditions, outcome, signatures, what the accelerator says. Of the rows that fit a call
the one with the decisive outcome counts, the last of `OUTCOMES`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from typing import NamedTuple

from tfconvert.schema.tflite import FOLDER
from tfconvert.schema.tflite.accelerators.forms import ANY, CallForm, holds, told
from tfconvert.schema.tflite.versions import Call

ACCELERATORS: Mapping[str, str] = {"gpu": "gpu", "npu": "intel", "micro": "micro", "ethos-u": "ethos_u"}
"""The accelerators by the names that users give them, with the names of their tables."""

_ORIGIN = re.compile(r"<[a-z0-9]+(?=[,>])")
_UNSCALED = re.compile(r"\buint8\b|\bint8\b")

OK = "ok"
WRONG = "wrong"
CRASHES = "crashes"
REFUSED = "refused"
LOAD_FAILS = "load-fails"
UNKNOWN = "unknown"
OUTCOMES = (OK, UNKNOWN, WRONG, CRASHES, REFUSED, LOAD_FAILS)
"""The outcomes.

An accelerator that refuses a call does not compute it wrongly; a model that isn't loaded is not split.
"""


class Verdict(NamedTuple):
    """The outcome of a call on an accelerator."""

    outcome: str  # One of `OUTCOMES`: `unknown` if no such call was tried.
    reason: str = ""  # Why it is not `ok`.

    @property
    def is_ok(self) -> bool:
        """Whether the accelerator takes the call and computes it correctly."""
        return self.outcome == OK


class AcceptanceRow(NamedTuple):
    """A row of a table for one operator."""

    words: tuple[str, ...]  # The conditions that must hold.
    outcome: str  # The outcome.
    signatures: frozenset[str]  # The signatures, or `ANY`.
    said: str = ""  # What the accelerator says; may be empty.

    def fits(self, form: CallForm, signature: str) -> bool:
        """Returns whether the row is about a call of a signature."""
        is_about = ANY in self.signatures or signature in self.signatures
        return is_about and all(holds(word, form) for word in self.words)

    @property
    def reason(self) -> str:
        """Why the outcome is not `ok`."""
        if self.outcome == OK:
            return ""
        why, said = told(self.words), self.said.rstrip(".")
        return f"{why} ({said})" if why and said else why or said


class AcceptanceTable:
    """The rows of an accelerator.

    Args:
        text: The table's text.
    """

    def __init__(self, text: str) -> None:
        head, _, _ = text.partition("\n")
        self.release = head.removeprefix("# ").partition(";")[0]
        self._rows: dict[str, list[AcceptanceRow]] = defaultdict(list)
        for line in text.splitlines():
            if line and not line.startswith("#"):
                names, words, outcome, signatures, said = line.split("\t")
                row = AcceptanceRow(
                    tuple(words.split(" ")) if words != "-" else (),
                    outcome,
                    frozenset(signatures.split(" ")),
                    "" if said == "-" else said,
                )
                for name in names.split(" "):
                    self._rows[name].append(row)

    @property
    def operators(self) -> Sequence[str]:
        """The operators that have rows."""
        return sorted(self._rows)

    @cached_property
    def doubtful(self) -> frozenset[str]:
        """The operators with a form that is computed wrongly, or that ends the process."""
        return frozenset(
            operator for operator, rows in self._rows.items() if any(row.outcome in (WRONG, CRASHES) for row in rows)
        )

    def rows(self, operator: str) -> Sequence[AcceptanceRow]:
        """Returns the rows of an operator."""
        return self._rows.get(operator, ())

    def verdict(self, operator: str, call: Call) -> Verdict:
        """Returns the verdict on a call."""
        rows = self._rows.get(operator)
        if rows is None:
            return Verdict(UNKNOWN, "the operator was not tried")
        form = CallForm(operator, call)
        known = {signature for row in rows for signature in row.signatures}
        signature = next((each for each in _alike(form.signature) if each in known), form.signature)
        found = decisive(row for row in rows if row.fits(form, signature))
        if found is None:
            return Verdict(UNKNOWN, f"{form.signature} was not tried")
        return Verdict(found.outcome, found.reason)


def _alike(signature: str) -> Iterator[str]:
    """Yields a signature and those that count as the same where it was not tried."""
    yield signature
    # Constants that DEQUANTIZE makes count as computed, bytes that are not quantized as those that are.
    yield _ORIGIN.sub("", signature)
    yield _UNSCALED.sub(lambda found: "u8" if found[0] == "uint8" else "i8", signature)


def decisive(rows: Iterable[AcceptanceRow]) -> AcceptanceRow | None:
    """Returns the row that decides among those that fit; of equal ones that with the fewest conditions."""
    return max(rows, key=lambda row: (OUTCOMES.index(row.outcome), -len(row.words)), default=None)


@cache
def table(accelerator: str) -> AcceptanceTable:
    """Returns the table of an accelerator.

    Args:
        accelerator: A key of `ACCELERATORS`.
    """
    path = FOLDER / "accelerators" / f"{ACCELERATORS[accelerator]}.tsv"
    return AcceptanceTable(path.read_text(encoding="utf-8"))


def verdict(accelerator: str, operator: str, call: Call) -> Verdict:
    """Returns what an accelerator makes of a call.

    Args:
        accelerator: A key of `ACCELERATORS`.
        operator: Enumerator of `BuiltinOperator`, or a custom operator's name.
        call: The call, with the elements and the identity of its operands, as `tfl.whole_call_of` has it.
    """
    return table(accelerator).verdict(operator, call)
