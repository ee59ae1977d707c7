"""State: variables that the model writes, and static tables."""

from __future__ import annotations

import zlib

import numpy as np

from tfconvert.converter.rewrite.pattern import Failure
from tfconvert.converter.targets.litert.legalize.entry import Attr, Entry, Lowering, Row, element_name, tflite_name
from tfconvert.converter.targets.litert.legalize.litert_builder import LiteRTBuilder
from tfconvert.schema.dialects import tf, types
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
    held = element_name(types.element_of(op.operands[1].type))
    return None if held in HELD else Failure(f"LiteRT's variables hold {', '.join(HELD)}, not {held}")


ENTRIES: tuple[Entry, ...] = (
    Row(
        "VarHandleOp",
        "var_handle",
        options={"container": Attr("container", ""), "shared_name": Attr("shared_name")},
        constraint=_is_held,
    ),
    Row("ReadVariableOp", "read_variable"),
    Lowering("AssignVariableOp", "assign_variable", _assign, constraint=_element_is_held),
    Lowering("VarIsInitializedOp", "pseudo_const", _is_initialized),
    Lowering("HashTableV2", "hashtable", _table, constraint=_kind_is_known),
    Row("LookupTableFindV2", "hashtable_find", operands=(0, 1, 2), constraint=_table_is_known),
    Lowering("LookupTableImportV2", "hashtable_import", _import),
)
