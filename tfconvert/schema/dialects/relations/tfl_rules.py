"""Relations between the shapes of `tfl` ops' operands and results."""

from __future__ import annotations

from collections.abc import Mapping

from tfconvert.schema.dialects import types
from tfconvert.schema.dialects.relations import tf_reshaping
from tfconvert.schema.dialects.relations.rules import (
    Rule,
    attribute_between,
    axis_of,
    check_axis,
    contradict,
    elements,
    every,
    rank,
    rank_at_least,
    size,
)
from tfconvert.schema.dialects.relations.tf_traits import broadcasts, one_shape
from tfconvert.schema.dialects.relations.view import View
from tfconvert.schema.ir.values import Value

# Operators whose operands and results all have one shape.
_ONE_SHAPE = """
abs atan2 bucketize cast ceil complex_abs cos elu floor gelu hard_swish imag leaky_relu local_response_normalization
log_softmax logical_not logistic neg quantize real relu relu6 relu_0_to_1 relu_n1_to_1 round rsqrt sign sin softmax sqrt
square tanh zeros_like
"""

# Operators whose operands broadcast to the shape of their results.
_BROADCAST = """
add bitwise_xor div equal floor_div floor_mod greater greater_equal less less_equal logical_and logical_or maximum
minimum mul not_equal pow select_v2 squared_difference sub
"""


def _renamed(rule: Rule, **names: str) -> Rule:
    """Returns a rule of a `tf` op for the operator that does the same.

    Args:
        rule: The rule.
        names: The operator's arguments and options by the names that the rule knows them by.
    """

    def renamed(view: View) -> None:
        rule(_Renamed(view, names))

    return renamed


class _Renamed(View):
    """An op whose arguments have other names."""

    __slots__ = ("_names", "_view")

    def __init__(self, view: View, names: Mapping[str, str]) -> None:
        super().__init__(view.op, {})
        self._view, self._names = view, names

    def values(self, name: str) -> tuple[Value, ...]:
        return tuple(self._view.values(self._names.get(name, name)))

    def attribute(self, name: str) -> object:  # type: ignore[override]
        return self._view.attribute(self._names.get(name, name))


def _concatenation(view: View) -> None:
    result, axis = view.shape("output"), view.integer("axis")
    shapes = [types.shape_of(value.type) for value in view.values("values")]
    if result is None:
        return
    check_axis(view, "the option 'axis'", axis, len(result))
    total = 0
    for shape in shapes:
        if shape is None:
            total = -1
            continue
        if len(shape) != len(result):
            view.fail(f"'values' must have the rank of 'output', {len(result)}, found {len(shape)}")
        for index, dim in enumerate(shape):
            if index != axis % len(result) and contradict((dim,), (result[index],)):
                view.fail(f"dimension {index} of 'values' must be that of 'output', {result[index]}, found {dim}")
        total = -1 if total < 0 or shape[axis] < 0 else total + shape[axis]
    if contradict((total,), (result[axis],)):
        view.fail(f"dimension {axis} of 'output' must be the sum of those of 'values', {total}, found {result[axis]}")


def _pack(view: View) -> None:
    values, axis = view.values("values"), view.integer("axis")
    count = view.attribute("values_count")
    if isinstance(count, int) and count != len(values):
        view.fail(f"the option 'values_count' must be {len(values)}, found {count}")
    first = types.shape_of(values[0].type) if values else None
    if first is None:
        return
    check_axis(view, "the option 'axis'", axis, len(first) + 1)
    for value in values[1:]:
        shape = types.shape_of(value.type)
        if shape is not None and contradict(first, shape):
            view.fail(f"'values' must have one shape, found {values[0].type} and {value.type}")


def _unpack(view: View) -> None:
    count = view.attribute("num")
    if isinstance(count, int) and count != len(view.op.results):
        view.fail(f"the option 'num' must be the number of results, {len(view.op.results)}, found {count}")
    shape = view.shape("input")
    if shape == ():
        view.fail(f"'input' must not be a scalar, found {view.type('input')}")
    every(axis_of("axis", "input"), _unpacked)(view)


def _unpacked(view: View) -> None:
    shape, axis = view.shape("input"), view.integer("axis")
    if shape is None:
        return
    if shape[axis] not in (-1, len(view.op.results)):
        view.fail(f"there must be as many results as 'input' has elements along axis {axis}, {shape[axis]}")
    rest = shape[: axis % len(shape)] + shape[axis % len(shape) + 1 :]
    for result in view.op.results:
        found = types.shape_of(result.type)
        if found is not None and contradict(rest, found):
            view.fail(f"its results must have the shape {list(rest)}, found {result.type}")


def _fully_connected(view: View) -> None:
    count, width = elements(view.shape("input")), view.dim("filter", 1)
    if count >= 0 and width > 0 and count % width:
        view.fail(f"the elements of 'input' ({count}) must be a multiple of the width of 'filter', {width}")


def _pad_rows(view: View) -> None:
    shape, rows = view.shape("input"), view.dim("padding", 0)
    if shape is not None and rows not in (-1, len(shape)):
        view.fail(f"'padding' must have a row for each dimension of 'input', {len(shape)}, found {rows}")


def _transpose_conv(view: View) -> None:
    count, result = view.dim("output_shape", 0), view.shape("output")
    if count >= 0 and result is not None and len(result) != count:
        view.fail(f"'output' must have rank {count}, found {view.type('output')}")
    wanted = view.integers("output_shape")
    if wanted is not None and result is not None and contradict(wanted, result):
        view.fail(f"'output' must have the shape {wanted}, found {view.type('output')}")


