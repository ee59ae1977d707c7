"""Lists of tensors: the values of variants that `TensorList` ops create, and the state behind `TensorArray` handles.

A list is a scalar object array that holds a `TensorList`, which is never written to. An element that was reserved but
not set reads as zeros, of the shape that the list, the reader or the other elements determine.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from tfconvert.ops.call import Array, Call, Dtype, Kernel, Results, boxed, ints, scalar
from tfconvert.schema.dialects.types import Shape

MAX_LENGTH = 1 << 24
"""Lists with more elements are refused; a length is an operand, which may hold anything."""

Elements = tuple[Array | None, ...]


@dataclass(frozen=True, slots=True)
class TensorList:
    """The value of a list.

    Attributes:
        elements: Its elements, `None` where one was not set yet.
        shape: The shape of each, -1 where unknown; `None` for an unknown rank.
        dtype: The type of each.
    """

    elements: Elements
    shape: Shape | None
    dtype: Dtype


@dataclass(slots=True)
class TensorArray:
    """The state behind a handle of a tensor array.

    Attributes:
        content: Its elements.
        is_dynamic: Whether writing past its end makes it longer.
    """

    content: TensorList
    is_dynamic: bool


def _list(call: Call, index: int = 0) -> TensorList:
    value: object = call.inputs[index].item() if call.inputs[index].shape == () else None
    if not isinstance(value, TensorList):
        raise call.bad(f"operand {index} is not a list")
    return value


def _shape(operand: Array) -> Shape | None:
    """Returns the element shape that an operand holds; a scalar leaves it open."""
    return ints(operand) if operand.ndim else None


def _attribute(call: Call, name: str) -> Shape | None:
    """Returns an attribute that is a shape, `None` if it is absent or of unknown rank."""
    return None if call.attributes.get(name) is None else call.integers(name)


def _merged(call: Call, shapes: Iterable[Shape | None]) -> Shape | None:
    """Returns the shape that is all of these."""

    def both(one: Shape | None, other: Shape | None) -> Shape | None:
        if one is None or other is None:
            return other if one is None else one
        merged = tuple(b if a < 0 else a for a, b in zip(one, other, strict=False))
        if len(one) != len(other) or any(b not in (a, -1) for a, b in zip(merged, other, strict=True)):
            raise call.bad(f"elements of shape {list(one)} and {list(other)} don't go into one list")
        return merged

    return reduce(both, shapes, None)


def _zeros(shape: Sequence[int], dtype: Dtype) -> Array:
    return np.full(shape, b"", object) if dtype.kind == "O" else np.zeros(shape, dtype)


def _read(call: Call, value: TensorList, wanted: Shape | None, indices: Iterable[int]) -> list[Array]:
    """Returns elements, zeros for those that were never set."""
    found = []
    for index in indices:
        if not 0 <= index < len(value.elements):
            raise call.bad(f"index {index} is not within the list's {len(value.elements)} elements")
        found.append(value.elements[index])
    shape = _merged(call, (value.shape, wanted))
    if any(element is None for element in found):
        shape = _merged(call, (shape, *(element.shape for element in value.elements if element is not None)))
        if shape is None or -1 in shape:
            raise call.bad("an element that was never set is read, and its shape is not known")
    for element in found:
        _merged(call, (shape, None if element is None else element.shape))
    return [_zeros(shape or (), value.dtype) if element is None else element for element in found]


def _stacked(call: Call, value: TensorList, wanted: Shape | None, indices: Iterable[int]) -> Array:
    elements = _read(call, value, wanted, indices)
    if not elements:
        shape = _merged(call, (value.shape, wanted))
        if shape is None or -1 in shape:
            raise call.bad("no elements are stacked, and their shape is not known")
        return _zeros((0, *shape), value.dtype)
    return np.stack(elements)


def _with(value: TensorList, elements: Iterable[Array | None]) -> Results:
    return (boxed(replace(value, elements=tuple(elements))),)


def _length(call: Call, length: int) -> int:
    if not 0 <= length <= MAX_LENGTH:
        raise call.bad(f"{length} is not a length of a list")
    return length


def _put(call: Call, value: TensorList, index: int, element: Array, grow: bool) -> TensorList:
    """Returns a list with one element set."""
    _merged(call, (value.shape, element.shape))
    elements = list(value.elements)
    if grow and index >= len(elements):
        elements += [None] * (_length(call, index + 1) - len(elements))
    if not 0 <= index < len(elements):
        raise call.bad(f"index {index} is not within the list's {len(elements)} elements")
    elements[index] = element
    return replace(value, elements=tuple(elements))


def _empty(call: Call) -> Results:
    return (boxed(TensorList((), _shape(call.inputs[0]), call.dtype("element_dtype"))),)


def _reserve(call: Call) -> Results:
    length = _length(call, scalar(call.inputs[1]))
    return (boxed(TensorList((None,) * length, _shape(call.inputs[0]), call.dtype("element_dtype"))),)


def _from_tensor(call: Call) -> Results:
    tensor, shape = call.inputs
    if not tensor.ndim:
        raise call.bad("a scalar has no elements")
    known = _merged(call, (_shape(shape), tensor.shape[1:]))
    # Without the dots, strings would come out of a vector as bytes.
    return (boxed(TensorList(tuple(tensor[at, ...] for at in range(len(tensor))), known, tensor.dtype)),)


def _get_item(call: Call) -> Results:
    return (_read(call, _list(call), _shape(call.inputs[2]), [scalar(call.inputs[1])])[0],)


def _set_item(call: Call) -> Results:
    grow = bool(call.attributes.get("resize_if_index_out_of_bounds", False))
    return (boxed(_put(call, _list(call), scalar(call.inputs[1]), call.inputs[2], grow)),)


def _stack(call: Call) -> Results:
    value, count = _list(call), call.integer("num_elements", -1)
    if count >= 0 and count != len(value.elements):
        raise call.bad(f"the list has {len(value.elements)} elements, not {count}")
    return (_stacked(call, value, _shape(call.inputs[1]), range(len(value.elements))),)


def _gather(call: Call) -> Results:
    return (_stacked(call, _list(call), _shape(call.inputs[2]), ints(call.inputs[1])),)


def _push_back(call: Call) -> Results:
    value = _list(call)
    _merged(call, (value.shape, call.inputs[1].shape))
    return _with(value, (*value.elements, call.inputs[1]))


def _push_back_batch(call: Call) -> Results:
    lists, tensor = call.inputs
    result = np.empty(lists.shape, object)
    for index, element in zip(np.ndindex(lists.shape), tensor, strict=True):
        value: object = lists[index]
        if not isinstance(value, TensorList):
            raise call.bad("an operand is not a list")
        result[index] = replace(value, elements=(*value.elements, element))
    return (result,)


def _pop_back(call: Call) -> Results:
    value = _list(call)
    if not value.elements:
        raise call.bad("the list has no elements")
    (last,) = _read(call, value, _shape(call.inputs[1]), [len(value.elements) - 1])
    return (*_with(value, value.elements[:-1]), last)


def _resize(call: Call) -> Results:
    value, length = _list(call), _length(call, scalar(call.inputs[1]))
    return _with(value, (*value.elements[:length], *(None,) * (length - len(value.elements))))


def _concat_lists(call: Call) -> Results:
    one, other = _list(call), _list(call, 1)
    shape = _merged(call, (one.shape, other.shape))
    return (boxed(TensorList(one.elements + other.elements, shape, one.dtype)),)


def _joined(call: Call, elements: Sequence[Array], dtype: Dtype, inner: Shape | None) -> Results:
    """Returns elements joined along their first dimension, and how long each is in it."""
    lengths = np.array([element.shape[0] if element.ndim else 0 for element in elements], np.int64)
    if elements:
        return (np.concatenate(elements), lengths)
    if inner is None or -1 in inner:
        raise call.bad("no elements are joined, and their shape is not known")
    return (_zeros((0, *inner), dtype), lengths)


def _concat(call: Call) -> Results:
    value = _list(call)
    if call.op == "TensorListConcatV2":
        wanted, leading = _shape(call.inputs[1]), ints(call.inputs[2])
    else:
        wanted, leading = _attribute(call, "element_shape"), ()
    shape = _merged(call, (value.shape, wanted))
    inner = None if shape is None else shape[1:]
    elements: list[Array] = []
    for index, element in enumerate(value.elements):
        if element is None and index < len(leading):
            known = replace(value, elements=(None,), shape=None)
            elements += _read(call, known, (leading[index], *(inner or ())), [0])
        else:
            # Elements may differ in their first dimension, so that the list is read one by one.
            elements += _read(call, replace(value, elements=(element,)), wanted, [0])
    return _joined(call, elements, value.dtype, inner)


def _cut(call: Call, tensor: Array, lengths: Sequence[int]) -> Elements:
    if not tensor.ndim or sum(lengths) != tensor.shape[0] or any(length < 0 for length in lengths):
        raise call.bad(f"lengths {list(lengths)} don't add up to the first dimension of {tensor.shape}")
    ends = np.cumsum(lengths)
    return tuple(tensor[end - length : end] for end, length in zip(ends, lengths, strict=True))


def _split(call: Call) -> Results:
    tensor, shape, lengths = call.inputs
    return (boxed(TensorList(_cut(call, tensor, ints(lengths)), _shape(shape), tensor.dtype)),)


def _scattered(call: Call, value: TensorList, tensor: Array, indices: Sequence[int], grow: bool) -> TensorList:
    if len(indices) > len(tensor if tensor.ndim else ()):
        raise call.bad(f"{len(indices)} indices don't fit a tensor of shape {tensor.shape}")
    return reduce(
        lambda changed, pair: _put(call, changed, pair[0], pair[1], grow), zip(indices, tensor, strict=False), value
    )


def _scatter(call: Call) -> Results:
    tensor, indices, shape = call.inputs[:3]
    count = scalar(call.inputs[3]) if len(call.inputs) > 3 else -1
    length = _length(call, max((*ints(indices), -1)) + 1 if count < 0 else count)
    value = TensorList((None,) * length, _shape(shape), tensor.dtype)
    return (boxed(_scattered(call, value, tensor, ints(indices), False)),)


def _scatter_into(call: Call) -> Results:
    return (boxed(_scattered(call, _list(call), call.inputs[1], ints(call.inputs[2]), True)),)


def _element_shape(call: Call) -> Results:
    shape = _list(call).shape
    return (np.array(-1 if shape is None else shape, call.dtype("shape_type", np.int32)),)


def _array(call: Call) -> TensorArray:
    value: object = call.inputs[0].item() if call.inputs[0].shape == () else None
    if not isinstance(value, TensorArray):
        raise call.bad("the operand is not a handle of a tensor array")
    return value


_FLOW = np.zeros((), np.float32)


def _array_new(call: Call) -> Results:
    length = _length(call, scalar(call.inputs[0]))
    content = TensorList((None,) * length, _attribute(call, "element_shape"), call.dtype("dtype"))
    return (boxed(TensorArray(content, bool(call.attributes.get("dynamic_size", False)))), _FLOW)


def _array_write(call: Call) -> Results:
    array = _array(call)
    array.content = _put(call, array.content, scalar(call.inputs[1]), call.inputs[2], array.is_dynamic)
    return (call.inputs[3],)


def _array_read(call: Call) -> Results:
    return (_read(call, _array(call).content, None, [scalar(call.inputs[1])])[0],)


def _array_gather(call: Call) -> Results:
    wanted = _attribute(call, "element_shape")
    return (_stacked(call, _array(call).content, wanted, ints(call.inputs[1])),)


def _array_scatter(call: Call) -> Results:
    array = _array(call)
    array.content = _scattered(call, array.content, call.inputs[2], ints(call.inputs[1]), array.is_dynamic)
    return (call.inputs[3],)


def _array_size(call: Call) -> Results:
    return (np.array(len(_array(call).content.elements), np.int32),)


def _array_concat(call: Call) -> Results:
    content = _array(call).content
    elements = [_read(call, replace(content, elements=(one,)), None, [0])[0] for one in content.elements]
    return _joined(call, elements, content.dtype, _attribute(call, "element_shape_except0"))


def _array_split(call: Call) -> Results:
    array = _array(call)
    array.content = replace(array.content, elements=_cut(call, call.inputs[1], ints(call.inputs[2])))
    return (call.inputs[3],)


def _update_slice(call: Call) -> Results:
    """Puts one tensor into another at a place, which is moved to where it fits."""
    value, update, place = call.inputs
    if update.ndim != value.ndim or any(own > dim for own, dim in zip(update.shape, value.shape, strict=False)):
        raise call.bad(f"a tensor of shape {update.shape} doesn't fit into one of shape {value.shape}")
    starts = np.clip(ints(place), 0, np.subtract(value.shape, update.shape))
    result = value.copy()
    result[tuple(slice(start, start + size) for start, size in zip(starts, update.shape, strict=True))] = update
    return (result,)


KERNELS: Mapping[str, Kernel] = {
    "EmptyTensorList": _empty,
    "TensorArrayCloseV3": lambda call: (),
    "TensorArrayConcatV3": _array_concat,
    "TensorArrayGatherV3": _array_gather,
    "TensorArrayReadV3": _array_read,
    "TensorArrayScatterV3": _array_scatter,
    "TensorArraySizeV3": _array_size,
    "TensorArraySplitV3": _array_split,
    "TensorArrayV3": _array_new,
    "TensorArrayWriteV3": _array_write,
    "TensorListConcat": _concat,
    "TensorListConcatLists": _concat_lists,
    "TensorListConcatV2": _concat,
    "TensorListElementShape": _element_shape,
    "TensorListFromTensor": _from_tensor,
    "TensorListGather": _gather,
    "TensorListGetItem": _get_item,
    "TensorListLength": lambda call: (np.array(len(_list(call).elements), np.int32),),
    "TensorListPopBack": _pop_back,
    "TensorListPushBack": _push_back,
    "TensorListPushBackBatch": _push_back_batch,
    "TensorListReserve": _reserve,
    "TensorListResize": _resize,
    "TensorListScatter": _scatter,
    "TensorListScatterIntoExistingList": _scatter_into,
    "TensorListScatterV2": _scatter,
    "TensorListSetItem": _set_item,
    "TensorListSplit": _split,
    "TensorListStack": _stack,
    "XlaDynamicUpdateSlice": _update_slice,
}
"""Op name -> kernel."""
