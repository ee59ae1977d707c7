"""Replaces operators that the kernels don't take by forms of them that they do, if there is one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from tfconvert.converter.ir import edit
from tfconvert.converter.ir.tf_builder import TFLBuilder
from tfconvert.converter.targets.litert.fitting import along_axes, products
from tfconvert.converter.targets.litert.fitting.form import Form, Steps
from tfconvert.converter.targets.litert.kernel_outcomes import HIGHEST_RANK
from tfconvert.schema.dialects import tensor_data, tfl, types
from tfconvert.schema.dialects.tensor_data import Array
from tfconvert.schema.dialects.tfl_calls import call_of
from tfconvert.schema.dialects.types import Shape
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.types import IntegerType, Signedness
from tfconvert.schema.ir.values import Value
from tfconvert.schema.tflite import kernels
from tfconvert.schema.tflite.kernel_conditions import is_plain
from tfconvert.schema.tflite.versions import Call, Operand

_REDUCTIONS = ("sum", "mean", "reduce_max", "reduce_min")

FORMS: Mapping[str, Callable[[tfl.TFLOp], Form | None]] = {
    **dict.fromkeys(_REDUCTIONS, along_axes.reduction),
    "batch_matmul": products.matrices,
    "concatenation": along_axes.concatenation,
    "fully_connected": products.dense,
    **dict.fromkeys(("pad", "padv2"), along_axes.pad),
    "softmax": along_axes.softmax,
    "split": along_axes.split,
}
"""Operator -> its form with fewer dimensions; other kernels have no limit, or only one for what nothing emits."""

STEPS: Mapping[str, Callable[[tfl.TFLOp], Steps | None]] = {
    **dict.fromkeys(_REDUCTIONS, along_axes.reductions),
    **dict.fromkeys(("pad", "padv2"), along_axes.pads),
}
"""Operator -> the two steps in which it can be done, where too many of its dimensions are unlike."""

_U8, _U16, _U32 = (IntegerType.get(width, Signedness.UNSIGNED) for width in (8, 16, 32))

WIDER: Mapping[Attribute, Attribute] = {
    types.F16: types.F32,
    types.BF16: types.F32,
    types.I1: types.I8,
    types.I8: types.I32,
    _U8: types.I32,
    types.I16: types.I32,
    _U16: types.I32,
    _U32: types.I64,
}
"""Element type -> the one that it is computed in; the low bits of a result are the narrow type's."""


def fit(op: tfl.TFLOp, in_steps: bool = True) -> str:
    """Replaces an operator that the kernels don't take by a form that they do; returns how, empty if there is none.

    Args:
        op: The operator, not in a form that is right.
        in_steps: Whether it may be done as two operators, one after the other.
    """
    call = call_of(op)
    if not is_plain(call):
        return ""
    if _is_empty(op):
        edit.replace_op(op, [_nothing(TFLBuilder(op), result.type) for result in op.results])
        return "empty"
    form_of = FORMS.get(op.op_name)
    form = form_of(op) if form_of is not None else None
    if form is not None and _has_form(op, call, form):
        _reshape(op, form)
        return "reshaped"
    steps = STEPS.get(op.op_name)
    halves = steps(op) if in_steps and form is not None and steps is not None else None
    if halves is not None and all(fit(half, in_steps=False) for half in _in_steps(op, halves)):
        return "reshaped"
    for narrow in dict.fromkeys(types.element_of(value.type) for value in op.operands):
        if narrow in WIDER and _has_wider(op, call, narrow):
            _widen(op, narrow)
            return "widened"
    return ""


def _is_empty(op: tfl.TFLOp) -> bool:
    """Returns whether no result has elements, whatever the operands are."""
    shapes = [types.shape_of(result.type) for result in op.results]
    return all(shape is not None and 0 in shape and types.is_static(shape) for shape in shapes)


def _nothing(builder: TFLBuilder, kind: Attribute) -> Value:
    element = types.element_of(kind)
    return builder.constant(np.zeros(types.shape_of(kind) or (), types.numpy_dtype(element)), element)


def _in_steps(op: tfl.TFLOp, steps: Steps) -> list[tfl.TFLOp]:
    """Replaces an operator by two that are done one after the other, and returns them."""
    builder, value, inserted = TFLBuilder(op), op.operands[0], list[tfl.TFLOp]()
    for parameter, shape, options in steps:
        fields = tfl.option_fields(op.op_name)
        properties = {name: tfl.to_attribute(fields[name], each) for name, each in options.items()}
        operands = (value, builder.constant(parameter), *op.operands[2:])
        kind = types.tensor(types.element_of(op.results[0].type), shape)
        inserted.append(builder.insert(edit.rebuild(op, operands, [kind], properties, op.location)))
        value = inserted[-1].results[0]
    edit.replace_op(op, value)
    return inserted


def _is_right(operator: str, call: Call) -> bool:
    outcome = kernels.outcome(operator, call)
    return outcome is not None and outcome.is_ok


