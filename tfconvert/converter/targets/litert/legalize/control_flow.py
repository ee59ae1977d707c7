"""Conditions and loops, whose branches and bodies are functions: subgraphs of the file.

The pass `prepare-control-flow` ensures what they require: conditions are booleans, and there are two branches. The
functions themselves are legalized like any other function.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tfconvert.converter.control_flow.constructs import is_boolean
from tfconvert.converter.ir import symbol_table
from tfconvert.converter.rewrite.pattern import Failure
from tfconvert.converter.targets.litert.legalize.entry import Constraint, Entry, Lowering
from tfconvert.converter.targets.litert.legalize.litert_builder import LiteRTBuilder
from tfconvert.schema.dialects import attributes as attrs
from tfconvert.schema.dialects import types
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value


def _names(*attributes: str) -> Constraint:
    def check(op: Operation) -> Failure | None:
        for name in attributes:
            if not symbol_table.named(op, name):
                return Failure(f"{name} doesn't name a function")
        return None

    return check


def _names_branches(op: Operation) -> Failure | None:
    if not is_boolean(op.operands[0]):
        return Failure(f"the condition is not a scalar boolean but {op.operands[0].type}")
    return _names("then_branch", "else_branch")(op)


def _functions(op: Operation, *names: str) -> dict[str, Attribute]:
    return {name: attrs.symbol(symbol_table.named(op, name)) for name in names}


def _if(op: Operation, emit: LiteRTBuilder) -> Sequence[Value]:
    branches = _functions(op, "then_branch", "else_branch")
    return emit.tfl_op("if", op.operands[:], op.result_types, branches).results


def _while(op: Operation, emit: LiteRTBuilder) -> Sequence[Value]:
    return emit.tfl_op("while", op.operands[:], op.result_types, _functions(op, "cond", "body")).results


def _to_bool(op: Operation, emit: LiteRTBuilder) -> Value:
    """A scalar is true if it is not zero or not the empty string, anything else if it has elements."""
    value = op.operands[0]
    element, shape = types.element_of(value.type), types.shape_of(value.type)
    if shape:
        if 0 in shape or -1 not in shape:
            return emit.constant(np.array(0 not in shape))
        size = emit.tf("Size", (value,), types.tensor(types.I32, ()))
        return emit.compare("NotEqual", size, 0)
    if element == types.I1:
        return value
    if element == types.STRING:
        empty = emit.constant(np.array(b"", object))
        return emit.tf("NotEqual", (value, empty), types.tensor(types.I1, shape))
    return emit.compare("NotEqual", value, 0)


ENTRIES: tuple[Entry, ...] = (
    *(Lowering(op, "if", _if, constraint=_names_branches) for op in ("If", "StatelessIf")),
    *(Lowering(op, "while", _while, constraint=_names("cond", "body")) for op in ("While", "StatelessWhile")),
    Lowering("ToBool", "not_equal", _to_bool),
)
