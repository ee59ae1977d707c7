"""Op signatures of both dialects: names, arity, attributes and their defaults, and simple result types."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

from tfconvert.schema.dialects import attributes as attrs
from tfconvert.schema.dialects import dims, tensor_data, tf, tfl, types
from tfconvert.schema.dialects.tf_traits import ELEMENTWISE_BINARY, ELEMENTWISE_UNARY, full_names
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.locations import Location
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value
from tfconvert.schema.tensorflow import op_defs
from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb
from tfconvert.schema.tflite import operators
from tfconvert.schema.tflite.tables import SCALARS, TFLITE

Range = tuple[int, int]

TF, TFL = "tf.", "tfl."

# Ops of either dialect whose result has their operands' element type and broadcast shape.
_ELEMENTWISE = full_names(ELEMENTWISE_UNARY | ELEMENTWISE_BINARY | {"AddN"}) | {
    f"{TFL}{name}" for name in operators.elementwise(1, 2) - operators.having("opposite").keys()
}


class Signature(NamedTuple):
    """The signature of an op.

    Attributes:
        operands: The minimum and maximum number of operands.
        results: The minimum and maximum number of results.
        attributes: Names of its attributes; `None` for any.
        derived: Attributes that operands and results determine, which the IR doesn't keep.
    """

    operands: Range
    results: Range
    attributes: frozenset[str] | None
    derived: frozenset[str] = frozenset()


ANYTHING = Signature((0, operators.UNBOUNDED), (0, operators.UNBOUNDED), None)
"""The signature of an op that no table has."""


@cache
def signature_of(name: str) -> Signature | None:
    """Returns the signature of an op, or `None` if its dialect's table doesn't have it."""
    if name.startswith(TFL):
        return _tfl_signature(name.removeprefix(TFL))
    op_def = op_defs.lookup(name.removeprefix(TF)) if name.startswith(TF) else None
    return None if op_def is None else _tf_signature(op_def)


def _tfl_signature(name: str) -> Signature | None:
    operator = operators.lookup(name)
    if operator is None:
        made = {tfl.PSEUDO_CONST, tfl.NO_VALUE}
        return Signature((0, 0), (1, 1), frozenset({"value"})) if name in made else None
    known = frozenset(tfl.option_fields(name)) | frozenset(tfl.SUBGRAPHS.get(name, {}))
    if name == tfl.CUSTOM:
        known = frozenset({tfl.CUSTOM_CODE, tfl.CUSTOM_OPTION})
    return Signature(operator.operand_range, operator.result_range, known)


def _tf_signature(op_def: pb.OpDef) -> Signature:
    known = {attribute.name for attribute in op_def.attr}
    derived = op_defs.derived_attributes(op_def)
    return Signature(_range(op_def.input_arg), _range(op_def.output_arg), frozenset(known - derived), derived)


def _range(arguments: Sequence[pb.OpDef.ArgDef]) -> Range:
    single = [argument for argument in arguments if not (argument.number_attr or argument.type_list_attr)]
    return len(single), len(single) if len(single) == len(arguments) else operators.UNBOUNDED


def similar_names(name: str) -> list[str]:
    """Returns names of ops similar to a misspelt name."""
    from difflib import get_close_matches

    known = {TFL: operators.names, TF: op_defs.names}
    for prefix, names in known.items():
        if name.startswith(prefix):
            return [prefix + each for each in get_close_matches(name.removeprefix(prefix), names(), 2)]
    return []


def to_attribute(name: str, attribute: str, value: Any) -> Attribute:
    """Returns the attribute that an op has for a Python value.

    Raises:
        TypeError: No attribute can hold the value.
        ValueError: The attribute can't have the value.
    """
    if name == f"{TFL}{tfl.CUSTOM}" and attribute == tfl.CUSTOM_OPTION:
        return _options(value)
    field = tfl.option_fields(name.removeprefix(TFL)).get(attribute) if name.startswith(TFL) else None
    if field is None:
        return attrs.of(value)
    made = tfl.to_attribute(field, value)
    if not tfl.fits(field, made):
        raise ValueError(f"attribute {attribute!r} of {name} can't be {value!r}")
    return made


def _options(value: Any) -> Attribute:
    """Returns a custom operator's options: a map by name, or bytes that only its kernel understands."""
    if isinstance(value, Attribute):
        return value
    if isinstance(value, bytes | bytearray):
        return tfl.ConstBytesAttr.get(bytes(value))
    # Imported late, since few patterns make custom operators.
    from tfconvert.converter.ir.option_map import encode

    return tfl.ConstBytesAttr.get(encode(value))


@cache
def default_of(name: str, attribute: str) -> Attribute | None:
    """Returns the default of an attribute, or `None` if it has no simple default."""
    if name.startswith(TFL):
        field = tfl.option_fields(name.removeprefix(TFL)).get(attribute)
        if field is None or field.kind not in SCALARS:
            return None
        value: Any = TFLITE.member(field.refers, field.default) if field.refers else field.default
        return tfl.to_attribute(field, value)
    op_def = op_defs.lookup(name.removeprefix(TF))
    declared = {} if op_def is None else {each.name: each for each in op_def.attr}
    if attribute not in declared or not declared[attribute].HasField("default_value"):
        return None
    default = declared[attribute].default_value
    kind = default.WhichOneof("value")
    if kind == "s":
        return attrs.string(default.s.decode("utf-8", "replace"))
    if kind == "type":
        return types.element_type(default.type)
    held: Any = getattr(default, kind or "i")
    return attrs.of(held) if kind in ("i", "f", "b") else None


def python_value(attribute: Attribute) -> Any:
    """Returns the value that functions of patterns get for an attribute: a Python value if it has one, or itself."""
    try:
        return tf.python_value(attribute)
    except TypeError:
        return attribute


def build(
    name: str, operands: Sequence[Value], result_types: Sequence[Attribute], properties: dict[str, Attribute]
) -> Operation:
    """Returns a detached op of either dialect."""
    if name.startswith(TFL):
        return tfl.build(name.removeprefix(TFL), operands, result_types, properties)
    return tf.build(name.removeprefix(TF), operands, result_types, properties)


def constant(name: str, value: tensor_data.Constant, location: Location) -> Operation:
    """Returns a constant of the dialect of an op's name."""
    return tfl.constant(value, location) if name.startswith(TFL) else tf.constant(value, location)


def infers(name: str) -> bool:
    """Returns whether `infer` knows an op's result type."""
    return name in _ELEMENTWISE


def infer(operands: Sequence[Value]) -> Attribute:
    """Returns the result type of an elementwise op."""
    shape = operands[0].shape
    for operand in operands[1:]:
        shape = dims.broadcast(shape, operand.shape)
    return types.tensor(operands[0].element, None if shape is None else dims.without_symbols(shape))
