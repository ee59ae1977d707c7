"""One function as a subgraph: its tensors and operators."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, SSAValue

from exporters.tflite import operators
from exporters.tflite.buffers import Buffers
from exporters.tflite.names import Names
from exporters.tflite.operators import OperatorCodes, SubgraphIndex
from schema.diagnostics import Diagnostic
from schema.dialects import tensor_data, tfl, types
from schema.dialects.locations import node_of
from schema.dialects.tensor_data import Constant
from schema.tflite.versions import ABSENT, Operand

_ABSENT = (-1, ABSENT)

_MAX_DIMENSION = 2**31 - 1


class Shared:
    """What all subgraphs of a model have in common.

    Attributes:
        buffers: The constants.
        codes: The operators in use.
        bytes_by_operator: Bytes of constants by the operator that is the first to use them.
        problems: Why the model can't be exported.
    """

    def __init__(self) -> None:
        self.buffers = Buffers()
        self.codes = OperatorCodes()
        self.bytes_by_operator: Counter[str] = Counter()
        self.problems: list[Diagnostic] = []
        # By identity, since types are interned and hashing one takes longer than all else here.
        self._types: dict[int, tuple[Attribute, Operand, dict[str, Any]]] = {}

    def tensor_type(self, value_type: Attribute) -> tuple[Operand, dict[str, Any]]:
        """Returns a type as the version rules see it, and as fields of `Tensor`."""
        known = self._types.get(id(value_type))
        if known is None:
            known = self._types[id(value_type)] = (value_type, *self._describe(value_type))
        return known[1], known[2]

    def _describe(self, value_type: Attribute) -> tuple[Operand, dict[str, Any]]:
        row = types.from_mlir(types.element_of(value_type))
        if row is None or not row.tflite:
            self.problems.append(Diagnostic("unsupported-type", f"LiteRT has no tensors of {value_type}"))
            return ABSENT, {}
        shape = types.shape_of(value_type)
        fields: dict[str, Any] = {"type": row.tflite}
        if shape is not None:
            if max(shape, default=0) > _MAX_DIMENSION:
                self.problems.append(Diagnostic("absurd-shape", f"a tensor of shape {list(shape)} is beyond LiteRT"))
                shape = tuple(min(dim, _MAX_DIMENSION) for dim in shape)
            fields.update(shape=tuple(1 if dim < 0 else dim for dim in shape), has_rank=True)
            if not types.is_static(shape):
                fields["shape_signature"] = shape
        return Operand(row.tflite, shape), fields


class Subgraph:
    """The tensors and operators of one function.

    Attributes:
        name: The subgraph's name.
        inputs: Indices of the tensors that the function is given.
        outputs: Indices of the tensors that it returns.
    """

    def __init__(self, shared: Shared, function: FuncOp, name: str) -> None:
        self.name = name
        self.inputs: list[int] = []
        self.outputs: list[int] = []
        self._shared = shared
        self._function = function
        self._tensors: list[dict[str, Any]] = []
        self._operators: list[dict[str, Any]] = []
        self._index: dict[SSAValue, tuple[int, Operand]] = {}
        self._constants: dict[tuple[int, int], tuple[int, Operand]] = {}
        self._names = Names()

    def build(self, inputs: Sequence[str], outputs: Sequence[str], subgraph: SubgraphIndex) -> None:
        """Goes through the function.

        Args:
            inputs: Names of the inputs; those that are missing are called `arg0`, ...
            outputs: Names of the outputs; those that are missing are called as what computes them.
            subgraph: Finds the subgraphs that ops call.
        """
        block = self._function.body.block
        returned: Sequence[SSAValue] = block.last_op.operands if block.last_op is not None else ()
        reserved = self._reserve(block, inputs, returned, outputs)
        for argument in block.args:
            self.inputs.append(self._add(argument, reserved[argument], 0)[0])
        for op in block.ops:
            if not isinstance(op, tfl.TFLOp):
                if op.name != "func.return":
                    self._refuse(op)
            elif op.op_name not in (tfl.PSEUDO_CONST, tfl.NO_VALUE):
                self._operator(op, reserved, subgraph)
        for position, value in enumerate(returned):
            self.outputs.append(self._returned(value, outputs[position] if position < len(outputs) else ""))

    def _reserve(
        self, block: Block, inputs: Sequence[str], returned: Sequence[SSAValue], outputs: Sequence[str]
    ) -> dict[SSAValue, str]:
        """Gives the names of inputs and outputs out first: they are what the user sees."""
        reserved: dict[SSAValue, str] = {}
        for position, argument in enumerate(block.args):
            wanted = inputs[position] if position < len(inputs) else f"arg{position}"
            reserved[argument] = self._names.unique(wanted)
        for value, wanted in zip(returned, outputs, strict=False):
            if value not in reserved and tensor_data.constant_of(value) is None:
                reserved[value] = self._names.unique(wanted)
        return reserved

    def _add(self, value: SSAValue, name: str, buffer: int) -> tuple[int, Operand]:
        operand, fields = self._shared.tensor_type(value.type)
        self._tensors.append({**fields, "name": name, "buffer": buffer} if buffer else {**fields, "name": name})
        entry = self._index[value] = (len(self._tensors) - 1, operand)
        return entry

    def _operator(self, op: tfl.TFLOp, reserved: dict[SSAValue, str], subgraph: SubgraphIndex) -> None:
        name = str(tfl.attribute(op, tfl.CUSTOM_CODE)) if op.op_name == tfl.CUSTOM else op.op_name.upper()
        builtin = op.operator
        variables = builtin.variables if builtin is not None else ()
        operands = []
        for position, value in enumerate(op.operands):
            entry = self._index.get(value)
            if entry is None:
                entry = self._constant(value, name, position in variables)
            operands.append(entry)
        if op.op_name == "transpose_conv":
            # Its kernel tells by the number of operands whether there is a bias.
            operands = operands[:3] if operands[3:] == [_ABSENT] else operands
        wanted = node_of(op.location) or op.op_name
        results = []
        for position, result in enumerate(op.results):
            given = reserved.get(result) or self._names.unique(f"{wanted}:{position}" if position else wanted)
            results.append(self._add(result, given, 0))
        self._operators.append(operators.tree(op, self._shared.codes, operands, results, subgraph))

    def _constant(self, value: SSAValue, user: str, is_variable: bool) -> tuple[int, Operand]:
        """Returns the tensor of an operand that no operator computes."""
        if tfl.is_absent(value):
            return _ABSENT
        constant = tensor_data.constant_of(value)
        if constant is None:
            self._shared.problems.append(Diagnostic("invalid-module", "a value is used that nothing computes", op=user))
            return _ABSENT
        if is_variable:
            # State begins at zero; the runtime allocates it.
            entry = self._add(value, self._names.unique(_name_of(value)), 0)
            self._tensors[entry[0]]["is_variable"] = True
            return entry
        buffer = self._buffer(constant, value, user)
        entry = self._constants.get((buffer, id(value.type))) or self._add(
            value, self._names.unique(_name_of(value)), buffer
        )
        self._constants[buffer, id(value.type)] = self._index[value] = entry
        return entry

    def _buffer(self, constant: Constant, value: SSAValue, user: str) -> int:
        buffers = self._shared.buffers
        known = len(buffers.entries)
        index = buffers.add(constant, self._shared.tensor_type(value.type)[0].type)
        if len(buffers.entries) > known:
            self._shared.bytes_by_operator[user] += buffers.entries[-1].size
        return index

    def _returned(self, value: SSAValue, name: str) -> int:
        constant = tensor_data.constant_of(value)
        if constant is None:
            entry = self._index.get(value)
            return entry[0] if entry is not None else self._constant(value, "func.return", False)[0]
        # A constant that is returned has a tensor of its own, under the name that the output has.
        name = self._names.unique(name or _name_of(value))
        return self._add(value, name, self._buffer(constant, value, "func.return"))[0]

    def _refuse(self, op: Operation) -> None:
        self._shared.problems.append(
            Diagnostic("unsupported-op", "LiteRT has no operator for it", op=op.name, node=node_of(op.location))
        )

    def tensor_name(self, index: int) -> str:
        """Returns the name of a tensor."""
        return str(self._tensors[index]["name"])

    def tree(self) -> dict[str, Any]:
        """Returns the `SubGraph` table."""
        return {
            "tensors": self._tensors,
            "inputs": tuple(self.inputs),
            "outputs": tuple(self.outputs),
            "operators": self._operators,
            "name": self.name,
        }


def _name_of(value: SSAValue) -> str:
    owner = value.owner
    return (node_of(owner.location) if isinstance(owner, Operation) else "") or "constant"


def symbol_name(function: FuncOp) -> str:
    """Returns the name of a function."""
    name: StringAttr = function.sym_name
    return name.data
