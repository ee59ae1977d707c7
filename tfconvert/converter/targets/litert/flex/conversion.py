"""Converts `tf` ops to flex ops: custom ops whose options contain the NodeDef that TensorFlow's runtime runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

from tfconvert.schema.diagnostics import NOTE, WARNING, Diagnostic
from tfconvert.schema.dialects import tf, tf_verify, tfl, types
from tfconvert.schema.dialects.locations import place_of
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.attributes import ArrayAttr, BytesAttr, FloatAttr, IntegerAttr, StringAttr, SymbolRefAttr
from tfconvert.schema.ir.errors import VerifyError
from tfconvert.schema.ir.locations import NameLoc
from tfconvert.schema.ir.types import NoneType
from tfconvert.schema.ir.values import Value
from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb
from tfconvert.schema.tflite.operators import FLEX

_STRING, _VECTOR = 5 << 2, 10 << 2
"""Types of flexbuffers, above two bits for the width of what is written."""

_WIDTHS = (1, 2, 4, 8)


def encode(node: pb.NodeDef) -> bytes:
    return vector_of_strings(node.op.encode(), node.SerializeToString(deterministic=True))


def vector_of_strings(*texts: bytes) -> bytes:
    """Returns a flexbuffer whose root is a vector of strings."""
    buffer = bytearray()
    places, packed = [], []
    for text in texts:
        width = _width_of(len(text))
        buffer += _padding(len(buffer), _WIDTHS[width]) + len(text).to_bytes(_WIDTHS[width], "little")
        places.append(len(buffer))
        packed.append(_STRING | width)
        buffer += text + b"\0"
    width = max(_width_of(len(texts)), *(_offset_width(len(buffer), at, index) for index, at in enumerate(places, 1)))
    size = _WIDTHS[width]
    buffer += _padding(len(buffer), size) + len(texts).to_bytes(size, "little")
    start = len(buffer)
    for place in places:
        buffer += (len(buffer) - place).to_bytes(size, "little")
    buffer += bytes(packed)
    root = len(buffer) - start
    root_width = _width_of(root)
    padding = _padding(len(buffer), _WIDTHS[root_width])
    root_size = _WIDTHS[root_width]
    return bytes(
        buffer + padding + (root + len(padding)).to_bytes(root_size, "little") + bytes([_VECTOR | width, root_size])
    )


def _width_of(number: int) -> int:
    """Returns the index of the width that a nonnegative number needs."""
    return next(index for index, width in enumerate(_WIDTHS) if number < 1 << 8 * width)


def _offset_width(end: int, place: int, index: int) -> int:
    """Returns the index of the width for the offset from an item of a vector at the buffer's end to a position."""
    for width, size in enumerate(_WIDTHS):
        item = end + -end % size + index * size
        if _width_of(item - place) <= width:
            return width
    raise AssertionError(place)


def _padding(end: int, size: int) -> bytes:
    return bytes(-end % size)


class UnwritableError(ValueError):
    """No NodeDef can be written for an op; the message is the reason, as the end of a sentence."""


def node_def(op: tf.TFOp) -> pb.NodeDef:
    """Returns the NodeDef of an op in the Flex delegate's form: without a name, and with unnamed inputs."""
    op_def = op.op_def
    node = pb.NodeDef(op=op.op_name, input=[""] * len(op.operands))
    if op_def is not None:
        derived = tf_verify.derived_values(op, op.op_name)
        for attr in op_def.attr:
            node.attr[attr.name].CopyFrom(_value(op, attr, derived))
    else:
        for key, value in {**op.properties, **op.attributes}.items():
            if key[0] != "_" and key != "device":
                node.attr[key].CopyFrom(_written(key, _kind_of(value), value))
    name, _, function = _name(op).partition("@")
    if name:
        node.experimental_debug_info.original_node_names.append(name)
        if function:
            node.experimental_debug_info.original_func_names.append(function)
    return node


def _name(op: tf.TFOp) -> str:
    location = op.location
    return location.name if isinstance(location, NameLoc) else ""


