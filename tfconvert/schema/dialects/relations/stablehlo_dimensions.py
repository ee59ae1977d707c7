"""Checks that the dimensions that StableHLO ops name are those of their operands, and results as large as inferred.

What ops compute may rely on it: an axis is one of the operand's, lists have an entry for each dimension, and sizes fit
into the integers of 32 bits that indices have at run time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from tfconvert.schema.dialects import tensor_data, types
from tfconvert.schema.dialects.foreign import StableHLOConstantOp
from tfconvert.schema.dialects.op_table import kind_of
from tfconvert.schema.dialects.stablehlo import MAX_SIZE, SIZE_OPERANDS, ConvAttr, DimensionNumbersAttr
from tfconvert.schema.dialects.stablehlo_inference import Dry, infer, window_counts
from tfconvert.schema.dialects.stablehlo_properties import integer, ints, text
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.attributes import IntegerAttr
from tfconvert.schema.ir.dim import simplified
from tfconvert.schema.ir.errors import VerifyError
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import INDEX, ComplexType, IntegerType
from tfconvert.schema.ir.values import Value

_Check = Callable[[Operation], None]


def check(op: Operation) -> None:
    """Checks an op that has the operands, results and properties of its definition; other dialects' are ignored.

    Raises:
        VerifyError: It names a dimension that isn't there, or its shapes contradict each other.
    """
    own = _CHECKS.get(op.name)
    if own is not None:
        own(op)
    if op.name in _ONE_KIND:
        _one_kind(op, (*op.operands[_ONE_KIND[op.name]], *op.results))
    if op.name in SIZE_OPERANDS:
        _integers(op, [op.operands[index] for index in SIZE_OPERANDS[op.name]])
    _results(op)


class _Known(Dry):
    """The sizes that the types of operands and constants tell, `None` where they don't."""

    __slots__ = ()

    def compute(self, name: str, *operands: int | None, kind: Attribute = INDEX) -> int | None:
        x, y = operands
        return None if x is None or y is None else simplified(name, x, y)

    def sizes(self, value: Value) -> Sequence[int | None]:
        return [None if size < 0 else size for size in value.shape or ()]

    def numbers(self, value: Value) -> Sequence[int | None]:
        owner = value.owner
        constant = owner.properties.get("value") if isinstance(owner, StableHLOConstantOp) else None
        if not tensor_data.is_constant(constant) or not tensor_data.is_small(constant):
            return super().numbers(value)
        return [int(each) for each in tensor_data.to_array(constant).reshape(-1)]


_KNOWN: Final = _Known()


def _results(op: Operation) -> None:
    """Compares the sizes that are inferred with those of the results' types."""
    shapes = [value.shape for value in (*op.operands, *op.results)]
    if None in shapes or any(not types.is_static(shapes[index]) for index in SIZE_OPERANDS.get(op.name, ())):
        return
    found = infer(_KNOWN, op)
    if found is not None:
        _need(op, all(size is None or size >= 0 for size in found), "the sizes")
        _need(op, all(_sizes_agree(_told(found), result.shape) for result in op.results), "the sizes")


def _told(sizes: Sequence[int | None]) -> list[int]:
    """Returns sizes as types have them."""
    return [-1 if size is None else size for size in sizes]


def _rank(value: Value) -> int | None:
    shape = value.shape
    return None if shape is None else len(shape)


def _fail(op: Operation, what: str) -> VerifyError:
    return VerifyError(f"{what} of {op.name} do not fit its operands and results")


def _need(op: Operation, holds: bool, what: str) -> None:
    if not holds:
        raise _fail(op, what)


def _are_axes(axes: Sequence[int], rank: int | None) -> bool:
    """Returns whether dimensions are different ones of a tensor."""
    return rank is None or (len(set(axes)) == len(axes) and all(0 <= axis < rank for axis in axes))


def _sizes_agree(one: Sequence[int] | None, other: Sequence[int] | None) -> bool:
    """Returns whether two shapes may be the same."""
    if one is None or other is None:
        return True
    return len(one) == len(other) and all(
        left == right or left < 0 or right < 0 for left, right in zip(one, other, strict=True)
    )


def _lists(op: Operation, rank: int | None, names: Sequence[str], minimum: int) -> None:
    """Checks lists that have a number for each dimension, if they are there."""
    for name in names:
        found = ints(op, name)
        if name in op.properties and rank is not None:
            _need(op, len(found) == rank and all(minimum <= each for each in found), f"the {name}")


