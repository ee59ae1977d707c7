"""Contents of a .tflite file that ops, locations and types can't express, as attributes.

A module with the attribute `tfl.schema_version` is the image of a file: each of its functions is a subgraph, in order,
and exporting it gives the same tensors under the same names. Fields of the file's tables that have no other place in
the IR are in dictionaries, under their names in the schema.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tfconvert.schema.dialects import attributes as attrs
from tfconvert.schema.dialects import tfl, types
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.attributes import ArrayAttr, DenseArrayAttr, DictionaryAttr, IntegerAttr, StringAttr
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import IntegerType
from tfconvert.schema.ir.values import Value
from tfconvert.schema.tflite.tables import SCALARS, TFLITE, Field

SCHEMA_VERSION = "tfl.schema_version"
DESCRIPTION = "tfl.description"
METADATA = "tfl.metadata"
ARCHIVE = "tfl.archive"
"""Of a module: the archive of files, such as labels, that follows the file's tables; offsets from its own start."""
OPERATOR_VERSIONS = "tfl.operator_versions"
"""Of a module: the versions of operators that differ from those that their calls require; custom ones by their own
name."""
EXTERNAL_BUFFERS = "tfl.external_buffers"
"""Of a module: the fields of `Model` that describe files beside it."""
REDUCED_PRECISION = "tfl.reduced_precision"
"""Of a module: types in which the runtime may compute instead of 32-bit floats, for the file's metadata."""
HALF_PRECISION = {"float32": "fp16accfp32", "float16": "fp16accfp16"}
"""It may compute with 16-bit floats, and accumulate in one of these types."""

SUBGRAPH_NAME = "tfl.subgraph_name"
"""Of a function: its subgraph's name, if that is not a unique symbol."""
SIGNATURE_DEFS = "tfl.signature_defs"
"""Of a function: signatures that index paths can't express; inputs and outputs by position."""

TENSOR = "tfl.tensor"
"""Of an argument: fields of its tensor."""
TENSORS = "tfl.tensors"
"""Of an op: fields of its results' tensors, a dictionary a result."""
INTERMEDIATES = "tfl.intermediates"
"""Of an op: the internal tensors of its kernel, each a dictionary of its fields and its type, `tensor`."""
OPERATOR = "tfl.operator"
"""Of an op: fields of its `Operator` table."""
IS_VARIABLE = "tfl.is_variable"
"""Of a constant: it is the initial state of a variable."""

_VECTORS: Mapping[str, Attribute] = {
    "byte": types.I32,
    "ubyte": types.I32,
    "short": types.I32,
    "ushort": types.I32,
    "int": types.I32,
    "uint": types.I64,
    "long": types.I64,
    "ulong": types.I64,
    "float": types.F32,
    "double": types.F32,
}


def part_name(name: str, part: str) -> str:
    """Returns the name of a tensor of scales or zero points, by default.

    Args:
        name: The name of the tensor that has them.
        part: The field that refers to them.
    """
    return f"{name}_{part}"


def is_variable(value: Value) -> bool:
    """Returns whether a value is the tensor of a file's variable, which several operators may share."""
    owner = value.owner
    return isinstance(owner, Operation) and IS_VARIABLE in owner.attributes


def is_image(module: ModuleOp) -> bool:
    """Returns whether a module is the image of a file."""
    return SCHEMA_VERSION in module.attributes


def to_dictionary(table: str, tree: Mapping[str, Any]) -> DictionaryAttr:
    """Returns fields of a table as a dictionary.

    Args:
        table: The table's name.
        tree: Its fields, as `reader.View.tree` returns them.
    """
    fields = TFLITE.fields(table)
    return DictionaryAttr.get({name: _to_attribute(fields[name], value) for name, value in tree.items()})


def _to_attribute(field: Field, value: Any) -> Attribute:
    kind = field.kind
    if kind == "table":
        return to_dictionary(field.refers, value)
    if kind == "union":
        name, content = value
        return DictionaryAttr.get({name: to_dictionary(name, content)})
    if kind == "[table]":
        return ArrayAttr.get([to_dictionary(field.refers, item) for item in value])
    if kind == "[ubyte]":
        return tfl.ConstBytesAttr.get(bytes(value))
    if kind[1:-1] in _VECTORS:
        # A few bytes each; in an array of attributes it would be hundreds.
        return _dense(_VECTORS[kind[1:-1]], value)
    if field.refers and kind in SCALARS and value.__class__ is int:
        value = TFLITE.member(field.refers, value) or value
    return tfl.to_attribute(field, value)


def _dense(element: Attribute, values: Sequence[Any]) -> Attribute:
    if isinstance(element, IntegerType):
        return DenseArrayAttr.get(element, [int(value) for value in values])
    return DenseArrayAttr.get(types.F32, [float(value) for value in values])


def from_dictionary(table: str, dictionary: Attribute | None) -> dict[str, Any]:
    """Inverse of `to_dictionary`: returns the form that `writer.encode` accepts; unknown fields are left out."""
    if not isinstance(dictionary, DictionaryAttr):
        return {}
    fields = TFLITE.fields(table)
    return {name: _from_attribute(fields[name], value) for name, value in dictionary.data.items() if name in fields}


def _from_attribute(field: Field, value: Attribute) -> Any:
    if isinstance(value, DictionaryAttr):
        if field.kind == "union":
            name, content = next(iter(value.data.items()))
            return name, from_dictionary(name, content)
        return from_dictionary(field.refers, value)
    if isinstance(value, ArrayAttr) and field.kind == "[table]":
        return [from_dictionary(field.refers, item) for item in value.data]
    if isinstance(value, DenseArrayAttr):
        return value.values
    return tfl.python_value(value)


def text_or_bytes(content: bytes) -> Attribute:
    """Returns bytes as a string if they are text, possibly zero-terminated."""
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return tfl.ConstBytesAttr.get(content)
    return attrs.string(text) if text.rstrip("\0").isprintable() else tfl.ConstBytesAttr.get(content)


def content_of(value: Attribute) -> bytes:
    """Inverse of `text_or_bytes`."""
    if isinstance(value, StringAttr):
        return value.data.encode("utf-8", "surrogateescape")
    return value.data if isinstance(value, tfl.ConstBytesAttr) else b""


def dictionaries(value: Attribute | None) -> list[Attribute]:
    """Returns the items of an array; empty for other attributes."""
    return list(value.data) if isinstance(value, ArrayAttr) else []


def numbers(value: Attribute | None) -> dict[str, int]:
    """Returns a dictionary of integers."""
    items: Iterable[tuple[str, Attribute]] = value.data.items() if isinstance(value, DictionaryAttr) else ()
    return {name: item.value for name, item in items if isinstance(item, IntegerAttr)}
