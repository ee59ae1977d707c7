"""Sorts, and the largest elements.

LiteRT finds the largest elements of rows, in order, the first of equal ones first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from tfconvert.converter.from_stablehlo.bounds import Number
from tfconvert.converter.from_stablehlo.indexing import signed, unsigned
from tfconvert.converter.from_stablehlo.places import extent
from tfconvert.converter.from_stablehlo.raised_op import RaisedOp, Rows
from tfconvert.converter.ir.constants import is_enumeration, is_repeated
from tfconvert.converter.ir.tensors import EmittedTensor
from tfconvert.converter.rewrite.pattern import need
from tfconvert.schema.dialects import tensor_data
from tfconvert.schema.dialects.stablehlo import EnumeratorAttr
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import BlockArgument, Value


class Key(NamedTuple):
    """One comparison of a comparator.

    Attributes:
        operand: Which operand.
        is_descending: Whether larger elements come first.
    """

    operand: int
    is_descending: bool


def _keys(op: Operation) -> list[Key]:
    """Returns what the comparator of a sort compares, the first key first."""
    last = op.regions[0].block.last_op
    assert last is not None
    found = _compared(last.operands[0])
    need(found is not None, "its comparator isn't a known one")
    assert found is not None
    return found


def _compared(value: Value) -> list[Key] | None:
    """Returns the keys of `a < b`, or of `a < b or a == b and ...`."""
    owner = value.owner
    if not isinstance(owner, Operation):
        return None
    if owner.name == "stablehlo.compare":
        key = _key(owner, {"LT": False, "LE": False, "GT": True, "GE": True})
        return None if key is None else [key]
    if owner.name != "stablehlo.or":
        return None
    first = _compared(owner.operands[0])
    both = owner.operands[1].owner
    if first is None or len(first) > 1 or not isinstance(both, Operation) or both.name != "stablehlo.and":
        return None
    equal, rest = both.operands[0].owner, _compared(both.operands[1])
    if rest is None or not isinstance(equal, Operation) or equal.name != "stablehlo.compare":
        return None
    same = _key(equal, {"EQ": first[0].is_descending})
    return [*first, *rest] if same == first[0] else None


def _key(compare: Operation, directions: dict[str, bool]) -> Key | None:
    direction = compare.properties["comparison_direction"]
    assert isinstance(direction, EnumeratorAttr)
    one, other = map(_element, compare.operands)
    if direction.value not in directions or one is None or other is None:
        return None
    is_descending = directions[direction.value]
    if one % 2 and other == one - 1 and direction.value != "EQ":
        return Key(one // 2, not is_descending)
    return Key(one // 2, is_descending) if one % 2 == 0 and other == one + 1 else None


def _element(value: Value) -> int | None:
    """Returns which argument of the comparator a value is: JAX replaces zeros and NaNs by one of each before."""
    while isinstance(owner := value.owner, Operation):
        if owner.name != "stablehlo.select" or not _is_canonical(owner):
            return None
        value = owner.operands[2]
    return value.index if isinstance(value, BlockArgument) else None


def _is_canonical(select: Operation) -> bool:
    """Returns whether a choice replaces a zero by a zero, or what is not a number by one that isn't."""
    condition, constant = select.operands[0].owner, tensor_data.constant_of(select.operands[1])
    if not isinstance(condition, Operation) or condition.name != "stablehlo.compare" or constant is None:
        return False
    number = tensor_data.to_array(constant)
    direction = condition.properties["comparison_direction"]
    assert isinstance(direction, EnumeratorAttr)
    if direction.value == "NE":
        return condition.operands[0] is condition.operands[1] and bool(np.isnan(number.astype(np.float64)).all())
    compared = tensor_data.constant_of(condition.operands[1])
    return (
        direction.value == "EQ"
        and not number.any()
        and compared is not None
        and not tensor_data.to_array(compared).any()
    )


class _Ordered(NamedTuple):
    """Elements in a type, and of a sign, in which the largest ones are to come first.

    Attributes:
        tensor: The elements.
        back: Returns the elements as they were.
    """

    tensor: EmittedTensor
    back: Callable[[EmittedTensor], EmittedTensor]


def _ordered(x: EmittedTensor, *, is_descending: bool) -> _Ordered:
    dtype = x.dtype
    kind = "f" if dtype.name == "bfloat16" else dtype.kind
    need(kind in "biuf" and (dtype.itemsize <= 4 or dtype == np.int64), f"LiteRT doesn't sort {dtype}")
    if dtype == np.uint32:
        low = -(1 << 31)
        inner = _ordered(signed(x) + low, is_descending=is_descending)
        return _Ordered(inner.tensor, lambda found: unsigned(inner.back(found) + low))
    wide = dtype if dtype.itemsize >= 4 else np.dtype(np.float32 if kind == "f" else np.int32)
    x = x.cast(wide)
    if is_descending:
        return _Ordered(x, lambda found: found.cast(dtype))
    if wide.kind == "f":
        return _Ordered(-x, lambda found: (-found).cast(dtype))
    # The smallest number has no opposite.
    return _Ordered(-1 - x, lambda found: (-1 - found).cast(dtype))


def _top(x: EmittedTensor, count: Number) -> tuple[EmittedTensor, EmittedTensor]:
    values, indices = x.op("TopKV2", x, count, results=2, sorted=True)
    return values, indices


def _along(rows: EmittedTensor, indices: EmittedTensor) -> EmittedTensor:
    """Returns the elements of each row at indices of its own."""
    if rows.dtype == np.uint32:
        return unsigned(_along(signed(rows), indices))
    last = rows.rank - 1
    return rows.op("GatherV2", rows, indices, last, batch_dims=last)  # type: ignore[no-any-return]


