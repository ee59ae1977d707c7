"""The pieces of MLIR's own dialects, and of IREE's, that are printed for IREE: `tensor`, `linalg`, `arith`, `util`, ...

Ops are read and printed in the generic form. The table, `upstream_ops.tsv`, is read when the first op is looked up.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tfconvert.schema.dialects import op_table
from tfconvert.schema.dialects.arith import ARITH
from tfconvert.schema.dialects.foreign import TensorCastOp
from tfconvert.schema.ir.attribute import Attribute, AttributePrinter
from tfconvert.schema.ir.attributes import ArrayAttr, quoted
from tfconvert.schema.ir.dialect import Dialect
from tfconvert.schema.ir.errors import VerifyError
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.traits import Trait

if TYPE_CHECKING:
    from tfconvert.schema.ir.attribute_parser import AttributeParser


_MAP = re.compile(r"\([^()]*\)(\[[^\[\]]*\])? -> \([^<>]*\)")


class AffineMapAttr(Attribute):
    """An affine map, kept as its text: nothing here computes with it."""

    __slots__ = ("text",)

    text: str  # What stands between the angle brackets, with single spaces.

    @classmethod
    def get(cls, text: str) -> AffineMapAttr:
        """Returns the map of a text, `(d0, d1) -> (d0)`."""
        return cls.intern(" ".join(text.split()))

    @classmethod
    def of(cls, count: int, results: Sequence[int | str]) -> AffineMapAttr:
        """Returns the map of a number of loops to numbers of loops, or to expressions of them: `d0 * 2`."""
        dims = ", ".join([f"d{number}" for number in range(count)])
        found = ", ".join([f"d{each}" if isinstance(each, int) else each for each in results])
        return cls.intern(f"({dims}) -> ({found})")

    def print(self, printer: AttributePrinter) -> None:
        printer.write(f"affine_map<{self.text}>")


def parse_affine_map(parser: AttributeParser) -> Attribute:
    """Parses what follows `affine_map`: `<(d0) -> (d0)>`."""
    if parser.token[0] != "<":
        parser.raise_error("'<' expected after 'affine_map'")
    start = parser.pos + 1
    text = parser.text
    end = text.find(">", start)
    while end > 0 and text[end - 1] == "-":
        end = text.find(">", end + 1)
    found = " ".join(text[start:end].split())
    if end < 0 or _MAP.fullmatch(found) is None:
        parser.raise_error("expected an affine map, `(d0) -> (d0)`")
    parser.resume_at(end + 1)
    return AffineMapAttr.get(found)


TABLE = Path(__file__).parent / "upstream_ops.tsv"

_TERMINATORS = ("iree_linalg_ext.yield", "linalg.yield", "tensor.yield")

_TRAITS: Mapping[str, frozenset[Trait]] = {
    **dict.fromkeys(_TERMINATORS, frozenset({Trait.TERMINATOR})),
    "util.global": frozenset({Trait.SYMBOL}),
}

EFFECTS = frozenset({"util.global", "util.global.store"})
"""Ops that stay although nothing uses their results."""

ITERATORS = ("parallel", "reduction", "window")
"""The kinds of loops of `linalg.generic`."""


class IteratorAttr(Attribute):
    """`#linalg.iterator_type<parallel>`: the kind of a loop, one of `ITERATORS`."""

    __slots__ = ("kind",)

    NAME = "linalg.iterator_type"

    kind: str

    @classmethod
    def get(cls, kind: str) -> IteratorAttr:
        """Returns the attribute of a kind.

        Raises:
            VerifyError: There is no such kind.
        """
        if kind not in ITERATORS:
            raise VerifyError(f"{kind!r} is not a kind of loop: these are {', '.join(ITERATORS)}")
        return cls.intern(kind)

    def print_parameters(self, printer: AttributePrinter) -> None:
        printer.write(f"<{self.kind}>")

    @classmethod
    def parse_parameters(cls, parser: AttributeParser) -> IteratorAttr:
        with parser.in_angle_brackets():
            return cls.get(parser.parse_identifier(" of a kind of loop"))


class ParameterAttr(Attribute):
    """`#flow.parameter.named<"model"::"w"> : tensor<4xf32>`: a weight in a file beside the program."""

    __slots__ = ("key", "scope", "type")

    NAME = "flow.parameter.named"

    scope: str  # The name of the file, as the program's caller knows it.
    key: str  # The name of the weight in it.
    type: Attribute  # Its type.

    @classmethod
    def get(cls, scope: str, key: str, type: Attribute) -> ParameterAttr:
        return cls.intern(scope, key, type)

    def print_parameters(self, printer: AttributePrinter) -> None:
        printer.write(f"<{quoted(self.scope)}::{quoted(self.key)}> : ")
        printer.attribute(self.type)

    @classmethod
    def parse_parameters(cls, parser: AttributeParser) -> ParameterAttr:
        with parser.in_angle_brackets():
            scope = parser.parse_str_literal(" of the scope")
            parser.parse_punctuation("::", " after the scope")
            key = parser.parse_str_literal(" of the key")
        parser.parse_punctuation(":", " before the type")
        return cls.get(scope, key, parser.parse_type())


class UpstreamOp(op_table.TableOp):
    """An op of the table."""

    __slots__ = ()


def _terminators(op: Operation) -> Sequence[str]:
    return (f"{op.dialect}.yield",)


def _elsewhere(name: str) -> type[Operation] | None:
    """Returns the class of an op that stands elsewhere."""
    if name == TensorCastOp.NAME:
        return TensorCastOp
    return ARITH.open_ops(name) if ARITH.open_ops is not None and name.startswith("arith.") else None


_TABLE = op_table.OpTable(
    TABLE, UpstreamOp, {**op_table.CHECKS, "array": op_table.instance_of(ArrayAttr)}, _terminators, _TRAITS, _elsewhere
)

definitions = _TABLE.definitions
class_of = _TABLE.class_of
build = _TABLE.build


DIALECTS = (
    Dialect("arith", ARITH.ops, open_ops=lambda name: _elsewhere(name) or class_of(name)),
    Dialect("flow", open_ops=class_of, attributes={"parameter.named": ParameterAttr.parse_parameters}),
    Dialect("iree_linalg_ext", open_ops=class_of),
    Dialect("linalg", open_ops=class_of, attributes={"iterator_type": IteratorAttr.parse_parameters}),
    Dialect("math", open_ops=class_of),
    Dialect("tensor", (TensorCastOp,), open_ops=class_of),
    Dialect("util", open_ops=class_of),
)
"""The dialects of the ops in the table; those of `arith` and `tensor` that stand elsewhere are theirs too."""
