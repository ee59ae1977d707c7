"""Lists and tensor arrays against TensorFlow: small programs, each run on both; and stacks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.ops.comparison import compare
from tfconvert.ops.call import Array, Call, boxed
from tfconvert.ops.registry import evaluate
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.tensorflow import op_defs

F32, I32 = np.dtype(np.float32), np.dtype(np.int32)
X = np.arange(12, dtype=np.float32).reshape(4, 3)

Program = Callable[[Any], Sequence[Any]]


class Kernels:
    """The reference kernels, called as TensorFlow's raw ops are."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        op_def = op_defs.lookup(name)
        assert op_def is not None

        def run(**arguments: Any) -> Any:
            operands = [arguments.pop(arg.name) for arg in op_def.input_arg]
            values = [x if isinstance(x, np.ndarray) else np.array(x, _narrow(x)) for x in operands]
            results = evaluate(Call(name, tuple(values), arguments))
            return results[0] if len(results) == 1 else results

        return run


class Raw:
    """TensorFlow's raw ops, which take element types of its own."""

    def __init__(self, tf: ModuleType) -> None:
        self.tf = tf

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def run(**arguments: Any) -> Any:
            given = {key: self.tf.as_dtype(x) if isinstance(x, np.dtype) else x for key, x in arguments.items()}
            return getattr(self.tf.raw_ops, name)(**given)

        return run


def _narrow(value: Any) -> Any:
    kind = np.asarray(value).dtype.kind
    return {"i": np.int32, "f": np.float32 if np.size(value) else np.int32}.get(kind, object)


def _of(ops: Any, tensor: Any = X, shape: Any = (3,)) -> Any:
    return ops.TensorListFromTensor(tensor=tensor, element_shape=shape)


def _stack(ops: Any, value: Any, shape: Any = (3,), dtype: np.dtype[Any] = F32) -> Any:
    return ops.TensorListStack(input_handle=value, element_shape=shape, element_dtype=dtype, num_elements=-1)


def _get(ops: Any, value: Any, index: int, shape: Any = -1, dtype: np.dtype[Any] = F32) -> Any:
    return ops.TensorListGetItem(input_handle=value, index=index, element_shape=shape, element_dtype=dtype)


def _set(ops: Any, value: Any, index: int, item: Any, grow: bool = False) -> Any:
    return ops.TensorListSetItem(input_handle=value, index=index, item=item, resize_if_index_out_of_bounds=grow)


def _reserve(ops: Any, count: int, shape: Any = (3,), dtype: np.dtype[Any] = F32) -> Any:
    return ops.TensorListReserve(element_shape=shape, num_elements=count, element_dtype=dtype)


def _items(ops: Any) -> Sequence[Any]:
    value = _set(ops, _of(ops), 2, X[0])
    grown = _set(ops, value, 6, X[1], grow=True)
    return [_get(ops, value, 2), _stack(ops, value), ops.TensorListLength(input_handle=grown), _stack(ops, grown)]


def _zeros(ops: Any) -> Sequence[Any]:
    unknown = _set(ops, _reserve(ops, 3, (-1,)), 1, X[1])
    return [
        _get(ops, _reserve(ops, 2), 1),
        _get(ops, _reserve(ops, 2, -1), 1, (2, 2)),
        _stack(ops, unknown, (-1,)),
        _get(ops, unknown, 0),
        _stack(ops, _reserve(ops, 2, (2,), I32), (2,), I32),
    ]


def _ends(ops: Any) -> Sequence[Any]:
    value = ops.EmptyTensorList(element_shape=(3,), max_num_elements=-1, element_dtype=F32)
    for row in X:
        value = ops.TensorListPushBack(input_handle=value, tensor=row)
    shorter, last = ops.TensorListPopBack(input_handle=value, element_shape=(3,), element_dtype=F32)
    both = ops.TensorListConcatLists(input_a=shorter, input_b=value, element_dtype=F32)
    cut = ops.TensorListResize(input_handle=both, size=2)
    longer = ops.TensorListResize(input_handle=both, size=9)
    return [last, *(_stack(ops, each) for each in (value, shorter, both, cut, longer))]