def _gather(view: View) -> None:
    params, indices, batch = view.shape("params"), view.shape("indices"), view.integer("batch_dims")
    if indices is not None and not -len(indices) <= batch <= len(indices):
        view.fail(f"the option 'batch_dims' must be at most the rank of 'indices', found {batch}")
    if params is None or indices is None:
        return
    batch += len(indices) if batch < 0 else 0
    if contradict(params[:batch], indices[:batch]):
        view.fail(f"the first {batch} dimensions of 'params' and 'indices' must agree")


def _transpose(view: View) -> None:
    source, result, perm = view.shape("input"), view.shape("output"), view.integers("perm")
    count = view.dim("perm", 0)
    if source is not None and count not in (-1, len(source)):
        view.fail(f"'perm' must have as many elements as 'input' has dimensions, {len(source)}, found {count}")
    if source is None or perm is None:
        return
    if sorted(axis % max(len(source), 1) for axis in perm) != list(range(len(source))):
        view.fail(f"'perm' must be a permutation of the axes of 'input', found {perm}")
    expected = [source[axis] for axis in perm]
    if result is not None and contradict(expected, result):
        view.fail(f"'output' must have the shape {expected}, found {view.type('output')}")


def _scatter_nd(view: View) -> None:
    indices, updates, count = view.shape("indices"), view.shape("updates"), view.dim("shape", 0)
    result = view.shape("output")
    if count >= 0 and result is not None and len(result) != count:
        view.fail(f"'output' must have rank {count}, as 'shape' has it, found {view.type('output')}")
    if indices is None or updates is None or not indices:
        return
    outer = indices[:-1]
    if len(updates) < len(outer) or contradict(outer, updates[: len(outer)]):
        view.fail(
            f"the shape of 'updates' must begin with {list(outer)}, as 'indices' has it, found {view.type('updates')}"
        )
    if indices[-1] >= 0 and count >= 0 and len(updates) - len(outer) != count - indices[-1]:
        view.fail(f"'shape' must have {len(updates) - len(outer) + indices[-1]} elements, found {count}")


def _split(view: View) -> None:
    count = view.attribute("num_splits")
    if isinstance(count, int) and count not in (0, len(view.op.results)):
        view.fail(f"the option 'num_splits' must be the number of results, {len(view.op.results)}, found {count}")


def _one_axis(view: View) -> None:
    shape = view.shape("split_dim")
    if shape is not None and shape not in ((), (1,), (-1,)):
        view.fail(f"'split_dim' must have one element, found {view.type('split_dim')}")


def _five(view: View) -> None:
    count = elements(view.shape("output_shape"))
    if count not in (-1, 5):
        view.fail(f"'output_shape' must have 5 elements, found {view.type('output_shape')}")


def _split_checks(view: View) -> None:
    shape, axis = view.shape("value"), view.integers("split_dim")
    if shape is None or not axis:
        return
    check_axis(view, "'split_dim'", axis[0], len(shape))
    dim, sizes = shape[axis[0]], view.integers("size_splits")
    if not view.values("size_splits"):
        if dim >= 0 and dim % len(view.op.results):
            view.fail(f"dimension {axis[0]} of 'value' ({dim}) must be a multiple of {len(view.op.results)}")
    elif sizes is not None and dim >= 0:
        total = sum(each for each in sizes if each >= 0)
        if total > dim or (total < dim and -1 not in sizes):
            view.fail(f"'size_splits' must be {dim} together, found {total}")


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
        found = types.element_of(result.type)
        if source == types.F32 and found not in (types.F32, types.F16, types.BF16):
            view.fail(f"'output' must have floats like 'input', found {result.type}")


def _window(image: str, filters: str) -> tuple[Rule, ...]:
    return (rank(image, 4), rank(filters, 4), _strides)


_POOL = (rank("input", 4), _strides)
_RESIZED = size("size", 0, 2)
_BOXES = size("boxes", 1, 4)
_RESHAPE = tf_reshaping.RULES["Reshape"]

RULES: Mapping[str, tuple[Rule, ...]] = {
    **dict.fromkeys(_ONE_SHAPE.split(), (one_shape,)),
    **dict.fromkeys(_BROADCAST.split(), (broadcasts,)),
    **dict.fromkeys(("average_pool_2d", "l2_pool_2d", "max_pool_2d"), _POOL),
    "concatenation": (_concatenation,),
    "conv_2d": _window("input", "filter"),
    "conv_3d_transpose": (_five,),
    "depthwise_conv_2d": _window("input", "filter"),
    "fake_quant": (attribute_between("num_bits", 2, 16),),
    "fully_connected": (_fully_connected, _result_like_input),
    "gather": (_gather, axis_of("axis", "params")),
    "hashtable": (_hashtable,),
    "if": (_condition,),
    "non_max_suppression_v4": (_BOXES,),
    "non_max_suppression_v5": (_BOXES,),
    "pack": (_pack,),
    "pad": (_pad_rows,),
    "padv2": (_pad_rows,),
    "prelu": (broadcasts,),
    "reshape": (_renamed(_RESHAPE, tensor="input"),),
    "resize_bilinear": (_RESIZED,),
    "resize_nearest_neighbor": (_RESIZED,),
    "scatter_nd": (rank_at_least("indices", 1), _scatter_nd),
    "slice": (tf_reshaping.within,),
    "split": (_one_axis, _split, _split_checks),
    "split_v": (_split, _sizes, _split_checks),
    "transpose": (_transpose,),
    "transpose_conv": (*_window("input", "weights"), _transpose_conv),
    "unpack": (_unpack,),
}
"""Operator -> the rules that its operands, results and options keep."""
