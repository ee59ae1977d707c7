"""Lists of tensors: the values of variants that `TensorList` ops create, and the state behind handles.

A list is a scalar object array that holds a `TensorList`, which is never written to. An element that was reserved but
not set reads as zeros, of the shape that the list, the reader or the other elements determine. A handle of a tensor
array or of a stack of TensorFlow 1 is a scalar object array that holds its state.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce

import numpy as np

from tfconvert.ops.call import Array, Call, Dtype, Results, boxed, ints, scalar
from tfconvert.ops.declaration import op, ops_like
from tfconvert.ops.operands import Operands
from tfconvert.ops.shape_functions import Shapes
from tfconvert.schema.dialects.dims import dim_of_element
from tfconvert.schema.dialects.relations.rules import holds_one, is_scalar, rank
from tfconvert.schema.dialects.types import Shape

MAX_HEIGHT = 1 << 24
"""A stack that gets higher is refused; a loop may never end."""
MAX_LENGTH = 1 << 24
"""Lists with more elements are refused; a length is an operand, which may hold anything."""
Elements = tuple[Array | None, ...]
_FLOW = np.zeros((), np.float32)


def _list_item_shape(operands: Operands) -> Shapes:
    """Readers of a list's element declare the shape that they expect, -1 where any dimension will do."""
    elements = operands.elements(2) if operands.shape(2) not in ((), None) else None
    if elements is None:
        return (None,)
    return (tuple(-1 if element == -1 else dim_of_element(element) for element in elements),)


@dataclass(slots=True)
class Stack:
    """The state behind a handle of a stack.

    Attributes:
        dtype: The type of each element.
        elements: The elements, the top one last.
    """

    dtype: Dtype
    elements: list[Array] = field(default_factory=list)


def _stack_of(call: Call) -> Stack:
    value: object = call.inputs[0].item() if call.inputs[0].shape == () else None
    if not isinstance(value, Stack):
        raise call.bad("the operand is not a handle of a stack")
    return value


def _new(call: Call) -> Results:
    return (boxed(Stack(call.dtype("elem_type"))),)


def _push(call: Call) -> Results:
    stack, element = _stack_of(call), call.inputs[1]
    if element.dtype != stack.dtype:
        raise call.bad(f"{element.dtype} doesn't go onto a stack of {stack.dtype}")
    if len(stack.elements) >= MAX_HEIGHT:
        raise call.bad(f"the stack has more than {MAX_HEIGHT} elements")
    stack.elements.append(element)
    return (element,)


def _pop(call: Call) -> Results:
    stack = _stack_of(call)
    if not stack.elements:
        raise call.bad("the stack is empty")
    return (stack.elements.pop(),)


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


_ELEMENT_SHAPE = rank("element_shape", 0, 1)
# Graphs, and much text, don't tell what a list holds.
_LIST = holds_one("handle", may_be_unknown=True)


OPS = (
    op("EmptyTensorList", compute=_empty, relations=(_LIST, _ELEMENT_SHAPE, is_scalar("max_num_elements"))),
    *ops_like("StackCloseV2 TensorArrayCloseV3", compute=lambda call: ()),
    op("StackPopV2", compute=_pop),
    op("StackPushV2", compute=_push),
    op("StackV2", compute=_new),
    op("TensorArrayConcatV3", compute=_array_concat),
    op("TensorArrayGatherV3", compute=_array_gather),
    op("TensorArrayReadV3", compute=_array_read),
    op("TensorArrayScatterV3", compute=_array_scatter),
    op("TensorArraySizeV3", compute=_array_size),
    op("TensorArraySplitV3", compute=_array_split),
    op("TensorArrayV3", compute=_array_new),
    op("TensorArrayWriteV3", compute=_array_write),
    *ops_like("TensorListConcat TensorListConcatV2", compute=_concat),
    op("TensorListConcatLists", compute=_concat_lists),
    op("TensorListElementShape", compute=_element_shape),
    op("TensorListFromTensor", compute=_from_tensor),
    op("TensorListGather", compute=_gather),
    op("TensorListGetItem", shape=_list_item_shape, compute=_get_item),
    op("TensorListLength", compute=lambda call: (np.array(len(_list(call).elements), np.int32),)),
    op("TensorListPopBack", compute=_pop_back),
    op("TensorListPushBack", compute=_push_back),
    op("TensorListPushBackBatch", compute=_push_back_batch),
    op("TensorListReserve", compute=_reserve, relations=(_LIST, _ELEMENT_SHAPE, is_scalar("num_elements"))),
    op("TensorListResize", compute=_resize),
    *ops_like("TensorListScatter TensorListScatterV2", compute=_scatter),
    op("TensorListScatterIntoExistingList", compute=_scatter_into),
    op("TensorListSetItem", compute=_set_item),
    op("TensorListSplit", compute=_split),
    op("TensorListStack", compute=_stack, relations=(_ELEMENT_SHAPE,)),
)