def _vector(op: Operation, operand: int, length: int | None) -> None:
    """Checks an operand that has an element for each dimension."""
    shape = op.operands[operand].shape
    _need(op, length is None or shape is None or _sizes_agree(shape, (length,)), f"the elements of operand {operand}")


def _one_kind(op: Operation, values: Sequence[Value]) -> None:
    """Checks that values are all floats, or all integers: some ops compute in a wider type than that of operands."""
    _need(op, len({kind_of(value.element) for value in values}) == 1, "the elements")


def _product_kinds(op: Operation) -> None:
    """Checks the operands of a product; those of integers may be summed as floats, but not the other way round."""
    one, other, result = (kind_of(value.element) for value in (*op.operands[:2], *op.results))
    narrower = {"f": "bi", "i": "b"}.get(result, "")
    _need(op, all(kind == result or kind in narrower for kind in (one, other)), "the elements")


def _integers(op: Operation, values: Sequence[Value]) -> None:
    """Checks operands that are sizes, positions or indices."""
    for value in values:
        element = value.element
        fits = element is INDEX or (isinstance(element, IntegerType) and element is not types.I1)
        _need(op, fits, "the elements of sizes or indices")


def _starts(op: Operation, values: Sequence[Value]) -> None:
    """Checks operands that are the start of a slice along one dimension each."""
    _integers(op, values)
    _need(op, all(value.shape in ((), None) for value in values), "the start indices")


def _broadcast(op: Operation) -> None:
    axes = ints(op, "broadcast_dimensions")
    own, result = op.operands[0].shape, op.results[0].shape
    if own is None or result is None:
        return
    fits = len(axes) == len(own) and _are_axes(axes, len(result))
    _need(
        op,
        fits and all(size in (1, -1, result[axis]) or result[axis] < 0 for size, axis in zip(own, axes, strict=True)),
        "the broadcast_dimensions",
    )
    if len(op.operands) > 1:
        _vector(op, 1, len(result))


def _transpose(op: Operation) -> None:
    order, rank = ints(op, "permutation"), _rank(op.operands[0])
    _need(op, rank is None or (len(order) == rank and _are_axes(order, rank)), "the permutation")


def _reshape(op: Operation) -> None:
    own, result = op.operands[0].shape, op.results[0].shape
    if own is None or result is None or min(*own, *result, 0) < 0:
        return
    _need(op, math.prod(own) == math.prod(result), "the elements")


def _axes_of(name: str, *, result: bool = False) -> _Check:
    """Returns the check of dimensions of the first operand, or of the result."""

    def checked(op: Operation) -> None:
        is_one = isinstance(op.properties.get(name), IntegerAttr)
        axes = (integer(op, name),) if is_one else ints(op, name)
        _need(op, _are_axes(axes, _rank((op.results if result else op.operands)[0])), f"the {name}")

    return checked


def _slice(op: Operation) -> None:
    own = op.operands[0].shape
    if own is None:
        return
    _lists(op, len(own), ("start_indices", "limit_indices"), 0)
    _lists(op, len(own), ("strides",), 1)
    bounds = zip(ints(op, "start_indices"), ints(op, "limit_indices"), own, strict=True)
    _need(op, all(start <= limit and (limit <= size or size < 0) for start, limit, size in bounds), "the indices")


def _dynamic_slice(op: Operation) -> None:
    _starts(op, op.operands[1:])
    own = op.operands[0].shape
    if own is None:
        return
    sizes = ints(op, "slice_sizes")
    _lists(op, len(own), ("slice_sizes",), 0)
    fits = len(op.operands) == len(own) + 1 and all(
        size <= whole or whole < 0 for size, whole in zip(sizes, own, strict=True)
    )
    _need(op, fits, "the slice_sizes")


def _dynamic_update_slice(op: Operation) -> None:
    _starts(op, op.operands[2:])
    own, update = (each.shape for each in op.operands[:2])
    if own is None or update is None:
        return
    fits = len(update) == len(own) == len(op.operands) - 2
    _need(op, fits and all(size <= whole or whole < 0 for size, whole in zip(update, own, strict=True)), "the sizes")


