"""Ops of XLA, and ops on uniformly quantized numbers."""

from __future__ import annotations

import numpy as np

from tfconvert.ops.call import Call, Results, ints
from tfconvert.ops.declaration import op, ops_like
from tfconvert.ops.operands import Operands
from tfconvert.ops.shape_functions import Shapes, same
from tfconvert.schema.dialects import types
from tfconvert.schema.dialects.relations.rules import Rule, contradict, every, is_scalar, rank, same_shapes
from tfconvert.schema.dialects.relations.view import View


def _quantized(prefix: str = "") -> Rule:
    """Returns the rule of scales and zero points: one pair, or a vector of them along an axis."""
    scales, zeros, axis = f"{prefix}scales", f"{prefix}zero_points", f"{prefix}quantization_axis"

    def rule(view: View) -> None:
        along = view.integer(axis, -1)
        rank(scales, 0 if along == -1 else 1)(view)
        rank(zeros, 0 if along == -1 else 1)(view)
        if along != -1:
            same_shapes(scales, zeros)(view)

    return rule


def _constant_rank(name: str, *ranks: int) -> Rule:
    """Returns the rule that a constant operand has one of some ranks."""

    def rule(view: View) -> None:
        if view.constant(name) is not None:
            rank(name, *ranks)(view)

    return rule


def _padding(view: View) -> None:
    found = view.constant("padding")
    if found is not None and (found.ndim != 2 or found.shape[1] != 2):
        view.fail(f"'padding' must be a matrix of pairs, found {view.type('padding')}")


def _one_each(operand: str, *names: str) -> Rule:
    """Returns the rule that constant operands have an element for each dimension of another."""

    def rule(view: View) -> None:
        shape = view.shape(operand)
        for name in names:
            found = view.constant(name)
            if found is not None and shape is not None and found.size != len(shape):
                view.fail(
                    f"{name!r} must have an element for each dimension of {operand!r}, {len(shape)}, found {found.size}"
                )

    return rule


def _convolution(view: View) -> None:
    names = ("window_strides", "padding", "lhs_dilation", "rhs_dilation", "feature_group_count")
    if any(view.constant(name) is None for name in names):
        return
    every(rank(names[0], 1), _padding, rank(names[2], 1), rank(names[3], 1), is_scalar(names[4]))(view)


def _broadcast_helper(view: View) -> None:
    left, right, dims = view.shape("lhs"), view.shape("rhs"), view.integers("broadcast_dims")
    if left is None or right is None or dims is None:
        return
    if not dims:
        if len(left) != len(right) and left and right:
            view.fail("'lhs' and 'rhs' must have one rank, or one be a scalar, where 'broadcast_dims' is empty")
        return
    small, large = sorted((left, right), key=len)
    if len(dims) != len(small):
        view.fail(f"'broadcast_dims' must have as many elements as the smaller rank, {len(small)}, found {len(dims)}")
    if len(set(dims)) != len(dims) or not all(0 <= dim < len(large) for dim in dims):
        view.fail(f"'broadcast_dims' must be different axes of rank {len(large)}, found {dims}")
    expected = [1] * len(large)
    for dim, number in zip(dims, small, strict=True):
        expected[dim] = number
    outputs = (expected, right) if len(left) < len(right) else (left, expected)
    for name, shape in zip(("lhs_output", "rhs_output"), outputs, strict=True):
        found = view.shape(name)
        if found is not None and contradict(shape, found):
            view.fail(f"{name!r} must have the shape {list(shape)}, found {view.type(name)}")


def _dynamic_size(view: View) -> None:
    source, result, axis = view.shape("input"), view.shape("output"), view.integers("dim_index")
    if source is None:
        return
    if axis is not None and not 0 <= axis[0] < len(source):
        view.fail(f"'dim_index' must be from 0 to {len(source) - 1}, found {axis[0]}")
    expected = [-1 if axis is None or index == axis[0] else dim for index, dim in enumerate(source)]
    if result is not None and contradict(expected, result):
        view.fail(f"'output' must have the shape of 'input', found {view.type('output')}")


