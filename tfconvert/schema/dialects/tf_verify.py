"""Checks `tf` ops against TensorFlow's OpDefs: how many operands and results, of which types, and the attributes.

An OpDef is compiled into a `Plan` when its op is first seen. An op that TensorFlow's registry doesn't know is
not checked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple

from tfconvert.schema.dialects import tf_regions, types
from tfconvert.schema.dialects.tf_attributes import (
    KEPT,
    OPERAND_SEGMENTS,
    RESULT_SEGMENTS,
    FunctionAttr,
    PlaceholderAttr,
    ShapeAttr,
)
from tfconvert.schema.dialects.tf_regions import fail
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.attributes import (
    ArrayAttr,
    BytesAttr,
    DenseArrayAttr,
    FloatAttr,
    IntegerAttr,
    StringAttr,
    SymbolRefAttr,
)
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import NoneType, TensorType
from tfconvert.schema.ir.values import Value
from tfconvert.schema.tensorflow import op_defs
from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb

_KINDS: Mapping[str, tuple[type[Attribute], ...]] = {
    "string": (StringAttr, BytesAttr),
    "int": (IntegerAttr,),
    "float": (FloatAttr,),
    "bool": (IntegerAttr,),
    "type": (Attribute,),
    "shape": (ShapeAttr,),
    "tensor": (Attribute,),
    "func": (SymbolRefAttr, FunctionAttr),
}

_SHAPES = frozenset({"output_shapes"})
_BUCKETS = frozenset({"quantization_config_high", "quantization_config_low", "quantization_config_num_buckets"})

# Attributes without a default that MLIR leaves out: most follow from types, by op.
_LEFT_OUT: Mapping[str, frozenset[str]] = {
    "EmptyTensorList": frozenset({"element_dtype"}),
    "InfeedDequeueTuple": frozenset({"shapes"}),
    "IteratorGetNext": _SHAPES,
    "IteratorGetNextSync": _SHAPES,
    "MultiDeviceIteratorGetNextFromShard": _SHAPES,
    "OptionalGetValue": _SHAPES,
    "PlaceholderWithDefault": frozenset({"shape"}),
    "TensorListReserve": frozenset({"element_dtype"}),
    "UncompressElement": _SHAPES,
    "VarHandleOp": frozenset({"dtype", "shape"}),
    "XlaSparseDenseMatmulCustomCombinerOnTcWithCsrInput": _BUCKETS,
    "XlaSparseDenseMatmulWithCsrInput": _BUCKETS,
    "XlaSparseDenseMatmulWithStaticBufferSize": _BUCKETS,
    "_TPUReplicate": frozenset({"num_replicas"}),
}

# Ops that MLIR takes with one value, though their OpDefs want more.
_OF_ONE = frozenset({"tf.Concat", "tf.ConcatV2"})

# Operands whose element type MLIR doesn't tie to that of the others.
_OF_ANY_TYPE: Mapping[str, frozenset[str]] = dict.fromkeys(
    ("tf.MatrixDiagV2", "tf.MatrixDiagV3"), frozenset({"padding_value"})
)


class OpArgument(NamedTuple):
    """An input or output argument: one value, or a list of them."""

    name: str  # The argument's name.
    element: Attribute | None  # Its element type if that is fixed.
    type_attr: str  # The attribute that holds the type of all its values, if any.
    length: str  # The attribute that holds the number of values, empty for a single one.
    is_typed_one_by_one: bool  # Whether `length` is a list with a type for each.


class AttributeConstraint(NamedTuple):
    """Constraints on an attribute's value."""

    kind: str  # The OpDef's name of the kind: `int`, `list(type)`, ...
    is_required: bool  # Whether there is no default.
    allowed: frozenset[str | Attribute]  # The values that there may be (strings or element types), empty if any.
    minimum: int | None  # The minimum value, or length of a list.


class Side(NamedTuple):
    """All operands or all results of an op."""

    what: str  # What they are called in messages.
    arguments: tuple[OpArgument, ...]  # The arguments.
    segments: str  # The property that holds the arguments' lengths if there are several lists, else empty.


class OpCheck(NamedTuple):
    """An OpDef, ready for checking."""

    operands: Side  # The inputs.
    results: Side  # The outputs.
    attributes: Mapping[str, AttributeConstraint]  # The attributes that are kept as properties.
    derived: Mapping[str, AttributeConstraint]  # Those that follow from operands and results.


@cache
def plan_of(op_name: str) -> OpCheck | None:
    """Returns the plan of an op by its name in TensorFlow's registry; `None` if it is not there."""
    op_def = op_defs.lookup(op_name)
    if op_def is None:
        return None
    derived = op_defs.derived_attributes(op_def) - KEPT.get(op_name, frozenset())
    return OpCheck(
        _side("operand", op_def.input_arg, OPERAND_SEGMENTS),
        _side("result", op_def.output_arg, RESULT_SEGMENTS),
        {attr.name: _limits(attr) for attr in op_def.attr if attr.name not in derived},
        {attr.name: _limits(attr) for attr in op_def.attr if attr.name in derived},
    )


