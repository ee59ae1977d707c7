"""The table of support, and its text: what becomes of each of TensorFlow's ops.

It is put together from the tables that conversions use: the entries of legalization, the ops that passes replace before
it, the kernels that fold constants, and the ops that are refused on sight.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache
from typing import Any, Literal, NamedTuple

from tfconvert.converter.passes import canonicalize
from tfconvert.converter.pipeline.refusals import reason
from tfconvert.converter.resource_ops.updates import OPTIMIZERS, PARTS
from tfconvert.converter.targets.litert.flex.conversion import known_ops
from tfconvert.converter.targets.litert.fusions.registry import FUSIONS
from tfconvert.converter.targets.litert.legalize import legalizations
from tfconvert.converter.targets.litert.legalize.left_over import advice
from tfconvert.converter.tensor_lists import arrays, lists, stacks
from tfconvert.importers.graph.legacy_ops import CURRENT
from tfconvert.ops.registry import kernel
from tfconvert.schema.dialects.types import ELEMENT_TYPES
from tfconvert.schema.tensorflow import op_defs
from tfconvert.schema.tensorflow.generated.tensorflow_pb2 import DT_VARIANT

How = Literal["builtin", "decomposed", "rewritten", "folded", "flex", "custom", "refused", "legalized", "unknown"]

MEANINGS: Mapping[How, str] = {
    "builtin": "one LiteRT operator computes the same",
    "decomposed": "several operators, or ops that are converted in turn, compute the same",
    "rewritten": "a pass replaces or removes it before operators are chosen",
    "folded": "only where its operands are constants, so that its result is one",
    "flex": "only as TensorFlow's own op, for applications that link the Flex delegate (`--allow-flex`), or as custom",
    "custom": "only as a custom operator, which the application has to register (`--allow-custom-ops`)",
    "refused": "never: it needs what no model file holds",
}
"""How ops are converted to LiteRT."""

# Pass -> ops that its code, not a table, replaces.
_BY_HAND: Mapping[str, str] = {
    "functionalize-loops": "Enter Exit LoopCond NextIteration RefEnter RefExit RefNextIteration",
    "functionalize-conditionals": "ControlTrigger Merge RefMerge RefSwitch Switch _SwitchN",
    "inline": "PartitionedCall StatefulPartitionedCall",
    "prepare-control-flow": "Case StatelessCase",
    "lower-tensor-lists": "EmptyTensorList TensorListReserve",
    "lower-tables": "InitializeTableFromTextFileV2 InitializeTableV2 LookupTableExportV2 LookupTableSizeV2",
    "import": "Assign AssignAdd AssignSub DestroyTemporaryVariable IsVariableInitialized Placeholder "
    "RefIdentity TemporaryVariable Variable VariableV2",
}


class Way(NamedTuple):
    """One way in which an op is converted.

    Attributes:
        becomes: LiteRT's operators (`CONV_2D`), and ops that are converted in turn (`tf.Mul`); empty if only its
            operand is left.
        dtypes: The element types of the operand that decides, by numpy's names; empty if any will do.
        note: The note for users of the op; may be empty.
    """

    becomes: tuple[str, ...]
    dtypes: tuple[str, ...] = ()
    note: str = ""


class OpSupport(NamedTuple):
    """How an op is converted.

    Attributes:
        op: Its name, `Conv2D`.
        how: The best that may become of it; see `MEANINGS`.
        topic: The topic of its entries; empty if it has none.
        ways: The ways in which legalization converts it, in the order of the table; each may ask for more than types.
        by: The pass that rewrites it; empty unless it is rewritten.
        reason: Why it is refused, or what to do about it; empty if there is nothing to say.
    """

    op: str
    how: How
    topic: str = ""
    ways: tuple[Way, ...] = ()
    by: str = ""
    reason: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Returns plain data."""
        return {
            **self._asdict(),
            "ways": [{**way._asdict(), "becomes": list(way.becomes), "dtypes": list(way.dtypes)} for way in self.ways],
        }


class FunctionSupport(NamedTuple):
    """A function that is converted as a whole, by the name of its interface.

    Attributes:
        interface: The name, `*` for any extension.
        summary: Its arguments, and what becomes of it.
    """

    interface: str
    summary: str


# Ops of TensorFlow's own tests, which its library registers.
_TESTS = frozenset(("Foo1", "Foo2", "Foo3"))


@cache
def supported_ops() -> tuple[OpSupport, ...]:
    """Returns what becomes of each of TensorFlow's ops, by name; those for its own use and tests are left out."""
    entries = _entries()
    removed = rewritten()
    everything = (_support(name, entries, removed) for name in op_defs.names() if name not in _TESTS)
    return tuple(each for each in everything if each.how not in ("custom", "flex") or not each.op.startswith("_"))


def supported_functions() -> tuple[FunctionSupport, ...]:
    """Returns the functions that are recognised by the name of their interface."""
    return tuple(FunctionSupport(fusion.interface, fusion.summary) for fusion in FUSIONS)


def _support(name: str, entries: Mapping[str, tuple[str, Sequence[Way]]], removed: Mapping[str, str]) -> OpSupport:
    current = CURRENT.get(name)
    if current is not None:
        return upgraded(name, _support(current, entries, removed))
    gone = without_legalization(name, removed)
    if gone is not None:
        return gone
    if name in entries:
        topic, ways = entries[name]
        how: How = "builtin" if any(_is_builtin(way) for way in ways) else "decomposed"
        return OpSupport(name, how, topic, tuple(ways))
    left: How = "folded" if is_folded(name) else "flex" if name in known_ops() else "custom"
    return OpSupport(name, left, reason=advice(f"tf.{name}", ""))


