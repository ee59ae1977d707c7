"""One function as a subgraph: its tensors, their names, and its operators."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tfconvert.exporters.tflite import operators
from tfconvert.exporters.tflite.file import BufferWriter
from tfconvert.exporters.tflite.operators import OperatorCodes, SubgraphIndex
from tfconvert.schema.diagnostics import Diagnostic
from tfconvert.schema.dialects import quant, tensor_data, tfl, tfl_file, types
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.dialects.locations import error_at, node_of, nodes_of
from tfconvert.schema.dialects.tensor_data import Constant
from tfconvert.schema.dialects.tf_saved_model import ENTRY_FUNCTION, EXPORTED_NAMES, entry_names, port_names
from tfconvert.schema.dialects.tfl import TFLOp
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.attributes import DictionaryAttr
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value
from tfconvert.schema.tflite.operators import Operator, filters
from tfconvert.schema.tflite.versions import ABSENT, Operand

_QUANTIZE = "quantize"
_QUANTIZED, _SPARSE = tfl.PREFIX + tfl.PSEUDO_QCONST, tfl.PREFIX + tfl.PSEUDO_SPARSE_CONST
_BESIDE = tfl.full_names(tfl.BESIDE)
_EXTERNAL = tfl.PREFIX + tfl.EXTERNAL_CONST
_CONVOLUTIONS = ("conv_2d", "depthwise_conv_2d")


# What JAX's names of all ops of a program begin with.
_PROGRAM_START = "jit("
_PROGRAM = re.compile(r"^jit\([^()]*\)/")


class Naming(NamedTuple):
    """Names of tensors."""

    # Whether as TensorFlow's converter names them, which scripts look for: inputs and outputs by the graph's tensors
    # (`serving_default_x:0`, `StatefulPartitionedCall:0`), fused operators by all that is in them. Otherwise inputs and
    # outputs have their names in the signature, and operators are named after their last node.
    is_official: bool = False

    def ports(self, function: FuncOp, which: str) -> list[str]:
        """Returns names of a function's inputs or outputs; there may be too few.

        Args:
            function: The function.
            which: `inputs` or `outputs`.
        """
        if EXPORTED_NAMES not in function.attributes:
            names = entry_names(function, which)
            return [name.removesuffix(":0") for name in names] if self.is_official else names
        is_named = ENTRY_FUNCTION in function.attributes and self.is_official
        return entry_names(function, which) if is_named else port_names(function, which)

    def operator(self, op: TFLOp) -> str:
        """Returns the name of an operator's result."""
        if self.is_official and op.op_name == _QUANTIZE:
            return op.name  # It has no node: the quantizer has inserted it.
        return self.node(op.location) or op.op_name

    def constant(self, location: Attribute, op: TFLOp | None = None, position: int = 0) -> str:
        """Returns the name of a constant.

        Args:
            location: Its location.
            op: The operator that is the first to use it.
            position: The operand's index.
        """
        row = filters().get(op.op_name) if op is not None and self.is_official else None
        if op is not None and row is not None and position in (row.operand, row.bias):
            nodes = list(dict.fromkeys(nodes_of(op.location)))
            # A filter has the name of the node that multiplies, and so has a bias that only the kernel requires. Others
            # have the names of all fused nodes.
            if position == row.bias:
                has_activation = tfl.attribute(op, tfl.ACTIVATION) not in (None, "NONE")
                return ";".join(nodes if len(nodes) > 1 + has_activation else nodes[-1:]) or "constant"
            if nodes and nodes[-1] not in nodes_of(location):
                return nodes[-1]
        return self.node(location) or "constant"

    def node(self, location: Attribute) -> str:
        """Returns the name of a location; empty if it has none."""
        if self.is_official:
            return ";".join(dict.fromkeys(nodes_of(location)))
        name = node_of(location)
        return _PROGRAM.sub("", name) if name.startswith(_PROGRAM_START) else name

    def operands(self, op: TFLOp) -> Iterable[tuple[int, Value]]:
        """Returns the operands in the order in which they are named, each with its position."""
        if self.is_official and op.op_name in _CONVOLUTIONS:
            # TensorFlow's converter names the bias of a convolution before its filter: the filter gets the number.
            return reversed(list(enumerate(op.operands)))
        return enumerate(op.operands)

    def empty(self) -> Names:
        """Returns no names, for a subgraph or a file."""
        return Names("" if self.is_official else "_")


