"""Constants in other forms: integers, 16-bit floats, trained integers. Each is created once for all uses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tfconvert.converter.ir.edit import erase
from tfconvert.converter.ir.extent import Extent, extent
from tfconvert.converter.ir.tf_builder import TFLBuilder
from tfconvert.converter.pipeline.pass_result import LayerReport
from tfconvert.converter.targets.litert.fake_quant import constant_behind
from tfconvert.converter.targets.litert.quantize import fake_quant, hybrid
from tfconvert.converter.targets.litert.quantize.exclusion import Exclusion
from tfconvert.converter.targets.litert.quantize.hybrid import ASYMMETRIC, Form, Weight, is_float_constant, size_of
from tfconvert.schema.diagnostics import NOTE, WARNING, Diagnostic
from tfconvert.schema.dialects import attributes as attrs
from tfconvert.schema.dialects import quant, tensor_data, tfl, types
from tfconvert.schema.dialects.boxes import Array
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.dialects.locations import found_at, node_of
from tfconvert.schema.dialects.quant import Uniform
from tfconvert.schema.dialects.tensor_data import Constant
from tfconvert.schema.fidelity import decibels
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.block import Block
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.locations import NameLoc
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import I8, IntegerType
from tfconvert.schema.ir.values import Use, Value


class QuantizedConstant:
    """A constant as integers.

    Attributes:
        stored: The integers.
        type: The quantized tensor type.
    """

    __slots__ = ("stored", "type")

    def __init__(self, stored: Constant, type: Attribute) -> None:
        self.stored = stored
        self.type = type


def symmetric_scales(low: Array, high: Array, bits: int) -> Array:
    """Returns the scales of symmetric integers, without the lowest one.

    A scale must be a normal number: kernels divide by it. Slices that are (almost) zero could have any scale. They get
    the largest of the others, since the scales of biases are computed from it.
    """
    largest: Array = np.maximum(np.abs(low), np.abs(high)).astype(np.float32)
    scales: Array = largest / np.float32(2 ** (bits - 1) - 1)
    is_normal = scales >= np.finfo(np.float32).tiny
    return np.where(is_normal, scales, scales.max() if is_normal.any() else np.float32(1))


def symmetric(found: Extent, axis: int | None, bits: int = 8) -> Uniform:
    """Returns the symmetric mapping for a weight of some extent.

    Args:
        found: The extent.
        axis: The axis along which each slice has its own scale, `None` for one scale.
        bits: Bits of an integer, 8 or 4.
    """
    scales = symmetric_scales(found.low, found.high, bits)
    return quant.Uniform(IntegerType.get(bits), tuple(scales.tolist()), (0,) * len(scales), axis)


def snr(found: Extent, uniform: Uniform, elements: int) -> float:
    """Returns the signal-to-noise ratio of a constant that is stored as integers, in dB.

    The error is assumed to be uniform over a step of each slice's scale.
    """
    noise = float(np.square(np.array(uniform.scales, np.float64)).mean()) / 12 * elements
    return decibels(found.power, noise)


def quantize_weight(constant: Constant, axis: int | None, bits: int = 8) -> QuantizedConstant | None:
    """Returns a weight as symmetric integers, `None` if an element is not finite; see `symmetric`."""
    found = extent(constant, axis)
    return quantize_symmetric(constant, symmetric(found, axis, bits)) if found.is_finite else None


def quantize_symmetric(constant: Constant, uniform: Uniform) -> QuantizedConstant:
    """Returns a weight as integers of a symmetric mapping, without the lowest integer unless it has limits."""
    limit = 2 ** (uniform.storage.width - 1) - 1
    low, high = uniform.limits or (-limit, limit)
    return quantize_constant(constant, uniform, low, high)


def quantize_constant(
    constant: Constant, uniform: Uniform, low: int | None = None, high: int | None = None
) -> QuantizedConstant:
    """Returns a constant of 32-bit floats as integers of a certain mapping, within limits; its storage's by default."""
    bits = uniform.storage.width
    low, high = -(2 ** (bits - 1)) if low is None else low, 2 ** (bits - 1) - 1 if high is None else high
    shape = tensor_data.as_handle(constant).shape
    arguments = (constant, _array(uniform.scales, np.float32), _array(uniform.zero_points, np.int32))
    stored = tensor_data.defer("quantize", arguments, shape, (uniform.axis, low, high), uniform.storage)
    uniform = uniform._replace(limits=None)
    return QuantizedConstant(stored, quant.tensor(uniform, shape))