def _moved(x: EmittedTensor, axis: int) -> EmittedTensor:
    """Returns a tensor with an axis and the last one exchanged."""
    if axis == x.rank - 1:
        return x
    order = list(range(x.rank))
    order[axis], order[-1] = order[-1], axis
    return x.op("Transpose", x, order)  # type: ignore[no-any-return]


def _sort(raised: RaisedOp) -> Sequence[EmittedTensor]:
    operands, keys = raised.operands, _keys(raised.op)
    need(bool(operands[0].rank), "scalars have no order")
    axis = raised.integer("dimension", -1) % operands[0].rank
    moved = [each if _numbers(each, axis) is not None else _moved(each, axis) for each in operands]
    if len(operands) == 1:
        return [_moved(_values(moved[0], is_descending=keys[0].is_descending), axis)]
    size = extent(operands[0], axis)
    indices: EmittedTensor | None = None
    values: EmittedTensor | None = None
    for key in reversed(keys):
        x = moved[key.operand]
        x = _moved(x, axis) if x is operands[key.operand] else x
        ordered = _ordered(x if indices is None else _along(x, indices), is_descending=key.is_descending)
        found, places = _top(ordered.tensor, size)
        values = ordered.back(found)
        indices = places if indices is None else _along(indices, places)
    assert indices is not None
    assert values is not None
    results = []
    for index, (each, rows) in enumerate(zip(operands, moved, strict=True)):
        found = values if index == keys[0].operand else _carried(each, rows, axis, indices)
        results.append(_moved(found, axis))
    return results


def _values(rows: EmittedTensor, *, is_descending: bool) -> EmittedTensor:
    """Returns rows of numbers in order; what is no number comes last, as LiteRT has it, too."""
    last = rows.rank - 1
    if is_descending or rows.dtype.kind == "f":
        ordered = _ordered(rows, is_descending=is_descending)
        return ordered.back(_top(ordered.tensor, extent(rows, last))[0])
    ordered = _ordered(rows, is_descending=True)
    values = _top(ordered.tensor, extent(rows, last))[0]
    return ordered.back(values.op("ReverseV2", values, [last]))


def _carried(x: EmittedTensor, rows: EmittedTensor, axis: int, indices: EmittedTensor) -> EmittedTensor:
    """Returns an operand in the order of a key; positions are the indices themselves."""
    step = _numbers(x, axis)
    if step is None:
        return _along(rows, indices)
    if step > 0:
        return indices.cast(x.dtype)
    last = extent(x, axis) - 1
    return (last - indices).cast(x.dtype)


def _numbers(x: EmittedTensor, axis: int) -> int | None:
    """Returns 1 where a tensor holds each element's position along an axis, -1 for that from the end."""
    value = x.value
    if isinstance(value.owner, Operation) and value.owner.name == "tf.BroadcastTo":
        value = value.owner.operands[0]
    source = EmittedTensor(x.builder, value, x.known)
    place = axis - x.rank + source.rank
    constant = tensor_data.constant_of(value)
    if constant is not None and place >= 0:
        array = tensor_data.to_array(constant)
        if array.dtype.kind not in "iu" or not array.size or is_repeated(array, place):
            return None
        numbers = np.arange(array.shape[place]).reshape([-1 if each == place else 1 for each in range(array.ndim)])
        return 1 if (array == numbers).all() else -1 if (array == np.flip(numbers, place)).all() else None
    if any(size != 1 for each, size in enumerate(source.shape or ()) if each != place):
        return None
    while isinstance(owner := value.owner, Operation) and owner.name in ("tf.Reshape", "tf.ExpandDims", "tf.Cast"):
        value = owner.operands[0]
    return 1 if is_enumeration(value) else None


def _top_k(raised: RaisedOp) -> Sequence[EmittedTensor]:
    return _largest(raised, raised.operands[0], raised.integer("k"), is_largest=bool(raised.integer("largest", 1)))


def _dynamic_top_k(raised: RaisedOp) -> Sequence[EmittedTensor]:
    x, count = raised.operands
    return _largest(raised, x, raised.reshaped(count, ()).cast(np.int32))


def _largest(raised: RaisedOp, x: EmittedTensor, count: Number, *, is_largest: bool = True) -> Sequence[EmittedTensor]:
    ordered = _ordered(x, is_descending=is_largest)
    values, indices = _top(ordered.tensor, count)
    return [ordered.back(values), indices.cast(raised.dtype(1))]


def _approximate(raised: RaisedOp) -> Sequence[EmittedTensor]:
    """Finds exactly what may be approximated."""
    x, numbers, worst = raised.operands[:3]
    initial = raised.known(worst)
    # Behind the initial values come the shapes of the results, where these are not known.
    need(len(raised.operands) in (4, 6) and initial is not None, "it has other operands than JAX's")
    need(bool(raised.integer("aggregate_to_topk", 1)), "how many candidates it leaves depends on the device")
    need(bool(x.rank), "scalars have no order")
    assert initial is not None
    axis = raised.integer("reduction_dim", -1) % x.rank
    ordered = _ordered(_moved(x, axis), is_descending=bool(initial < 0))
    values, indices = _top(ordered.tensor, raised.integer("top_k"))
    carried = _carried(numbers, numbers if _numbers(numbers, axis) else _moved(numbers, axis), axis, indices)
    return [_moved(each, axis) for each in (ordered.back(values), carried)]


ROWS: Rows = {
    "@ApproxTopK": _approximate,
    "@stablehlo.dynamic_top_k": _dynamic_top_k,
    "sort": _sort,
    "top_k": _top_k,
    "topk": _top_k,
}