USERS = Naming()
"""The names that the user knows."""


class Names:
    """The names of a subgraph's tensors, or of a file's.

    Attributes:
        taken: The names that are taken.

    Args:
        joint: The text between a name and the number that makes it unique.
    """

    def __init__(self, joint: str = "_") -> None:
        self._joint = joint
        self.taken: set[str] = set()
        self._next: dict[str, int] = {}

    def unique(self, wanted: str) -> str:
        """Returns a name, with a number appended if it is taken, and reserves it."""
        name = wanted
        while name in self.taken:
            number = self._next[wanted] = self._next.get(wanted, 0) + 1
            name = f"{wanted}{self._joint}{number}"
        self.taken.add(name)
        return name


_ABSENT = (-1, ABSENT)

_MAX_DIMENSION = 2**31 - 1


class ExportState:
    """The state that all subgraphs of a model share.

    Attributes:
        buffers: The constants.
        codes: The operators in use.
        bytes_by_operator: Bytes of constants by the operator that is the first to use them.
        naming: Names of tensors.
        names: The names of tensors that are taken in the file.
        problems: Why the model can't be exported.

    Args:
        versions: The versions that some operators have regardless of their calls.
        are_minimums: Whether they are only minimum versions, which calls may raise.
        target: The release of the runtime that is to run the model; any if empty.
        naming: Names of tensors.
    """

    def __init__(
        self, versions: Mapping[str, int], *, are_minimums: bool = False, target: str = "", naming: Naming = USERS
    ) -> None:
        self.buffers = BufferWriter()
        self.codes = OperatorCodes(versions, are_minimums=are_minimums, target=target)
        self.bytes_by_operator: Counter[str] = Counter()
        self.naming = naming
        self.names = naming.empty()
        self.problems: list[Diagnostic] = []
        self._types: dict[Attribute, tuple[Operand, dict[str, Any], Attribute]] = {}

    def tensor_type(self, value_type: Attribute) -> tuple[Operand, dict[str, Any], Attribute]:
        """Returns a type as the version rules see it, as fields of `Tensor`, and its element type."""
        known = self._types.get(value_type)
        if known is None:
            known = self._types[value_type] = (*self._describe(value_type), types.element_of(value_type))
        return known

    def _describe(self, value_type: Attribute) -> tuple[Operand, dict[str, Any]]:
        element = types.element_of(value_type)
        row = types.from_mlir(quant.storage_of(element))
        if row is None or not row.tflite:
            self.problems.append(Diagnostic("unsupported-type", f"LiteRT has no tensors of {value_type}"))
            return ABSENT, {}
        shape = types.shape_of(value_type)
        # Readers expect a shape; without a rank it is empty.
        fields: dict[str, Any] = {"type": row.tflite, "shape": ()}
        if shape is not None:
            if max(shape, default=0) > _MAX_DIMENSION:
                self.problems.append(
                    Diagnostic("absurd-shape", f"a tensor of shape {list(shape)} is too large for LiteRT")
                )
                shape = tuple(min(dim, _MAX_DIMENSION) for dim in shape)
            fields.update(shape=tuple(1 if dim < 0 else dim for dim in shape), has_rank=True)
            if not types.is_static(shape):
                fields["shape_signature"] = shape
        if not isinstance(element, quant.UniformType):
            return Operand(row.tflite, shape), fields
        fields["quantization"] = _quantization(element.data)
        return Operand(row.tflite, shape, element.data.scales), fields


