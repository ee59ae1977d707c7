"""Relations of `tfl` ops: shapes by the shape functions of the `tf` ops that compute the same, and further rules."""

from __future__ import annotations

from collections.abc import Mapping

from tfconvert.ops import registry
from tfconvert.ops.indexing import gathered
from tfconvert.ops.joining import concatenated
from tfconvert.ops.operands import Known, Operands, ShapeFunction
from tfconvert.ops.shape import same_count
from tfconvert.ops.shape_functions import Shapes, all_equal, broadcasting
from tfconvert.ops.slicing import SLICE_RELATIONS
from tfconvert.schema.dialects import types
from tfconvert.schema.dialects.dims import dim_of_element
from tfconvert.schema.dialects.relations.rules import (
    Rule,
    attribute_between,
    elements,
    is_vector,
    rank,
    rank_at_least,
    size,
)
from tfconvert.schema.dialects.relations.view import View
from tfconvert.schema.dialects.tfl import TFLOp
from tfconvert.schema.tflite import operators

# The kernel of `atan2` doesn't broadcast.
_BROADCAST = (operators.elementwise(2, 3) | {"prelu"}) - {"atan2"}


def _concatenation_shape(operands: Operands) -> Shapes:
    return concatenated(operands.shapes(), operands.integer("axis"))


def _gather_shape(operands: Operands) -> Shapes:
    return gathered(operands, operands.integer("axis"))


def _transpose_conv_shape(operands: Operands) -> Shapes:
    sizes = operands.elements(0)
    return (None if sizes is None else tuple(map(dim_of_element, sizes)),)


_SHAPES: Mapping[str, ShapeFunction] = {
    **dict.fromkeys(operators.elementwise(1) | operators.having("one_shape").keys(), all_equal),
    **dict.fromkeys(_BROADCAST, broadcasting),
    "concatenation": _concatenation_shape,
    "gather": _gather_shape,
    "transpose_conv": _transpose_conv_shape,
}


def shape_function(operator: str) -> ShapeFunction | None:
    """Returns the shape function by which an operator is verified, or `None`."""
    if operator in operators.having("like"):
        return registry.shape_function(operators.tensorflow_ops()[operator])
    return _SHAPES.get(operator)


def inferred(op: TFLOp, known: Known) -> Shapes:
    """Returns the shapes of an operator's results: those of their types, or those that its operands determine.

    Args:
        op: The operator.
        known: Shapes of values that their types don't have; the results' are added.
    """
    shapes: Shapes = tuple(result.shape for result in op.results)
    function = shape_function(op.op_name) if None in shapes else None
    if function is not None:
        for value in op.operands:
            if value not in known.shapes:
                known.note(value, value.shape)
        made = function(Operands(op, known))
        shapes = tuple(own if own is not None else other for own, other in zip(shapes, made, strict=True))
    for result, shape in zip(op.results, shapes, strict=True):
        known.note(result, shape)
    return shapes


def _option_is(view: View, name: str, what: str, count: int) -> None:
    found = view.attribute(name)
    if isinstance(found, int) and found != count:
        view.fail(f"the option {name!r} must be {what}, {count}, found {found}")


def _pack(view: View) -> None:
    _option_is(view, "values_count", "the number of operands", len(view.values("values")))


def _unpack(view: View) -> None:
    _option_is(view, "num", "the number of results", len(view.op.results))


def _split(view: View) -> None:
    if view.attribute("num_splits"):
        _option_is(view, "num_splits", "the number of results", len(view.op.results))


def _fully_connected(view: View) -> None:
    count, width = elements(view.shape("input")), view.dim("filter", 1)
    if count >= 0 and width > 0 and count % width:
        view.fail(f"the elements of 'input' ({count}) must be a multiple of the width of 'filter', {width}")


def _one_axis(view: View) -> None:
    shape = view.shape("split_dim")
    if shape is not None and shape not in ((), (1,), (-1,)):
        view.fail(f"'split_dim' must have one element, found {view.type('split_dim')}")


def _five(view: View) -> None:
    count = elements(view.shape("output_shape"))
    if count not in (-1, 5):
        view.fail(f"'output_shape' must have 5 elements, found {view.type('output_shape')}")


def _sizes(view: View) -> None:
    sizes = view.integers("size_splits")
    if sizes is not None and len(sizes) != len(view.op.results):
        view.fail(
            f"'size_splits' must have as many elements as there are results, {len(view.op.results)}, found {sizes}"
        )


def _strides(view: View) -> None:
    for name in ("stride_h", "stride_w", "dilation_h_factor", "dilation_w_factor", "filter_height", "filter_width"):
        found = view.attribute(name)
        if isinstance(found, int) and found < 1:
            view.fail(f"the option {name!r} must be positive, found {found}")


def _hashtable(view: View) -> None:
    found = {str(view.attribute("key_dtype")), str(view.attribute("value_dtype"))}
    if found != {"INT64", "STRING"}:
        view.fail(f"a table must map strings to 64 bit integers, or these to strings, found {sorted(found)}")


def _condition(view: View) -> None:
    if elements(view.shape("cond")) not in (-1, 1):
        view.fail(f"'cond' must have one element, found {view.type('cond')}")


def _result_like_input(view: View) -> None:
    source = view.element("input")
    for result in view.values("output"):
        found = result.element
        if source == types.F32 and found not in (types.F32, types.F16, types.BF16):
            view.fail(f"'output' must have floats like 'input', found {result.type}")


def _window(image: str, filters: str) -> tuple[Rule, ...]:
    return (rank(image, 4), rank(filters, 4), _strides)


_POOL = (rank("input", 4), _strides)
_RESIZED = (size("size", 0, 2),)
_BOXES = (size("boxes", 1, 4),)

RULES: Mapping[str, tuple[Rule, ...]] = {
    **dict.fromkeys(("average_pool_2d", "l2_pool_2d", "max_pool_2d"), _POOL),
    "conv_2d": _window("input", "filter"),
    "conv_3d_transpose": (_five,),
    "depthwise_conv_2d": _window("input", "filter"),
    "fake_quant": (attribute_between("num_bits", 2, 16),),
    "fully_connected": (_fully_connected, _result_like_input),
    "hashtable": (_hashtable,),
    "if": (_condition,),
    "non_max_suppression_v4": _BOXES,
    "non_max_suppression_v5": _BOXES,
    "pack": (_pack,),
    "reshape": (is_vector("shape"), same_count("input")),
    "resize_bilinear": _RESIZED,
    "resize_nearest_neighbor": _RESIZED,
    "scatter_nd": (rank_at_least("indices", 1),),
    "slice": SLICE_RELATIONS,
    "split": (_one_axis, _split, rank_at_least("value", 1)),
    "split_v": (_split, _sizes, rank_at_least("value", 1)),
    "transpose_conv": _window("input", "weights"),
    "unpack": (_unpack,),
}
"""Operator -> the rules that its operands, results and options keep beyond its shape function."""
