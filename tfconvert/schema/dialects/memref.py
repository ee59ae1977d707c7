"""The pieces of `memref`, `scf` and `bufferization` that programs on buffers consist of: one table of ops.

Ops are read and printed in the generic form. The table, `memref_ops.tsv`, is read when the first op is looked up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from tfconvert.schema.dialects import op_table, types
from tfconvert.schema.ir.attributes import DenseArrayAttr
from tfconvert.schema.ir.dialect import Dialect
from tfconvert.schema.ir.errors import VerifyError
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.traits import Trait
from tfconvert.schema.ir.types import DYNAMIC, MemRefType
from tfconvert.schema.ir.values import Value

TABLE = Path(__file__).parent / "memref_ops.tsv"

_TERMINATORS = ("scf.condition", "scf.yield")

_TRAITS: Mapping[str, frozenset[Trait]] = {
    **dict.fromkeys(_TERMINATORS, frozenset({Trait.TERMINATOR})),
    "memref.global": frozenset({Trait.SYMBOL}),
}


class BufferOp(op_table.TableOp):
    """An op of the table."""

    __slots__ = ()

    def verify_(self) -> None:
        super().verify_()
        if self.name == "memref.alloc":
            kind = self.results[0].type
            if not isinstance(kind, MemRefType) or kind.shape.count(DYNAMIC) != len(self.operands):
                raise VerifyError("memref.alloc needs a size for each dynamic dimension of its result")


_TABLE = op_table.OpTable(TABLE, BufferOp, op_table.CHECKS, lambda op: _TERMINATORS, _TRAITS)

definitions = _TABLE.definitions
class_of = _TABLE.class_of
build = _TABLE.build


def alloc(kind: MemRefType, sizes: Sequence[Value]) -> Operation:
    """Returns a detached allocation of a buffer whose dynamic sizes are operands."""
    segments = DenseArrayAttr.get(types.I32, (len(sizes), 0))
    return build("memref.alloc", sizes, (kind,), {"operandSegmentSizes": segments})


DIALECTS = tuple(Dialect(name, open_ops=class_of) for name in ("bufferization", "memref", "scf"))
"""The dialects of the ops in the table."""
