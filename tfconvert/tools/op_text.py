"""The table of support as text, for a terminal and for the docs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tfconvert.tools.op_support import MEANINGS, FunctionSupport, How, OpSupport, Way

_HEAD = """\
# Supported ops

What becomes of each of TensorFlow's ops. Made from the tables that conversions use, by
`tfconvert ops --markdown > docs/support.md`; `tfconvert ops PATTERN` shows a part of it, and `tfconvert inspect MODEL`
says whether a model will convert.
"""
_HEAD_OF_STABLEHLO = """\
# Supported ops of StableHLO and IREE

What becomes of each of TensorFlow's ops for `--target iree`; `--target stablehlo` takes also what IREE refuses. Made
from the tables that conversions use, by `tfconvert ops --target iree --markdown > docs/support_stablehlo.md`. Whether
IREE compiles an op may depend on its operands: [compiling with IREE](compile.md) tells what is measured.
"""
_FUNCTIONS = """\
## Functions

Functions that declare what they implement (`tf.function(experimental_implements=...)`, or as Keras marks its layers)
are converted as a whole. See [composites](composites.md).
"""
# The kinds of support that the docs list; any other op can only be a custom operator.
_SHOWN: tuple[How, ...] = ("builtin", "decomposed", "rewritten", "folded", "refused")


def op_lines(ops: Sequence[OpSupport], meanings: Mapping[How, str] = MEANINGS) -> list[str]:
    """Returns a line for each op, and what the words in it mean."""
    width = max((len(each.op) for each in ops), default=0)
    lines = [f"{each.op:<{width}}  {each.how:<10}  {_told(each)}".rstrip() for each in ops]
    used = {each.how for each in ops}
    return [*lines, "", *(f"{how}: {meaning}" for how, meaning in MEANINGS.items() if how in used)]


def markdown(ops: Sequence[OpSupport], functions: Sequence[FunctionSupport]) -> str:
    """Returns the page of the docs about LiteRT."""
    lines = [_HEAD, *_counts(ops, MEANINGS), *_tables(ops, MEANINGS, _SHOWN), "", _FUNCTIONS]
    lines += ["| implements | |", "|---|---|", *(f"| `{each.interface}` | {each.summary} |" for each in functions)]
    return "\n".join(lines) + "\n"


def of_stablehlo(ops: Sequence[OpSupport], meanings: Mapping[How, str]) -> str:
    """Returns the page of the docs about StableHLO and IREE."""
    shown = [how for how in meanings if how != "unknown"]
    return "\n".join([_HEAD_OF_STABLEHLO, *_counts(ops, meanings), *_tables(ops, meanings, shown)]) + "\n"


def _counts(ops: Sequence[OpSupport], meanings: Mapping[How, str]) -> list[str]:
    rows = [f"| {how} | {sum(each.how == how for each in ops)} | {meaning} |" for how, meaning in meanings.items()]
    return ["| | ops | |", "|---|---:|---|", *rows]


def _tables(ops: Sequence[OpSupport], meanings: Mapping[How, str], shown: Sequence[How]) -> list[str]:
    lines = []
    for how in shown:
        listed = [each for each in ops if each.how == how]
        lines += ["", f"## {how.capitalize()}: {meanings[how]}", "", "| op | |", "|---|---|"]
        lines += [f"| `{each.op}` | {_told(each, '`')} |" for each in listed]
    return lines


def _told(op: OpSupport, quote: str = "") -> str:
    parts = [_way(way, quote) for way in op.ways]
    if op.how == "legalized":
        parts = [op.topic]
    elif op.by == "import":
        parts = [f"read as {part}" for part in parts] or ["when it is read"]
    elif op.by:
        parts = [f"by {quote}{op.by}{quote}"]
    return "; ".join((*parts, op.reason)) if op.reason else "; ".join(parts)


def _way(way: Way, quote: str) -> str:
    text = " ".join(f"{quote}{name}{quote}" for name in way.becomes) or "its operand"
    if way.dtypes:
        text += f" ({', '.join(way.dtypes)})"
    return f"{text}, {way.note}" if way.note else text