def _quantization(uniform: quant.Uniform) -> dict[str, Any]:
    fields = {"scale": uniform.scales, "zero_point": uniform.zero_points}
    return {**fields, "quantized_dimension": uniform.axis} if uniform.axis else fields


class SubgraphWriter:
    """The tensors and operators of one function.

    Attributes:
        name: The subgraph's name.
        function: The function.
        caller: The subgraph that was the first to call it; `None` for an entry point.
        inputs: Indices of the function's input tensors.
        outputs: Indices of the tensors that it returns.

    Args:
        shared: The state that it shares with the others.
        function: The function.
        name: The subgraph's name.
        caller: The subgraph that calls it.
        exact: The function is the image of a file's subgraph: its tensors have that file's names, even if not unique
            or empty, and each constant is a tensor of its own.
    """

    def __init__(
        self,
        shared: ExportState,
        function: FuncOp,
        name: str,
        caller: SubgraphWriter | None = None,
        exact: bool = False,
    ) -> None:
        self.name = name
        self.function = function
        self.caller = caller
        self.inputs: list[int] = []
        self.outputs: list[int] = []
        self._shared = shared
        self._tensors: list[dict[str, Any]] = []
        self._operators: list[dict[str, Any]] = []
        self._index: dict[Value, tuple[int, Operand]] = {}
        self._constants: dict[tuple[int, Attribute], tuple[int, Operand]] = {}
        self._parts: dict[tuple[Constant, str], int] = {}
        self._names = shared.naming.empty()
        self._own_names: dict[str, str] = {}
        self._reserved: dict[Value, str] = {}
        self._exact = exact

    def build(self, outputs: Sequence[str], subgraph: SubgraphIndex) -> None:
        """Exports the function, whose inputs and outputs have names already.

        Args:
            outputs: Names of the outputs; those that are missing are named after the op that computes them.
            subgraph: Finds the subgraphs that ops call.
        """
        block = self.function.body.block
        returned, reserved = self._returns, self._reserved
        carried = tfl_file.dictionaries(self.function.arg_attrs)
        for argument in block.args:
            fields = carried[argument.index] if argument.index < len(carried) else None
            own = fields.data.get(tfl_file.TENSOR) if isinstance(fields, DictionaryAttr) else None
            self.inputs.append(self._add(argument, reserved[argument], 0, own)[0])
        for op in block.ops:
            if not isinstance(op, tfl.TFLOp):
                if op.name != "func.return":
                    self._refuse(op)
            elif op.name not in _BESIDE:
                self._operator(op, op.operator, reserved, subgraph)
        for position, value in enumerate(returned):
            self.outputs.append(self._returned(value, outputs[position] if position < len(outputs) else ""))

    @property
    def _returns(self) -> Sequence[Value]:
        last = self.function.body.block.last_op
        return last.operands if last is not None else ()

    def reserve(self, inputs: Sequence[str], outputs: Sequence[str]) -> None:
        """Assigns the names of inputs and outputs first: they are visible to the user.

        Args:
            inputs: Names of the inputs; those that are missing are called `arg0`, ...
            outputs: Names of the outputs.
        """
        reserved = self._reserved
        for position, argument in enumerate(self.function.body.block.args):
            wanted = inputs[position] if position < len(inputs) else f"arg{position}"
            reserved[argument] = self._unique(wanted)
        for value, wanted in zip(self._returns, outputs, strict=False):
            if value not in reserved and _whole(value) is None:
                reserved[value] = self._unique(wanted)

    def _unique(self, name: str) -> str:
        """Returns a name that no other tensor of the file has, and records its name in the subgraph alone."""
        if self._exact:
            return name
        taken, also = self._names.taken, self._shared.names.taken
        if name not in taken and name not in also:
            taken.add(name)
            also.add(name)
            return name
        own = self._names.unique(name)
        unique = self._shared.names.unique(own)
        if unique != own:
            self._own_names[unique] = own
        return unique

    def _add(self, value: Value, name: str, buffer: int, carried: Attribute | None = None) -> tuple[int, Operand]:
        """Adds the tensor of a value.

        Args:
            value: The value.
            name: The tensor's name.
            buffer: Index of the buffer that holds its value, 0 if it is computed.
            carried: Fields that follow neither from the value's type nor from its place.
        """
        operand, fields, element = self._shared.tensor_type(value.type)
        fields = {**fields, "name": name, "buffer": buffer} if buffer else {**fields, "name": name}
        if carried is not None:
            fields = self._with_carried(fields, carried)
            operand = Operand(operand.type, operand.shape, operand.scales, "sparsity" in fields)
        index = len(self._tensors)
        self._tensors.append(fields)
        if isinstance(element, quant.BlockedType):
            self._add_parts(fields, element, carried)
        entry = self._index[value] = (index, operand)
        return entry

    def _add_parts(self, fields: dict[str, Any], element: quant.BlockedType, carried: Attribute | None) -> None:
        """Adds the tensors of scales and zero points that a type has, and refers to them in a tensor's fields."""
        blocks = element.data
        quantization = fields.get("quantization", {})
        details = {**quantization.get("details", ("", {}))[1], "block_size": blocks.block_size}
        if blocks.dimensions:
            details[element.dimensions_field] = blocks.dimensions
        for part, constant in (("scales", blocks.scales), ("zero_points", blocks.zero_points)):
            if constant is not None:
                own = carried.data.get(part) if isinstance(carried, DictionaryAttr) else None
                details[part] = self._part(constant, tfl_file.part_name(str(fields["name"]), part), own)
        fields["quantization"] = {**quantization, "details": (element.details, details)}

    def _part(self, constant: Constant, name: str, carried: Attribute | None) -> int:
        """Returns the index of the tensor of scales or zero points; equal ones of one name are one."""
        own = tfl_file.from_dictionary("Tensor", carried)
        key = (constant, str(own.get("name", name)))
        known = self._parts.get(key)
        if known is None:
            operand, fields, _ = self._shared.tensor_type(constant.type)
            buffer = self._shared.buffers.add(constant, operand.type)
            known = self._parts[key] = len(self._tensors)
            self._tensors.append({**fields, **own, "name": self._unique(key[1]), "buffer": buffer})
        return known

    def _with_carried(self, fields: dict[str, Any], carried: Attribute) -> dict[str, Any]:
        """Returns the fields of a tensor, those included that don't follow from its type and its place."""
        own = tfl_file.from_dictionary("Tensor", carried)
        if own.get("name"):
            own["name"] = self._unique(own["name"])
        if "quantization" in own and "quantization" in fields:
            # Scales follow from the type, and statistics stand beside them.
            own["quantization"] = {**own["quantization"], **fields["quantization"]}
        return {**fields, **own}

    def _operator(
        self, op: tfl.TFLOp, operator: Operator | None, reserved: dict[Value, str], subgraph: SubgraphIndex
    ) -> None:
        assert operator is not None
        naming, op_name = self._shared.naming, operator.name
        name = str(tfl.attribute(op, tfl.CUSTOM_CODE)) if op_name == tfl.CUSTOM else op_name.upper()
        variables = operator.variables
        operands, index = [_ABSENT] * len(op.operands), self._index
        for position, value in naming.operands(op):
            entry = index.get(value)
            if variables and position in variables and self._is_new_state(value):
                entry = self._state(op, value, entry)
            elif entry is None:
                entry = self._constant(value, name, op, position, position in variables)
            operands[position] = entry
        if op_name == "transpose_conv":
            # Its kernel decides by the number of operands whether there is a bias.
            operands = operands[:3] if operands[3:] == [_ABSENT] else operands
        elif op_name == "fully_connected" and not self._exact:
            # Tools expect an entry for the bias even if it is absent.
            operands += [_ABSENT] * (3 - len(operands))
        wanted = naming.operator(op)
        results = []
        for position, result in enumerate(op.results):
            if result.type is tfl.NONE_TYPE:
                results.append(_ABSENT)
                continue
            name = reserved.get(result) or self._unique(f"{wanted}:{position}" if position else wanted)
            results.append(self._add(result, name, 0, _carried(op, position) if op.attributes else None))
        tree = operators.tree(op, operator, self._shared.codes, operands, results, subgraph)
        if op.attributes and tfl_file.INTERMEDIATES in op.attributes:
            tree["intermediates"] = self._intermediates(op)
        self._operators.append(tree)

    def _is_new_state(self, value: Value) -> bool:
        """Returns whether a state must be marked: those of a file stay as they are, but passes may create others."""
        if tfl.is_absent(value) or tfl_file.is_variable(value):
            return False
        return not self._exact or tfl.is_own_state(value)

    def _state(self, op: tfl.TFLOp, value: Value, known: tuple[int, Operand] | None) -> tuple[int, Operand]:
        """Marks the tensor of an operator's state as a variable.

        It is the runtime's own, zero before the first run, or the result of another operator that allocates it per run.

        Args:
            op: The operator.
            value: The state operand.
            known: The tensor of the value, `None` if it has none yet.

        Raises:
            ConversionError: Other ops may see the state, or its memory may be too small (`shared-state`).
        """
        if tfl.keeps_state(op, value):
            state = self._add(value, self._unique(self._name_of(value)), 0)
            # Others that use the value don't mean the state, which the operator changes.
            if known is None:
                del self._index[value]
            else:
                self._index[value] = known
        elif known is not None and tfl.is_own_state(value):
            state = known
        else:
            raise error_at(
                op,
                "shared-state",
                "its state is not a tensor of its own that is allocated at each run",
                "run the pass separate-state",
            )
        self._tensors[state[0]]["is_variable"] = True
        return state

    def _intermediates(self, op: tfl.TFLOp) -> tuple[int, ...]:
        """Adds the internal tensors of a kernel; returns their indices."""
        indices = []
        for item in tfl_file.dictionaries(op.attributes[tfl_file.INTERMEDIATES]):
            value_type = item.data.get("tensor") if isinstance(item, DictionaryAttr) else None
            if value_type is None:
                indices.append(-1)
                continue
            indices.append(len(self._tensors))
            _, own, element = self._shared.tensor_type(value_type)
            self._tensors.append(self._with_carried({"name": "", **own}, item))
            if isinstance(element, quant.BlockedType):
                self._add_parts(self._tensors[-1], element, item)
        return tuple(indices)

    def _constant(
        self, value: Value, user: str, user_op: tfl.TFLOp | None = None, position: int = 0, is_state: bool = False
    ) -> tuple[int, Operand]:
        """Returns the tensor of an operand that no operator computes.

        Args:
            value: The operand.
            user: The name of the operator that uses it.
            user_op: The operator.
            position: The operand's index.
            is_state: Whether the operator overwrites it.
        """
        if tfl.is_absent(value):
            return _ABSENT
        op = value.owner
        if isinstance(op, tfl.TFLOp) and op.name == _EXTERNAL:
            return self._add(value, self._unique(self._name_of(value)), 0, _carried(op, 0))
        constant = _held(value)
        if constant is None:
            self._shared.problems.append(_without_value(op, user))
            return _ABSENT
        assert isinstance(op, Operation)
        if is_state or (op.attributes and tfl_file.IS_VARIABLE in op.attributes):
            # A file's own variable is zero at first; the runtime allocates it.
            entry = self._add(value, self._unique(self._name_of(value)), 0, _carried(op, 0))
            self._tensors[entry[0]]["is_variable"] = True
            return entry
        buffer = self._buffer(constant, value, user)
        known = None if self._exact else self._constants.get((buffer, value.type))
        if known is None:
            wanted = self._shared.naming.constant(op.location, user_op, position)
            known = self._add(value, self._unique(wanted), buffer, _carried(op, 0) if op.attributes else None)
        self._constants[buffer, value.type] = self._index[value] = known
        return known

    def _buffer(self, constant: Constant, value: Value, user: str) -> int:
        buffers = self._shared.buffers
        known = len(buffers.entries)
        index = buffers.add(constant, self._shared.tensor_type(value.type)[0].type)
        if len(buffers.entries) > known:
            self._shared.bytes_by_operator[user] += buffers.entries[-1].size
        return index

    def _returned(self, value: Value, name: str) -> int:
        constant = None if self._exact else _whole(value)
        if constant is None:
            entry = self._index.get(value)
            return entry[0] if entry is not None else self._constant(value, "func.return")[0]
        # A returned constant has a tensor of its own, with the output's name.
        name = self._unique(name or self._name_of(value))
        return self._add(value, name, self._buffer(constant, value, "func.return"))[0]

    def _refuse(self, op: Operation) -> None:
        self._shared.problems.append(
            Diagnostic("unsupported-op", "LiteRT has no operator for it", op=op.name, node=node_of(op.location))
        )

    def _name_of(self, value: Value) -> str:
        owner = value.owner
        return self._shared.naming.constant(owner.location) if isinstance(owner, Operation) else "constant"

    def signature_name(self, index: int) -> str:
        """Returns a tensor's name in signatures, which is unique in the subgraph only."""
        name = str(self._tensors[index]["name"])
        return self._own_names.get(name, name)

    def places(self) -> Iterator[tuple[Value, tuple[int, str]]]:
        """Yields values with the index and the name of the tensor that each is in."""
        for value, (index, _) in self._index.items():
            yield value, (index, str(self._tensors[index]["name"]))

    def tree(self) -> dict[str, Any]:
        """Returns the `SubGraph` table."""
        return {
            "tensors": self._tensors,
            "inputs": tuple(self.inputs),
            "outputs": tuple(self.outputs),
            "operators": self._operators,
            "name": self.name,
        }