def _static_shapes_agree(name: str) -> Rule:
    def rule(view: View) -> None:
        shapes = [value.shape for value in view.values(name)]
        static = [shape for shape in shapes if types.is_static(shape)]
        if shapes and types.is_static(shapes[0]) and any(shape != static[0] for shape in static):
            view.fail(f"{name!r} must have one shape, found {', '.join(str(each.type) for each in view.values(name))}")

    return rule


def _variadic_reduce(view: View) -> None:
    inputs, initial = view.values("inputs"), view.values("init_values")
    if len(inputs) != len(initial):
        view.fail(f"'inputs' and 'init_values' must be as many, found {len(inputs)} and {len(initial)}")
    shape = inputs[0].shape if inputs else None
    if types.is_static(shape) and len(view.list("dimensions_to_reduce")) > len(shape or ()):
        view.fail(f"the attribute 'dimensions_to_reduce' must have at most {len(shape or ())} items")


def _pad_shape(operands: Operands) -> Shapes:
    shape, amounts = operands.shape(0), [operands.value(index) for index in (2, 3, 4)]
    if shape is None:
        return (None,)
    if any(each is None for each in amounts):
        return ((-1,) * len(shape),)
    each = zip(shape, *(amount.tolist() for amount in amounts if amount is not None), strict=True)
    return (tuple([_padded_size(*one) for one in each]),)


def _padded_size(size: int, low: int, high: int, gap: int) -> int:
    if size < 0:
        return size if low == high == gap == 0 else -1
    return max(0, (size - 1) * (gap + 1) + 1 if size else 0) + low + high


def _pad(call: Call) -> Results:
    """Negative amounts take elements away, also from those between."""
    x, value, *amounts = call.inputs
    low, high, interior = map(ints, amounts)
    steps = [gap + 1 for gap in interior]
    sizes = [(dim - 1) * step + 1 if dim else 0 for dim, step in zip(x.shape, steps, strict=True)]
    wide = np.full(
        [max(0, one) + size + max(0, other) for one, size, other in zip(low, sizes, high, strict=True)],
        value.reshape(()),
        x.dtype,
    )
    wide[
        tuple([slice(max(0, one), max(0, one) + size, step) for one, size, step in zip(low, sizes, steps, strict=True)])
    ] = x
    kept = [
        slice(max(0, -one), max(0, size + min(0, other)))
        for one, other, size in zip(low, high, wide.shape, strict=True)
    ]
    return (wide[tuple(kept)],)


_WINDOWS = ("window_dimensions", "window_strides")
_DILATIONS = ("base_dilations", "window_dilations")
_BOTH = (_quantized("lhs_"), _quantized("rhs_"), _quantized("output_"))

OPS = (
    *ops_like("UniformDequantize UniformQuantize UniformQuantizedClipByValue", relations=(_quantized(),)),
    *ops_like("UniformQuantizedAdd UniformQuantizedConvolution UniformQuantizedDot", relations=_BOTH),
    *ops_like("UniformQuantizedConvolutionHybrid UniformQuantizedDotHybrid", relations=(_quantized("rhs_"),)),
    op("UniformRequantize", relations=(_quantized("input_"), _quantized("output_"))),
    op("XlaBroadcastHelper", relations=(_broadcast_helper,)),
    op("XlaConvV2", relations=(_convolution,)),
    op("XlaPad", shape=_pad_shape, compute=_pad, relations=(is_scalar("padding_value"),)),
    op(
        "XlaReduceWindow",
        relations=(
            *[_constant_rank(name, 1) for name in (*_WINDOWS, *_DILATIONS)],
            _one_each("input", *_WINDOWS, *_DILATIONS),
            _padding,
        ),
    ),
    op("XlaSelectAndScatter", relations=(_one_each("operand", *_WINDOWS), _padding)),
    op("XlaSetDynamicDimensionSize", relations=(_dynamic_size,)),
    op("XlaSharding", shape=same),
    op("XlaVariadicReduceV2", relations=(_static_shapes_agree("inputs"), is_scalar("init_values"), _variadic_reduce)),
    op("XlaVariadicSort", relations=(_static_shapes_agree("inputs"), _constant_rank("dimension", 0))),
)
