"""Kernels: private functions that compute an op, or a fusion, from buffers into buffers.

A kernel reads its operands as tensors and writes the results to buffers that its caller allocated. Small tensors on the
host are passed as numbers, and small constants are inside the kernel.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from tfconvert.converter.targets.stablehlo.buffers.host import CONSTANT, FUSION
from tfconvert.schema.dialects import memref, types, upstream
from tfconvert.schema.dialects.func import FuncOp, ReturnOp, functions_of
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.attributes import UNIT, StringAttr
from tfconvert.schema.ir.block import Block, Region
from tfconvert.schema.ir.builder import OpBuilder
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import FunctionType, MemRefType
from tfconvert.schema.ir.values import Value

KERNEL = "dhlo.kernel"
"""The attribute with the contents of a kernel: one op, or a kind of fusion."""

# Maximum number of elements of constants inside kernels.
_INLINE = 16


def buffer_type(kind: Attribute) -> MemRefType:
    """Returns the buffer type of a tensor."""
    return MemRefType.get(types.element_of(kind), types.shape_of(kind) or ())


def is_inline(op: object) -> bool:
    """Returns whether an op is a constant that is copied into kernels."""
    if not isinstance(op, Operation) or op.name != CONSTANT:
        return False
    count = 1
    for size in op.results[0].shape or ():
        count *= size
    return count <= _INLINE


class Operands(NamedTuple):
    """The operands of a kernel.

    Attributes:
        buffers: The values that are in buffers.
        scalars: The values that are numbers on the host, with their counts.
        constants: The values that are small constants.
    """

    buffers: Sequence[Value]
    scalars: Mapping[Value, int]
    constants: Sequence[Value]


class Kernels:
    """The kernels of a module, without duplicates.

    Args:
        module: The module.
    """

    def __init__(self, module: ModuleOp) -> None:
        self._module = module
        self._names = set(functions_of(module))
        self._known: dict[str, str] = {}
        self._next: dict[str, int] = {}
        self.functions: list[FuncOp] = []

    def add(self, op: Operation, fused: FuncOp | None, operands: Operands) -> str:
        """Returns the name of the kernel of an op.

        Args:
            op: The op.
            fused: The function that the op calls, if it is the call of a fusion.
            operands: Its operands.
        """
        block = _body(op, fused, operands)
        kind = FunctionType.get(block.arg_types, ())
        kinds = op.attributes.get(FUSION) if fused is not None else None
        attributes = {KERNEL: kinds if isinstance(kinds, StringAttr) else StringAttr.get("op")}
        name = "fusion" if fused is not None else op.name.partition(".")[2]
        function = FuncOp.of(name, kind, Region(block), "private", attributes=attributes, location=op.location)
        text = str(function)
        if text not in self._known:
            self._known[text] = function.sym_name = self._free(name)
            self.functions.append(function)
        return self._known[text]

    def _free(self, name: str) -> str:
        found = name
        while found in self._names:
            number = self._next[name] = self._next.get(name, 0) + 1
            found = f"{name}_{number}"
        self._names.add(found)
        return found


def _body(op: Operation, fused: FuncOp | None, operands: Operands) -> Block:
    scalars = [(value, value.element) for value, count in operands.scalars.items() for _ in range(count)]
    arguments = [*(buffer_type(value.type) for value in operands.buffers), *(kind for _, kind in scalars)]
    outputs = [buffer_type(result.type) for result in op.results]
    block = Block(arg_types=[*arguments, *outputs])
    builder = OpBuilder.at_block_end(block, op.location)
    tensors: dict[Value, Value] = {}
    for value, argument in zip(operands.buffers, block.args, strict=False):
        tensors[value] = builder.insert(memref.build("bufferization.to_tensor", (argument,), (value.type,))).results[0]
    at = len(operands.buffers)
    for value, count in operands.scalars.items():
        given = block.args[at : at + count]
        at += count
        tensors[value] = builder.insert(upstream.build("tensor.from_elements", given, (value.type,))).results[0]
    for value in operands.constants:
        assert isinstance(value.owner, Operation)
        tensors[value] = builder.insert(value.owner.clone()).results[0]
    results = _inlined(builder, op, fused, tensors) if fused is not None else builder.insert(op.clone(tensors)).results
    for result, target in zip(results, block.args[len(arguments) :], strict=True):
        builder.insert(
            memref.build("bufferization.materialize_in_destination", (result, target), (), {"writable": UNIT})
        )
    builder.insert(ReturnOp.of())
    return block


def _inlined(builder: OpBuilder, call: Operation, fused: FuncOp, tensors: Mapping[Value, Value]) -> Iterable[Value]:
    mapping: dict[Value, Value] = {
        argument: tensors[value] for argument, value in zip(fused.args, call.operands, strict=True)
    }
    for op in fused.body.block.ops:
        if isinstance(op, ReturnOp):
            return [mapping[value] for value in op.operands]
        builder.insert(op.clone(mapping))
    return ()