def _has_form(op: tfl.TFLOp, call: Call, form: Form) -> bool:
    """Returns whether the kernels take a form, and the reshapes to it and back."""
    inputs = [_with(operand, other) for operand, other in zip(call.inputs, form.operands, strict=True)]
    outputs = [result._replace(shape=shape) for result, shape in zip(call.outputs, form.results, strict=True)]
    new = Call(tuple(inputs), tuple(outputs), {**call.options, **form.options})
    reshapes = [*zip(call.inputs, inputs, strict=True), *zip(outputs, call.outputs, strict=True)]
    return _is_right(op.op_name.upper(), new) and all(_can_reshape(one, other) for one, other in reshapes)


def _with(operand: Operand, other: Shape | Array | None) -> Operand:
    if other is None:
        return operand
    if isinstance(other, tuple):
        return operand._replace(shape=other)
    return operand._replace(type="INT32", shape=other.shape, is_constant=True)


def _can_reshape(one: Operand, other: Operand) -> bool:
    if one.shape == other.shape or one.is_constant:
        return True
    if other.shape is None or other.shape.count(-1) > 1 or max(len(one.shape or ()), len(other.shape)) > HIGHEST_RANK:
        return False
    shape = Operand("INT32", (len(other.shape),), is_constant=True)
    return _is_right("RESHAPE", Call((one, shape), (other,)))


def _reshape(op: tfl.TFLOp, form: Form) -> None:
    before = TFLBuilder(op)
    operands = [_reshaped(before, value, other) for value, other in zip(op.operands, form.operands, strict=True)]
    kinds = [
        types.tensor(types.element_of(result.type), shape)
        for result, shape in zip(op.results, form.results, strict=True)
    ]
    fields = tfl.option_fields(op.op_name)
    options = {name: tfl.to_attribute(fields[name], value) for name, value in form.options.items()}
    new = before.insert(edit.rebuild(op, operands, kinds, options, op.location))
    results = [
        _reshaped(before, value, types.shape_of(old.type)) for value, old in zip(new.results, op.results, strict=True)
    ]
    edit.replace_op(op, results)


def _reshaped(builder: TFLBuilder, value: Value, shape: Shape | Array | None) -> Value:
    if shape is None or (isinstance(shape, tuple) and types.shape_of(value.type) == shape and -1 not in shape):
        return value
    if isinstance(shape, np.ndarray):
        return builder.constant(shape)
    constant = tensor_data.constant_of(value)
    if constant is not None and -1 not in shape:
        return builder.constant(tensor_data.defer("reshape", (constant,), shape, shape))
    kind = types.tensor(types.element_of(value.type), shape)
    return builder.tfl("reshape", (value, builder.ints(shape)), kind, {"new_shape": shape})


# Operators whose results are the same in a wider type: such as the least number of all.
_NOT_WIDER = ("bitcast", "cast", "unsorted_segment_max", "unsorted_segment_min")


def _has_wider(op: tfl.TFLOp, call: Call, narrow: Attribute) -> bool:
    """Returns whether the kernels take a wider type, and the casts to it and back."""
    if op.op_name in _NOT_WIDER:
        return False
    name, wide = _tflite(narrow), _tflite(WIDER[narrow])
    widened = [
        [value._replace(type=wide) if value.type == name else value for value in values]
        for values in (call.inputs, call.outputs)
    ]
    casts = [
        (one, other)
        for one, other in (*zip(call.inputs, widened[0], strict=True), *zip(widened[1], call.outputs, strict=True))
        if one.type != other.type
    ]
    return _is_right(op.op_name.upper(), Call(tuple(widened[0]), tuple(widened[1]), call.options)) and all(
        _is_right("CAST", Call((one,), (other,))) for one, other in casts
    )


def _tflite(element: Attribute) -> str:
    row = types.from_mlir(element)
    return "" if row is None else row.tflite


def _widen(op: tfl.TFLOp, narrow: Attribute) -> None:
    builder, wide = TFLBuilder(op), WIDER[narrow]
    operands = [_cast(builder, value, narrow, wide) for value in op.operands]
    kinds = [
        types.tensor(wide, types.shape_of(result.type)) if types.element_of(result.type) == narrow else result.type
        for result in op.results
    ]
    new = builder.insert(edit.rebuild(op, operands, kinds, location=op.location))
    results: Sequence[Value] = [
        _cast(builder, value, wide, narrow) if types.element_of(old.type) == narrow else value
        for value, old in zip(new.results, op.results, strict=True)
    ]
    edit.replace_op(op, results)


def _cast(builder: TFLBuilder, value: Value, source: Attribute, target: Attribute) -> Value:
    if types.element_of(value.type) != source:
        return value
    options = {"in_data_type": _tflite(source), "out_data_type": _tflite(target)}
    return builder.tfl("cast", (value,), types.tensor(target, types.shape_of(value.type)), options)
