"""The `tfl` dialect: LiteRT's builtin operators, one for each entry of the operator table.

Everything comes from the operator table and the schema of the model format: an op's *properties* are the fields of its
options table, by name. Enum fields are strings (`"SAME"`), integers `i32` (`i64` where the field is 64 bits wide),
flags `i1`, vectors arrays or, of bytes, byte strings. A property that is not set has the schema's default. Ops that
call other functions name them by symbol (`cond = @cond_fn`).

Some ops are not builtin operators: `tfl.pseudo_const` holds a constant, `tfl.pseudo_qconst` a quantised one (its value
is the stored integers), `tfl.pseudo_sparse_const` one that is stored sparse (its value is what is stored, flattened),
`tfl.external_const` one in a file beside the model, `tfl.no_value` represents an optional operand that is
absent, and `tfl.custom` calls an operator that the user registers with the runtime.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from tfconvert.schema.dialects import attributes as attrs
from tfconvert.schema.dialects import quant, tensor_data, tf_regions, types
from tfconvert.schema.dialects.tensor_data import DenseElementsAttr
from tfconvert.schema.ir.attribute import Attribute, AttributePrinter
from tfconvert.schema.ir.attributes import UNIT, ArrayAttr, FloatAttr, IntegerAttr, StringAttr, SymbolRefAttr
from tfconvert.schema.ir.errors import VerifyError
from tfconvert.schema.ir.locations import UNKNOWN_LOC, Location
from tfconvert.schema.ir.operation import NO_ATTRIBUTES, Operation
from tfconvert.schema.ir.types import NONE
from tfconvert.schema.ir.values import OpResult, Value
from tfconvert.schema.tflite import operators
from tfconvert.schema.tflite.kernels import type_form
from tfconvert.schema.tflite.tables import SCALARS, TFLITE, Field
from tfconvert.schema.tflite.versions import ABSENT, MAX_ELEMENTS, Call, Operand

if TYPE_CHECKING:
    from tfconvert.schema.ir.attribute_parser import AttributeParser


PREFIX = "tfl."

PSEUDO_CONST = "pseudo_const"
_CONSTANT = PREFIX + PSEUDO_CONST
PSEUDO_QCONST = "pseudo_qconst"
PSEUDO_SPARSE_CONST = "pseudo_sparse_const"
EXTERNAL_CONST = "external_const"
NO_VALUE = "no_value"
CUSTOM = "custom"

HELD = frozenset((PSEUDO_CONST, PSEUDO_QCONST, PSEUDO_SPARSE_CONST))
"""Ops that hold a value of the file's."""

CONSTANTS = HELD | {EXTERNAL_CONST}
"""Ops whose results are known before the model runs."""

BESIDE = (PSEUDO_CONST, PSEUDO_QCONST, PSEUDO_SPARSE_CONST, EXTERNAL_CONST, NO_VALUE)
"""Ops that are not operators of the runtime."""


def full_names(names: Iterable[str]) -> frozenset[str]:
    """Returns the full names of ops, `tfl.conv_2d`."""
    return frozenset([PREFIX + name for name in names])


_CONSTANTS = full_names(CONSTANTS)

# Attributes by which the official converter marks changes that it may undo; not options of an operator.
_MARKS = frozenset({"volatile"})

SUMS = "quantized_bias_type"
"""The option of operators with 16-bit activations for the type of the bias and of the sums of products."""

CUSTOM_CODE = "custom_code"
CUSTOM_OPTION = "custom_option"

NONE_TYPE = NONE

SUBGRAPHS = operators.calls()
"""Properties that name functions by symbol, and the option that holds the function's index in the file."""

_WIDE = frozenset(("long", "ulong"))
_REAL = frozenset(("float", "double"))


class ConstBytesAttr(Attribute):
    """`#tfl<const_bytes : "0x...">`: bytes that only the operator's kernel understands."""

    __slots__ = ("data",)

    NAME = "tfl.const_bytes"

    data: bytes

    @classmethod
    def get(cls, data: bytes) -> ConstBytesAttr:
        return cls.intern(data)

    @classmethod
    def parse_parameters(cls, parser: AttributeParser) -> ConstBytesAttr:
        """Parses what follows the name."""
        parser.parse_punctuation(":")
        digits = parser.parse_str_literal()
        try:
            return cls.get(bytes.fromhex(digits.removeprefix("0x")))
        except ValueError:
            parser.raise_error("expected a string of hexadecimal digits")

    def print(self, printer: AttributePrinter) -> None:
        printer.write(f'#tfl<const_bytes : "0x{self.data.hex().upper()}">')


