"""One subgraph of a .tflite file as a function, and its tensors: types, names, and fields that neither can express."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeGuard

import numpy as np

from tfconvert.importers.tflite.buffers import BufferReader, check_size, zeros
from tfconvert.importers.tflite.operators import Code, Properties, check_arity
from tfconvert.schema.dialects import attributes as attrs
from tfconvert.schema.dialects import quant, tensor_data, tfl, tfl_file, types
from tfconvert.schema.dialects.func import FuncOp, ReturnOp
from tfconvert.schema.dialects.locations import node_of
from tfconvert.schema.dialects.quant import BlockedType, Blocks, BlockwiseType, MultiAxisType, Uniform, UniformType
from tfconvert.schema.dialects.tensor_data import Constant
from tfconvert.schema.dialects.tf_saved_model import ENTRY_FUNCTION
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.attributes import ArrayAttr, DictionaryAttr, UnitAttr
from tfconvert.schema.ir.block import Block, Region
from tfconvert.schema.ir.locations import Location, NameLoc, UnknownLoc
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import BF16, F16, F32, FunctionType, IntegerType, TensorType, UnrankedTensorType
from tfconvert.schema.ir.values import Value
from tfconvert.schema.tflite.reader import View, malformed
from tfconvert.schema.tflite.versions import ABSENT, Call, Operand, operator_version, rules

_ROWS = {row.tflite: row for row in reversed(types.ELEMENT_TYPES) if row.tflite}

# Fields of `Tensor` that types, names and ops represent.
_IN_IR = frozenset(("shape", "type", "buffer", "name", "has_rank", "shape_signature", "is_variable"))

# Fields of `QuantizationParameters` that the type of a tensor represents.
_IN_MAPPING = frozenset(("scale", "zero_point", "quantized_dimension"))

# The least positive 32-bit float that processors don't take for 0.
_LEAST_SCALE = 2.0**-126

MAX_INDEX = 2**31 - 1

_BLOCKED: Mapping[str, type[BlockedType]] = {row.details: row for row in (BlockwiseType, MultiAxisType)}


@dataclass(slots=True)
class ImportedTensor:
    """A tensor as the IR sees it."""

    type: TensorType | UnrankedTensorType  # The tensor type, its elements quantised perhaps.
    name: str  # The name.
    buffer: int  # Index of the buffer that may hold its value.
    is_variable: bool  # It holds state.
    fields: dict[str, Any] = field(default_factory=dict)  # Other fields of its table.
    # Constants of its type that are tensors, by the names of the fields that refer to them.
    parts: dict[str, ImportedTensor] = field(default_factory=dict)

    @property
    def operand(self) -> Operand:
        """The tensor as the rules for versions see it."""
        element = types.element_of(self.type)
        row = types.from_mlir(quant.storage_of(element))
        assert row is not None
        scales = element.data.scales if isinstance(element, UniformType) else ()
        return Operand(row.tflite, types.shape_of(self.type), scales, "sparsity" in self.fields)

    def stored_type(self, is_constant: bool) -> TensorType | None:
        """Returns the static type of the tensor's value as it is stored, `None` if it has none.

        Args:
            is_constant: A constant without dimensions is a scalar, whatever else the file states.
        """
        shape = types.shape_of(self.type)
        if shape is None and is_constant:
            shape = ()
        if shape is None or not types.is_static(shape):
            return None
        storage = types.tensor(quant.storage_of(types.element_of(self.type)), shape)
        assert isinstance(storage, TensorType)
        return storage


class Tensors:
    """The tensors of one subgraph, each decoded at its first use."""

    def __init__(self, views: list[View], buffers: BufferReader) -> None:
        self._views = views
        self._buffers = buffers
        self._known: dict[int, ImportedTensor] = {}

    def __len__(self) -> int:
        return len(self._views)

    def __getitem__(self, index: int) -> ImportedTensor:
        known = self._known.get(index)
        if known is None:
            known = self._known[index] = self._build(index)
        return known

    def _build(self, index: int) -> ImportedTensor:
        tensor = self._plain(index)
        kind, details = tensor.fields.get("quantization", {}).get("details", ("", {}))
        if kind in _BLOCKED:
            del tensor.fields["quantization"]["details"]
            tensor.fields = {key: value for key, value in tensor.fields.items() if value or key == "shape"}
            self._set_blocks(tensor, _BLOCKED[kind], details)
        return tensor

    def _plain(self, index: int) -> ImportedTensor:
        if not 0 <= index < len(self._views):
            raise malformed(f"there is no tensor {index}")
        return _tensor(self._views[index])

    def _set_blocks(self, tensor: ImportedTensor, kind: type[BlockedType], details: Mapping[str, Any]) -> None:
        """Replaces a tensor's element type by one that has its scales and zero points."""
        storage = types.element_of(tensor.type)
        if not _can_be_stored(storage):
            raise malformed(f"tensor {tensor.name!r} has blocks of {storage}, but only integers have")
        size = details.get("block_size", 0)
        if size < 0:
            raise malformed(f"tensor {tensor.name!r} has blocks of {size} elements")
        # Without zero points, writers state 0, the format's default, or -1.
        zero_points = details.get("zero_points", 0)
        tensor.parts = {"scales": self._plain(details.get("scales", 0))}
        if zero_points > 0:
            tensor.parts["zero_points"] = self._plain(zero_points)
        elif zero_points < 0:
            own = tensor.fields.setdefault("quantization", {})
            own["details"] = (kind.details, {"zero_points": zero_points})
        constants = {name: self._constant(part) for name, part in tensor.parts.items()}
        _check_blocks(tensor.name, storage, constants)
        numbers = tuple(details.get(kind.dimensions_field, ()))
        rank = len(types.shape_of(tensor.type) or ())
        if kind is MultiAxisType and not all(0 <= number < rank for number in numbers):
            raise malformed(
                f"tensor {tensor.name!r} has scales along dimensions {list(numbers)}, but its rank is {rank}"
            )
        blocks = Blocks(storage, size, numbers, **constants)
        tensor.type = types.tensor(kind.get(blocks), types.shape_of(tensor.type))

    def _constant(self, tensor: ImportedTensor) -> Constant:
        stored = tensor.stored_type(True)
        if stored is None or "sparsity" in tensor.fields or not self._buffers.place(tensor.buffer)[1]:
            raise malformed(f"tensor {tensor.name!r} holds scales or zero points, but is not a constant")
        return self._buffers.constant(tensor.name, tensor.buffer, stored)


