"""Quantizes a function by its plan, and inserts conversions between integers and floats or other integers."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np

from tfconvert.converter.ir.edit import replace_op
from tfconvert.converter.ir.tf_builder import TFLBuilder
from tfconvert.converter.pipeline.pass_result import FLOAT, LayerReport
from tfconvert.converter.targets.litert.fake_quant import constant_behind
from tfconvert.converter.targets.litert.quantize import fake_quant, lstm, weights
from tfconvert.converter.targets.litert.quantize.candidates import Settings, activations, is_constant, is_float
from tfconvert.converter.targets.litert.quantize.hybrid import size_of
from tfconvert.converter.targets.litert.quantize.observers import Range
from tfconvert.converter.targets.litert.quantize.parameters import range_of_integers
from tfconvert.converter.targets.litert.quantize.plan import Plan
from tfconvert.converter.targets.litert.quantize.rules import Rule
from tfconvert.converter.targets.litert.quantize.variables import accessed
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.dialects import attributes, quant, tensor_data, tfl, types
from tfconvert.schema.dialects.boxes import Array
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.dialects.locations import error_at, node_of
from tfconvert.schema.dialects.quant import Uniform
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import I8, I16, IntegerType
from tfconvert.schema.ir.values import BlockArgument, OpResult, Value

# The largest integer of a bias, so that sums of products don't overflow.
_MAX_BIAS = float(2**30)

_WIDE_ONLY = "its kernel takes 64-bit biases only"

_UNBOUNDED = Range(math.nan, math.nan)

# Operators whose 16-bit kernels require scales that are powers of two, unless an option is set.
_SCALED_BY_OPTION = frozenset(("tfl.add", "tfl.sub"))


class Rewriting:
    """One function's rewriting.

    Attributes:
        counts: How many conversions and constants were made.
        layers: The report's entry for each op with floats.

    Args:
        function: The function.
        plan: Its plan.
        settings: How to quantize.
    """

    def __init__(self, function: FuncOp, plan: Plan, settings: Settings) -> None:
        self.counts: Counter[str] = Counter()
        self.layers: list[LayerReport] = []
        self._function = function
        self._plan = plan
        self._settings = settings
        self._converted: dict[tuple[Value, Uniform | None], Value] = {}
        self._constants: dict[tuple[Value, Uniform], Value] = {}

    def run(self) -> None:
        plan = self._plan
        for op in [op for op in self._function.body.block.ops if op.name not in tensor_data.CONSTANT_OPS]:
            rule = plan.quantized.get(op)
            if rule is not None:
                if not fake_quant.is_fake_quant(op):
                    self.layers.append(self._layer(op))
                self._quantize_constants(op, rule)
            elif op in plan.reasons:
                self.layers.append(LayerReport(node_of(op.location), _operator(op), FLOAT, plan.reasons[op]))
            for index, value in enumerate(op.operands):
                self._convert_operand(op, index, value)
        self._finish_layers()
        for op in plan.quantized:
            self._retype(op)
        for op in list(self._function.body.block.ops):
            if fake_quant.is_fake_quant(op) and self._is_done(op):
                replace_op(op, op.operands[0])
        self.counts["quantized"] += len(plan.quantized)

    def _is_done(self, op: Operation) -> bool:
        """Returns whether integers round as an op would, or its operand stays float, which is more precise."""
        is_between_floats = not self._settings.trained_only and not is_constant(op.results[0])
        return op in self._plan.quantized or is_between_floats

    def _retype(self, op: Operation) -> None:
        """Sets the types of an op's results and of the variable that it accesses."""
        for result in op.results:
            uniform = self._plan.uniform(result)
            if uniform is not None:
                result.type = quant.tensor(uniform, result.shape)
        stored = self._settings.variables.uniform(op)
        if stored is not None:
            shape = accessed(op).shape
            op.operands[0].type = types.resource_of(quant.tensor(stored, shape))
        if self._settings.storage is I16 and op.name in _SCALED_BY_OPTION:
            op.properties = {**op.properties, "pot_scale_int16": attributes.boolean(False)}

    def _layer(self, op: Operation) -> LayerReport:
        """Returns the report's entry for an op, without its weight."""
        form = f"int{self._settings.storage.width}"
        uniform = next((found for result in op.results if (found := self._plan.uniform(result)) is not None), None)
        seen = range_of_integers(uniform) if uniform is not None else _UNBOUNDED
        keeps_wide = bool(self._plan.quantized[op].weights) and self._has_wide_sums(op)
        reason = _WIDE_ONLY if keeps_wide and not self._settings.has_wide_sums else ""
        return LayerReport(node_of(op.location), _operator(op), form, reason, low=seen.low, high=seen.high)

    def _finish_layers(self) -> None:
        """Quantizes the states of LSTMs; one operator may create those of several."""
        cells = {op: lstm.cell_uniform(op) for op, rule in self._plan.quantized.items() if rule.others}
        for op, cell in cells.items():
            output = self._plan.uniform(op.results[0])
            assert output is not None, "the op is quantized"
            assert cell is not None, "the op is quantized"
            lstm.finish(op, output, cell)

    def _convert_operand(self, op: Operation, index: int, value: Value) -> None:
        """Converts an activation to the type that an op expects."""
        if not is_float(value) or is_constant(value):
            return
        has, wants = self._plan.uniform(value), self._plan.operand_uniform(op, index)
        if has != wants:
            op.set_operand(index, self._conversion(value, wants))

    def _conversion(self, value: Value, wants: Uniform | None) -> Value:
        """Returns a value in another mapping, or as floats."""
        known = self._converted.get((value, wants))
        if known is None:
            builder = _after(value)
            if wants is None:
                known = builder.tfl("dequantize", (value,), value.type)
                self.counts["dequantize"] += 1
            else:
                known = builder.tfl("quantize", (value,), quant.tensor(wants, value.shape))
                self.counts["quantize"] += 1
            self._converted[value, wants] = known
        return known

    def _quantize_constants(self, op: Operation, rule: Rule) -> None:
        for index in activations(op, rule):
            value = op.operands[index]
            if is_constant(value):
                uniform = self._plan.operand_uniform(op, index)
                assert uniform is not None
                op.set_operand(index, self._constant(value, uniform))
        for weight, bias in rule.weights:
            if tfl.has_operand(op, weight):
                self._quantize_weight(op, rule, weight, bias)
        for index in lstm.peepholes(op) if rule.others else ():
            uniform = self._weight_uniform(op, index, bits=16)
            op.set_operand(index, self._constant(op.operands[index], uniform, is_weight=True))

    def _constant(self, value: Value, uniform: Uniform, *, is_weight: bool = False) -> Value:
        """Returns a constant as integers of some mapping."""
        known = self._constants.get((value, uniform))
        if known is None:
            constant = constant_behind(value)
            assert constant is not None, "checked by the plan"
            make = weights.quantize_symmetric if is_weight else weights.quantize_constant
            made = make(constant, uniform)
            known = _after(value).insert(tfl.constant(made.stored, result_type=made.type)).results[0]
            self._constants[value, uniform] = known
        return known

    def _quantize_weight(self, op: Operation, rule: Rule, index: int, bias_index: int | None) -> None:
        """Quantizes an op's weight and bias, the bias with the scales of the products."""
        value = op.operands[index]
        uniform = self._weight_uniform(op, index)
        if bias_index is not None:
            data = self._plan.operand_uniform(op, activations(op, rule)[0])
            assert data is not None, "the op is quantized"
            bias = _bias(op, bias_index)
            if bias is not None:
                if not np.isfinite(bias).all():
                    raise _non_finite(op, "bias")
                sums = 0.0 if self._has_wide_sums(op) else self._minimum_weight_scale(op, data.scales[0])
                if rule.weight is not None and _MAX_BIAS * data.scales[0] * min(uniform.scales) < np.abs(bias).max():
                    bias = self._moved_bias(op, rule, bias, data)
                uniform = self._with_minimum_scales(uniform, bias, data.scales[0], sums)
            elif rule.needs_bias:
                bias = np.zeros((value.shape or ())[rule.axis or 0])
            if bias is not None and not bias.any() and not rule.needs_bias and self._settings.storage is I8:
                absent = TFLBuilder(op).insert(tfl.no_value()).results[0]
                op.set_operands([*op.operands[:bias_index], absent, *op.operands[bias_index + 1 :]])
            elif bias is not None:
                self._set_bias(op, bias_index, bias, np.float32(data.scales[0]) * np.array(uniform.scales, np.float32))
        op.set_operand(index, self._constant(value, uniform, is_weight=True))

    def _weight_uniform(self, op: Operation, index: int, bits: int | None = None) -> Uniform:
        uniform, snr = self._plan.weight(op, index, bits)
        if uniform is None:
            raise _non_finite(op, "weight")
        self._describe_weight(op.operands[index], uniform, snr)
        return uniform

    def _describe_weight(self, value: Value, uniform: Uniform, snr: float) -> None:
        """Adds the weight to the current layer's entry."""
        layer, elements, bits = self.layers[-1], size_of(value), uniform.storage.width
        form = f"{layer.form} x int{bits}" + (" per channel" if uniform.axis is not None else "")
        # An LSTM has several; the worst counts.
        self.layers[-1] = layer._replace(
            form=layer.form if layer.bytes_before else form,
            weight_snr=min(layer.weight_snr, snr) if layer.bytes_before else snr,
            bytes_before=layer.bytes_before + 4 * elements,
            bytes_after=layer.bytes_after + -(-elements * bits // 8),
        )

    def _moved_bias(self, op: Operation, rule: Rule, bias: Array, data: Uniform) -> Array:
        """Returns a bias without what moves results still further beyond the ends of their integers, such as a mask."""
        assert rule.weight is not None
        constant, result = constant_behind(op.operands[rule.weight]), self._plan.uniform(op.results[0])
        assert constant is not None, "checked by the plan"
        assert result is not None, "the op is quantized"
        numbers = tensor_data.to_array(constant)
        channels = np.moveaxis(np.abs(numbers), rule.axis or 0, 0).reshape(len(bias), -1)
        furthest = channels.sum(1, dtype=np.float64) * max(map(abs, range_of_integers(data)))
        low, high = range_of_integers(result)
        return np.clip(bias, low - furthest, high + furthest)

    def _with_minimum_scales(self, weight: Uniform, bias: Array, data_scale: float, minimum_scale: float) -> Uniform:
        """Returns a weight's mapping, with larger scales for channels whose biases would overflow."""
        scales = np.array(weight.scales, np.float64)
        minimum = np.maximum(np.abs(bias.astype(np.float64)) / (data_scale * _MAX_BIAS), minimum_scale)
        minimum = minimum if len(scales) > 1 else minimum.max(initial=0, keepdims=True)
        if (scales >= minimum).all():
            return weight
        self.counts["weights made coarser for large biases"] += 1
        return weight._replace(scales=tuple(np.maximum(scales, minimum).astype(np.float32).tolist()))

    def _has_wide_sums(self, op: Operation) -> bool:
        """Returns whether an op's bias and its sums of products have 64 bits."""
        if self._settings.storage is not I16:
            return False
        assert isinstance(op, tfl.TFLOp)
        return self._settings.has_wide_sums or tfl.SUMS not in tfl.option_fields(op.op_name)

    def _minimum_weight_scale(self, op: Operation, data_scale: float) -> float:
        """Returns the minimum scale of a weight, so that sums of products fit into 32 bits."""
        result = self._plan.uniform(op.results[0])
        assert result is not None, "the op is quantized"
        return 0.0 if self._settings.storage is not I16 else result.scales[0] / (data_scale * 2.0**I16.width)

    def _set_bias(self, op: Operation, index: int, bias: Array, scales: Array) -> None:
        """Gives an op a bias of integers."""
        is_wide = self._has_wide_sums(op)
        if self._settings.storage is I16 and not is_wide:
            op.properties = {**op.properties, tfl.SUMS: attributes.string("INT32")}
        stored = np.rint(bias.astype(np.float64) / scales.astype(np.float64)).astype(np.int64 if is_wide else np.int32)
        axis = None if len(scales) == 1 else 0
        uniform = Uniform(IntegerType.get(64 if is_wide else 32), tuple(scales.tolist()), (0,) * len(scales), axis)
        result_type = quant.tensor(uniform, stored.shape)
        constant = TFLBuilder(op).insert(tfl.constant(tensor_data.of_array(stored), result_type=result_type))
        op.set_operands([*op.operands[:index], constant.results[0], *op.operands[index + 1 :]])


def _non_finite(op: Operation, what: str) -> ConversionError:
    return error_at(
        op, "non-finite-weight", f"its {what} has elements that are not finite", "exclude the op, or fix the model"
    )


def _bias(op: Operation, index: int) -> Array | None:
    if not tfl.has_operand(op, index):
        return None
    constant = constant_behind(op.operands[index])
    assert constant is not None, "checked by the plan"
    return tensor_data.to_array(constant)


def _operator(op: Operation) -> str:
    return op.name.removeprefix(tfl.PREFIX).upper()


def _after(value: Value) -> TFLBuilder:
    """Returns a builder right after a value's definition."""
    if isinstance(value, OpResult):
        builder = TFLBuilder(value.op.next_op)
        builder.location = value.op.location
        return builder
    assert isinstance(value, BlockArgument)
    return TFLBuilder.at_block_begin(value.block)
