"""Tensor arrays of TensorFlow 1 as lists: the flow that orders an array's ops becomes the list.

The handle is an operand of every op of an array, and a variable of every loop with such an op. There it becomes an
unused number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tfconvert.converter.control_flow.calls import Calls
from tfconvert.converter.ir.edit import replace_op
from tfconvert.converter.ir.tf_builder import TFBuilder
from tfconvert.converter.tensor_lists.lists import groups_of, merged_shape
from tfconvert.schema.diagnostics import ConversionError, Diagnostic
from tfconvert.schema.dialects import tf, types
from tfconvert.schema.dialects.locations import found_at
from tfconvert.schema.dialects.types import Shape
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

PREFIX = "tf.TensorArray"

LIST_TYPE = types.tensor(types.VARIANT, ())
"""The type of a flow that has become a list."""

HANDLE_TYPE = types.tensor(types.I32, ())
"""The type of the number that replaces a handle."""


@dataclass(frozen=True, slots=True)
class ArrayOp:
    """The lowering of an op of a tensor array, and the roles of its operands and results.

    Attributes:
        becomes: Creates the op of a list.
        flow: The operand that is the flow; -1 for none.
        creates: The result that is the flow; -1 for none.
        item: The operand or result that is an element: `o2`, `r0`; may be empty.
        stack: The operand or result that holds elements stacked along its first dimension.
    """

    becomes: Callable[[Made], Sequence[Value]]
    flow: int = -1
    creates: int = -1
    item: str = ""
    stack: str = ""


@dataclass(eq=False, slots=True)
class Array:
    """Tensor arrays that may flow into the same values.

    Attributes:
        element: The elements' type.
        shape: Their shape, `None` for an unknown rank.
        is_dynamic: Whether writing past the end extends one.
    """

    element: Attribute | None = None
    shape: Shape | None = None
    is_dynamic: bool = False


@dataclass(frozen=True, slots=True)
class Made:
    """An op of an array that becomes an op of a list.

    Attributes:
        op: The op.
        array: Its array.
        insert: Inserts before it.
    """

    op: Operation
    array: Array
    insert: TFBuilder

    def shape(self, shape: Shape | None) -> Value:
        """Returns an element's shape as an operand of ops of lists."""
        return self.insert.constant(np.array(-1 if shape is None else shape, np.int32))

    def tensor(self, *leading: int) -> Attribute:
        """Returns the elements' type with some leading dimensions."""
        assert self.array.element is not None
        shape = self.array.shape
        return types.tensor(self.array.element, None if shape is None else (*leading, *shape))


def _new(made: Made) -> Sequence[Value]:
    handle = made.insert.constant(np.array(0, np.int32))
    operands = (made.shape(made.array.shape), made.op.operands[0])
    return [handle, made.insert.tf("TensorListReserve", operands, types.list_of(made.tensor()))]


def _write(made: Made) -> Sequence[Value]:
    _handle, index, value, flow = made.op.operands
    grows = {"resize_if_index_out_of_bounds": made.array.is_dynamic}
    return [made.insert.tf("TensorListSetItem", (flow, index, value), LIST_TYPE, grows)]


def _read(made: Made) -> Sequence[Value]:
    _handle, index, flow = made.op.operands
    return [made.insert.tf("TensorListGetItem", (flow, index, made.shape(made.array.shape)), made.tensor())]


def _gather(made: Made) -> Sequence[Value]:
    _handle, indices, flow = made.op.operands
    count = indices.shape or (-1,)
    return [made.insert.tf("TensorListGather", (flow, indices, made.shape(made.array.shape)), made.tensor(*count))]


def _scatter(made: Made) -> Sequence[Value]:
    _handle, indices, value, flow = made.op.operands
    return [made.insert.tf("TensorListScatterIntoExistingList", (flow, value, indices), LIST_TYPE)]


def _size(made: Made) -> Sequence[Value]:
    return [made.insert.tf("TensorListLength", (made.op.operands[1],), types.tensor(types.I32, ()))]


def _concat(made: Made) -> Sequence[Value]:
    none = made.insert.constant(np.zeros(0, np.int64))
    operands = (made.op.operands[1], made.shape(made.array.shape), none)
    kinds = [result.type for result in made.op.results]
    return made.insert.tf_op("TensorListConcatV2", operands, kinds, {"shape_type": types.I32}).results


