"""Forms of `tfl` ops that only TensorFlow's MLIR has: spellings, attributes, and ops with regions.

An op's options may be written as attributes, `{axis = 0 : i32}`, instead of properties, `<{axis = 0 : i32}>`: MLIR
fills properties from both. Some options have values of another kind than in the file format, where an enumerator is a
name and the width of an integer is fixed: element types are types (`value_dtype = i64`), a few enumerators are
attributes of their own (`#tfl<mirror_pad_attr REFLECT>`), functions may be named by strings. The tables of tensors in
the file format are options here: how a constant is sparse, which file holds it, the tensors inside a kernel.

TensorFlow's converter has loops and conditionals with regions while it works (`tfl.while` and `tfl.if` with regions
that end in `tfl.yield`), ops that it keeps from being changed (`tfl.custom_tf`), and ops in an order of their own
(`tfl.control_node`). Texts that it prints between its passes have them; `dialects-to-tf` replaces them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from tfconvert.schema.dialects import attributes as attrs
from tfconvert.schema.dialects import quant, tensor_data, tfl, tfl_file, types
from tfconvert.schema.dialects.tensor_data import DenseElementsAttr, DenseResourceAttr, TensorData
from tfconvert.schema.dialects.tf_executor.base import compatible
from tfconvert.schema.ir.attribute import Attribute, AttributePrinter, Type
from tfconvert.schema.ir.attributes import (
    TRUE,
    ArrayAttr,
    BytesAttr,
    DenseArrayAttr,
    DictionaryAttr,
    FloatAttr,
    IntegerAttr,
    StringAttr,
    UnitAttr,
)
from tfconvert.schema.ir.block import Block, Region
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.errors import VerifyError
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.traits import Trait
from tfconvert.schema.ir.types import IntegerType
from tfconvert.schema.ir.values import Value
from tfconvert.schema.tflite.tables import TFLITE, Field

if TYPE_CHECKING:
    from tfconvert.schema.ir.attribute_parser import AttributeParser
    from tfconvert.schema.ir.parser import Parser


class TFLControlType(Type):
    """`!tfl.control`: the type of values that only order ops."""

    __slots__ = ()

    NAME = "tfl.control"

    @classmethod
    def parse_parameters(cls, parser: AttributeParser) -> TFLControlType:
        """Parses what follows the name: nothing."""
        return cls.intern()


class TFLYieldOp(Operation):
    """`tfl.yield`: ends a region with its results."""

    __slots__ = ()

    NAME: ClassVar[str] = "tfl.yield"
    TRAITS: ClassVar[frozenset[Trait]] = frozenset({Trait.TERMINATOR})

    def verify_(self) -> None:
        parent = self.parent_op()
        if parent is None or parent.dialect != "tfl":
            raise VerifyError("tfl.yield must end a region of a tfl op")
        if self.results:
            raise VerifyError(f"tfl.yield has no results, found {len(self.results)}")


def _agree(some: Sequence[Attribute], others: Sequence[Attribute]) -> bool:
    """Returns whether two lists of types have the same lengths and element types, and compatible shapes."""
    return len(some) == len(others) and all(map(compatible, some, others))


def _check_region(op: Operation, arguments: Sequence[Attribute], results: Sequence[Attribute]) -> None:
    """Checks that an op has one region, of one block with arguments of some types, which yields some types."""
    if len(op.regions) != 1 or len(op.regions[0].blocks) != 1:
        raise VerifyError(f"{op.name} must have one region of one block")
    block = op.regions[0].block
    if not _agree(block.arg_types, arguments):
        raise VerifyError(f"the arguments of the region of {op.name} must have the types of its operands")
    last = block.last_op
    if not isinstance(last, TFLYieldOp):
        raise VerifyError(f"the region of {op.name} must end in tfl.yield")
    if not _agree(last.operand_types, results):
        raise VerifyError(f"the region of {op.name} must yield values of the types of its results")


class CustomTfOp(Operation):
    """`tfl.custom_tf`: ops of TensorFlow in a region, whose arguments are the operands."""

    __slots__ = ()

    NAME: ClassVar[str] = "tfl.custom_tf"

    def verify_(self) -> None:
        _check_region(self, self.operand_types, self.result_types)


class ControlNodeOp(Operation):
    """`tfl.control_node`: ops in a region, which run after the operands; the last result orders later ops."""

    __slots__ = ()

    NAME: ClassVar[str] = "tfl.control_node"

    def verify_(self) -> None:
        orders = [*self.operand_types, *self.result_types[-1:]]
        if not self.results or not all(isinstance(kind, TFLControlType) for kind in orders):
            raise VerifyError("the operands and the last result of tfl.control_node must be of type !tfl.control")
        _check_region(self, (), self.result_types[:-1])


class NumericVerifyOp(Operation):
    """`tfl.NumericVerify`: compares a quantized tensor with the float tensor while the model runs."""

    __slots__ = ()

    NAME: ClassVar[str] = "tfl.NumericVerify"
    PROPERTIES: ClassVar[tuple[str, ...]] = ("tolerance", "log_if_failed")

    def verify_(self) -> None:
        if len(self.operands) != 2 or len(self.results) > 1:
            raise VerifyError("tfl.NumericVerify has two operands and at most one result")
        tolerance, logs = map(self.properties.get, self.PROPERTIES)
        if not isinstance(tolerance, FloatAttr | None) or not isinstance(logs, IntegerAttr | None):
            raise VerifyError("tfl.NumericVerify has the properties 'tolerance', a float, and 'log_if_failed', i1")


def parse_assembly(parser: Parser) -> Operation:
    """Parses what follows the name of a `tfl` op in the forms that TensorFlow's MLIR prints.

    `%a, %b {...} : type` stands for operands and one result of one type, `(%a) <{...}> : (types) -> type` is the
    generic form; `tfl.control_node` has a form of its own.
    """
    name = parser.op_name
    cls = parser.registry.op(name)
    assert cls is not None
    if cls is ControlNodeOp:
        return _control_node(parser)
    if parser.token[0] == "(":
        return parser.parse_generic_form(name, cls)
    operands = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_unresolved_operand)
    properties = parser.parse_optional_properties_dict()
    attributes = parser.parse_optional_attr_dict()
    parser.parse_punctuation(":", " before the type")
    kind = parser.parse_type()
    values = [parser.resolve_operand(operand, kind) for operand in operands]
    return cls(name, values, (kind,), properties, attributes)


def _control_node(parser: Parser) -> Operation:
    """Parses `(%control) controls "tfl.op"(%a) : (type) -> type`, or `(%control) {region} {...}`."""
    operands: list[Value] = []
    if parser.token[0] == "(":
        operands = [parser.resolve_operand(each, CONTROL) for each in parser.parse_operand_list()]
    attributes: dict[str, Attribute] = {}
    if parser.parse_optional_keyword("controls") is not None:
        inner = parser.parse_operation()
        region = Region(Block((inner, TFLYieldOp.create(operands=inner.results))))
    else:
        region = parser.parse_region()
        attributes = parser.parse_optional_attr_dict()
    last = region.blocks[0].last_op if region.blocks else None
    results = [*(last.operand_types if last is not None else ()), CONTROL]
    return ControlNodeOp.create(operands=operands, result_types=results, attributes=attributes, regions=(region,))


CONTROL = TFLControlType.intern()


class MirrorPadAttr(Attribute):
    """`#tfl<mirror_pad_attr REFLECT>`."""

    __slots__ = ("data",)

    NAME = "tfl.mirror_pad_attr"

    data: str

    @classmethod
    def parse_parameters(cls, parser: AttributeParser) -> MirrorPadAttr:
        """Parses the enumerator."""
        return cls.intern(parser.parse_identifier())

    def print(self, printer: AttributePrinter) -> None:
        printer.write(f"#tfl<mirror_pad_attr {self.data}>")


class LSTMKernelTypeAttr(Attribute):
    """`#tfl<lstm_kernel_type_attr FULL>`."""

    __slots__ = ("data",)

    NAME = "tfl.lstm_kernel_type_attr"

    data: str

    @classmethod
    def parse_parameters(cls, parser: AttributeParser) -> LSTMKernelTypeAttr:
        """Parses the enumerator."""
        return cls.intern(parser.parse_identifier())

    def print(self, printer: AttributePrinter) -> None:
        printer.write(f"#tfl<lstm_kernel_type_attr {self.data}>")


Fields = Mapping[str, Callable[["AttributeParser"], Any]]
"""The parsers of the values of `<name = value, ...>`, by name."""


def _fields(parser: AttributeParser, known: Fields) -> dict[str, Any]:
    """Parses `<name = value, ...>`; each of the names has a value."""
    found: dict[str, Any] = {}
    with parser.in_angle_brackets():
        while True:
            position = parser.pos
            name = parser.parse_identifier(" of a parameter")
            if name not in known or name in found:
                parser.raise_error(f"expected one of {', '.join(known)}, each once", position)
            parser.parse_punctuation("=", f" after '{name}'")
            found[name] = known[name](parser)
            if parser.parse_optional_punctuation(",") is None:
                break
        if missing := [name for name in known if name not in found]:
            parser.raise_error(f"expected a value of '{missing[0]}'")
    return found


def _text(parser: AttributeParser) -> str:
    return parser.parse_str_literal()


def _count(parser: AttributeParser) -> int:
    return parser.parse_integer(allow_boolean=False, allow_negative=False)


def _numbers(parser: AttributeParser) -> list[int]:
    return parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: _count(parser))


_BUFFER: Fields = {"group_name": _text, "offset": _count, "length": _count, "packing": _text}


def parse_external_buffer(parser: AttributeParser) -> DictionaryAttr:
    """Parses what follows `#tfl.external_buffer`: `<group_name = "a", offset = 0, length = 1, packing = "b">`."""
    return DictionaryAttr.get({name: attrs.of(value) for name, value in _fields(parser, _BUFFER).items()})


# The tables of indices, narrow ones first, with their exclusive upper limits.
_INDEX_VECTORS = ((1 << 8, "Uint8Vector"), (1 << 16, "Uint16Vector"), (1 << 31, "Int32Vector"))


def _index_vector(values: list[int]) -> tuple[str, dict[str, Any]] | None:
    maximum = max(values, default=-1)
    table = next((name for beyond, name in _INDEX_VECTORS if maximum < beyond), "Int32Vector")
    return (table, {"values": values}) if values else None


def _format(parser: AttributeParser) -> str:
    return parser.parse_identifier(" of a format")


_DIMENSION: Fields = {"format": _format, "dense_size": _count, "segments": _numbers, "indices": _numbers}


def _dimension(parser: AttributeParser) -> dict[str, Any]:
    fields = _fields(parser, _DIMENSION)
    vectors = {
        f"array_{name}": vector for name in ("segments", "indices") if (vector := _index_vector(fields.pop(name)))
    }
    return {**fields, **vectors}


def _dimensions(parser: AttributeParser) -> list[dict[str, Any]]:
    found = [_dimension(parser)]
    while parser.parse_optional_punctuation(",") is not None:
        found.append(_dimension(parser))
    return found


_SPARSITY: Fields = {"traversal_order": _numbers, "block_map": _numbers, "dim_metadata": _dimensions}


def parse_sparsity(parser: AttributeParser) -> DictionaryAttr:
    """Parses what follows `#tfl.sparsity_parameter`; returns the fields of the table `SparsityParameters`."""
    return tfl_file.to_dictionary("SparsityParameters", _fields(parser, _SPARSITY))


_BASIC_LSTM = "tfl.basic_lstm"
_EXTERNAL_BUFFER = "external_buffer"


# Options that TensorFlow's MLIR leaves out, since they follow from the last result's element type.
_DERIVED: Mapping[str, str] = {
    "arg_max": "output_type",
    "arg_min": "output_type",
    "shape": "out_type",
    "unique": "idx_out_type",
}


_OTHER_NAMES = frozenset({_BASIC_LSTM, "tfl.pseudo_sparse_qconst"})


def class_of(name: str) -> type[tfl.TFLOp] | None:
    """Returns the class of the ops of a full name, including those that only occur in texts, or `None`."""
    return tfl.TFLOp if name in _OTHER_NAMES else tfl.class_of(name)


_BITS = {"int": 32, "long": 64}


def normalize(op: tfl.TFLOp) -> None:
    """Moves the options among a parsed op's attributes to its properties, and converts them to our dialect's values.

    An attribute that is not an option, already is a property, or has a value that no option can have stays, for the
    verifier to reject.
    """
    if op.name == _BASIC_LSTM:
        op.name = "tfl.lstm"
        _take(op, "kernel_type")
        op.properties["kernel_type"] = attrs.string("BASIC")
    convert = _OTHER.get(op.op_name)
    if convert is not None:
        convert(op)
    names = tfl.property_names(op.op_name)
    for name in [name for name in op.attributes if name in names and name not in op.properties]:
        op.properties[name] = op.attributes.pop(name)
    fields, calls = tfl.option_fields(op.op_name), tfl.SUBGRAPHS.get(op.op_name, {})
    for name, value in op.properties.items():
        if name in calls:
            op.properties[name] = _symbol(value)
        elif name in fields:
            op.properties[name] = _value(fields[name], value)
    derived = _DERIVED.get(op.op_name)
    if derived is not None and derived not in op.properties and op.results:
        row = types.from_mlir(op.results[-1].element)
        if row is not None and row.tflite:
            op.properties[derived] = attrs.string(row.tflite)


def _take(op: tfl.TFLOp, name: str) -> Attribute | None:
    """Removes an option, however it was written; returns its value."""
    return op.properties.pop(name, None) or op.attributes.pop(name, None)


def _quantized_type(op: tfl.TFLOp) -> None:
    """Removes the type that an op states twice: that of its result."""
    for options in (op.properties, op.attributes):
        if op.results and options.get("qtype") is op.results[0].type:
            del options["qtype"]


def _custom_option(op: tfl.TFLOp) -> None:
    for options in (op.properties, op.attributes):
        value = options.get(tfl.CUSTOM_OPTION)
        if isinstance(value, StringAttr | BytesAttr):
            data = value.data.encode("utf-8", "surrogateescape") if isinstance(value, StringAttr) else value.data
            options[tfl.CUSTOM_OPTION] = tfl.ConstBytesAttr.get(data)


# Options of LSTMs for the types of the kernel's internal tensors, in the file's order.
_INTERMEDIATES = (
    "input_to_input_intermediate",
    "input_to_forget_intermediate",
    "input_to_cell_intermediate",
    "input_to_output_intermediate",
    "effective_hidden_scale_intermediate",
)


def _intermediates(op: tfl.TFLOp) -> None:
    kinds = [_take(op, name) for name in _INTERMEDIATES]
    if any(kinds):
        items = [DictionaryAttr.get({} if kind is None else {"tensor": kind}) for kind in kinds]
        op.attributes.setdefault(tfl_file.INTERMEDIATES, ArrayAttr.get(items))


def _sparse(op: tfl.TFLOp) -> None:
    """Moves the stored elements of a sparse constant, and their format, to where ours has them."""
    if op.op_name != tfl.PSEUDO_SPARSE_CONST:
        op.name = tfl.PREFIX + tfl.PSEUDO_SPARSE_CONST
        _quantized_type(op)
    parameters, stored = _take(op, "s_param"), _take(op, "compressed_data")
    if parameters is not None:
        op.attributes[tfl_file.TENSORS] = ArrayAttr.get([DictionaryAttr.get({"sparsity": parameters})])
    if stored is not None:
        _take(op, "value")
        op.properties["value"] = stored


def _unsigned(op: tfl.TFLOp) -> None:
    """Converts stored integers to the constant's storage type; the official texts have signed ones."""
    value, kind = op.properties.get("value", op.attributes.get("value")), op.results[0].type if op.results else None
    if kind is None or not isinstance(value, DenseElementsAttr | TensorData | DenseResourceAttr):
        return
    stored, written = quant.storage_of(types.element_of(kind)), types.element_of(value.type)
    if not isinstance(stored, IntegerType) or written is not IntegerType.get(stored.width) or written is stored:
        return
    op.attributes.pop("value", None)
    own = types.tensor(stored, types.shape_of(value.type))
    if isinstance(value, DenseResourceAttr):
        op.properties["value"] = DenseResourceAttr.get(value.handle, own)
    else:
        numbers = tensor_data.to_array(value).view(types.numpy_dtype(stored))
        op.properties["value"] = tensor_data.of_array(numbers, stored)