def _whole(ops: Any) -> Sequence[Any]:
    tensor, lengths = ops.TensorListConcatV2(
        input_handle=_of(ops), element_shape=(3,), leading_dims=np.zeros(0, np.int64), element_dtype=F32
    )
    split = ops.TensorListSplit(tensor=X, element_shape=(-1, 3), lengths=np.array([1, 0, 3], np.int64))
    again, parts = ops.TensorListConcat(input_handle=split, element_dtype=F32)
    unset, sizes = ops.TensorListConcatV2(
        input_handle=_reserve(ops, 2, (-1, 2)),
        element_shape=(-1, 2),
        leading_dims=np.array([1, 2], np.int64),
        element_dtype=F32,
    )
    return [tensor, lengths, again, parts, _get(ops, split, 2), unset, sizes]


def _places(ops: Any) -> Sequence[Any]:
    sparse = ops.TensorListScatterV2(tensor=X[:2], indices=(3, 1), element_shape=(3,), num_elements=5)
    least = ops.TensorListScatter(tensor=X, indices=(3, 1, 0, 1), element_shape=(3,))
    into = ops.TensorListScatterIntoExistingList(input_handle=_of(ops), tensor=X[:2], indices=(2, 0))
    some = ops.TensorListGather(input_handle=into, indices=(3, 0, 3), element_shape=(3,), element_dtype=F32)
    shapes = [ops.TensorListElementShape(input_handle=each, shape_type=I32) for each in (sparse, _reserve(ops, 1, -1))]
    return [*(_stack(ops, each) for each in (sparse, least, into)), some, *shapes]


def _batches(ops: Any) -> Sequence[Any]:
    lists = ops.TensorListFromTensor(tensor=X[:2], element_shape=(3,)), _of(ops)
    both = ops.Pack(values=lists, axis=0) if isinstance(ops, Raw) else _boxes(lists)
    longer = ops.TensorListPushBackBatch(input_handles=both, tensor=X[2:])
    parts = ops.Unpack(value=longer, num=2, axis=0) if isinstance(ops, Raw) else [np.array(each) for each in longer]
    return [_stack(ops, each) for each in parts]


def _boxes(lists: Sequence[np.ndarray]) -> np.ndarray:
    both = np.empty(len(lists), object)
    both[:] = [each.item() for each in lists]
    return both


@pytest.mark.parametrize("program", [_items, _zeros, _ends, _whole, _places, _batches])
def test_lists(tf: ModuleType, program: Program) -> None:
    for got, expected in zip(program(Kernels()), program(Raw(tf)), strict=True):
        compare(got, expected.numpy())


def _arrays(ops: Any) -> Sequence[Any]:
    handle, flow = ops.TensorArrayV3(size=2, dtype=F32, element_shape=(3,), dynamic_size=True, clear_after_read=False)
    flow = ops.TensorArrayWriteV3(handle=handle, index=0, value=X[2], flow_in=flow)
    flow = ops.TensorArrayScatterV3(handle=handle, indices=(1, 3, 2), value=X[:3], flow_in=flow)
    size = ops.TensorArraySizeV3(handle=handle, flow_in=flow)
    rows = ops.TensorArrayGatherV3(handle=handle, indices=(3, 0), flow_in=flow, dtype=F32)
    parts, flow_of_parts = ops.TensorArrayV3(size=2, dtype=F32, clear_after_read=False)
    split = ops.TensorArraySplitV3(handle=parts, value=X, lengths=np.array([3, 1], np.int64), flow_in=flow_of_parts)
    joined, lengths = ops.TensorArrayConcatV3(handle=parts, flow_in=split, dtype=F32)
    return [size, rows, ops.TensorArrayReadV3(handle=handle, index=2, flow_in=flow, dtype=F32), joined, lengths]


def test_tensor_arrays(tf: ModuleType) -> None:
    graph = tf.Graph()
    with graph.as_default():
        expected = list(_arrays(Raw(tf)))
    with tf.compat.v1.Session(graph=graph) as session:
        for got, wanted in zip(_arrays(Kernels()), session.run(expected), strict=True):
            compare(got, wanted)