def _split(made: Made) -> Sequence[Value]:
    _handle, value, lengths, _flow = made.op.operands
    return [made.insert.tf("TensorListSplit", (value, made.shape(made.array.shape), lengths), LIST_TYPE)]


OPS: Mapping[str, ArrayOp] = {
    "tf.TensorArrayCloseV3": ArrayOp(lambda made: ()),
    "tf.TensorArrayConcatV3": ArrayOp(_concat, flow=1),
    "tf.TensorArrayGatherV3": ArrayOp(_gather, flow=2, stack="r0"),
    "tf.TensorArrayReadV3": ArrayOp(_read, flow=2, item="r0"),
    "tf.TensorArrayScatterV3": ArrayOp(_scatter, flow=3, creates=0, stack="o2"),
    "tf.TensorArraySizeV3": ArrayOp(_size, flow=1),
    "tf.TensorArraySplitV3": ArrayOp(_split, flow=3, creates=0),
    "tf.TensorArrayV3": ArrayOp(_new, creates=1),
    "tf.TensorArrayWriteV3": ArrayOp(_write, flow=3, creates=0, item="o2"),
}
"""The ops of tensor arrays."""


def _handles(op: Operation) -> list[Value]:
    if op.name not in OPS:
        return []
    return [op.results[0] if op.name == "tf.TensorArrayV3" else op.operands[0]]


def _flows(op: Operation) -> list[Value]:
    entry = OPS.get(op.name)
    if entry is None:
        return []
    taken = [op.operands[entry.flow]] if entry.flow >= 0 else []
    return taken + ([op.results[entry.creates]] if entry.creates >= 0 else [])


def _is_handle(value: Value) -> bool:
    return isinstance(value.element, types.ResourceType)


def _is_flow(value: Value) -> bool:
    return value.element == types.F32


def to_lists(calls: Calls) -> None:
    """Converts the tensor arrays of a module to lists.

    Raises:
        ConversionError: An op of a tensor array has no counterpart among those of lists (`tensor-array`), or elements
            contradict each other (`list-elements-differ`); one error for all.
    """
    ops = [op for function in calls.functions.values() for op in function.body.block.ops if op.name.startswith(PREFIX)]
    problems = [_without_counterpart(op) for op in ops if op.name not in OPS]
    handles, flows = groups_of(calls, _is_handle, _handles), groups_of(calls, _is_flow, _flows)
    arrays: dict[Value, Array] = {}
    for op in ops:
        if op.name in OPS:
            array = arrays.setdefault(handles.find(_handles(op)[0]), Array())
            problems += list(_describe(op, array))
    if problems:
        raise ConversionError(problems)
    array_of = {op: arrays[handles.find(_handles(op)[0])] for op in ops}
    flows.retype({flows.find(value) for op in ops for value in _flows(op)}, LIST_TYPE)
    handles.retype(arrays, HANDLE_TYPE)
    for op in ops:
        replace_op(op, OPS[op.name].becomes(Made(op, array_of[op], TFBuilder(op))))


def _describe(op: Operation, array: Array) -> Iterator[Diagnostic]:
    """Merges what an op implies about an array's elements; yields contradictions with other ops."""
    entry = OPS[op.name]
    element = op.properties.get("dtype")
    if element is not None:
        array.element = array.element or element
        if element != array.element:
            yield found_at(op, "list-elements-differ", f"{element} and {array.element} are in the same tensor array")
    array.is_dynamic |= bool(tf.get(op, "dynamic_size", False))
    found = [tf.get(op, "element_shape")]
    for place, cut in ((entry.item, 0), (entry.stack, 1)):
        if place:
            values = op.operands if place[0] == "o" else op.results
            shape = values[int(place[1:])].shape
            found.append(None if shape is None else shape[cut:])
    try:
        array.shape = merged_shape(op, array.shape, found, "tensor array")
    except ConversionError as problem:
        yield from problem.diagnostics


def _without_counterpart(op: Operation) -> Diagnostic:
    if "Grad" in op.name:
        return found_at(
            op,
            "tensor-array",
            "the gradient of a tensor array can't be converted",
            "choose outputs that need no gradient",
        )
    return found_at(
        op, "tensor-array", "this version of the op can't be converted", "export the graph with a newer TensorFlow"
    )