def _whole(value: Value) -> Constant | None:
    """Returns the contents of a constant's buffer if those are all its elements, quantised or not."""
    op = value.owner
    if isinstance(op, tfl.TFLOp) and op.name == _QUANTIZED:
        stored = op.properties.get("value")
        return stored if tensor_data.is_constant(stored) else None
    return tensor_data.constant_of(value)


def _held(value: Value) -> Constant | None:
    """Returns the contents of a constant's buffer; of a sparse one only the stored elements."""
    op = value.owner
    if isinstance(op, tfl.TFLOp) and op.name == _SPARSE:
        stored = op.properties.get("value")
        return stored if tensor_data.is_constant(stored) else None
    return _whole(value)


def _without_value(op: Operation | object, user: str) -> Diagnostic:
    """Returns the diagnostic of an operand that neither an operator nor a constant of the file computes."""
    if isinstance(op, tfl.TFLOp) and op.op_name in tfl.HELD:
        return Diagnostic(
            "missing-value",
            "the constant's value is missing from the text",
            op.name,
            node_of(op.location),
            hint="include all constants in the text",
        )
    return Diagnostic("invalid-module", "it uses a value that no op computes", op=user)


def _carried(op: Operation, position: int) -> Attribute | None:
    """Returns the fields that an op has for a result's tensor."""
    if tfl_file.TENSORS not in op.attributes:
        return None
    dictionaries = tfl_file.dictionaries(op.attributes[tfl_file.TENSORS])
    return dictionaries[position] if position < len(dictionaries) else None


def symbol_name(function: FuncOp) -> str:
    return function.sym_name
