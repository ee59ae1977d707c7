"""Which calls the runtime's kernels take and compute right, from the table in `kernels.tsv`.

The runtime checks little: a kernel that does not know a mixture of types, or assumes equal scales, may compute
nonsense; one that has the type may have it for few ranks only. So each form of call was tried. `python -m
benchmarks.kernel_probe` runs operators alone, with the builtin kernels and with XNNPACK, on all types and ranks,
compares plain ones with the reference executor and quantized ones with the same operators on floats, and writes the
table. Only those rows are read that a call asks for.

A row is: operators, conditions, the outcomes of the builtin kernels and of XNNPACK, signatures. A signature is
`operand,...>result,...` in the words of `form`. The conditions are those of `CONDITIONS` and `PLAIN_CONDITIONS` that
must hold, and the ranks, `rank0-4` or `rank5-`: the greatest rank among the operands and results must be one of these.
Of several rows for a signature the one with the most conditions decides.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import NamedTuple

from tfconvert.schema.tflite import FOLDER, operators
from tfconvert.schema.tflite.kernel_conditions import CONDITIONS, PLAIN_CONDITIONS, is_plain, rank_of
from tfconvert.schema.tflite.versions import Call, Operand

TABLE = FOLDER / "kernels.tsv"

OK = "ok"
WRONG = "wrong"
REFUSED = "refused"
CRASHES = "crashes"
OUTCOMES = (OK, WRONG, REFUSED, CRASHES)
"""Outcomes of a call, from the best to the worst."""

ABSENT = "absent"

ANY_RANK = 99
"""The greatest rank of a row that has no greatest."""

_RANKS = re.compile(r"rank(\d+)-(\d*)")

# An operator with more operands, such as an LSTM, has only the distinct forms of them in its signatures.
_MANY_OPERANDS = 6

_FORMS: Mapping[str, str] = {
    "FLOAT32": "f32",
    "FLOAT16": "f16",
    "BFLOAT16": "bf16",
    "INT64": "i64",
    "INT32": "i32",
    "INT16": "i16",
    "INT8": "i8",
    "INT4": "i4",
    "INT2": "i2",
    "UINT8": "u8",
    "UINT4": "u4",
    "UINT16": "u16",
}
_FLOATS = frozenset(("FLOAT32", "FLOAT16", "BFLOAT16"))

# Types of operands that are parameters rather than data: shapes, axes, conditions. They are left out unless quantized.
#
# A bias is not, so that one without a scale is a form that was not tried, rather than no bias.
_OTHER_TYPES = frozenset(("BOOL", "INT32", "INT64", "STRING", "RESOURCE", "VARIANT"))


class Outcome(NamedTuple):
    """The outcome of a call.

    Attributes:
        builtin: With the kernels of the runtime alone; one of `OUTCOMES`.
        xnnpack: With XNNPACK, which the runtime has by default.
        conditions: The conditions under which it was so, without those that do not matter.
        low: The least rank for which it was so.
        high: The greatest rank for which it was so.
    """

    builtin: str
    xnnpack: str
    conditions: frozenset[str] = frozenset()
    low: int = 0
    high: int = ANY_RANK

    @property
    def is_ok(self) -> bool:
        """Whether the call is computed right either way."""
        return self.builtin == self.xnnpack == OK


def form(operand: Operand) -> str:
    """Returns an operand's type in short.

    That is `i8`, `i8w` if it is a constant with one scale, `i8c0` with a scale for each slice of axis 0, `i8b32` with
    one for each block of 32 elements. Integers that represent no real numbers have the format's name, `int8`.
    """
    if not operand.type:
        return ABSENT
    short = _FORMS.get(operand.type, operand.type.lower())
    if operand.block_size:
        return f"{short}b{operand.block_size}"
    if operand.axis is not None and len(operand.scales) > 1:
        return f"{short}c{operand.axis}"
    if operand.type in _FLOATS:
        return short
    return operand.type.lower() if not operand.scales else f"{short}w" if operand.is_constant else short


def _forms(operands: Iterable[Operand], bias: int = -1) -> list[str]:
    return [
        form(operand)
        for index, operand in enumerate(operands)
        if index == bias or operand.type not in _OTHER_TYPES or operand.scales
    ]


def signature(operator: str, call: Call) -> str:
    """Returns the forms of a call's operands and results, `i8,i8w>i8`.

    Of a variable number of operands or results only the distinct forms are stated, and of very many operands those that
    are there. States are not constants, whatever defines their initial values. Where integers represent real numbers,
    parameters are left out.
    """
    declared = operators.lookup(operator.lower())
    if is_plain(call):
        inputs, outputs = [form(operand) for operand in call.inputs], [form(operand) for operand in call.outputs]
    elif declared is None:
        inputs, outputs = _forms(call.inputs), _forms(call.outputs)
    else:
        operands = [
            operand._replace(is_constant=operand.is_constant and index not in declared.variables)
            for index, operand in enumerate(call.inputs)
        ]
        bias = next((index for index, value in enumerate(declared.operands) if value.name == "bias"), -1)
        inputs, outputs = _forms(operands, bias), _forms(call.outputs)
    return joined(declared, inputs, outputs)


def joined(declared: operators.Operator | None, inputs: Iterable[str], outputs: Iterable[str]) -> str:
    """Returns a signature of the forms of an operator's operands and results."""
    if declared is not None:
        if len(declared.operands) > _MANY_OPERANDS:
            inputs = [each for each in dict.fromkeys(inputs) if each != ABSENT]
        elif any(value.variadic for value in declared.operands):
            inputs = sorted(set(inputs))
        if any(value.variadic for value in declared.results):
            outputs = sorted(set(outputs))
    return f"{','.join(inputs)}>{','.join(outputs)}"


