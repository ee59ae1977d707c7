"""One call of an operator, as a module and as a file, and its twin on floats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeGuard

import numpy as np

from benchmarks.kernel_probe.tensors import Array, Tensor
from tfconvert.exporters.tflite.model import export
from tfconvert.schema.dialects import tensor_data, tfl, tfl_file, types
from tfconvert.schema.dialects.func import FuncOp, ReturnOp
from tfconvert.schema.dialects.tfl import call_of
from tfconvert.schema.ir.attributes import UNIT, ArrayAttr, DictionaryAttr
from tfconvert.schema.ir.block import Block, Region
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.types import FunctionType
from tfconvert.schema.ir.values import Value
from tfconvert.schema.tflite import kernels
from tfconvert.schema.tflite.versions import Call

# Operators whose result represents the same numbers as their operand: floats have no such operators.
COPIES = ("QUANTIZE", "DEQUANTIZE")


@dataclass(frozen=True, slots=True)
class Case:
    """A call to be tried."""

    operator: str  # Enumerator of `BuiltinOperator`.
    operands: Sequence[Tensor | None]  # The operands, `None` where one is absent.
    results: Sequence[Tensor]  # The results.
    options: Mapping[str, Any] = field(default_factory=dict)  # Fields of the options table.
    intermediates: Sequence[Tensor] = ()  # The tensors that the kernel has for itself.
    more: Sequence[Tensor] = ()  # Operands that only the twin has: kernels for floats don't accept all that others do.
    is_special: bool = False  # Whether the operands contain infinities and NaN.

    @property
    def op(self) -> tfl.TFLOp:
        """The op; its module is freed with it."""
        return self._build()[1]

    @property
    def module(self) -> ModuleOp:
        """The call as the only function of a module, `main`."""
        return self._build()[0]

    @property
    def call(self) -> Call:
        """The call as the rules on kernels see it."""
        return call_of(self.op)

    @property
    def key(self) -> tuple[str, str]:
        """The operator and the signature of the call."""
        return self.operator, kernels.signature(self.operator, self.call)

    @property
    def file(self) -> bytes:
        """The call as a file."""
        return export(self.module).to_bytes()

    @property
    def inputs(self) -> list[Array]:
        """The inputs of the file."""
        return [each.stored for each in self.operands if _is_input(each)] or [*map(np.zeros_like, self._addends)]

    @property
    def twin(self) -> Case:
        """The same operator on the real numbers that the quantized operands represent."""
        return Case(
            self.operator,
            [*(None if operand is None else operand.twin for operand in self.operands), *self.more],
            [result.twin for result in self.results],
            self.options,
        )

    @property
    def _addends(self) -> list[Array]:
        """Inputs that are added to the results of constants: XNNPACK can't run a model without inputs."""
        if any(map(_is_input, self.operands)):
            return []
        return [result.value for result in self.results if result.type == "f32"]

    def _build(self) -> tuple[ModuleOp, tfl.TFLOp]:
        block = Block(arg_types=[each.tensor_type for each in self.operands if _is_input(each)])
        given = iter(block.args)
        values = [next(given) if _is_input(operand) else _add(block, constant_op(operand)) for operand in self.operands]
        op = tfl.build(self.operator.lower(), values, [result.tensor_type for result in self.results], self.options)
        if self.intermediates:
            items = [DictionaryAttr.get({"tensor": each.tensor_type}) for each in self.intermediates]
            op.attributes[tfl_file.INTERMEDIATES] = ArrayAttr.get(items)
        block.add_op(op)
        results: list[Value] = list(op.results)
        for index, addend in enumerate(self._addends):
            kind = types.tensor(types.F32, addend.shape)
            operands = results[index], block.add_arg(kind)
            results[index] = _add(block, tfl.build("add", operands, [kind], {"pot_scale_int16": False}))
        block.add_op(ReturnOp.of(results))
        signature = FunctionType.get([each.type for each in block.args], [each.type for each in results])
        return ModuleOp.of([FuncOp.of("main", signature, Region(block))]), op


def _is_input(operand: Tensor | None) -> TypeGuard[Tensor]:
    return operand is not None and not operand.is_constant and not operand.is_variable


def constant_op(operand: Tensor | None) -> tfl.TFLOp:
    """Returns the op that holds an operand, or stands for an absent one."""
    if operand is None:
        return tfl.no_value()
    stored = tensor_data.of_array(operand.stored, None if operand.scales else operand.element)
    op = tfl.constant(stored, result_type=operand.tensor_type if operand.scales else None)
    if operand.is_variable:
        op.attributes[tfl_file.IS_VARIABLE] = UNIT
    return op


def _add(block: Block, op: tfl.TFLOp) -> Value:
    block.add_op(op)
    return op.results[0]


def random(seed: int) -> np.random.Generator:
    """Returns a generator of numbers that are the same every time."""
    return np.random.default_rng(seed)