def _concatenate(op: Operation) -> None:
    axis, others = integer(op, "dimension"), []
    for shape in (value.shape for value in (*op.results, *op.operands)):
        _need(op, shape is None or 0 <= axis < len(shape), "the dimension")
        others.append(None if shape is None else (*shape[:axis], *shape[axis + 1 :]))
    _need(op, all(_sizes_agree(others[0], other) for other in others), "the sizes")


def _pad(op: Operation) -> None:
    rank = _rank(op.operands[0])
    _lists(op, rank, ("edge_padding_low", "edge_padding_high"), -MAX_SIZE)
    _lists(op, rank, ("interior_padding",), 0)


def _dot_general(op: Operation) -> None:
    _product_kinds(op)
    dims = op.properties["dot_dimension_numbers"]
    lhs, rhs = (each.shape for each in op.operands)
    if lhs is None or rhs is None:
        return
    assert isinstance(dims, DimensionNumbersAttr)
    roles = ("batching", "contracting")
    left, right = ([axis for role in roles for axis in dims.of(f"{side}_{role}_dimensions")] for side in ("lhs", "rhs"))
    batch = len(dims.of("lhs_batching_dimensions"))
    fits = len(left) == len(right) and batch == len(dims.of("rhs_batching_dimensions"))
    _need(op, fits and _are_axes(left, len(lhs)) and _are_axes(right, len(rhs)), "the dimension numbers")
    _need(op, _sizes_agree([lhs[axis] for axis in left], [rhs[axis] for axis in right]), "the sizes")


def _dot(op: Operation) -> None:
    _product_kinds(op)
    lhs, rhs = (each.shape for each in op.operands)
    if lhs is not None and rhs is not None:
        _need(op, {len(lhs), len(rhs)} <= {1, 2} and _sizes_agree(lhs[-1:], rhs[:1]), "the sizes")


def _matrices(op: Operation) -> None:
    """Checks an op on square matrices, the first operand, and others that have as many rows or columns."""
    shape, *others = (each.shape for each in op.operands)
    if shape is not None:
        _need(op, len(shape) >= 2 and _sizes_agree(shape[-1:], shape[-2:-1]), "the sizes")
        for other in others:
            fits = other is None or (len(other) == len(shape) and _sizes_agree(other[:-2], shape[:-2]))
            _need(op, fits, "the sizes")


def _batch_norm(op: Operation) -> None:
    _axes_of("feature_index")(op)
    shape, axis = op.operands[0].shape, integer(op, "feature_index")
    vectors = op.operands[1:4] if op.name == "stablehlo.batch_norm_grad" else op.operands[1:]
    for vector in vectors:
        _need(op, shape is None or _sizes_agree(vector.shape, shape[axis : axis + 1]), "the sizes")
    for same in op.operands[4:5] if len(vectors) == 3 else ():
        _need(op, _sizes_agree(same.shape, shape), "the sizes")