ACTIVATION = "fused_activation_function"
"""The option of operators that apply an activation to their result."""

NOT_FUSED: Mapping[str, Any] = {ACTIVATION: "NONE"}

ACTIVATIONS: Mapping[str, str] = {"RELU": "relu", "RELU6": "relu6", "RELU_N1_TO_1": "relu_n1_to_1", "TANH": "tanh"}
"""Fused activations, by their names in the schema, with the operators that compute them."""


@cache
def option_fields(op_name: str) -> Mapping[str, Field]:
    """Returns the fields of an operator's options that are properties of its op, by name."""
    operator = operators.lookup(op_name)
    if operator is None or not operator.options:
        return {}
    indices = set(SUBGRAPHS.get(op_name, {}).values())
    return {name: field for name, field in TFLITE.fields(operator.options).items() if name not in indices}


@cache
def operator_of(name: str) -> operators.Operator | None:
    """Returns the builtin operator of ops of a full name (`tfl.conv_2d`), or `None`."""
    return operators.lookup(name[len(PREFIX) :]) if name.startswith(PREFIX) else None


_OTHER_PROPERTIES: Mapping[str, frozenset[str]] = {
    **dict.fromkeys((PSEUDO_CONST, PSEUDO_SPARSE_CONST, NO_VALUE), frozenset({"value"})),
    PSEUDO_QCONST: frozenset({"value", "qtype"}),
    EXTERNAL_CONST: frozenset(),
    CUSTOM: frozenset({CUSTOM_CODE, CUSTOM_OPTION}),
}


# Properties that say whether functions have effects, which no file holds.
_IN_TEXTS = {"if": "is_stateless", "while": "is_stateless"}


@cache
def property_names(op_name: str) -> frozenset[str]:
    """Returns the names of the properties that an op can have."""
    other = _OTHER_PROPERTIES.get(op_name)
    if other is not None:
        return other
    in_texts = (_IN_TEXTS[op_name],) if op_name in _IN_TEXTS else ()
    return frozenset((*option_fields(op_name), *SUBGRAPHS.get(op_name, ()), *in_texts))


class TFLOp(Operation):
    """A `tfl` op of any name."""

    __slots__ = ()

    @property
    def op_name(self) -> str:
        """The name without `tfl.`."""
        return self.name[len(PREFIX) :]

    @property
    def operator(self) -> operators.Operator | None:
        """The builtin operator; `None` for an op that does not call one."""
        return operator_of(self.name)

    def verify_(self) -> None:
        _verify_names(self)
        if self.regions:
            tf_regions.verify(self, f"{self.op_name.capitalize()}Region")
        if self.op_name in HELD:
            _verify_constant(self)
        elif self.op_name not in BESIDE:
            _verify_builtin(self)


def _verify_names(op: TFLOp) -> None:
    known = property_names(op.op_name)
    plain = [name for name in op.attributes if "." not in name and name[0] != "_" and name not in _MARKS]
    for name in (*op.properties, *plain):
        if name not in known:
            raise VerifyError(f"{op.name} has no property '{name}'")
    if plain:
        raise VerifyError(f"'{plain[0]}' of {op.name} must be a property, and have one value")


def _verify_constant(op: TFLOp) -> None:
    value = op.properties.get("value")
    if not isinstance(value, DenseElementsAttr | tensor_data.TensorData | tensor_data.DenseResourceAttr):
        raise VerifyError(f"{op.name} needs the property 'value', a tensor's value")
    elements = [quant.storage_of(result.element) for result in op.results]
    if elements != [types.element_of(value.type)]:
        raise VerifyError(f"{op.name} needs one result of its value's element type")


def _verify_builtin(op: TFLOp) -> None:
    operator = op.operator
    assert operator is not None
    for what, values, (minimum, maximum) in (
        ("operands", op.operands, operator.operand_range),
        ("results", op.results, operator.result_range),
    ):
        if not minimum <= len(values) <= maximum:
            expected = (
                str(minimum)
                if minimum == maximum
                else f"{minimum} or more"
                if maximum > 1000
                else f"{minimum} to {maximum}"
            )
            raise VerifyError(f"{op.name} expects {expected} {what}, not {len(values)}")
    if op.op_name == CUSTOM:
        _verify_custom(op)
        return
    fields, calls = option_fields(op.op_name), SUBGRAPHS.get(op.op_name, {})
    for name, value in op.properties.items():
        if name in calls:
            _verify_symbol(op, name, value)
        elif name in fields and not fits(fields[name], value):
            raise VerifyError(f"property '{name}' of {op.name} can't be {value}")


