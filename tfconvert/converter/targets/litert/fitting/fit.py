"""Replaces operators by forms that the kernels accept: with fewer dimensions, or of wider types."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from tfconvert.converter.ir import edit
from tfconvert.converter.ir.tf_builder import TFLBuilder
from tfconvert.converter.targets.litert.kernel_outcomes import HIGHEST_RANK
from tfconvert.schema.dialects import tensor_data, tfl, types
from tfconvert.schema.dialects.dims import product
from tfconvert.schema.dialects.tensor_data import Array
from tfconvert.schema.dialects.tfl import call_of
from tfconvert.schema.dialects.types import Shape
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import IntegerType, Signedness
from tfconvert.schema.ir.values import Value
from tfconvert.schema.tflite import kernels
from tfconvert.schema.tflite.kernels import is_plain
from tfconvert.schema.tflite.versions import Call, Operand

ANY = object()
"""The key of a dimension that can be one with either neighbour, since it is 1."""

Groups = Sequence[tuple[int, int]]
"""Ranges of neighbouring dimensions that become one each."""


class Form(NamedTuple):
    """An operator with other shapes.

    Attributes:
        operands: For each operand a new shape, a new constant, or `None` if it stays.
        results: The results' new shapes; they are reshaped to the old ones afterwards.
        options: The options that change.
    """

    operands: tuple[Shape | Array | None, ...]
    results: tuple[Shape, ...]
    options: Mapping[str, Any] = MappingProxyType({})


Steps = Sequence[tuple[Array, Shape, Mapping[str, Any]]]
"""The second operand, the result's shape and the changed options of the operators that one is done as."""


def groups_of(keys: Sequence[Hashable]) -> Groups:
    """Returns the runs of dimensions with equal keys; those with the key `ANY` join a neighbouring run."""
    result: list[tuple[int, int]] = []
    current: Hashable = ANY
    for axis, key in enumerate(keys):
        if result and (key is ANY or current is ANY or key == current):
            result[-1] = (result[-1][0], axis + 1)
            current = current if key is ANY else key
        else:
            result.append((axis, axis + 1))
            current = key
    return result


def rows(rank: int) -> Groups:
    """Returns all dimensions but the last one, and the last one, as groups."""
    return [(0, rank - 1), (rank - 1, rank)]


def merged(shape: Sequence[int], groups: Groups) -> Shape:
    """Returns a shape with each group of dimensions merged."""
    return tuple([product(shape[start:stop]) for start, stop in groups])


def shape_of(op: Operation, operand: int = 0) -> Shape | None:
    """Returns an operand's shape, `None` if its rank is unknown or there is no such operand."""
    return op.operands[operand].shape if operand < len(op.operands) else None


def result_of(op: Operation, result: int = 0) -> Shape | None:
    """Returns a result's shape, `None` if its rank is unknown."""
    return op.results[result].shape


def integers(op: Operation, operand: int) -> list[int] | None:
    constant = tensor_data.constant_of(op.operands[operand])
    return None if constant is None else [int(each) for each in tensor_data.to_array(constant).reshape(-1)]


def _key(axis: int, result: Shape, padded: list[Shape], is_alone: bool) -> Hashable:
    if result[axis] == 1:
        return ANY
    if not is_alone and (result[axis] < 0 or any(shape[axis] < 0 for shape in padded)):
        return axis  # One of them may be broadcast.
    return tuple([shape[axis] == 1 for shape in padded])


def dense(op: Operation) -> Form | None:
    """`tfl.fully_connected` of rows."""
    shape, result = shape_of(op), result_of(op)
    weights = shape_of(op, 1)
    if not shape or not result or not weights or shape[-1] != weights[-1]:
        return None
    rest = [None] * (len(op.operands) - 1)
    options = {"keep_num_dims": False}
    return Form((merged(shape, rows(len(shape))), *rest), (merged(result, rows(len(result))),), options)