def _value(op: tf.TFOp, attr: pb.OpDef.AttrDef, derived: Mapping[str, object]) -> pb.AttrValue:
    if attr.name in derived:
        return _derived(derived[attr.name])
    value = op.properties.get(attr.name)
    if value is None or isinstance(value, NoneType):
        held = None if attr.HasField("default_value") else _held(op, attr.type)
        if held is None and not attr.HasField("default_value"):
            raise UnwritableError(f"its attribute {attr.name!r} is not known")
        return held or attr.default_value
    return _written(attr.name, attr.type, value)


def _derived(value: object) -> pb.AttrValue:
    """Returns an attribute that operands and results determine: a count, a type, or a list of types."""
    if isinstance(value, int):
        return pb.AttrValue(i=value)
    if isinstance(value, tuple):
        return pb.AttrValue(list=pb.AttrValue.ListValue(type=[_type(each) for each in value]))
    return pb.AttrValue(type=_type(value))


def _held(op: tf.TFOp, kind: str) -> pb.AttrValue | None:
    """Returns an attribute from a handle's subtype, `None` if it has none."""
    found = (types.held_by(value.type) for value in (*op.results, *op.operands))
    held = next((each for each in found if each is not None), None)
    if held is None or kind not in ("type", "shape"):
        return None
    return pb.AttrValue(type=_type(types.element_of(held))) if kind == "type" else _shape(types.shape_of(held))


def _written(name: str, kind: str, value: Attribute) -> pb.AttrValue:
    is_list = kind.startswith("list(")
    write = _KINDS.get(kind[5:-1] if is_list else kind)
    if write is None:
        raise UnwritableError(f"its attribute {name!r} is a {kind}, which no Flex op can have")
    try:
        if not is_list:
            return write(value)
        if not isinstance(value, ArrayAttr):
            raise TypeError(value)
        return _list([write(item) for item in value.data])
    except (TypeError, AttributeError) as problem:
        raise UnwritableError(f"its attribute {name!r} is not a plain value") from problem


def _kind_of(value: Attribute) -> str:
    """Returns the kind of an attribute that no OpDef describes."""
    if isinstance(value, ArrayAttr):
        return f"list({_kind_of(value.data[0]) if value.data else 'int'})"
    if isinstance(value, IntegerAttr):
        return "bool" if value.type == types.I1 else "int"
    return next((kind for kind, classes in _CLASSES.items() if isinstance(value, classes)), "type")


def _list(items: list[pb.AttrValue]) -> pb.AttrValue:
    result = pb.AttrValue(list=pb.AttrValue.ListValue())
    for item in items:
        field: Any = item.WhichOneof("value")
        target: Any = getattr(result.list, field)
        target.append(getattr(item, field))
    return result


def _string(value: Attribute) -> pb.AttrValue:
    if isinstance(value, BytesAttr):
        return pb.AttrValue(s=value.data)
    if not isinstance(value, StringAttr):
        raise TypeError(value)
    return pb.AttrValue(s=value.data.encode())


def _number(value: Attribute) -> Any:
    if not isinstance(value, IntegerAttr | FloatAttr):
        raise TypeError(value)
    return value.value


def _type(value: Any) -> Any:
    row = types.from_mlir(types.dereferenced(value) or value)
    if row is None:
        raise UnwritableError(f"TensorFlow has no element type {value}")
    return row.number


def _shape(shape: types.Shape | None) -> pb.AttrValue:
    if shape is None:
        return pb.AttrValue(shape=pb.TensorShapeProto(unknown_rank=True))
    return pb.AttrValue(shape=pb.TensorShapeProto(dim=[pb.TensorShapeProto.Dim(size=dim) for dim in shape]))


def _shape_attribute(value: Attribute) -> pb.AttrValue:
    if not isinstance(value, tf.ShapeAttr):
        raise TypeError(value)
    return _shape(value.shape)


# Writers of attributes, by their kind in the OpDef; functions and tensors have none.
_KINDS: Mapping[str, Callable[[Attribute], pb.AttrValue]] = {
    "string": _string,
    "int": lambda value: pb.AttrValue(i=_number(value)),
    "float": lambda value: pb.AttrValue(f=_number(value)),
    "bool": lambda value: pb.AttrValue(b=bool(_number(value))),
    "type": lambda value: pb.AttrValue(type=_type(value)),
    "shape": _shape_attribute,
}

