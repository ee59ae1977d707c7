"""Variables and static tables; conditions and loops, whose branches and bodies are functions: subgraphs of the file.

The pass `prepare-control-flow` ensures what conditions and loops require: conditions are booleans, and there are two
branches. The functions themselves are legalized like any other function.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np

from tfconvert.converter.control_flow.constructs import is_boolean
from tfconvert.converter.ir import symbol_table
from tfconvert.converter.rewrite.pattern import Failure
from tfconvert.converter.targets.litert.legalize.entry import (
    Attr,
    BuiltinRow,
    Constraint,
    Entry,
    Lowering,
    element_name,
    tflite_name,
)
from tfconvert.converter.targets.litert.legalize.litert_builder import LiteRTBuilder
from tfconvert.schema.dialects import attributes as attrs
from tfconvert.schema.dialects import tf, types
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

HELD = (
    "f32",
    "f64",
    "f16",
    "bf16",
    "i1",
    "i8",
    "ui8",
    "i16",
    "ui16",
    "i32",
    "ui32",
    "i64",
    "ui64",
    "complex<f32>",
    "complex<f64>",
)
"""The element types that LiteRT's variables can have."""

_KINDS = frozenset({("!tf_type.string", "i64"), ("i64", "!tf_type.string")})
# Tables' numbers begin here: the runtime counts variables from 0, and they must not meet.
_TABLE_IDS = 1 << 30


def _kind_is_known(op: Operation) -> Failure | None:
    kinds = [op.properties.get(name) for name in ("key_dtype", "value_dtype")]
    if None in kinds:
        return Failure("the table's element types are not known")
    kind = tuple(element_name(each) for each in kinds if each is not None)
    return (
        None
        if kind in _KINDS
        else Failure(f"LiteRT's tables are string -> i64 and i64 -> string, not {' -> '.join(kind)}")
    )


def _table(op: Operation, emit: LiteRTBuilder) -> Value:
    number = zlib.crc32(str(tf.get(op, "shared_name", "")).encode()) % _TABLE_IDS
    key, value = (tflite_name(op.properties[name]) for name in ("key_dtype", "value_dtype"))
    options = {"table_id": _TABLE_IDS + number, "key_dtype": key, "value_dtype": value}
    return emit.tfl("hashtable", (), op.results[0].type, options)


def _is_held(op: Operation) -> Failure | None:
    held = types.held_by(op.results[0].type)
    kind = op.properties.get("dtype") or (None if held is None else types.element_of(held))
    if kind is None:
        return Failure("the variable's element type is not known")
    name = element_name(kind)
    return None if name in HELD else Failure(f"LiteRT's variables hold {', '.join(HELD)}, not {name}")


def _is_initialized(op: Operation, emit: LiteRTBuilder) -> Value:
    return emit.constant(np.array(True))


def _table_is_known(op: Operation) -> Failure | None:
    owner = op.operands[0].owner
    is_known = isinstance(owner, Operation) and owner.name in ("tf.HashTableV2", "tfl.hashtable")
    return None if is_known else Failure("the table that it reads is not known")


def _import(op: Operation, emit: LiteRTBuilder) -> tuple[()]:
    emit.tfl_op("hashtable_import", op.operands[:], ())
    return ()


def _assign(op: Operation, emit: LiteRTBuilder) -> tuple[()]:
    emit.tfl_op("assign_variable", op.operands[:], ())
    return ()


def _element_is_held(op: Operation) -> Failure | None:
    held = element_name(op.operands[1].element)
    return None if held in HELD else Failure(f"LiteRT's variables hold {', '.join(HELD)}, not {held}")


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
    element, shape = value.element, value.shape
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
    BuiltinRow(
        "VarHandleOp",
        "var_handle",
        options={"container": Attr("container", ""), "shared_name": Attr("shared_name")},
        constraint=_is_held,
    ),
    BuiltinRow("ReadVariableOp", "read_variable"),
    Lowering("AssignVariableOp", "assign_variable", _assign, constraint=_element_is_held),
    Lowering("VarIsInitializedOp", "pseudo_const", _is_initialized),
    Lowering("HashTableV2", "hashtable", _table, constraint=_kind_is_known),
    BuiltinRow("LookupTableFindV2", "hashtable_find", operands=(0, 1, 2), constraint=_table_is_known),
    Lowering("LookupTableImportV2", "hashtable_import", _import),
    *(Lowering(op, "if", _if, constraint=_names_branches) for op in ("If", "StatelessIf")),
    *(Lowering(op, "while", _while, constraint=_names("cond", "body")) for op in ("While", "StatelessWhile")),
    Lowering("ToBool", "not_equal", _to_bool),
)