def _side(what: str, args: Sequence[pb.OpDef.ArgDef], segments: str) -> Side:
    arguments = tuple(
        OpArgument(
            arg.name,
            types.dereferenced(types.element_type(arg.type)) if arg.type else None,
            arg.type_attr,
            arg.number_attr or arg.type_list_attr,
            bool(arg.type_list_attr),
        )
        for arg in args
    )
    lists = sum(bool(argument.length) for argument in arguments)
    return Side(what, arguments, segments if lists > 1 else "")


def _limits(attr: pb.OpDef.AttrDef) -> AttributeConstraint:
    values = attr.allowed_values.list
    allowed = [*(value.decode() for value in values.s), *(types.element_type(number) for number in values.type)]
    return AttributeConstraint(
        attr.type,
        not attr.HasField("default_value"),
        frozenset(value for value in allowed if value is not None),
        attr.minimum if attr.has_minimum else None,
    )


def verify(op: Operation, op_name: str) -> None:
    """Checks an op.

    Args:
        op: The op.
        op_name: Its name in TensorFlow's registry.
    """
    plan = plan_of(op_name)
    if plan is None:
        tf_regions.verify(op, op_name)
        return
    _check_attributes(op, plan)
    bound: dict[str, tuple[object, str]] = {}
    for side, values in ((plan.operands, op.operands), (plan.results, op.results)):
        _check_side(op, side, values, bound)
    for name, (value, place) in bound.items():
        if name in plan.derived:
            _check_derived(op, name, plan.derived[name], value, place)
    if op_name == "Const":
        _check_constant(op)


def derived_values(op: Operation, op_name: str) -> dict[str, object]:
    """Returns the attributes that an op's operands and results determine: counts, element types, or tuples of types.

    Args:
        op: The op.
        op_name: Its name in TensorFlow's registry.
    """
    plan = plan_of(op_name)
    bound: dict[str, tuple[object, str]] = {}
    if plan is not None:
        for side, values in ((plan.operands, op.operands), (plan.results, op.results)):
            _check_side(op, side, values, bound)
    return {name: value for name, (value, _) in bound.items()}


def values_by_argument(op: Operation, op_name: str) -> Mapping[str, Sequence[Value]] | None:
    """Returns an op's operands and results by the names of its arguments; `None` if it doesn't say which are whose.

    Args:
        op: An op that keeps to its OpDef.
        op_name: Its name in TensorFlow's registry.
    """
    plan = plan_of(op_name)
    if plan is None:
        return None
    bound: dict[str, tuple[object, str]] = {}
    found: dict[str, Sequence[Value]] = {}
    for side, values in ((plan.operands, op.operands), (plan.results, op.results)):
        _check_side(op, side, values, bound)
        lengths = _lengths(op, side, len(values), bound)
        if lengths is None:
            return None
        start = 0
        for argument, length in zip(side.arguments, lengths, strict=True):
            found[argument.name] = values[start : start + length]
            start += length
    return found


def _check_side(op: Operation, side: Side, values: Sequence[Value], bound: dict[str, tuple[object, str]]) -> None:
    lengths = _lengths(op, side, len(values), bound)
    if lengths is None:
        return
    loose = _OF_ANY_TYPE.get(op.name, frozenset())
    start = 0
    for argument, length in zip(side.arguments, lengths, strict=True):
        place = f"{side.what} {argument.name!r}"
        elements = [value.element for value in values[start : start + length]]
        start += length
        if argument.length and not argument.is_typed_one_by_one:
            _bind(op, bound, argument.length, length, place)
        if argument.is_typed_one_by_one:
            _bind(op, bound, argument.length, tuple(map(types.dereferenced, elements)), place)
            continue
        for element in map(types.dereferenced, elements):
            if argument.element is None:
                if argument.name not in loose:
                    _bind(op, bound, argument.type_attr, element, place)
            elif element is not argument.element and element != argument.element:
                fail(op, f"{place} must have elements of type {_shown(argument.element)}, found {_shown(element)}")


def _bind(op: Operation, bound: dict[str, tuple[object, str]], name: str, value: object, place: str) -> None:
    """Records the value of a derived attribute, or checks that it is the one recorded before."""
    known = bound.setdefault(name, (value, place))
    if known[0] is not value and known[0] != value:
        fail(op, f"{place} makes the attribute {name!r} {_shown(value)}, but {known[1]} makes it {_shown(known[0])}")


def _lengths(op: Operation, side: Side, count: int, bound: Mapping[str, tuple[object, str]]) -> Sequence[int] | None:
    """Returns how many values each argument has; `None` if there are several lists without segment sizes."""
    single = sum(not argument.length for argument in side.arguments)
    lists = [argument.length for argument in side.arguments if argument.length]
    if not lists:
        if count != single:
            fail(op, f"expected {single} {side.what}s, found {count}")
        return [1] * count
    segments = op.properties.get(side.segments) if side.segments else None
    if segments is not None:
        return _segments(op, side, segments, count)
    known = {name: _length(bound[name][0]) for name in lists if name in bound}
    rest = count - single - sum(known.get(name, 0) for name in lists)
    unknown = [name for name in lists if name not in known]
    if rest < 0 or (rest and not unknown):
        fail(op, f"expected {'at least ' if unknown else ''}{count - rest} {side.what}s, found {count}")
    if len(set(unknown)) > 1:
        return None
    if unknown and rest % len(unknown):
        fail(op, f"expected lists of equal length, found {rest} {side.what}s for {len(unknown)} of them")
    each = rest // len(unknown) if unknown else 0
    return [known.get(argument.length, each) if argument.length else 1 for argument in side.arguments]