def _verify_custom(op: TFLOp) -> None:
    if not isinstance(op.properties.get(CUSTOM_CODE), StringAttr):
        raise VerifyError(f"{op.name} needs the property '{CUSTOM_CODE}', a string")
    option = op.properties.get(CUSTOM_OPTION)
    if option is not None and not isinstance(option, ConstBytesAttr):
        raise VerifyError(f"property '{CUSTOM_OPTION}' of {op.name} must be bytes")


def _verify_symbol(op: TFLOp, name: str, value: Attribute) -> None:
    symbols = value.data if isinstance(value, ArrayAttr) else (value,)
    if not all(isinstance(symbol, SymbolRefAttr) for symbol in symbols):
        raise VerifyError(f"property '{name}' of {op.name} must be the symbol of a function")


def fits(field: Field, value: Attribute) -> bool:
    """Returns whether an attribute can be the value of an options field."""
    kind = field.kind
    if kind == "[ubyte]":
        return isinstance(value, ConstBytesAttr)
    if kind[0] == "[":
        element = Field(field.name, 0, kind[1:-1], None, field.refers, 0)
        return isinstance(value, ArrayAttr) and all(fits(element, item) for item in value.data)
    if field.refers:
        return isinstance(value, StringAttr) and value.data in TFLITE.enums[field.refers]
    if kind == "string":
        return isinstance(value, StringAttr)
    if kind in _REAL:
        return isinstance(value, FloatAttr)
    expected = types.I1 if kind == "bool" else types.I64 if kind in _WIDE else types.I32
    return isinstance(value, IntegerAttr) and value.type == expected


def is_known(name: str) -> bool:
    """Returns whether an op of a name without `tfl.` (`conv_2d`) exists."""
    return operators.lookup(name) is not None or name in BESIDE


def class_of(name: str) -> type[TFLOp] | None:
    """Returns the class of the ops of a full name (`tfl.conv_2d`), or `None`."""
    return TFLOp if is_known(name[len(PREFIX) :]) else None


@cache
def full_name(name: str) -> str:
    """Returns the full name of an op: all ops of a name share one string, whose hash is known."""
    if not is_known(name):
        raise KeyError(name)
    return PREFIX + name


def to_attribute(field: Field, value: attrs.Value) -> Attribute:
    """Returns the attribute that a property of an options field has for a Python value.

    Args:
        field: The field.
        value: The value; an attribute is returned as it is.
    """
    if isinstance(value, Attribute):
        return value
    kind = field.kind
    if isinstance(value, str):
        return attrs.string(value)
    if isinstance(value, bytes):
        return ConstBytesAttr.get(value)
    if not isinstance(value, int | float):
        element = Field(field.name, 0, kind[1:-1], None, field.refers, 0)
        return ArrayAttr.get([to_attribute(element, item) for item in value])
    if kind == "bool":
        return attrs.boolean(bool(value))
    if kind in _REAL:
        return attrs.float32(float(value))
    return attrs.integer(int(value)) if kind in _WIDE else attrs.int32(int(value))


def build(
    name: str,
    operands: Sequence[Value] = (),
    result_types: Sequence[Attribute] = (),
    properties: Mapping[str, attrs.Value] | None = None,
    location: Location = UNKNOWN_LOC,
    attributes: Mapping[str, Attribute] = NO_ATTRIBUTES,
) -> TFLOp:
    """Returns a detached `tfl` op.

    Args:
        name: The name without `tfl.` (`conv_2d`).
        operands: The operands, `no_value` where an optional one is absent before one that is there.
        result_types: The results' types.
        properties: Fields of the options table, as Python values or attributes; symbols for functions that are called.
        location: The location of the op.
        attributes: All other attributes.
    """
    return TFLOp(full_name(name), operands, result_types, to_properties(name, properties), attributes, (), location)


def to_properties(name: str, values: Mapping[str, attrs.Value] | None) -> dict[str, Attribute]:
    """Returns the properties of an op of a name without `tfl.` for Python values or attributes."""
    converted: dict[str, Attribute] = {}
    if values:
        fields = option_fields(name)
        for key, value in values.items():
            converted[key] = value if isinstance(value, Attribute) else to_attribute(fields[key], value)
    return converted


def constant(
    value: tensor_data.Constant, location: Location = UNKNOWN_LOC, result_type: Attribute | None = None
) -> TFLOp:
    """Returns a constant op: a `tfl.pseudo_const`, or a `tfl.pseudo_qconst` if its type is quantised.

    Args:
        value: The value; of a quantised type the stored integers.
        location: The location of the op.
        result_type: The tensor type, if it is quantised.
    """
    if result_type is not None and result_type != value.type:
        properties = {"value": value, "qtype": result_type}
        return build(PSEUDO_QCONST, result_types=(result_type,), properties=properties, location=location)
    return TFLOp(_CONSTANT, (), (value.type,), {"value": value}, location=location)


