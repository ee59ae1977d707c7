"""Pass `quantize-io`: makes inputs and outputs integers, so that callers need not convert them.

Before:

    func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> attributes {tfl.ranges = array<f32: -64.0, 63.5>} {
      %0 = "tfl.quantize"(%x) : (tensor<4xf32>) -> tensor<4x!quant.uniform<i8:f32, 0.5>>
      %1 = "tfl.relu"(%0) : (tensor<4x!quant.uniform<i8:f32, 0.5>>) -> tensor<4x!quant.uniform<i8:f32, 0.25:-128>>
      %2 = "tfl.dequantize"(%1) : (tensor<4x!quant.uniform<i8:f32, 0.25:-128>>) -> tensor<4xf32>
      func.return %2 : tensor<4xf32>
    }

After:

    func.func @main(%x: tensor<4x!quant.uniform<i8:f32, 0.5>>) -> tensor<4x!quant.uniform<i8:f32, 0.25:-128>> {
      %0 = "tfl.relu"(%x) : (tensor<4x!quant.uniform<i8:f32, 0.5>>) -> tensor<4x!quant.uniform<i8:f32, 0.25:-128>>
      func.return %0 : tensor<4x!quant.uniform<i8:f32, 0.25:-128>>
    }

Inputs and outputs of other types than 32-bit floats stay. Integers without a sign are those with one, moved by 128: an
operator at each end moves them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import ClassVar

from tfconvert.converter.ir.edit import erase, update_function_type
from tfconvert.converter.ir.extent import extent
from tfconvert.converter.ir.interface import entry_functions
from tfconvert.converter.ir.tf_builder import TFLBuilder
from tfconvert.converter.pipeline.pass_result import PassResult
from tfconvert.converter.targets.litert.fake_quant import constant_behind
from tfconvert.converter.targets.litert.quantize import weights
from tfconvert.converter.targets.litert.quantize.candidates import is_float
from tfconvert.converter.targets.litert.quantize.observers import Range
from tfconvert.converter.targets.litert.quantize.parameters import drop_ranges, range_of, uniform_of
from tfconvert.schema.diagnostics import ConversionError, error
from tfconvert.schema.dialects import quant, tfl, types
from tfconvert.schema.dialects.func import FuncOp, defined_functions
from tfconvert.schema.dialects.quant import Uniform, UniformType
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import I8, I16, IntegerType, Signedness
from tfconvert.schema.ir.values import OpResult, Value
from tfconvert.settings.quantization import Io, Quantize

_UNSIGNED = IntegerType.get(8, Signedness.UNSIGNED)
_QUANTIZE, _DEQUANTIZE = "tfl.quantize", "tfl.dequantize"


_INT8 = Quantize("int8", io="int8")


@dataclass(frozen=True, slots=True)
class QuantizeIo:
    """Quantizes float inputs, outputs or both."""

    quantize: Quantize = _INT8  # How to quantize; `io` is the integer type.
    name: ClassVar[str] = "quantize-io"

    def apply(self, module: ModuleOp) -> PassResult:
        """Rewrites the entry functions; returns the numbers of changed inputs and outputs."""
        functions = list(defined_functions(module).values())
        counts: Counter[str] = Counter()
        if self.quantize.has_integer_ends:
            for function in (each for each in entry_functions(module) if not each.is_declaration):
                counts += _Boundary(function, self.quantize).rewrite()
                update_function_type(function)
        for function in functions:
            for op in (function, *function.body.block.ops):
                drop_ranges(op)
        return PassResult(counts)


class _Boundary:
    """One function's inputs and outputs, and their new types."""

    def __init__(self, function: FuncOp, quantize: Quantize) -> None:
        self._function = function
        self._taken, self._given = quantize.ends
        self._keeps_floats = quantize.trained_only or quantize.float_ends

    def rewrite(self) -> Counter[str]:
        counts: Counter[str] = Counter()
        if self._taken != "float32":
            counts["inputs"] = self._rewrite_inputs()
        if self._given != "float32":
            counts["outputs"] = self._rewrite_outputs()
        return counts

    def _rewrite_inputs(self) -> int:
        inputs = [
            argument
            for argument in self._function.body.block.args
            if is_float(argument) and not (self._keeps_floats and self._has_floats(argument))
        ]
        for argument in inputs:
            self._input(argument)
        return len(inputs)

    def _rewrite_outputs(self) -> int:
        end = self._function.body.block.last_op
        assert end is not None
        outputs = [
            index
            for index, value in enumerate(end.operands)
            if is_float(value) and not (self._keeps_floats and not _is_dequantized(value, _storage(self._given)))
        ]
        for index in outputs:
            value = end.operands[index]
            end.set_operand(index, self._output(end, value))
            if isinstance(value, OpResult) and value.op.name == _DEQUANTIZE and value.is_unused:
                erase(value.op)
        return len(outputs)

    @staticmethod
    def _has_floats(argument: Value) -> bool:
        """Returns whether an input is used as floats or not at all."""
        users = [use.operation.name for use in argument.uses]
        return not users or any(name != _QUANTIZE for name in users)

    def _input(self, argument: Value) -> None:
        converted = [use.operation for use in argument.uses if use.operation.name == _QUANTIZE]
        elements = [op.results[0].element for op in converted]
        known = [element.data for element in elements if isinstance(element, UniformType)]
        # Numbers that are clipped at the input are lost for all uses.
        widest = max(known, key=lambda uniform: uniform.scales[0], default=None)
        uniform = widest or self._from_range(argument, "input", self._taken)
        inner = _tensor(argument, uniform)
        users = [use.operation for use in argument.uses]
        is_unsigned = self._taken == "uint8"
        argument.type = _tensor(argument, _unsigned(uniform)) if is_unsigned else inner
        builder = TFLBuilder.at_block_begin(self._function.body.block)
        value: Value = builder.tfl("quantize", (argument,), inner) if is_unsigned else argument
        others = [op for op in users if op.name != _QUANTIZE]
        if others:
            floats = builder.tfl("dequantize", (value,), types.tensor(types.F32, types.shape_of(inner)))
        for op in others:
            for index, operand in enumerate(op.operands):
                if operand is argument:
                    op.set_operand(index, floats)
        for op in converted:
            if op.results[0].type is inner:
                op.results[0].replace_all_uses_with(value)
                erase(op)
            else:
                op.set_operand(0, value)

    def _output(self, end: Operation, value: Value) -> Value:
        builder = TFLBuilder(end)
        storage = _storage(self._given)
        if isinstance(value, OpResult) and _is_dequantized(value, storage):
            found = value.op.operands[0]
            builder.location = value.op.location
        elif (constant := constant_behind(value)) is not None:
            seen = Range.of(extent(constant))
            if not seen.is_finite:
                raise _unknown(self._function, "output", "it is a constant with elements that are not finite")
            made = weights.quantize_constant(constant, uniform_of(seen, storage))
            found = builder.insert(tfl.constant(made.stored, result_type=made.type)).results[0]
        else:
            found = builder.tfl("quantize", (value,), _tensor(value, self._from_range(value, "output", self._given)))
        if self._given != "uint8":
            return found
        element = found.element
        assert isinstance(element, UniformType)
        return builder.tfl("quantize", (found,), _tensor(found, _unsigned(element.data)))

    def _from_range(self, value: Value, what: str, io: Io) -> Uniform:
        seen = range_of(value)
        if seen is None or not seen.is_finite:
            raise _unknown(self._function, what, "no sample has shown its range")
        return uniform_of(seen, _storage(io))


def _storage(io: Io) -> IntegerType:
    return I16 if io == "int16" else I8


def _is_dequantized(value: Value, storage: IntegerType) -> bool:
    """Returns whether a value is dequantized from integers of a type."""
    if not isinstance(value, OpResult) or value.op.name != _DEQUANTIZE:
        return False
    element = value.op.operands[0].element
    return isinstance(element, UniformType) and element.storage is storage


def _tensor(like: Value, uniform: Uniform) -> Attribute:
    return quant.tensor(uniform, like.shape)


def _unsigned(uniform: Uniform) -> Uniform:
    return uniform._replace(storage=_UNSIGNED, zero_points=tuple(zero + 128 for zero in uniform.zero_points))


def _unknown(function: FuncOp, what: str, why: str) -> ConversionError:
    message = f"an {what} of {function.sym_name!r} can't be integers: {why}"
    return error("unknown-range", message, hint="pass samples, or leave `io` out")