def matrices(op: Operation) -> Form | None:
    """`tfl.batch_matmul`: merges batches that both operands have, or neither."""
    shapes, result = [shape_of(op, index) for index in (0, 1)], result_of(op)
    if result is None or any(shape is None or len(shape) < 2 for shape in shapes):
        return None
    rank = len(result)
    padded = [(1,) * (rank - len(shape)) + shape for shape in shapes if shape is not None]
    is_alone = padded[0][:-2] == padded[1][:-2]
    batch = groups_of([_key(axis, result, padded, is_alone) for axis in range(rank - 2)])
    groups = [*batch, (rank - 2, rank - 1), (rank - 1, rank)]
    return Form(tuple([merged(shape, groups) for shape in padded]), (merged(result, groups),))


def softmax(op: Operation) -> Form | None:
    """An op along the last dimension: merges all other dimensions."""
    shape = shape_of(op)
    if not shape:
        return None
    both = merged(shape, rows(len(shape)))
    return Form((both,), (both,))


def reduction(op: Operation) -> Form | None:
    """A reduction: merges neighbouring dimensions that are both reduced or both kept."""
    shape, axes = shape_of(op), integers(op, 1)
    if shape is None or axes is None:
        return None
    reduced = {axis % len(shape) for axis in axes} if shape else set()
    groups = groups_of([ANY if dim == 1 else axis in reduced for axis, dim in enumerate(shape)])
    at = [index for index, (start, stop) in enumerate(groups) if _is_reduced(shape, start, stop, reduced)]
    small = merged(shape, groups)
    keep = bool(tfl.attribute(op, "keep_dims"))
    kept = tuple([1 if index in at else dim for index, dim in enumerate(small) if keep or index not in at])
    return Form((small, np.array(at, np.int32)), (kept,))