def no_value() -> TFLOp:
    """Returns the op that represents an absent optional operand."""
    return build(NO_VALUE, result_types=(NONE_TYPE,), properties={"value": UNIT})


def custom(
    custom_code: str,
    custom_option: bytes,
    operands: Sequence[Value],
    result_types: Sequence[Attribute],
    location: Location = UNKNOWN_LOC,
) -> TFLOp:
    """Returns a `tfl.custom`.

    Args:
        custom_code: The name that the operator is registered by in the runtime.
        custom_option: Its options, usually a flexbuffer.
        operands: The operands.
        result_types: The results' types.
        location: The location of the op.
    """
    properties: dict[str, Attribute] = {
        CUSTOM_CODE: attrs.string(custom_code),
        CUSTOM_OPTION: ConstBytesAttr.get(custom_option),
    }
    return build(CUSTOM, operands=operands, result_types=result_types, properties=properties, location=location)


def is_absent(value: Value) -> bool:
    """Returns whether an operand is a `tfl.no_value`."""
    return value.type is NONE_TYPE


def has_operand(op: Operation, index: int) -> bool:
    """Returns whether an op has an operand at an index that is not a `tfl.no_value`."""
    return index < len(op.operands) and not is_absent(op.operands[index])


def python_value(value: Attribute) -> Any:
    """Returns a property as a Python value: a number, `str`, `bytes`, a tuple, or a symbol's name.

    Raises:
        TypeError: The attribute has no Python counterpart.
    """
    if isinstance(value, IntegerAttr):
        return value.to_python()
    if isinstance(value, FloatAttr):
        return value.value
    if isinstance(value, StringAttr | ConstBytesAttr):
        return value.data
    if isinstance(value, ArrayAttr):
        return tuple(python_value(item) for item in value.data)
    if isinstance(value, SymbolRefAttr):
        return value.root
    raise TypeError(f"{value} is not a property of a tfl op")


def attribute(op: Operation, name: str) -> Any:
    """Returns a property of an op as a Python value, the schema's default if it is not set.

    Args:
        op: A `tfl` op.
        name: A field of its options table, or a property that names a function.
    """
    value = op.properties.get(name)
    if value is not None:
        return python_value(value)
    return _default(option_fields(op.name.removeprefix(PREFIX))[name])


def _default(field: Field) -> Any:
    if field.kind not in SCALARS:
        return () if field.kind[0] == "[" else None
    return TFLITE.member(field.refers, field.default) if field.refers else field.default


def has_side_effects(op: Operation) -> bool:
    """Returns whether an op must be kept although its results are unused; true for all but `tfl` ops."""
    if not isinstance(op, TFLOp):
        return True
    operator = op.operator
    return operator is not None and operator.has_effect


def is_constant(value: Value) -> bool:
    """Returns whether a value is known before the model runs."""
    return type(value) is OpResult and value.op.name in _CONSTANTS


def is_node(op: Operation) -> bool:
    """Returns whether an op is an operator of the file."""
    name = op.name.removeprefix(PREFIX)
    return isinstance(op, TFLOp) and name not in CONSTANTS and name != "no_value"


def _operand_of(value: Value) -> Operand:
    """Returns the facts about a value, `ABSENT` if it is absent or of a type that LiteRT does not have."""
    element = value.element
    row = types.from_mlir(quant.storage_of(element))
    if row is None or not row.tflite:
        return ABSENT
    shape = value.shape
    if isinstance(element, quant.UniformType):
        data = element.data
        return Operand(row.tflite, shape, data.scales, False, data.zero_points, data.axis, 0, is_constant(value))
    block_size = element.data.block_size if isinstance(element, quant.BlockedType) else 0
    return Operand(row.tflite, shape, block_size=block_size, is_constant=is_constant(value))


def call_of(op: TFLOp) -> Call:
    """Returns the facts about an op; of its options those that are set, without the functions that it calls."""
    calls = SUBGRAPHS.get(op.op_name, {})
    fields = {name: python_value(value) for name, value in op.properties.items() if name not in calls}
    return Call(tuple(map(_operand_of, op.operands)), tuple(map(_operand_of, op.results)), fields)


