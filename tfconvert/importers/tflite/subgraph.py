"""One subgraph of a .tflite file as a function."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tfconvert.importers.tflite.buffers import Buffers, zeros
from tfconvert.importers.tflite.operators import Code, Properties, check_arity
from tfconvert.importers.tflite.tensors import Tensor, Tensors
from tfconvert.schema.dialects import attributes as attrs
from tfconvert.schema.dialects import tfl, tfl_file, types
from tfconvert.schema.dialects.func import FuncOp, ReturnOp
from tfconvert.schema.dialects.locations import node_of
from tfconvert.schema.dialects.tf_saved_model import ENTRY_FUNCTION
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.attributes import ArrayAttr, DictionaryAttr, UnitAttr
from tfconvert.schema.ir.block import Block, Region
from tfconvert.schema.ir.locations import Location, NameLoc, UnknownLoc
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import FunctionType, TensorType
from tfconvert.schema.ir.values import Value
from tfconvert.schema.tflite.reader import View, malformed
from tfconvert.schema.tflite.versions import ABSENT, RULES, Call, operator_version

_UNKNOWN = UnknownLoc()
_NOTHING = DictionaryAttr.get({})


@dataclass(frozen=True, slots=True)
class Shared:
    """The state that the subgraphs of a model share.

    Attributes:
        buffers: The constants.
        codes: The operators.
        properties: Creates properties.
        versions: The version of each operator that its calls require, by the format's name; filled during the import.
    """

    buffers: Buffers
    codes: Sequence[Code]
    properties: Properties
    versions: dict[str, int]

    def note_call(self, op: tfl.TFLOp, operands: Sequence[Tensor | None], results: Sequence[Tensor | None]) -> None:
        """Records the version that a call requires."""
        name = op.op_name.upper()
        needed = 1
        if name in RULES:
            options = {key: tfl.python_value(value) for key, value in op.properties.items()}
            inputs, outputs = (
                tuple(ABSENT if tensor is None else tensor.operand for tensor in side) for side in (operands, results)
            )
            needed = operator_version(name, Call(inputs, outputs, options))
        self.versions[name] = max(self.versions.get(name, 1), needed)


def indices(view: View, name: str) -> list[int]:
    """Returns a field that is a vector of integers, empty if it is not stored."""
    value = view[name]
    return [] if value is None else value.tolist()


class Subgraph:
    """A function under construction.

    Attributes:
        inputs: Indices of its input tensors.
        outputs: Indices of the tensors that it returns.
        calls: Indices of the subgraphs that it calls.
    """

    def __init__(self, shared: Shared, view: View, symbol: str) -> None:
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
                raise malformed(f"input {tensor.name!r} of subgraph {self._symbol!r} has a value already")
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

    def _constant(self, tensor: Tensor, user: str) -> tfl.TFLOp:
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
            value = self._shared.buffers.constant(tensor.buffer, row)
            return tfl.build(
                tfl.PSEUDO_SPARSE_CONST, result_types=(tensor.type,), properties={"value": value}, location=location
            )
        if types.shape_of(tensor.type) is None:
            tensor.type = types.tensor(types.element_of(tensor.type), ())
        return tfl.constant(self._shared.buffers.constant(tensor.buffer, stored), location, tensor.type)


def _location(name: str) -> Location:
    return NameLoc.get(name) if name else _UNKNOWN


def _carry(op: tfl.TFLOp, results: Sequence[Tensor | None]) -> None:
    """Records as attributes of an op those fields of its tensors that its location and result types don't express."""
    held = op.op_name in tfl.BESIDE
    base = node_of(op.location) or ("constant" if held else op.op_name)
    items = []
    for position, tensor in enumerate(results):
        name = f"{base}:{position}" if position else base
        items.append(_NOTHING if tensor is None else _carried(tensor, name, with_state=not held))
    if any(item.data for item in items):
        op.attributes[tfl_file.TENSORS] = ArrayAttr.get(items)


def _carried(tensor: Tensor, implied_name: str | None, *, with_state: bool) -> DictionaryAttr:
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