def _length(value: object) -> int:
    return value if isinstance(value, int) else len(value) if isinstance(value, tuple) else 0


def _segments(op: Operation, side: Side, segments: Attribute, count: int) -> Sequence[int]:
    lengths = [int(length) for length in segments.values] if isinstance(segments, DenseArrayAttr) else []
    if len(lengths) != len(side.arguments) or sum(lengths) != count or min(lengths, default=0) < 0:
        fail(op, f"{side.segments!r} must hold the lengths of {len(side.arguments)} lists with {count} {side.what}s")
    for argument, length in zip(side.arguments, lengths, strict=True):
        if not argument.length and length != 1:
            fail(op, f"{side.what} {argument.name!r} must be one value, found {length}")
    return lengths


def _check_attributes(op: Operation, plan: OpCheck) -> None:
    left_out = _LEFT_OUT.get(op.name[len("tf.") :], frozenset())
    for name, limits in plan.attributes.items():
        value = op.properties.get(name)
        if value is None:
            if limits.is_required and name not in left_out:
                fail(op, f"the attribute {name!r} is missing")
        elif not isinstance(value, PlaceholderAttr | NoneType):
            _check_kind(op, name, limits, value)


def _check_kind(op: Operation, name: str, limits: AttributeConstraint, value: Attribute) -> None:
    if not limits.kind.startswith("list("):
        _check_item(op, name, limits, limits.kind, value)
        number = value.value if isinstance(value, IntegerAttr) else None
        if limits.minimum is not None and number is not None and number < limits.minimum:
            fail(op, f"the attribute {name!r} must be at least {limits.minimum}, found {number}")
        return
    if not isinstance(value, ArrayAttr):
        fail(op, f"the attribute {name!r} must be a {limits.kind}, found {value}")
    if limits.minimum is not None and len(value.data) < limits.minimum:
        fail(op, f"the attribute {name!r} must have at least {limits.minimum} items, found {len(value.data)}")
    for item in value.data:
        _check_item(op, name, limits, limits.kind[5:-1], item)


def _check_item(op: Operation, name: str, limits: AttributeConstraint, kind: str, value: Attribute) -> None:
    if not isinstance(value, _KINDS[kind]) or not _is_of_kind(kind, value):
        fail(op, f"the attribute {name!r} must be a {limits.kind}, found {value}")
    if limits.allowed:
        found = value.data if isinstance(value, StringAttr) else value
        if found not in limits.allowed and types.dereferenced(value) not in limits.allowed:
            fail(op, f"the attribute {name!r} must be one of {_listed(limits.allowed)}, found {value}")


def _is_of_kind(kind: str, value: Attribute) -> bool:
    if isinstance(value, IntegerAttr) and kind in ("int", "bool"):
        return (kind == "bool") is bool(value.type == types.I1)
    if kind == "type":
        return types.from_mlir(types.dereferenced(value) or value) is not None
    return kind != "tensor" or _is_tensor(value)


def _is_tensor(value: Attribute) -> bool:
    return isinstance(getattr(value, "type", None), TensorType)


def _check_derived(op: Operation, name: str, limits: AttributeConstraint, value: object, place: str) -> None:
    """Checks derived attributes against the limits of their attribute."""
    minimum = 1 if op.name in _OF_ONE else limits.minimum
    if minimum is not None and not isinstance(value, Attribute) and _length(value) < minimum:
        fail(op, f"{place} must have at least {minimum} values, found {_length(value)}")
    if limits.allowed and not isinstance(value, int):
        for element in value if isinstance(value, tuple) else (value,):
            if element not in limits.allowed and types.from_mlir(element) is not None:
                fail(op, f"{place} must have elements of type {_listed(limits.allowed)}, found {_shown(element)}")


def _check_constant(op: Operation) -> None:
    """Checks that a constant's value is of the result's type, whose shape may be less exact."""
    value, result = getattr(op.properties["value"], "type", None), op.results[0].type
    if value is None or value is result or value == result:
        return
    shape, want = types.shape_of(value), types.shape_of(result)
    fits = want is None or (
        shape is not None and len(shape) == len(want) and all(b < 0 or a == b for a, b in zip(shape, want, strict=True))
    )
    if not fits or types.element_of(value) != types.element_of(result):
        fail(op, f"result 'output' must have the value's type {value}, found {result}")


def _shown(value: object) -> str:
    return f"[{', '.join(map(str, value))}]" if isinstance(value, tuple) else str(value)


def _listed(values: frozenset[str | Attribute]) -> str:
    return ", ".join(sorted(str(value) for value in values))