def whole_call_of(op: TFLOp) -> Call:
    """Returns the facts about an op that the verdicts of accelerators need.

    These are also the elements and the identity of operands, and all options. Unknown sizes are 1, as files store them.
    """
    call = call_of(op)
    options = {name: attribute(op, name) for name in option_fields(op.op_name)} if op.operator is not None else {}
    variables = state_operands(op)
    inputs = [
        _stored(operand)._replace(
            is_variable=index in variables,
            elements=_elements_of(value) if operand.is_constant else None,
            tensor=value if operand.type else None,
            origin=_origin_of(value),
        )
        for index, (operand, value) in enumerate(zip(call.inputs, op.operands, strict=True))
    ]
    return Call(tuple(inputs), tuple(map(_stored, call.outputs)), {**options, **call.options})


def _stored(operand: Operand) -> Operand:
    return operand._replace(
        shape=None if operand.shape is None else tuple(max(size, 1) if size < 0 else size for size in operand.shape)
    )


def _elements_of(value: Value) -> tuple[float, ...] | None:
    """Returns the elements of a small constant, `None` of a large one or one of strings."""
    assert isinstance(value.owner, Operation)
    stored = value.owner.properties.get("value")
    sizes = value.shape or ()
    if stored is None or math.prod(sizes) > MAX_ELEMENTS or value.element == types.STRING:
        return None
    return tuple(tensor_data.to_array(stored).ravel().tolist())


def _origin_of(value: Value) -> str:
    """Returns the short type of the constant that an op dequantizes, empty if it does not."""
    owner = value.owner
    if not isinstance(owner, TFLOp) or owner.op_name != "dequantize" or not is_constant(owner.operands[0]):
        return ""
    return type_form(_operand_of(owner.operands[0]))


STEPS = frozenset({"lstm", "rnn", "svdf"})
"""Operators that compute one step of a sequence, and keep their state from run to run."""

SEQUENCES = frozenset(
    {
        "unidirectional_sequence_lstm",
        "bidirectional_sequence_lstm",
        "unidirectional_sequence_rnn",
        "bidirectional_sequence_rnn",
    }
)
"""Operators that compute a whole sequence; the state is reset at each run of the model."""

COPY, COPIES = "cast", "unpack"
"""The operators that create one or several states of a known shape. Others that copy may share memory instead."""

RESIZED: Mapping[str, int] = {"fill": 0, "broadcast_to": 1}
"""Operators that can create a state of any shape, with the index of the operand that is the shape.

They allocate their result at each run, provided that the shape is not known before the first one.
"""

BARRIER = "maximum"
"""An operator that LiteRT never folds when it prepares the model, even if its operands (shapes) are known by then."""


# A state operand is a tensor that the operator overwrites. The memory of such a *variable* tensor grows with the batch
# only in models all of whose sizes follow from those of the inputs. Where an earlier operator has a result whose size
# is only known at run time, a larger batch later writes past the state, undetected. A tensor is safe if the operator
# that produces it allocates it again at each run, because the shape is not known earlier.


def state_operands(op: Operation) -> tuple[int, ...]:
    """Returns the indices of an op's operands that hold state and are present; empty for most ops."""
    if not isinstance(op, TFLOp) or not (op.op_name in SEQUENCES or op.op_name in STEPS) or op.operator is None:
        return ()
    return tuple(index for index in op.operator.variables if has_operand(op, index))


def initial_value(value: Value) -> Value:
    """Returns the initial value of a state: the value that is copied to it, or that it is filled with."""
    owner = value.owner
    if isinstance(owner, TFLOp):
        if owner.op_name in (COPY, COPIES):
            return owner.operands[0]
        if owner.op_name in RESIZED:
            return owner.operands[1 - RESIZED[owner.op_name]]
    return value


def is_own_state(value: Value) -> bool:
    """Returns whether only the operator that uses a value as its state sees it.

    It must also be allocated again at each run, with the right size.
    """
    owner = value.owner
    if not isinstance(owner, TFLOp) or not value.has_one_use():
        return False
    if owner.op_name in (COPY, COPIES):
        return types.is_static(value.shape)
    shape = RESIZED.get(owner.op_name)
    if shape is None:
        return False
    barrier = owner.operands[shape].owner
    return isinstance(barrier, TFLOp) and barrier.op_name == BARRIER


def keeps_state(op: Operation, value: Value) -> bool:
    """Returns whether a state operand is the runtime's own tensor, zero before the first run and never set again.

    Operators that compute single steps have one if their state operand is zeros.
    """
    constant = tensor_data.constant_of(value)
    if constant is None or op.name.removeprefix(PREFIX) not in STEPS:
        return False
    return not tensor_data.to_array(constant).any()