# Conversions of options that our dialect has in another form.
_OTHER: Mapping[str, Callable[[tfl.TFLOp], None]] = {
    "quantize": _quantized_type,
    "custom": _custom_option,
    "pseudo_qconst": _unsigned,
    "lstm": _intermediates,
    "unidirectional_sequence_lstm": _intermediates,
    "pseudo_sparse_const": _sparse,
    "pseudo_sparse_qconst": _sparse,
}


def collect_external_buffers(module: ModuleOp, constants: Iterable[tfl.TFLOp]) -> None:
    """Replaces the external buffers that constants name by indices into an attribute of the module.

    Args:
        module: The module.
        constants: Its constants with the property `external_buffer`.
    """
    groups: dict[Attribute, int] = {}
    buffers: list[Attribute] = []
    for op in constants:
        place = _take(op, _EXTERNAL_BUFFER)
        if not isinstance(place, DictionaryAttr):
            continue
        group = groups.setdefault(place.data["group_name"], len(groups))
        own = {name: value for name, value in place.data.items() if name != "group_name"}
        number = len(buffers) + 1
        buffers.append(DictionaryAttr.get({**own, "id": attrs.integer(number), "group": attrs.integer(group)}))
        tensor = DictionaryAttr.get({_EXTERNAL_BUFFER: attrs.integer(number)})
        op.attributes[tfl_file.TENSORS] = ArrayAttr.get([tensor])
    if buffers:
        names = [DictionaryAttr.get({"name": name}) for name in groups]
        lists = {"external_buffer_groups": ArrayAttr.get(names), "external_buffers": ArrayAttr.get(buffers)}
        module.attributes[tfl_file.EXTERNAL_BUFFERS] = DictionaryAttr.get(lists)