def reductions(op: Operation) -> Steps | None:
    """A reduction in two steps: first reduces half of the dimensions to 1."""
    shape, axes, result = shape_of(op), integers(op, 1), result_of(op)
    if shape is None or axes is None or result is None or len(axes) < 2:
        return None
    order = sorted({axis % len(shape) for axis in axes})
    first = order[: len(order) // 2]
    halfway = tuple([1 if axis in first else dim for axis, dim in enumerate(shape)])
    return ((np.array(first, np.int32), halfway, {"keep_dims": True}), (np.array(order, np.int32), result, {}))


def _is_reduced(shape: Shape, start: int, stop: int, reduced: set[int]) -> bool:
    """Returns whether a group is reduced; dimensions of 1 don't matter."""
    telling = [axis for axis in range(start, stop) if shape[axis] != 1] or [start]
    return telling[0] in reduced


def _leading(is_touched: Sequence[bool]) -> Groups:
    """Returns groups whose first dimension at most is changed."""
    groups: list[tuple[int, int]] = []
    for axis, touched in enumerate(is_touched):
        if groups and not touched:
            groups[-1] = (groups[-1][0], axis + 1)
        else:
            groups.append((axis, axis + 1))
    return groups


def _factor(shape: Shape, start: int, stop: int) -> int | None:
    """Returns the number of elements behind the first dimension of a group, `None` if it is unknown."""
    behind = shape[start + 1 : stop]
    return None if -1 in behind else math.prod(behind)


def pad(op: Operation) -> Form | None:
    """A padding: merges dimensions without padding into the previous one."""
    shape, result, pads = shape_of(op), result_of(op), integers(op, 1)
    if shape is None or result is None or pads is None:
        return None
    pairs = np.array(pads).reshape(-1, 2)
    groups = _leading([bool(pair.any()) for pair in pairs])
    factors = [_factor(shape, start, stop) if pairs[start].any() else 1 for start, stop in groups]
    if None in factors:
        return None
    scaled = np.array([pairs[start] * factor for (start, _), factor in zip(groups, factors, strict=True)], np.int32)
    return Form((merged(shape, groups), scaled, *[None] * (len(op.operands) - 2)), (merged(result, groups),))


def pads(op: Operation) -> Steps | None:
    """A padding in two steps: first pads half of the dimensions."""
    shape, result, values = shape_of(op), result_of(op), integers(op, 1)
    if shape is None or result is None or values is None:
        return None
    pairs = np.array(values, np.int32).reshape(-1, 2)
    touched = np.flatnonzero(pairs.any(axis=1))
    if len(touched) < 2:
        return None
    first, second = pairs.copy(), pairs.copy()
    first[touched[len(touched) // 2 :]] = 0
    second[touched[: len(touched) // 2]] = 0
    halfway = tuple([dim if dim < 0 else dim + int(pair.sum()) for dim, pair in zip(shape, first, strict=True)])
    return ((first, halfway, {}), (second, result, {}))


def _normalized(axis: int, rank: int) -> int:
    return axis + rank if axis < 0 else axis


def _around(rank: int, axis: int) -> Groups:
    """Returns the dimensions before an axis, the axis, and those after it, as groups."""
    return [(0, axis), (axis, axis + 1), (axis + 1, rank)]


def concatenation(op: Operation) -> Form | None:
    """A concatenation: merges the dimensions before the axis, and those after it."""
    result = result_of(op)
    shapes = [shape_of(op, index) for index in range(len(op.operands))]
    if result is None or any(shape is None or len(shape) != len(result) for shape in shapes):
        return None
    groups = _around(len(result), _normalized(tfl.attribute(op, "axis"), len(result)))
    operands = tuple([merged(shape, groups) for shape in shapes if shape is not None])
    return Form(operands, (merged(result, groups),), {"axis": 1})


def split(op: Operation) -> Form | None:
    """As `concatenation`; the axis is an operand."""
    shape, axes = shape_of(op, 1), integers(op, 0)
    results = [result_of(op, index) for index in range(len(op.results))]
    if shape is None or axes is None or None in results:
        return None
    groups = _around(len(shape), _normalized(axes[0], len(shape)))
    parts = [merged(result, groups) for result in results if result is not None]
    return Form((np.array(1, np.int32), merged(shape, groups)), tuple(parts))


_REDUCTIONS = ("sum", "mean", "reduce_max", "reduce_min")

FORMS: Mapping[str, Callable[[tfl.TFLOp], Form | None]] = {
    **dict.fromkeys(_REDUCTIONS, reduction),
    "batch_matmul": matrices,
    "concatenation": concatenation,
    "fully_connected": dense,
    **dict.fromkeys(("pad", "padv2"), pad),
    "softmax": softmax,
    "split": split,
}
"""Operator -> its form with fewer dimensions; other kernels have no limit, or only one for what nothing emits."""

STEPS: Mapping[str, Callable[[tfl.TFLOp], Steps | None]] = {
    **dict.fromkeys(_REDUCTIONS, reductions),
    **dict.fromkeys(("pad", "padv2"), pads),
}
"""Operator -> its form in two steps, for too many different dimensions."""

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
    """Replaces an operator by a form that the kernels accept.

    Args:
        op: The operator, which the kernels don't accept.
        in_steps: Whether two operators in sequence may replace it.

    Returns:
        The kind of the change, empty if there is no such form.
    """
    call = call_of(op)
    if not is_plain(call):
        return ""
    if op.op_name == "reshape" and op.results[0].is_unused:
        edit.erase(op)  # Its only users have other forms by now.
        return "reshaped"
    if _is_empty(op):
        edit.replace_op(op, [_nothing(TFLBuilder(op), result.type) for result in op.results])
        return "empty"
    form_of = FORMS.get(op.op_name)
    form = form_of(op) if form_of is not None else None
    if form is not None and _has_form(op, call, form):
        _reshape(op, form)
        return "reshaped"
    steps = STEPS.get(op.op_name)
    parts = steps(op) if in_steps and form is not None and steps is not None else None
    if parts is not None and all(fit(part, in_steps=False) for part in _in_steps(op, parts)):
        return "reshaped"
    for narrow in dict.fromkeys(value.element for value in op.operands):
        if narrow in WIDER and _has_wider(op, call, narrow):
            _widen(op, narrow)
            return "widened"
    return ""


def _is_empty(op: tfl.TFLOp) -> bool:
    """Returns whether all results are empty for all operands."""
    shapes = [result.shape for result in op.results]
    return all(shape is not None and 0 in shape and types.is_static(shape) for shape in shapes)


def _nothing(builder: TFLBuilder, kind: Attribute) -> Value:
    element = types.element_of(kind)
    return builder.constant(np.zeros(types.shape_of(kind) or (), types.numpy_dtype(element)), element)


def _in_steps(op: tfl.TFLOp, steps: Steps) -> list[tfl.TFLOp]:
    """Replaces an operator by two in sequence, and returns them."""
    builder, value, inserted = TFLBuilder(op), op.operands[0], list[tfl.TFLOp]()
    for parameter, shape, options in steps:
        fields = tfl.option_fields(op.op_name)
        properties = {name: tfl.to_attribute(fields[name], each) for name, each in options.items()}
        operands = (value, builder.constant(parameter), *op.operands[2:])
        kind = types.tensor(op.results[0].element, shape)
        inserted.append(builder.insert(edit.rebuild(op, operands, [kind], properties, op.location)))
        value = inserted[-1].results[0]
    edit.replace_op(op, value)
    return inserted


def _is_right(operator: str, call: Call) -> bool:
    outcome = kernels.outcome(operator, call)
    return outcome is not None and outcome.is_ok


def _has_form(op: tfl.TFLOp, call: Call, form: Form) -> bool:
    """Returns whether the kernels accept a form, and the reshapes to it and back."""
    inputs = [_with(operand, other) for operand, other in zip(call.inputs, form.operands, strict=True)]
    sources = [
        given._replace(shape=_source(value).shape) for given, value in zip(call.inputs, op.operands, strict=True)
    ]
    outputs = [result._replace(shape=shape) for result, shape in zip(call.outputs, form.results, strict=True)]
    new = Call(tuple(inputs), tuple(outputs), {**call.options, **form.options})
    reshapes = [*zip(sources, inputs, strict=True), *zip(outputs, call.outputs, strict=True)]
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


def _source(value: Value) -> Value:
    """Returns the operand of a reshape that has too many dimensions itself, and any other value as it is."""
    owner, shape = value.owner, value.shape
    is_high = shape is not None and len(shape) > HIGHEST_RANK
    return owner.operands[0] if is_high and isinstance(owner, Operation) and owner.name == "tfl.reshape" else value


def _reshape(op: tfl.TFLOp, form: Form) -> None:
    before = TFLBuilder(op)
    operands = [
        _reshaped(before, value if other is None else _source(value), other)
        for value, other in zip(op.operands, form.operands, strict=True)
    ]
    kinds = [types.tensor(result.element, shape) for result, shape in zip(op.results, form.results, strict=True)]
    fields = tfl.option_fields(op.op_name)
    options = {name: tfl.to_attribute(fields[name], value) for name, value in form.options.items()}
    new = before.insert(edit.rebuild(op, operands, kinds, options, op.location))
    results = [_reshaped(before, value, old.shape) for value, old in zip(new.results, op.results, strict=True)]
    edit.replace_op(op, results)


def _reshaped(builder: TFLBuilder, value: Value, shape: Shape | Array | None) -> Value:
    if shape is None or (isinstance(shape, tuple) and value.shape == shape and -1 not in shape):
        return value
    if isinstance(shape, np.ndarray):
        return builder.constant(shape)
    constant = tensor_data.constant_of(value)
    if constant is not None and -1 not in shape:
        return builder.constant(tensor_data.defer("reshape", (constant,), shape, shape))
    kind = types.tensor(value.element, shape)
    return builder.tfl("reshape", (value, builder.ints(shape)), kind, {"new_shape": shape})


# Operators whose results are the same in a wider type, such as the minimum.
_NOT_WIDER = ("bitcast", "cast", "unsorted_segment_max", "unsorted_segment_min")


def _has_wider(op: tfl.TFLOp, call: Call, narrow: Attribute) -> bool:
    """Returns whether the kernels accept a wider type, and the casts to it and back."""
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
    kinds = [types.tensor(wide, result.shape) if result.element == narrow else result.type for result in op.results]
    new = builder.insert(edit.rebuild(op, operands, kinds, location=op.location))
    results: Sequence[Value] = [
        _cast(builder, value, wide, narrow) if old.element == narrow else value
        for value, old in zip(new.results, op.results, strict=True)
    ]
    edit.replace_op(op, results)


def _cast(builder: TFLBuilder, value: Value, source: Attribute, target: Attribute) -> Value:
    if value.element != source:
        return value
    options = {"in_data_type": _tflite(source), "out_data_type": _tflite(target)}
    return builder.tfl("cast", (value,), types.tensor(target, value.shape), options)
