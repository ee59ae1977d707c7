"""The effects of ops on lists of tensors, and the facts about a list."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tfconvert.schema.dialects import tf, types
from tfconvert.schema.dialects.tf_traits import IDENTITIES, full_names
from tfconvert.schema.dialects.types import Shape
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value


@dataclass(frozen=True, slots=True)
class ListOp:
    """The roles of an op's operands and results concerning a list.

    Attributes:
        lists: The operands that are lists.
        creates: Whether the first result is also a list; it is the same list if an operand is a list.
        shape: The operand that holds the shape of an element.
        item: The operand that is an element.
        stack: The operand whose rows are elements.
        joined: The operand that concatenates elements along their first dimension.
        results: The role of each result that is not a list: `item`, `stack`, `joined`, or empty.
        resizes: Whether the created list may have another length than the operand.
    """

    lists: tuple[int, ...] = (0,)
    creates: bool = False
    shape: int | None = None
    item: int | None = None
    stack: int | None = None
    joined: int | None = None
    results: tuple[str, ...] = ()
    resizes: bool = False


OPS: Mapping[str, ListOp] = {
    "tf.EmptyTensorList": ListOp((), creates=True, shape=0),
    "tf.TensorListConcat": ListOp(results=("joined", "")),
    "tf.TensorListConcatLists": ListOp((0, 1), creates=True, resizes=True),
    "tf.TensorListConcatV2": ListOp(shape=1, results=("joined", "")),
    "tf.TensorListElementShape": ListOp(),
    "tf.TensorListFromTensor": ListOp((), creates=True, shape=1, stack=0),
    "tf.TensorListGather": ListOp(shape=2, results=("stack",)),
    "tf.TensorListGetItem": ListOp(shape=2, results=("item",)),
    "tf.TensorListLength": ListOp(),
    "tf.TensorListPopBack": ListOp(creates=True, shape=1, results=("", "item"), resizes=True),
    "tf.TensorListPushBack": ListOp(creates=True, item=1, resizes=True),
    "tf.TensorListReserve": ListOp((), creates=True, shape=0),
    "tf.TensorListResize": ListOp(creates=True, resizes=True),
    "tf.TensorListScatter": ListOp((), creates=True, shape=2, stack=0, resizes=True),
    "tf.TensorListScatterIntoExistingList": ListOp(creates=True, stack=1),
    "tf.TensorListScatterV2": ListOp((), creates=True, shape=2, stack=0, resizes=True),
    "tf.TensorListSetItem": ListOp(creates=True, item=2),
    "tf.TensorListSplit": ListOp((), creates=True, shape=1, joined=0),
    "tf.TensorListStack": ListOp(shape=1, results=("stack",)),
}
"""The ops on lists that become ops on tensors."""


FORWARDING = full_names(IDENTITIES | {"AddN", "ZerosLike"})
"""Ops that treat tensors and lists alike."""


@dataclass(eq=False, slots=True)
class ListClass:
    """Values that are one list at different times, or lists that reach the same value.

    Attributes:
        values: The values.
        ops: The ops of `OPS` that create or use them.
        element: The elements' type, or `None` if unknown.
        shape: Their shape, or `None` for an unknown rank.
        length: The number of elements; -1 if it is unknown or changes.
    """

    values: list[Value] = field(default_factory=list)
    ops: list[Operation] = field(default_factory=list)
    element: Attribute | None = None
    shape: Shape | None = None
    length: int = -1

    @property
    def type(self) -> Attribute:
        """The type of the tensor that the list becomes."""
        assert self.element is not None
        return types.tensor(self.element, None if self.shape is None else (self.length, *self.shape))


def changes_length(op: Operation) -> bool:
    """Returns whether the list that an op creates may have another length than its operand, a list or a tensor."""
    return OPS[op.name].resizes or bool(tf.get(op, "resize_if_index_out_of_bounds", False))