def _symbol(value: Attribute) -> Attribute:
    return attrs.symbol(value.data) if isinstance(value, StringAttr) else value


def _value(field: Field, value: Attribute) -> Attribute:
    """Returns an option's value as `tfl.fits` expects it; unknown values are returned unchanged."""
    if tfl.fits(field, value):
        return value
    if field.kind[0] == "[":
        return _row(field, value)
    if field.kind == "bool" and isinstance(value, UnitAttr):
        return TRUE
    if field.refers:
        name = _enumerator(field.refers, value)
        return value if name is None else attrs.string(name)
    if field.kind in _BITS and isinstance(value, IntegerAttr) and value.type is not types.I1:
        number, beyond = value.value, 1 << _BITS[field.kind] - 1
        return tfl.to_attribute(field, number) if -beyond <= number < beyond else value
    return value


def _row(field: Field, value: Attribute) -> Attribute:
    element = Field(field.name, 0, field.kind[1:-1], None, field.refers, 0)
    if isinstance(value, DenseArrayAttr):
        value = ArrayAttr.get([attrs.of(item) for item in value.values])
    return ArrayAttr.get([_value(element, item) for item in value.data]) if isinstance(value, ArrayAttr) else value


def _enumerator(enum: str, value: Attribute) -> str | None:
    if isinstance(value, MirrorPadAttr | LSTMKernelTypeAttr):
        return value.data
    if isinstance(value, IntegerAttr):
        return TFLITE.member(enum, value.value)
    row = types.from_mlir(value) if enum == "TensorType" else None
    return row.tflite if row is not None and row.tflite else None