def _check_blocks(name: str, storage: IntegerType, constants: Mapping[str, Constant]) -> None:
    """Checks the scales and zero points of blocks."""
    if constants["scales"].type.element_type not in (F16, BF16, F32):
        raise malformed(f"tensor {name!r} has scales that are not floats")
    scales = tensor_data.to_array(constants["scales"]).astype(np.float32)
    wrong = scales[~((scales >= 0) & (scales < np.inf))]
    if wrong.size:
        _scale(name, float(wrong[0]))
    if "zero_points" in constants:
        if not _can_be_stored(constants["zero_points"].type.element_type):
            raise malformed(f"tensor {name!r} has zero points that are not integers")
        stored = tensor_data.to_array(constants["zero_points"]).astype(np.int64)
        _check_zero_points(name, storage, (int(stored.min()), int(stored.max())) if stored.size else ())


def _tensor(view: View) -> ImportedTensor:
    name: str = view["name"] or ""
    kind = view.name("type")
    if kind is None or kind not in _ROWS:
        raise malformed(f"tensor {name!r} has the type number {view['type']}, which this version does not know")
    shape, fields = _shape(view, name)
    stored = set(view.stored()) - _IN_IR
    if stored:
        fields.update((key, value) for key, value in view.tree().items() if key in stored)
    element: Attribute = _ROWS[kind].mlir
    element, quantization = _mapping(name, element, _stripped(fields.pop("quantization", {})), shape)
    if quantization:
        fields["quantization"] = quantization
    if fields.get("external_buffer", 0) > MAX_INDEX:
        raise malformed(f"tensor {name!r} has no external buffer {fields['external_buffer']}")
    fields = {key: value for key, value in fields.items() if value or key == "shape"}
    return ImportedTensor(types.tensor(element, shape), name, view["buffer"], view["is_variable"], fields)


def _shape(view: View, name: str) -> tuple[tuple[int, ...] | None, dict[str, Any]]:
    """Returns the shape of a tensor's type, and the fields that the type can't express."""
    shape, signature = (() if view[key] is None else tuple(view[key].tolist()) for key in ("shape", "shape_signature"))
    if signature and shape and len(signature) != len(shape):
        raise malformed(f"tensor {name!r} has a shape of rank {len(shape)} and one of rank {len(signature)}")
    if min((*shape, *signature), default=0) < -1:
        raise malformed(f"tensor {name!r} has the shape {list(signature or shape)}")
    check_size(name, tuple(max(dim, 1) for dim in signature or shape))
    if not signature:
        return (shape if shape or view["has_rank"] else None), {}
    allocated = tuple(1 if dim < 0 else dim for dim in signature)
    return signature, {} if shape == allocated else {"shape": shape}