def upgraded(name: str, current: OpSupport) -> OpSupport:
    """Returns the support of an op that is imported as another one."""
    if current.how in ("builtin", "decomposed", "legalized", "rewritten"):
        return OpSupport(name, "rewritten", current.topic, (Way((f"tf.{current.op}",)),), "import")
    return current._replace(op=name)


def without_legalization(name: str, removed: Mapping[str, str]) -> OpSupport | None:
    """Returns the support of an op that is refused, or removed before legalization; else `None`."""
    why = reason(f"tf.{name}")
    if why:
        return OpSupport(name, "refused", reason=why)
    if name in removed:
        return OpSupport(name, "rewritten", by=removed[name], reason=_note(name))
    twin = _twin(name)
    if twin in removed:
        return OpSupport(name, "rewritten", ways=(Way((f"tf.{twin}",)),), by="import")
    return None


def is_folded(name: str) -> bool:
    """Returns whether an op of constants is one; lists, which kernels compute with, too, never are."""
    op_def = op_defs.lookup(name)
    lists = op_def is not None and any(result.type == DT_VARIANT for result in op_def.output_arg)
    return kernel(name) is not None and not lists


def _twin(name: str) -> str:
    """Returns the op on handles that import puts in the place of an op on references; empty otherwise."""
    op_def = op_defs.lookup(name)
    takes_reference = op_def is not None and any(operand.is_ref for operand in op_def.input_arg)
    return f"Resource{name}" if takes_reference else ""


def _note(name: str) -> str:
    """Returns the note for users where an op of this name was removed."""
    patterns = canonicalize.PATTERNS.for_root(f"tf.{name}")
    return patterns[0].note.removeprefix(f"{name}: ") if patterns else ""


def _is_builtin(way: Way) -> bool:
    return len(way.becomes) == 1 and not way.becomes[0].startswith("tf.")


def _entries() -> dict[str, tuple[str, list[Way]]]:
    """Returns the ways of legalization by op, with their topic."""
    found: dict[str, tuple[str, list[Way]]] = {}
    for row in legalizations.entries():
        becomes = tuple(_target(word) for word in row.becomes.split() if word != "nothing")
        found.setdefault(row.op, (row.topic, []))[1].append(Way(becomes, _dtypes(row.types), row.note))
    return found


def _target(word: str) -> str:
    """Returns a replacement as users know it: entries name operators in lower case, TensorFlow's ops in capitals."""
    if word == "pseudo_const":
        return "constant"
    return f"tf.{word}" if word[0].isupper() else word.upper()


def rewritten() -> dict[str, str]:
    """Returns the ops that are gone when legalization begins, with the pass that removes them."""
    tables: Iterable[tuple[str, Iterable[str]]] = (
        *((name, ops.split()) for name, ops in _BY_HAND.items()),
        ("canonicalize", canonicalize.PATTERNS.reach),
        ("decompose-resource-ops", (*PARTS, *OPTIMIZERS)),
        ("tensor-arrays-to-lists", arrays.OPS),
        ("stacks-to-lists", (*stacks.OPS, *stacks.LEGACY)),
        ("lower-tensor-lists", lists.LOWERINGS),
    )
    found = {op.removeprefix("tf."): name for name, ops in tables for op in ops}
    return {op: name for op, name in found.items() if op not in _KEPT}


# Passes remove these only where they do nothing.
_KEPT = frozenset({"Cast"})


@cache
def _by_mlir_name() -> Mapping[str, str]:
    """Returns numpy's names of element types by MLIR's."""
    return {str(row.mlir): row.name if row.dtype == object else str(row.dtype) for row in ELEMENT_TYPES}


def _dtypes(text: str) -> tuple[str, ...]:
    return tuple(_by_mlir_name()[name] for name in text.split())


def matching(pattern: str, ops: Iterable[OpSupport]) -> list[OpSupport]:
    """Returns the ops whose name contains a string, or matches a pattern with `*` or `?`; case is ignored.

    The op that is called so comes first.
    """
    name = pattern.lower().removeprefix("tf.")
    wanted = name if set(name) & set("*?[") else f"*{name}*"
    return sorted((each for each in ops if fnmatchcase(each.op.lower(), wanted)), key=lambda op: op.op.lower() != name)


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
    """Returns a line for each op, and the meaning of the words in it."""
    width = max((len(each.op) for each in ops), default=0)
    lines = [f"{each.op:<{width}}  {each.how:<10}  {_details(each)}".rstrip() for each in ops]
    used = {each.how for each in ops}
    return [*lines, "", *(f"{how}: {meaning}" for how, meaning in MEANINGS.items() if how in used)]


def markdown(ops: Sequence[OpSupport], functions: Sequence[FunctionSupport]) -> str:
    """Returns the page of the docs about LiteRT."""
    lines = [_HEAD, *_counts(ops, MEANINGS), *_tables(ops, MEANINGS, _SHOWN), "", _FUNCTIONS]
    lines += ["| implements | |", "|---|---|", *(f"| `{each.interface}` | {each.summary} |" for each in functions)]
    return "\n".join(lines) + "\n"


def stablehlo_markdown(ops: Sequence[OpSupport], meanings: Mapping[How, str]) -> str:
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
        lines += [f"| `{each.op}` | {_details(each, '`')} |" for each in listed]
    return lines


def _details(op: OpSupport, quote: str = "") -> str:
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