# Kinds of attributes by class.
_CLASSES: Mapping[str, tuple[type[Attribute], ...]] = {
    "float": (FloatAttr,),
    "string": (StringAttr, BytesAttr),
    "shape": (tf.ShapeAttr,),
    "function": (tf.FunctionAttr, SymbolRefAttr),
}


NEEDS_FLEX, FLEX_OP = "needs-flex", "flex-op"
"""Codes of what the report tells."""

_TABLES = frozenset(("MutableHashTableV2", "MutableHashTableOfTensorsV2", "MutableDenseHashTableV2"))

_EMPTY = "; the table is empty when the app starts, whatever the saved model's holds"

_LIST = Path(__file__).parent / "ops.txt"


@cache
def known_ops() -> frozenset[str]:
    """Returns the ops that the Flex delegate runs, according to the official converter and delegate."""
    return frozenset(_LIST.read_text("ascii").split())


def why_not(op: tf.TFOp, further: Sequence[str] = ()) -> str | None:
    """Returns why an op can't become a flex op, as the end of a sentence; `None` if it can.

    Args:
        op: The op.
        further: Names, or patterns of names, of additional ops that the user's delegate runs.
    """
    reason = _why_not_alone(op, further)
    if reason is None and not all(_stays_in_flex(handle, further) for handle in _handles(op)):
        return "the Flex delegate can't share a variable or a table with LiteRT"
    return reason


def _handles(op: tf.TFOp) -> list[Value]:
    values = (*op.operands, *op.results)
    return [value for value in values if isinstance(value.element, types.ResourceType)]


def _stays_in_flex(handle: Value, further: Sequence[str]) -> bool:
    """Returns whether a handle is of a table, and the op that creates it and all its users can become flex ops."""
    owner = handle.owner
    ops = [owner, *(use.operation for use in handle.uses)]
    return is_table(owner) and all(isinstance(op, tf.TFOp) and _why_not_alone(op, further) is None for op in ops)


def is_table(op: object) -> bool:
    """Returns whether an op creates a table that the model changes."""
    return isinstance(op, tf.TFOp) and op.op_name in _TABLES


def _why_not_alone(op: tf.TFOp, further: Sequence[str]) -> str | None:
    """Returns why an op can't become a flex op, whatever becomes of those that it shares a handle with."""
    name = op.op_name
    if name == "Const" or not (name in known_ops() or any(fnmatchcase(name, each) for each in further)):
        return "the Flex delegate doesn't take the op"
    elements = [value.element for value in (*op.operands, *op.results)]
    unknown = next((element for element in elements if not _is_storable(element)), None)
    if unknown is not None:
        return f"no .tflite file can have tensors of {unknown}"
    try:
        node_def(op)
    except (UnwritableError, VerifyError) as problem:
        return str(problem)
    return None


def _is_storable(element: Attribute) -> bool:
    row = types.from_mlir(element)
    return row is not None and bool(row.tflite)


def flex_op(op: tf.TFOp) -> tfl.TFLOp:
    """Returns the flex op for an op, not yet inserted."""
    return tfl.custom(f"{FLEX}{op.op_name}", encode(node_def(op)), op.operands, op.result_types)


def notes(by_reason: Iterable[tuple[str, Sequence[tf.TFOp]]]) -> list[Diagnostic]:
    """Returns the report's notes about ops that become flex ops.

    Args:
        by_reason: Pairs of the reason why there is no builtin, and ops of one name.
    """
    told = [_note(reason, ops) for reason, ops in by_reason]
    names = ", ".join(dict.fromkeys(f"{FLEX}{note.op.removeprefix('tf.')}" for note in told))
    head = Diagnostic(
        NEEDS_FLEX,
        f"the app that runs this file needs the Flex delegate (Select TF ops) for {names}",
        hint="on Android, add org.tensorflow:tensorflow-lite-select-tf-ops; LiteRT's Python package can't run the file",
        severity=WARNING,
    )
    return [head, *told]


def _note(reason: str, ops: Sequence[tf.TFOp]) -> Diagnostic:
    place = place_of(ops[0].location)
    count = "once" if len(ops) == 1 else f"{len(ops)} times"
    message = f"becomes a flex op, used {count}: {reason}"
    severity = NOTE
    if is_table(ops[0]):
        message, severity = message + _EMPTY, WARNING
    return Diagnostic(FLEX_OP, message, ops[0].name, place.node, str(place), severity=severity)
