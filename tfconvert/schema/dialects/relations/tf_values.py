"""Relations of `tf` ops that choose, count, compare, or handle lists and variables."""

from __future__ import annotations

from collections.abc import Mapping

from tfconvert.schema.dialects import types
from tfconvert.schema.dialects.relations import tf_traits
from tfconvert.schema.dialects.relations.rules import (
    Rule,
    at_least,
    broadcast,
    check_axis,
    constant_axis_of,
    contradict,
    every,
    rank,
    rank_at_least,
    rank_at_most,
    same_dims,
    same_types,
    scalar,
    size,
    vector,
)
from tfconvert.schema.dialects.relations.view import View
from tfconvert.schema.ir.attribute import Attribute


def _one_hot(view: View) -> None:
    shape, axis = view.shape("indices"), view.integer("axis", -1)
    most = len(shape) if shape is not None else axis
    if not -1 <= axis <= most:
        view.fail(f"the attribute 'axis' must be -1 or from 0 to the rank of 'indices', found {axis}")


def _gather(view: View) -> None:
    params, indices, batch = view.shape("params"), view.shape("indices"), view.integer("batch_dims")
    if indices is not None:
        if not -len(indices) <= batch <= len(indices):
            view.fail(f"the attribute 'batch_dims' must be at most the rank of 'indices', found {batch}")
        batch += len(indices) if batch < 0 else 0
    axes = view.integers("axis")
    if not axes:
        return
    axis = axes[0]
    if params is not None:
        check_axis(view, "'axis'", axis, len(params))
        axis += len(params) if axis < 0 else 0
    if 0 <= axis < batch:
        view.fail(f"'axis' must be at least the attribute 'batch_dims' ({batch}), found {axis}")


def _stitch(view: View) -> None:
    if view.shape("merged") == ():
        view.fail(f"'merged' must not be a scalar, found {view.type('merged')}")
    item: tuple[int, ...] | None = None
    for index, data in zip(view.values("indices"), view.values("data"), strict=False):
        places, shape = types.shape_of(index.type), types.shape_of(data.type)
        if places is None or shape is None:
            continue
        if len(places) > len(shape) or contradict(places, shape[: len(places)]):
            view.fail(f"the shape of its indices must be a prefix of that of 'data', found {index.type}, {data.type}")
        rest = shape[len(places) :]
        if item is not None and contradict(item, rest):
            view.fail(f"all items of 'data' must have one shape, found {item} and {rest}")
        item = rest if item is None else tuple([max(pair) for pair in zip(item, rest, strict=True)])
    _check_stitched(view, item)


def _check_stitched(view: View, item: tuple[int, ...] | None) -> None:
    """Checks what constant indices determine: that none is missing, and how many there are."""
    places: set[int] = set()
    for index in view.values("indices"):
        array = View(view.op, {"": (index,)}).integers("")
        if array is None:
            return
        places.update(array)
    if min(places, default=0) < 0:
        view.fail(f"'indices' must not be negative, found {min(places)}")
    count = max(places, default=-1) + 1
    missing = set(range(count)) - places
    if missing:
        view.fail(f"'indices' must hold all from 0 to {count - 1}, {min(missing)} is missing")
    result = view.shape("merged")
    if item is not None and result is not None and contradict((count, *item), result):
        view.fail(f"'merged' must have the shape {[count, *item]}, found {view.type('merged')}")


def _permuted_format(view: View) -> None:
    shape = view.shape("x")
    if shape is not None and len(shape) == 1:
        size("x", 0, 2, 4)(view)
    elif shape is not None:
        every(size("x", 0, 4), size("x", 1, 2))(view)


def _offsets(view: View) -> None:
    count = None
    for shape, offset in zip(view.values("shape"), view.values("offset"), strict=False):
        one, other = types.shape_of(shape.type), types.shape_of(offset.type)
        if one is not None and other is not None and contradict(one, other):
            view.fail(f"its operand and result must have one shape, found {shape.type} and {offset.type}")
        if one is None:
            continue
        if len(one) != 1:
            view.fail(f"'shape' must have rank 1, found {shape.type}")
        if one[0] >= 0 and count not in (None, one[0]):
            view.fail(f"'shape' must have as many elements each, found {count} and {one[0]}")
        count = one[0] if one[0] >= 0 else count


def _gradient_args(view: View) -> None:
    one, other = view.integers("s0"), view.integers("s1")
    if one is None or other is None:
        return
    both = broadcast(one, other)
    if both is None:
        view.fail(f"'s0' and 's1' must be shapes that broadcast, found {one} and {other}")
    for name, count in zip(("r0", "r1"), _reduced(one, other, both), strict=True):
        found = view.dim(name, 0)
        if found not in (-1, count):
            view.fail(f"{name!r} must have {count} elements, found {found}")


def _reduced(one: list[int], other: list[int], both: tuple[int, ...]) -> tuple[int, int]:
    """Returns along how many dimensions the gradients of two broadcast operands are summed."""
    if one == other:
        return 0, 0
    return len(both) - len(one) + one.count(1), len(both) - len(other) + other.count(1)


def _select(view: View) -> None:
    same_types("t", "e")(view)
    shapes = [shape for shape in (view.shape("t"), view.shape("e")) if shape is not None]
    chosen = view.shape("condition")
    if not shapes or not chosen or len(chosen) == len(shapes[0]):
        return
    if len(chosen) != 1 or not shapes[0]:
        view.fail(
            f"'condition' must be a scalar, a vector, or have the rank of 't' and 'e', found {view.type('condition')}"
        )
    first = max(shape[0] for shape in shapes)
    if first >= 0 and chosen[0] >= 0 and first != chosen[0]:
        view.fail(f"'condition' must have as many elements as 't' and 'e' have rows ({first}), found {chosen[0]}")