def _stripped(quantization: dict[str, Any]) -> dict[str, Any]:
    """Returns quantisation parameters without empty fields: writers fill in empty vectors."""
    return {key: value for key, value in quantization.items() if value not in ((), 0)}


def _can_be_stored(element: Attribute) -> TypeGuard[IntegerType]:
    """Returns whether elements of a type can represent real numbers."""
    return isinstance(element, IntegerType) and element.width <= 64 and element is not types.I1


def _mapping(
    name: str, element: Attribute, fields: Mapping[str, Any], shape: tuple[int, ...] | None
) -> tuple[Attribute, dict[str, Any]]:
    """Returns a tensor's element type, and the quantization parameters that it does not express.

    Args:
        name: The tensor's name.
        element: The type of the stored elements.
        fields: The quantization parameters. Statistics (`min`, `max`) may stand beside scales, or alone.
        shape: The shape of the tensor.

    Raises:
        ConversionError: The scales are those of no tensor of this shape, or not numbers that can be scales.
    """
    scales = fields.get("scale", ())
    if not scales or not _can_be_stored(element) or fields.get("details", ("",))[0] in _BLOCKED:
        return element, dict(fields)
    uniform = Uniform(
        element,
        tuple(_scale(name, scale) for scale in scales),
        _zero_points(name, element, fields.get("zero_point", ()), len(scales)),
        _axis(name, fields.get("quantized_dimension", 0), len(scales), shape),
    )
    return UniformType.get(uniform), {key: value for key, value in fields.items() if key not in _IN_MAPPING}


def _scale(name: str, scale: float) -> float:
    """Returns a scale as types have it.

    Writers give 0 to a tensor, or a channel, of zeros only. With the least scale, it has no other values for a kernel.
    """
    if not 0 <= scale < math.inf:
        raise malformed(f"tensor {name!r} has the scale {scale}")
    return scale or _LEAST_SCALE


def _zero_points(name: str, storage: IntegerType, stored: tuple[int, ...], count: int) -> tuple[int, ...]:
    """Returns a zero point for each scale: 0 if the file has no zero points; one may be for all scales."""
    if len(stored) not in (0, 1, count):
        raise malformed(f"tensor {name!r} has {count} scales, but {len(stored)} zero points")
    _check_zero_points(name, storage, stored)
    return stored if len(stored) == count else (stored or (0,)) * count


def _check_zero_points(name: str, storage: IntegerType, stored: Iterable[int]) -> None:
    """Checks that zero points are numbers that a tensor can store, and the runtime, which reads them as 32 bits."""
    low, high = quant.storage_range(storage)
    low, high = max(low, -(2**31)), min(high, 2**31 - 1)
    wrong = next((zero for zero in stored if not low <= zero <= high), None)
    if wrong is not None:
        raise malformed(f"tensor {name!r} has the zero point {wrong}, which is not from {low} to {high}")


def _axis(name: str, stored: int, count: int, shape: tuple[int, ...] | None) -> int | None:
    """Returns the axis that scales go along; `None` if a scale is for the whole tensor."""
    is_axis = shape is not None and 0 <= stored < len(shape) and shape[stored] in (count, -1)
    if count == 1:
        # A filter of one channel. Elsewhere, the dimension says nothing about a single scale.
        return stored if is_axis and stored else None
    if not is_axis:
        shown = "unknown" if shape is None else list(shape)
        raise malformed(f"tensor {name!r} has {count} scales along dimension {stored}, but its shape is {shown}")
    return stored


_UNKNOWN = UnknownLoc()
_NOTHING = DictionaryAttr.get({})