def conditions(operator: str, call: Call) -> frozenset[str]:
    """Returns the conditions that hold for a call."""
    known = PLAIN_CONDITIONS if is_plain(call) else CONDITIONS
    return frozenset(name for name, holds in known.items() if holds(operator, call))


Rows = Mapping[str, tuple[Outcome, ...]]
"""The outcomes of one operator's signatures, by conditions."""


class Table:
    """The rows of all operators; they are parsed when they are asked for.

    Args:
        text: The table's text.
    """

    __slots__ = ("_found", "_lines", "_rows")

    def __init__(self, text: str) -> None:
        self._found: dict[tuple[str, str], tuple[Outcome, ...]] = {}
        self._rows: dict[str, Rows] = {}
        self._lines: dict[str, list[str]] = defaultdict(list)
        for line in text.splitlines():
            if not line.startswith("#"):
                names, _, rest = line.partition("\t")
                for name in names.split(" "):
                    self._lines[name].append(rest)

    @property
    def operators(self) -> Sequence[str]:
        """The operators that have rows."""
        return sorted(self._lines)

    def of(self, operator: str, signature: str) -> tuple[Outcome, ...]:
        """Returns the rows of a signature alone; the others of its operator aren't parsed for that.

        Args:
            operator: Enumerator of `BuiltinOperator`.
            signature: The forms of operands and results.
        """
        found = self._found.get((operator, signature))
        if found is None:
            lines = (line for line in self._lines.get(operator, ()) if signature in line)
            found = self._found[operator, signature] = _parsed(lines).get(signature, ())
        return found

    def rows(self, operator: str) -> Rows:
        """Returns the rows of an operator.

        Args:
            operator: Enumerator of `BuiltinOperator`.
        """
        found = self._rows.get(operator)
        if found is None:
            found = self._rows[operator] = _parsed(self._lines.get(operator, ()))
        return found


def _parsed(lines: Iterable[str]) -> Rows:
    rows: dict[str, tuple[Outcome, ...]] = {}
    for line in lines:
        needed, builtin, xnnpack, signatures = line.split("\t")
        outcome = _outcome(needed.split(" ") if needed != "-" else [], builtin, xnnpack)
        for each in signatures.split(" "):
            rows[each] = (*rows.get(each, ()), outcome)
    return rows


def _outcome(words: list[str], builtin: str, xnnpack: str) -> Outcome:
    low, high = 0, ANY_RANK
    for word in words:
        found = _RANKS.fullmatch(word)
        if found is not None:
            low, high = int(found[1]), int(found[2] or ANY_RANK)
            words = [other for other in words if other != word]
    return Outcome(builtin, xnnpack, frozenset(words), low, high)


@cache
def table() -> Table:
    """Returns the table that is part of the package."""
    return Table(TABLE.read_text(encoding="utf-8"))


def find(rows: Table, operator: str, call: Call) -> Outcome | None:
    """Returns a call's outcome according to some rows, `None` if they say nothing about it."""
    found = rows.of(operator, signature(operator, call))
    return decide(found, conditions(operator, call), rank_of(operator, call)) if found else None


def decide(rows: Iterable[Outcome], holding: frozenset[str], rank: int | None = None) -> Outcome | None:
    """Returns the row with the most conditions of those that hold, of several the worst; `None` if there is none.

    Args:
        rows: The rows of one signature.
        holding: The conditions that hold.
        rank: The rank, `None` if it is unknown: then no row decides that is for some ranks only.
    """
    fitting = (row for row in rows if row.conditions <= holding and _has_rank(row, rank))
    return max(fitting, key=_weight, default=None)


def _has_rank(row: Outcome, rank: int | None) -> bool:
    return row.low <= rank <= row.high if rank is not None else (row.low, row.high) == (0, ANY_RANK)


def _weight(row: Outcome) -> tuple[int, int, int]:
    return len(row.conditions), OUTCOMES.index(row.builtin), OUTCOMES.index(row.xnnpack)


def required(operator: str, call: Call) -> frozenset[str]:
    """Returns what does not hold for a call, but would make it right; empty if its types alone are the problem.

    Args:
        operator: Enumerator of `BuiltinOperator`.
        call: The call.
    """
    holding = conditions(operator, call)
    rows = table().of(operator, signature(operator, call))
    missing = [row.conditions - holding for row in rows if row.is_ok]
    return min(missing, key=len, default=frozenset())


def outcome(operator: str, call: Call) -> Outcome | None:
    """Returns what the runtime makes of a call, `None` if that was not tried.

    Args:
        operator: Enumerator of `BuiltinOperator`.
        call: The call, with the zero points, axes and constness of its operands.
    """
    return find(table(), operator, call)