def _check_shape(view: View, of: Attribute | None, result: Attribute) -> None:
    """Checks a result that is the shape of a value."""
    shape, found = types.shape_of(of) if of is not None else None, types.shape_of(result)
    if found is None:
        return
    if len(found) != 1:
        view.fail(f"its result must be a vector, found {result}")
    if shape and found[0] not in (-1, len(shape)):
        view.fail(
            f"its result must have as many elements as its operand has dimensions ({len(shape)}), found {found[0]}"
        )


def _shapes(view: View) -> None:
    for operand, result in zip(view.op.operands, view.op.results, strict=True):
        _check_shape(view, operand.type, result.type)


def _variable_shape(view: View) -> None:
    shape = view.shape("input")
    if shape is not None and -1 not in shape and any(dim != 1 for dim in shape):
        view.fail(f"'input' must be one resource, found {view.type('input')}")
    handle = view.type("input")
    _check_shape(view, None if handle is None else types.held_by(handle), view.op.results[0].type)


def _holds_one(name: str, *, may_be_unknown: bool = False) -> Rule:
    """Returns the rule that a handle's type has exactly one subtype; or none, if that may be unknown."""

    def rule(view: View) -> None:
        element = types.element_of(view.type(name) or types.VARIANT)
        count = len(element.subtypes) if isinstance(element, types.HandleType) else 1
        if count != 1 and not (may_be_unknown and not count):
            view.fail(f"{name!r} must have one subtype, found {view.type(name)}")

    return rule


def _scatter(view: View) -> None:
    shape, length = view.shape("tensor"), view.dim("indices", -1)
    if shape is not None and length > len(shape):
        view.fail(f"the last dimension of 'indices' ({length}) must be at most the rank of 'tensor', {len(shape)}")


def _cross_entropy(view: View) -> None:
    features, labels = view.shape("features"), view.shape("labels")
    if features is None or labels is None:
        return
    both = broadcast(features, labels)
    if both is None or len(both) != 2:
        view.fail(
            f"'features' and 'labels' must broadcast to rank 2, found {view.type('features')} and {view.type('labels')}"
        )


def _equal(view: View) -> None:
    if view.attribute("incompatible_shape_error"):
        tf_traits.broadcasts(view)


def _two_at_most(view: View) -> None:
    if len(view.values("inputs")) > 2:
        view.fail(f"it takes at most two operands, found {len(view.values('inputs'))}")


def _partitions(view: View) -> None:
    dims, is_packed = view.list("partition_dims"), bool(view.attribute("is_packed"))
    count = 1
    for dim in dims:
        count *= dim
    expected = 1 if is_packed else count
    if (dims or is_packed) and len(view.values("inputs")) != expected:
        view.fail(f"expected {expected} operands, found {len(view.values('inputs'))}")


def _updated_variables(view: View) -> None:
    count = sum(isinstance(types.element_of(value.type), types.ResourceType) for value in view.values("args"))
    for name, least in (("device_var_reads_indices", 0), ("device_var_updates_indices", -1)):
        found = view.list(name)
        if len(found) != count:
            view.fail(
                f"the attribute {name!r} must have an item for each resource of 'args', {count}, found {len(found)}"
            )
        if min(found, default=least) < least:
            view.fail(f"the attribute {name!r} must be at least {least}, found {found}")


_ELEMENT_SHAPE = rank("element_shape", 0, 1)
# Graphs, and many a text, don't tell what a list holds.
_LIST = _holds_one("handle", may_be_unknown=True)

RULES: Mapping[str, Rule] = {
    **dict.fromkeys(
        ("All", "Any"), every(rank_at_most("reduction_indices", 1), constant_axis_of("reduction_indices", "input"))
    ),
    "BroadcastGradientArgs": every(vector("s0", "s1", "r0", "r1"), _gradient_args),
    **dict.fromkeys(("Case", "StatelessCase"), scalar("branch_index")),
    "ConcatOffset": every(scalar("concat_dim"), _offsets),
    "DataFormatVecPermute": every(rank("x", 1, 2), _permuted_format),
    "DynamicStitch": _stitch,
    "Einsum": _two_at_most,
    "EmptyTensorList": every(_LIST, _ELEMENT_SHAPE, scalar("max_num_elements")),
    **dict.fromkeys(("Equal", "NotEqual"), _equal),
    "GatherV2": every(rank_at_most("axis", 1), _gather),
    "InvertPermutation": vector("x"),
    "MatrixBandPart": every(rank_at_least("input", 2), scalar("num_lower", "num_upper")),
    "OneHot": every(_one_hot, scalar("depth", "on_value", "off_value"), at_least("depth", 0)),
    "Qr": rank_at_least("input", 2),
    "RandomUniform": vector("shape"),
    "Select": _select,
    **dict.fromkeys(("Shape", "ShapeN"), _shapes),
    "Size": scalar("output"),
    "Softmax": rank_at_least("logits", 1),
    "SoftmaxCrossEntropyWithLogits": _cross_entropy,
    "SparseSoftmaxCrossEntropyWithLogits": every(
        rank("features", 2), vector("labels"), same_dims("features", 0, "labels", 0)
    ),
    "TPUExecuteAndUpdateVariables": _updated_variables,
    "TPUPartitionedInputV2": _partitions,
    "TensorListReserve": every(_LIST, _ELEMENT_SHAPE, scalar("num_elements")),
    "TensorListStack": _ELEMENT_SHAPE,
    "TensorScatterUpdate": every(rank_at_least("tensor", 1), rank_at_least("indices", 1), _scatter),
    "ToBool": scalar("output"),
    "VarHandleOp": _holds_one("resource"),
    "VariableShape": _variable_shape,
}
"""Op -> the rule that its operands, results and attributes keep."""