@pytest.mark.parametrize(
    "program",
    [
        lambda ops: _get(ops, _of(ops), 4),
        lambda ops: _set(ops, _of(ops), 4, X[0]),
        lambda ops: _set(ops, _of(ops), 0, X),
        lambda ops: _stack(ops, _of(ops), (4,)),
        lambda ops: _stack(ops, _reserve(ops, 2, -1), -1),
        lambda ops: _stack(ops, _reserve(ops, 0, -1), -1),
        lambda ops: _reserve(ops, -1),
        lambda ops: ops.TensorListPopBack(input_handle=_reserve(ops, 0), element_shape=(3,), element_dtype=F32),
        lambda ops: ops.TensorListSplit(tensor=X, element_shape=(-1, 3), lengths=np.array([1, 2], np.int64)),
        lambda ops: ops.TensorListLength(input_handle=X),
        lambda ops: ops.TensorListFromTensor(tensor=1.0, element_shape=()),
        lambda ops: ops.TensorListPushBackBatch(input_handles=X[:, 0].astype(object), tensor=X),
        lambda ops: ops.TensorListStack(input_handle=_of(ops), element_shape=(3,), element_dtype=F32, num_elements=3),
        lambda ops: ops.TensorListConcat(input_handle=_reserve(ops, 0, -1), element_dtype=F32),
        lambda ops: ops.TensorArraySizeV3(handle=np.array(0.0), flow_in=0.0),
    ],
)
def test_what_lists_refuse(program: Program) -> None:
    with pytest.raises(ConversionError) as caught:
        program(Kernels())
    assert caught.value.code == "bad-operand"


def test_an_update_fits() -> None:
    with pytest.raises(ConversionError, match="doesn't fit"):
        evaluate(Call("XlaDynamicUpdateSlice", (X[:1], X, np.zeros(2, np.int32)), {}))


@pytest.mark.parametrize(("place", "row"), [((1, 0), 1), ((9, 5), 3), ((-1, 0), 0)])
def test_an_update_is_moved_to_where_it_fits(place: tuple[int, int], row: int) -> None:
    (result,) = evaluate(Call("XlaDynamicUpdateSlice", (X, -X[:1], np.array(place, np.int32)), {}))
    expected = X.copy()
    expected[row] = -X[0]
    compare(result, expected)


def _new_stack() -> Array:
    (handle,) = evaluate(Call("StackV2", (np.array(-1),), {"elem_type": np.dtype(np.float32)}))
    return handle


def test_what_is_pushed_last_is_popped_first() -> None:
    stack, other = _new_stack(), _new_stack()
    for value in (1.0, 2.0):
        (pushed,) = evaluate(Call("StackPushV2", (stack, np.array([value], np.float32)), {}))
        np.testing.assert_array_equal(pushed, [value])
    evaluate(Call("StackPushV2", (other, np.array([3.0], np.float32)), {}))
    popped = [evaluate(Call("StackPopV2", (stack,), {}))[0].item() for _ in range(2)]
    assert popped == [2.0, 1.0]
    assert evaluate(Call("StackCloseV2", (stack,), {})) == ()


@pytest.mark.parametrize(
    "call",
    [
        Call("StackPopV2", (_new_stack(),), {}),
        Call("StackPopV2", (boxed("no stack"),), {}),
        Call("StackPopV2", (np.zeros(2),), {}),
        Call("StackPushV2", (_new_stack(), np.array([1])), {}),
    ],
)
def test_what_no_stack_can_do(call: Call) -> None:
    with pytest.raises(ConversionError) as caught:
        evaluate(call)
    assert caught.value.code == "bad-operand"


def test_nothing_is_left_of_a_closed_array() -> None:
    ops = Kernels()
    handle, _ = ops.TensorArrayV3(size=2, dtype=F32)
    assert evaluate(Call("TensorArrayCloseV3", (handle,), {})) == ()