def _array(values: tuple[Any, ...], dtype: Any) -> Constant:
    return tensor_data.of_array(np.array(values, dtype))


HALF = Form(16, dequantized=True)
"""16-bit floats, which operators get as 32-bit floats."""

_LARGEST_HALF = float(np.finfo(np.float16).max)

# The contents of a constant's buffer, and the constant's type.
_Stored = tuple[Constant, Attribute]


class StoredConstants:
    """The constants of a module in the forms that operators use instead of 32-bit floats.

    Attributes:
        counts: The number of constants of each form.
        layers: The first operator of each constant, with the constant's bytes.
        notes: The reasons why others stay floats, and losses of accuracy.
    """

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.layers: dict[tuple[Constant, Form], LayerReport] = {}
        self.notes: list[Diagnostic] = []
        self._values: dict[tuple[Value, Form], Value] = {}
        self._plains: dict[tuple[Value, Form], Value] = {}
        self._stored: dict[tuple[Constant, Form], _Stored | None] = {}
        self._replaced: dict[Value, None] = {}

    def can_be(self, value: Value, form: Form, user: Operation) -> bool:
        """Returns whether a constant can have a form; it can't if an element is not finite.

        Args:
            value: The constant, of 32-bit floats.
            form: The form.
            user: The operator that uses it, for notes.
        """
        constant, plain = tensor_data.constant_of(value), form._replace(dequantized=False)
        assert constant is not None
        key = (constant, plain)
        if key not in self._stored:
            self._stored[key] = self._half(constant, user) if form.bits == 16 else _integers(constant, plain)
            if self._stored[key] is None:
                self._note(user, f"a constant of {size_of(value)} elements stays a float: not all of them are finite")
        return self._stored[key] is not None

    def refuses(self, value: Value) -> bool:
        """Returns whether a constant can't have the form that an operator accepts."""
        constant = tensor_data.constant_of(value)
        return any(key is constant and stored is None for (key, _), stored in self._stored.items())

    def get(self, value: Value, form: Form) -> Value:
        """Returns a constant in a form that it can have."""
        known = self._values.get((value, form))
        if known is None:
            self.counts[str(form)] += 1
            self._describe(value, form)
            plain = self._plain(value, form._replace(dequantized=False))
            known = self._values[value, form] = _dequantized(value, plain) if form.dequantized else plain
        return known

    def store_all(self, weights: Mapping[tfl.TFLOp, Sequence[Weight]]) -> None:
        """Gives operators their weights in other forms, if all weights of an operator can have them."""
        for op, own in weights.items():
            if not all(self.can_be(op.operands[index], form, op) for index, form in own):
                continue
            for index, form in own:
                op.set_operand(index, self.get(op.operands[index], form))
                if not form.dequantized and ASYMMETRIC in tfl.option_fields(op.op_name):
                    op.properties[ASYMMETRIC] = attrs.boolean(True)

    def _describe(self, value: Value, form: Form) -> None:
        """Adds a constant to the report, unless it is already there."""
        constant, user = tensor_data.constant_of(value), next(iter(value.uses)).operation
        assert constant is not None
        elements = size_of(value)
        layer = LayerReport(
            node_of(user.location),
            _operator(user),
            str(form),
            bytes_before=4 * elements,
            bytes_after=-(-elements * form.bits // 8),
        )
        self.layers.setdefault((constant, form._replace(dequantized=False)), layer)

    def erase_unused(self) -> None:
        """Erases the float constants that are no longer used."""
        for value in self._replaced:
            if value.is_unused and isinstance(value.owner, Operation):
                erase(value.owner)
        self._replaced.clear()
        self._values.clear()
        self._plains.clear()

    def _plain(self, value: Value, form: Form) -> Value:
        """Returns a constant in a form before any `DEQUANTIZE`."""
        known = self._plains.get((value, form))
        if known is None:
            constant = tensor_data.constant_of(value)
            stored = self._stored[constant, form] if constant is not None else None
            assert stored is not None
            self._replaced[value] = None
            new = tfl.constant(stored[0], result_type=stored[1])
            known = self._plains[value, form] = _builder(value).insert(new).results[0]
        return known

    def _half(self, constant: Constant, user: Operation) -> _Stored | None:
        found = extent(constant)
        if not found.is_finite:
            return None
        largest = max(-float(found.low[0]), float(found.high[0]))
        if largest > _LARGEST_HALF:
            message = f"a constant has elements up to {largest:.3g}, 16-bit floats end at {_LARGEST_HALF:.0f}"
            self._note(user, message, WARNING, "exclude the operator if these elements matter")
        shape = tensor_data.as_handle(constant).shape
        stored = tensor_data.defer("half", (constant,), shape, element=types.F16)
        return stored, stored.type

    def _note(self, user: Operation, message: str, severity: str = NOTE, hint: str = "") -> None:
        self.notes.append(found_at(user, "inexact-weight", message, hint)._replace(severity=severity))


def _integers(constant: Constant, form: Form) -> _Stored | None:
    quantized = quantize_weight(constant, form.axis, form.bits)
    return None if quantized is None else (quantized.stored, quantized.type)


def _dequantized(value: Value, stored: Value) -> Value:
    """Returns the 32-bit floats of a constant in another form."""
    builder = _builder(value)
    builder.location = NameLoc.get(f"{node_of(builder.location) or 'constant'}/dequantized", builder.location)
    return builder.tfl("dequantize", (stored,), value.type)


def _builder(value: Value) -> TFLBuilder:
    owner = value.owner
    assert isinstance(owner, Operation)
    return TFLBuilder(owner)


MIN_ELEMENTS = 64
"""Constants of fewer elements stay 32-bit floats: they would save less than the operator and its tensor take."""


def store_float16(block: Block, exclusion: Exclusion, stored: StoredConstants) -> None:
    """Makes the constants of a block 16-bit floats where operators use them.

    Args:
        block: The block.
        exclusion: The operators whose constants stay as they are.
        stored: Creates the constants.
    """
    for op in tuple(block.ops):
        if op.name != f"{tfl.PREFIX}{tfl.PSEUDO_CONST}":
            continue
        value = op.results[0]
        if not is_float_constant(value) or size_of(value) < MIN_ELEMENTS:
            continue
        uses = [use for use in value.uses if _can_take_floats(use) and not exclusion.excludes(use.operation)]
        if uses and stored.can_be(value, HALF, uses[-1].operation):
            new = stored.get(value, HALF)
            for use in uses:
                use.operation.set_operand(use.index, new)


def _can_take_floats(use: Use) -> bool:
    """Returns whether an operand may be computed; a state's initial value and operands of custom kernels may not."""
    user = use.operation
    operator = user.operator if isinstance(user, tfl.TFLOp) and user.op_name != tfl.CUSTOM else None
    return operator is not None and use.index not in operator.variables


def store_trained_weights(function: FuncOp) -> int:
    """Stores the fake-quantized weights of hybrid operators as integers; returns the number of these operators."""
    count = 0
    for op in [op for op in function.body.block.ops if isinstance(op, tfl.TFLOp) and op.op_name in hybrid.ROWS]:
        row = hybrid.ROWS[op.op_name]
        found = {at: _uniform(op, row, op.operands[at]) for at in row.weights if tfl.has_operand(op, at)}
        # The kernels of recurrent operators need all of their weights as integers.
        if row.is_hybrid and found and None not in found.values():
            for at, uniform in found.items():
                assert uniform is not None
                _store(op, at, uniform)
            if hybrid.ASYMMETRIC in tfl.option_fields(op.op_name):
                op.properties[hybrid.ASYMMETRIC] = attrs.boolean(True)
            count += 1
    return count


def _uniform(op: tfl.TFLOp, row: hybrid.Row, value: Value) -> Uniform | None:
    """Returns the trained mapping of a weight if its hybrid kernel accepts it, or `None`."""
    uniform = fake_quant.trained_uniform(value)
    if uniform is None or constant_behind(value) is None or op.operands[0].element is not types.F32:
        return None
    if uniform.storage is not I8 or any(uniform.zero_points) or uniform.axis not in (None, row.axis):
        return None
    if uniform.axis is not None:
        return uniform if row.per_channel else None
    if not hybrid.is_grouped(op):
        return uniform
    count = (value.shape or ())[row.axis or 0]
    return uniform._replace(scales=uniform.scales * count, zero_points=(0,) * count, axis=row.axis)


def _store(op: tfl.TFLOp, at: int, uniform: Uniform) -> None:
    constant = constant_behind(op.operands[at])
    assert constant is not None, "checked before"
    made = quantize_symmetric(constant, uniform)
    stored = TFLBuilder(op).insert(tfl.constant(made.stored, result_type=made.type))
    op.set_operand(at, stored.results[0])


def why_none(module: ModuleOp, mode: str, exclusion: Exclusion, stored: StoredConstants) -> Diagnostic:
    """Returns a note with the reasons why no weight was quantized.

    Args:
        module: The module.
        mode: The mode of the quantization.
        exclusion: The operators whose constants stay floats.
        stored: The constants that were tried.
    """
    constants = [op.results[0] for op in module.walk() if op.name == f"{tfl.PREFIX}{tfl.PSEUDO_CONST}"]
    floats = [value for value in constants if hybrid.is_float_constant(value)]
    needed = MIN_ELEMENTS if mode == "float16" else hybrid.MIN_ELEMENTS
    large = [value for value in floats if hybrid.size_of(value) >= needed]
    if not floats:
        reason = "the model has no constants of 32-bit floats"
    elif not large:
        reason = f"the largest tensor has {max(map(hybrid.size_of, floats))} elements, {needed} are needed"
    else:
        reason = "; ".join(_reasons(large, exclusion, stored))
    return Diagnostic("nothing-quantized", f"quantized weights: none: {reason}", severity=NOTE)


def _reasons(large: Sequence[Value], exclusion: Exclusion, stored: StoredConstants) -> list[str]:
    """Returns why large constants stay floats."""
    infinite = [value for value in large if stored.refuses(value)]
    rest = [value for value in large if value not in infinite]
    excluded = [value for value in rest if all(exclusion.excludes(use.operation) for use in value.uses)]
    users = {use.operation for value in rest if value not in excluded for use in value.uses}
    told = [(len(infinite), "with elements that are not finite"), (len(excluded), "of excluded operators")]
    if users:
        names = ", ".join(sorted(set(map(_operator, users))))
        told.append((len(rest) - len(excluded), f"of operators that take them as floats only ({names})"))
    return [f"{count} tensor{'s'[: count > 1]} {which}" for count, which in told if count]


def _operator(op: Operation) -> str:
    if op.name == f"{tfl.PREFIX}{tfl.CUSTOM}":
        return str(tfl.attribute(op, tfl.CUSTOM_CODE))
    return op.op_name.upper() if isinstance(op, tfl.TFLOp) else "an output of the function"