def _fft(op: Operation) -> None:
    kind, lengths = text(op, "fft_type"), ints(op, "fft_length")
    _need(op, len(lengths) in (1, 2, 3) and min(lengths) > 0, "the lengths")
    shape = op.operands[0].shape
    sizes = (*lengths[:-1], lengths[-1] // 2 + 1 if kind == "IRFFT" else lengths[-1])
    _need(op, shape is None or _sizes_agree(shape[-len(lengths) :], sizes), "the lengths")
    for value, is_real in ((op.operands[0], kind == "RFFT"), (op.results[0], kind == "IRFFT")):
        is_complex = isinstance(value.element, ComplexType)
        _need(op, is_complex != is_real, "the elements")


def _window(op: Operation, rank: int) -> None:
    """Checks the lists of a window's dimensions."""
    names = (
        "window_dimensions",
        "window_strides",
        "base_dilations",
        "window_dilations",
        "lhs_dilation",
        "rhs_dilation",
    )
    _lists(op, rank, names, 1)
    padding = op.properties.get("padding")
    if padding is not None:
        assert tensor_data.is_constant(padding)
        found = tensor_data.to_array(padding)
        _need(op, found.shape == (rank, 2) and padding.type.element_type is types.I64, "the padding")
        _need(op, bool(((found >= -MAX_SIZE) & (found <= MAX_SIZE)).all()), "the padding")


def _convolution(op: Operation) -> None:
    _product_kinds(op)
    layouts = op.properties["dimension_numbers"]
    assert isinstance(layouts, ConvAttr)
    values = (op.operands[0], op.operands[1], op.results[0])
    shapes = [value.shape for value in values]
    for shape, layout in zip(shapes, layouts.layouts, strict=True):
        _need(op, shape is None or len(shape) == len(layout), "the dimension numbers")
    rank = len(layouts.lhs) - 2
    _window(op, rank)
    if len(op.operands) > 2:
        _need(op, _sizes_agree(op.operands[2].shape, (rank, 2)), "the padding")
    groups = [integer(op, name) for name in ("feature_group_count", "batch_group_count")]
    _need(op, min(groups) > 0, "the groups")
    if None not in shapes:
        sizes = [
            dict(zip(layout, shape or (), strict=True)) for shape, layout in zip(shapes, layouts.layouts, strict=True)
        ]
        features, inputs, outputs, batch = sizes[0]["f"], sizes[1]["i"], sizes[1]["o"], sizes[0]["b"]
        _need(op, min(features, inputs) < 0 or features == inputs * groups[0], "the features")
        _need(op, outputs < 0 or not any(outputs % count for count in groups), "the groups")
        _need(op, batch < 0 or batch % groups[1] == 0, "the groups")


def _reduce(op: Operation) -> None:
    count = len(op.operands) // 2
    _need(op, len(op.operands) == 2 * count == 2 * len(op.results), "the initial values")
    axes = ints(op, "dimensions")
    own = op.operands[0].shape
    _body(op, 0, [*op.results, *op.results])
    for value, init, result in zip(op.operands[:count], op.operands[count:], op.results, strict=True):
        _one_kind(op, (value, result))
        _need(op, init.element == result.element, "the elements")
        _need(op, _sizes_agree(value.shape, own), "the sizes")
        _need(op, own is None or _are_axes(axes, len(own)), "the dimensions")


def _reduce_window(op: Operation) -> None:
    count = len(op.operands) // 2
    _need(op, len(op.operands) == 2 * count == 2 * len(op.results), "the initial values")
    _body(op, 0, [*op.results, *op.results])
    for value, init, result in zip(op.operands[:count], op.operands[count:], op.results, strict=True):
        _one_kind(op, (value, result))
        _need(op, init.element == result.element, "the elements")
        rank = _rank(value)
        if rank is not None:
            _window(op, rank)


def _select_and_scatter(op: Operation) -> None:
    shape = op.operands[0].shape
    if shape is not None:
        _window(op, len(shape))
        _need(op, _sizes_agree(_told(window_counts(_KNOWN, op)), op.operands[1].shape), "the windows")
    _body(op, 0, [op.operands[0]] * 2, is_predicate=True)
    _body(op, 1, [op.results[0]] * 2)


def _body(op: Operation, region: int, values: Sequence[Value], *, is_predicate: bool = False) -> None:
    """Checks a region that computes with elements of some values.

    Args:
        op: The op.
        region: Which region.
        values: The tensors with elements as each of its arguments has them.
        is_predicate: Whether it returns a boolean; otherwise it returns the first half of its arguments combined with
            the others.
    """
    block = op.regions[region].block
    returned = list(block.last_op.operands) if block.last_op is not None else []
    _need(op, len(block.args) == len(values), "the arguments of a region")
    _need(op, len(returned) == (1 if is_predicate else len(values) // 2), "the values of a region")
    for argument, value in zip(block.args, values, strict=True):
        _scalar(op, argument, value.element, "the arguments of a region")
    if is_predicate:
        _scalar(op, returned[0], types.I1, "the values of a region")
    else:
        for result, value in zip(returned, values, strict=False):
            _scalar(op, result, value.element, "the values of a region")


def _reduce_precision(op: Operation) -> None:
    _need(op, integer(op, "exponent_bits") > 0, "the exponent_bits")
    _need(op, integer(op, "mantissa_bits") >= 0, "the mantissa_bits")


def _gather(op: Operation) -> None:
    dims = op.properties["dimension_numbers"]
    assert isinstance(dims, DimensionNumbersAttr)
    own, indices, result = _rank(op.operands[0]), op.operands[1].shape, _rank(op.results[0])
    _integers(op, [op.operands[1]])
    if own is None or indices is None or result is None:
        return
    if op.name == "stablehlo.dynamic_gather":
        _vector(op, 2, own)
    left_out = (*dims.of("collapsed_slice_dims"), *dims.of("operand_batching_dims"))
    _indexed(op, dims, "start_index_map", ("operand_batching_dims", "start_indices_batching_dims"), own, indices)
    fits = _are_axes(left_out, own) and _are_axes(dims.of("offset_dims"), result)
    batch = len(indices) - (dims.dims[-1] != len(indices))
    offsets = len(dims.of("offset_dims"))
    _need(op, fits and offsets == own - len(left_out) and result == batch + offsets, "the dimension numbers")
    if op.name == "stablehlo.gather":
        sizes = ints(op, "slice_sizes")
        whole = op.operands[0].shape or ()
        _lists(op, own, ("slice_sizes",), 0)
        fits = all(size <= limit or limit < 0 for size, limit in zip(sizes, whole, strict=True))
        _need(op, fits and all(sizes[axis] <= 1 for axis in left_out), "the slice_sizes")


def _scatter(op: Operation) -> None:
    dims = op.properties["scatter_dimension_numbers"]
    count = len(op.results)
    _need(op, len(op.operands) == 2 * count + 1, "the operands")
    _body(op, 0, [*op.results, *op.results])
    for values in zip(op.operands[:count], op.operands[count + 1 :], op.results, strict=True):
        _one_kind(op, values)
        _need(op, _sizes_agree(*(each.shape for each in values[::2])), "the sizes")
    assert isinstance(dims, DimensionNumbersAttr)
    own, indices, update = _rank(op.operands[0]), op.operands[count].shape, _rank(op.operands[count + 1])
    _integers(op, [op.operands[count]])
    if own is None or indices is None or update is None:
        return
    left_out = (*dims.of("inserted_window_dims"), *dims.of("input_batching_dims"))
    roles = ("input_batching_dims", "scatter_indices_batching_dims")
    _indexed(op, dims, "scatter_dims_to_operand_dims", roles, own, indices)
    fits = _are_axes(left_out, own) and _are_axes(dims.of("update_window_dims"), update)
    batch = len(indices) - (dims.dims[-1] != len(indices))
    offsets = len(dims.of("update_window_dims"))
    _need(op, fits and offsets == own - len(left_out) and update == batch + offsets, "the dimension numbers")


def _indexed(
    op: Operation, dims: DimensionNumbersAttr, role: str, batching: tuple[str, str], own: int, indices: Sequence[int]
) -> None:
    """Checks the dimensions of the indices of a gather or scatter, and those of the operand that they index."""
    vector = dims.dims[-1]
    assert isinstance(vector, int)
    axes, (outer, inner) = dims.of(role), (dims.of(name) for name in batching)
    fits = 0 <= vector <= len(indices) and _are_axes((*axes, *outer), own) and len(outer) == len(inner)
    length = indices[vector] if 0 <= vector < len(indices) else 1
    fits = fits and _are_axes(inner, len(indices)) and vector not in inner and length in (-1, len(axes))
    _need(op, fits, "the dimension numbers")


def _sort(op: Operation) -> None:
    _need(op, len(op.results) == len(op.operands), "the results")
    _body(op, 0, [each for value in op.operands for each in (value, value)], is_predicate=True)
    axis = integer(op, "dimension", -1)
    for value, result in zip(op.operands, op.results, strict=True):
        _one_kind(op, (value, result))
        rank = _rank(value)
        _need(op, rank is None or -rank <= axis < max(rank, 1), "the dimension")
        for each in (value, result):
            _need(op, _sizes_agree(each.shape, op.operands[0].shape), "the sizes")


def _select(op: Operation) -> None:
    predicate, one, other = (each.shape for each in op.operands)
    _need(op, op.operands[0].element is types.I1, "the elements of the first operand")
    _need(op, _sizes_agree(one, other) and (predicate == () or _sizes_agree(predicate, one)), "the sizes")


def _clamp(op: Operation) -> None:
    low, value, high = (each.shape for each in op.operands)
    _need(op, all(bound == () or _sizes_agree(bound, value) for bound in (low, high)), "the sizes")


def _same_shape(op: Operation) -> None:
    first = op.operands[0].shape
    for value in (*op.operands[1:], *op.results):
        _need(op, _sizes_agree(first, value.shape), "the sizes")


def _scalar(op: Operation, value: Value, element: Attribute, what: str = "the types of conditions") -> None:
    fits = value.element == element and value.shape in ((), None)
    _need(op, fits, what)


def _while(op: Operation) -> None:
    kinds = list(op.operand_types)
    condition = op.regions[0].block.last_op
    _need(op, condition is not None and len(condition.operands) == 1, "the conditions")
    assert condition is not None
    _scalar(op, condition.operands[0], types.I1)
    for region in op.regions:
        _need(op, _agree([argument.type for argument in region.block.args], kinds), "the arguments of a region")
    last = op.regions[1].block.last_op
    _need(op, _agree(list(op.result_types), kinds), "the results")
    _need(op, last is not None and _agree(list(last.operand_types), kinds), "the values that its body returns")


def _branches(op: Operation) -> None:
    _scalar(op, op.operands[0], types.I1 if op.name == "stablehlo.if" else types.I32)
    for region in op.regions:
        last = region.block.last_op
        returned = [] if last is None else list(last.operand_types)
        _need(op, not region.block.args and _agree(returned, list(op.result_types)), "the values that a branch returns")


def _agree(ones: Sequence[object], others: Sequence[object]) -> bool:
    """Returns whether values of some types may be values of others."""
    if len(ones) != len(others):
        return False
    return all(one is other or _types_agree(one, other) for one, other in zip(ones, others, strict=True))


def _types_agree(one: object, other: object) -> bool:
    a, b = (getattr(each, "element_type", each) for each in (one, other))
    return a == b and _sizes_agree(getattr(one, "shape", None), getattr(other, "shape", None))


def _shape_operand(op: Operation) -> None:
    _vector(op, len(op.operands) - 1, _rank(op.results[0]))


def _dynamic_iota(op: Operation) -> None:
    _axes_of("iota_dimension", result=True)(op)
    _shape_operand(op)


def _bounds(op: Operation) -> None:
    for operand in SIZE_OPERANDS[op.name]:
        _vector(op, operand, _rank(op.operands[0]))
    _need(
        op, None in (ranks := (_rank(op.operands[0]), _rank(op.results[0]))) or ranks[0] == ranks[1], "the dimensions"
    )


# The operands that have elements of the results' kind, but for those that are checked one by one.
_ONE_KIND: Mapping[str, slice] = {
    f"stablehlo.{name}": operands
    for name, operands in {
        "dynamic_broadcast_in_dim": slice(1),
        "dynamic_gather": slice(1),
        "dynamic_pad": slice(2),
        "dynamic_reshape": slice(1),
        "dynamic_slice": slice(1),
        "dynamic_update_slice": slice(2),
        "gather": slice(1),
        "real_dynamic_slice": slice(1),
        "select": slice(1, 3),
        "select_and_scatter": slice(3),
        "set_dimension_size": slice(1),
        "triangular_solve": slice(2),
    }.items()
}

_CHECKS: Mapping[str, _Check] = {
    f"stablehlo.{name}": check
    for name, check in {
        "batch_norm_grad": _batch_norm,
        "batch_norm_inference": _batch_norm,
        "batch_norm_training": _batch_norm,
        "broadcast_in_dim": _broadcast,
        "case": _branches,
        "cholesky": _matrices,
        "clamp": _clamp,
        "compare": _same_shape,
        "complex": _same_shape,
        "concatenate": _concatenate,
        "convert": _same_shape,
        "convolution": _convolution,
        "dot": _dot,
        "dot_general": _dot_general,
        "dynamic_broadcast_in_dim": _broadcast,
        "dynamic_conv": _convolution,
        "dynamic_gather": _gather,
        "dynamic_iota": _dynamic_iota,
        "dynamic_pad": _bounds,
        "dynamic_reshape": _shape_operand,
        "dynamic_slice": _dynamic_slice,
        "dynamic_update_slice": _dynamic_update_slice,
        "fft": _fft,
        "gather": _gather,
        "get_dimension_size": _axes_of("dimension"),
        "if": _branches,
        "imag": _same_shape,
        "iota": _axes_of("iota_dimension", result=True),
        "is_finite": _same_shape,
        "pad": _pad,
        "real": _same_shape,
        "real_dynamic_slice": _bounds,
        "reduce": _reduce,
        "reduce_precision": _reduce_precision,
        "reduce_window": _reduce_window,
        "reshape": _reshape,
        "reverse": _axes_of("dimensions"),
        "scatter": _scatter,
        "select": _select,
        "select_and_scatter": _select_and_scatter,
        "set_dimension_size": _axes_of("dimension"),
        "slice": _slice,
        "sort": _sort,
        "transpose": _transpose,
        "triangular_solve": _matrices,
        "while": _while,
    }.items()
}
