"""Spellings of `tfl` ops in TensorFlow's MLIR, and their normal form.

An op's options may be written as attributes, `{axis = 0 : i32}`, instead of properties, `<{axis = 0 : i32}>`: MLIR
fills properties from both. Some options also have values of another kind than in the file format, where an enumerator
is a name and the width of an integer is fixed: element types are types (`value_dtype = i64`), a few enumerators are
attributes of their own (`#tfl<mirror_pad_attr REFLECT>`), functions may be named by strings. What the file format has
in the tables of tensors are options, too: how a constant is sparse, which file holds it, the tensors inside a kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from tfconvert.schema.dialects import attributes as attrs
from tfconvert.schema.dialects import quant, tensor_data, tfl, tfl_file, types
from tfconvert.schema.dialects.tensor_data import DenseElementsAttr, DenseResourceAttr, TensorData
from tfconvert.schema.dialects.tfl_attributes import LSTMKernelTypeAttr, MirrorPadAttr
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.attributes import (
    TRUE,
    ArrayAttr,
    BytesAttr,
    DenseArrayAttr,
    DictionaryAttr,
    IntegerAttr,
    StringAttr,
    UnitAttr,
)
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.types import IntegerType
from tfconvert.schema.tflite.tables import TFLITE, Field

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
    """Returns the class of the ops of a full name, which may be one that only texts have; `None` if there are none."""
    return tfl.TFLOp if name in _OTHER_NAMES else tfl.class_of(name)


_BITS = {"int": 32, "long": 64}


def normalize(op: tfl.TFLOp) -> None:
    """Moves the options among a parsed op's attributes to its properties, and converts them to our dialect's values.

    An attribute that is not an option stays, and so does one that is a property already: the verifier refuses both. So
    does a value that no option can have.
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
        row = types.from_mlir(types.element_of(op.results[-1].type))
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


# Options of LSTMs that are the types of the tensors that the kernel has for itself, in the file's order.
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
    """Puts the stored elements of a sparse constant, and how they are stored, where ours has them."""
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
    """Gives stored integers the type that they represent the value by; the official's texts have signed ones."""
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


# Treatment of the options of ops that our dialect has elsewhere.
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
    """Numbers the bytes beside the file that constants name, in an attribute of the module that lists them.

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
    """Returns an option's value as `tfl.fits` expects it; one that means nothing as it is."""
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