@dataclass(frozen=True, slots=True)
class ImportState:
    """The state that the subgraphs of a model share."""

    buffers: BufferReader  # The constants.
    codes: Sequence[Code]  # The operators.
    properties: Properties  # Creates properties.
    # The version of each operator that its calls require, by the format's name; filled during the import.
    versions: dict[str, int]

    def note_call(
        self, op: tfl.TFLOp, operands: Sequence[ImportedTensor | None], results: Sequence[ImportedTensor | None]
    ) -> None:
        """Records the version that a call requires."""
        name = op.op_name.upper()
        needed = 1
        if name in rules():
            options = {key: tfl.python_value(value) for key, value in op.properties.items()}
            inputs, outputs = (
                tuple(ABSENT if tensor is None else tensor.operand for tensor in side) for side in (operands, results)
            )
            needed = operator_version(name, Call(inputs, outputs, options))
        self.versions[name] = max(self.versions.get(name, 1), needed)


def indices(view: View, name: str) -> list[int]:
    """Returns a field that is a vector of integers, empty by default."""
    value = view[name]
    return [] if value is None else value.tolist()


class SubgraphImporter:
    """A function under construction.

    Attributes:
        inputs: Indices of its input tensors.
        outputs: Indices of the tensors that it returns.
        calls: Indices of the subgraphs that it calls.
    """

    def __init__(self, shared: ImportState, view: View, symbol: str) -> None:
        self.inputs = indices(view, "inputs")
        self.outputs = indices(view, "outputs")
        self.calls: set[int] = set()
        self._shared = shared
        self._view = view
        self._symbol = symbol
        self._tensors = Tensors(view["tensors"] or [], shared.buffers)
        self._values: dict[int, Value] = {}
        self._no_value: Value | None = None
        self._block = Block()

    def build(self, is_entry: bool) -> FuncOp:
        """Returns the function.

        Args:
            is_entry: Whether it is called from outside.

        Raises:
            ConversionError: The subgraph is malformed.
        """
        for index in self.inputs:
            tensor = self._tensors[index]
            if index in self._values or self._shared.buffers.place(tensor.buffer)[1]:
                raise malformed(f"input {tensor.name!r} of subgraph {self._symbol!r} already has a value")
            self._values[index] = self._block.insert_arg(tensor.type, len(self._block.args))
        for operator in self._view["operators"] or ():
            self._operator(operator)
        returned = [self._value(index, "func.return") for index in self.outputs]
        self._block.add_op(ReturnOp.of(returned))
        signature = FunctionType.get(
            [argument.type for argument in self._block.args], [value.type for value in returned]
        )
        function = FuncOp.of(self._symbol, signature, Region(self._block))
        self._name(function, is_entry)
        return function

    def _name(self, function: FuncOp, is_entry: bool) -> None:
        """Records the names of the function's tensors and its subgraph."""
        if (self._view["name"] or "") != self._symbol:
            function.attributes[tfl_file.SUBGRAPH_NAME] = attrs.string(self._view["name"] or "")
        inputs = [self._tensors[index] for index in self.inputs]
        entry: dict[str, Attribute] = {}
        if is_entry:
            outputs = [self._tensors[index] for index in self.outputs]
            for key, tensors in (("inputs", inputs), ("outputs", outputs)):
                if all(tensor.name and "," not in tensor.name for tensor in tensors):
                    entry[key] = attrs.string(",".join(tensor.name for tensor in tensors))
            function.attributes[ENTRY_FUNCTION] = DictionaryAttr.get(entry)
        carried = []
        for position, tensor in enumerate(inputs):
            named = "inputs" in entry or tensor.name == f"arg{position}"
            carried.append(_carried(tensor, tensor.name if named else None, with_state=True))
        if any(item.data for item in carried):
            function.arg_attrs = ArrayAttr.get(
                [DictionaryAttr.get({tfl_file.TENSOR: item}) if item.data else item for item in carried]
            )

    def _operator(self, view: View) -> None:
        number = view["opcode_index"]
        if number >= len(self._shared.codes):
            raise malformed(f"there is no operator code {number}")
        operator = self._shared.codes[number]
        properties, rest, calls = self._shared.properties.of(view, operator)
        self.calls.update(calls)
        inputs, outputs = indices(view, "inputs"), indices(view, "outputs")
        check_arity(operator, inputs, outputs)
        operands = [self._value(index, operator.shown) for index in inputs]
        results = [None if index == -1 else self._tensors[index] for index in outputs]
        location = _location(results[0].name) if results and results[0] is not None else _UNKNOWN
        op = tfl.build(
            operator.name,
            operands=operands,
            result_types=[tfl.NONE_TYPE if tensor is None else tensor.type for tensor in results],
            properties=properties,
            location=location,
        )
        if rest:
            op.attributes[tfl_file.OPERATOR] = tfl_file.to_dictionary("Operator", rest)
        self._intermediates(op, indices(view, "intermediates"))
        _carry(op, results)
        if operator.name != tfl.CUSTOM:
            self._shared.note_call(op, [None if index == -1 else self._tensors[index] for index in inputs], results)
        self._block.add_op(op)
        for index, result in zip(outputs, op.results, strict=True):
            if index == -1:
                continue
            if index in self._values:
                raise malformed(f"tensor {self._tensors[index].name!r} has two values", op=operator.shown)
            self._values[index] = result

    def _intermediates(self, op: Operation, tensors: list[int]) -> None:
        if not tensors:
            return
        items = []
        for index in tensors:
            tensor = None if index == -1 else self._tensors[index]
            item = _NOTHING if tensor is None else _carried(tensor, None, with_state=True)
            items.append(DictionaryAttr.get({**item.data, "tensor": tensor.type}) if tensor is not None else item)
        op.attributes[tfl_file.INTERMEDIATES] = ArrayAttr.get(items)

    def _value(self, index: int, user: str) -> Value:
        """Returns the value of a tensor that is read."""
        known = self._values.get(index)
        if known is not None:
            return known
        if index == -1 and user != "func.return":
            if self._no_value is None:
                absent = tfl.no_value()
                self._block.add_op(absent)
                self._no_value = absent.results[0]
            return self._no_value
        tensor = self._tensors[index]
        op = self._constant(tensor, user)
        _carry(op, [tensor])
        self._block.add_op(op)
        value = self._values[index] = op.results[0]
        return value

    def _constant(self, tensor: ImportedTensor, user: str) -> tfl.TFLOp:
        """Returns the op of a tensor that no operator computes."""
        location = _location(tensor.name)
        if "external_buffer" in tensor.fields:
            return tfl.build(tfl.EXTERNAL_CONST, result_types=(tensor.type,), location=location)
        length = self._shared.buffers.place(tensor.buffer)[1]
        stored = tensor.stored_type(length > 0)
        empty = stored is not None and 0 in (types.shape_of(stored) or ())
        if stored is None or not (length or tensor.is_variable or empty):
            raise malformed("it is read before it is computed", op=user, node=tensor.name)
        if not length:
            op = tfl.constant(zeros(stored), location, tensor.type)
            if tensor.is_variable:
                op.attributes[tfl_file.IS_VARIABLE] = UnitAttr.intern()
            return op
        if "sparsity" in tensor.fields:
            size = types.numpy_dtype(stored.element_type).itemsize
            row = types.tensor(stored.element_type, (length // size,))
            assert isinstance(row, TensorType)
            value = self._shared.buffers.constant(tensor.name, tensor.buffer, row)
            return tfl.build(
                tfl.PSEUDO_SPARSE_CONST, result_types=(tensor.type,), properties={"value": value}, location=location
            )
        if types.shape_of(tensor.type) is None:
            tensor.type = types.tensor(types.element_of(tensor.type), ())
        return tfl.constant(self._shared.buffers.constant(tensor.name, tensor.buffer, stored), location, tensor.type)


def _location(name: str) -> Location:
    return NameLoc.get(name) if name else _UNKNOWN


def _carry(op: tfl.TFLOp, results: Sequence[ImportedTensor | None]) -> None:
    """Records as attributes of an op the fields of its tensors that its location and result types don't express."""
    held = op.op_name in tfl.BESIDE
    base = node_of(op.location) or ("constant" if held else op.op_name)
    items = []
    for position, tensor in enumerate(results):
        name = f"{base}:{position}" if position else base
        items.append(_NOTHING if tensor is None else _carried(tensor, name, with_state=not held))
    if any(item.data for item in items):
        op.attributes[tfl_file.TENSORS] = ArrayAttr.get(items)


def _carried(tensor: ImportedTensor, implied_name: str | None, *, with_state: bool) -> DictionaryAttr:
    fields: dict[str, Any] = dict(tensor.fields)
    if tensor.name != implied_name:
        fields["name"] = tensor.name
    if with_state and tensor.is_variable:
        fields["is_variable"] = True
    parts = {
        name: _carried(part, tfl_file.part_name(tensor.name, name), with_state=False)
        for name, part in tensor.parts.items()
    }
    own = tfl_file.to_dictionary("Tensor", fields) if fields else _NOTHING
    return DictionaryAttr.get({**own.data, **{name: part for name, part in parts.items() if part.data}})
