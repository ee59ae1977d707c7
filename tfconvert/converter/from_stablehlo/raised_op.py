"""The view of a StableHLO op that its row has: its operands as tensors of formulas, its properties as Python values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tfconvert.converter.ir.constants import constant_array
from tfconvert.converter.ir.tensors import EmittedTensor
from tfconvert.converter.ir.tf_builder import TFBuilder
from tfconvert.converter.rewrite.pattern import Declined
from tfconvert.ops.operands import Known
from tfconvert.schema.dialects import dims, tensor_data, types
from tfconvert.schema.dialects.stablehlo import EnumeratorAttr
from tfconvert.schema.dialects.types import Shape
from tfconvert.schema.ir.attributes import DenseArrayAttr, IntegerAttr, StringAttr, SymbolRefAttr
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

BROADCAST = "tf.BroadcastTo"


class RaisedOp:
    """A StableHLO op that is to be replaced.

    Attributes:
        op: The op.
        operands: Its operands.
    """

    __slots__ = ("_builder", "_known", "op", "operands")

    def __init__(self, op: Operation, known: Known) -> None:
        self.op = op
        self._known = known
        self._builder = TFBuilder(op)
        self.operands = [self.tensor(operand) for operand in op.operands]

    def tensor(self, value: Value) -> EmittedTensor:
        """Returns a value as a tensor of a formula."""
        return EmittedTensor(self._builder, value, self._known)

    def constant(self, value: Any, dtype: Any = None) -> EmittedTensor:
        """Returns a constant; its dtype is the result's by default."""
        dtype = self.dtype() if dtype is None else np.dtype(dtype)
        return self.tensor(self._builder.constant(np.asarray(value, dtype), types.from_dtype(dtype).mlir))

    def constant_of(self, value: tensor_data.Constant) -> EmittedTensor:
        """Returns a constant whose value may be a handle."""
        return self.tensor(self._builder.constant(value))

    def reshaped(self, tensor: EmittedTensor, sizes: Sequence[int]) -> EmittedTensor:
        """Returns a tensor in another shape, as `sizes` returns shapes.

        Args:
            tensor: The tensor.
            sizes: The shape; dimensions that only running tells are those of the tensor, at most one is another.
        """
        own = self.sizes(tensor)
        if own == tuple(sizes):
            return tensor
        dynamic = [size for size in sizes if size < 0]
        if len(dynamic) <= 1:
            return tensor.reshape([max(size, -1) for size in sizes])
        shape = tensor.op("Shape", tensor)
        parts = [
            self.constant(size if size not in own else -1, "int32")
            if size >= 0 or size not in own
            else self.tensor(self._builder.pick(shape.value, own.index(size)))
            for size in sizes
        ]
        return tensor.op("Reshape", tensor, tensor.op("Pack", *parts))  # type: ignore[no-any-return]

    def dtype(self, result: int = 0) -> np.dtype[Any]:
        """Returns the dtype of a result."""
        return np.dtype(types.numpy_dtype(types.element_of(self.op.results[result].type)))

    def declared(self, result: int = 0) -> Shape:
        """Returns a result's shape by its type, -1 for dynamic dimensions."""
        shape = types.shape_of(self.op.results[result].type)
        if shape is None:
            raise Declined("its result has no rank")
        return shape

    def sizes(self, tensor: EmittedTensor) -> Shape:
        """Returns a tensor's shape; equal dimensions that only running tells are equal numbers below -1."""
        shape = tensor.known.shapes.get(tensor.value)
        if shape is None:
            tensor.known.note(tensor.value, tensor.shape)
            shape = tensor.known.shapes[tensor.value]
        if shape is None:
            raise Declined("an operand has no rank")
        return shape

    def note(self, value: Value, shape: Shape | None) -> None:
        """Notes the shape of a value, as `sizes` returns it."""
        self._known.note(value, shape)

    def known(self, tensor: EmittedTensor) -> np.ndarray[Any, np.dtype[Any]] | None:
        """Returns the elements of a small constant, `None` for other tensors."""
        return constant_array(tensor.value)

    def ints(self, name: str, default: Sequence[int] = ()) -> tuple[int, ...]:
        """Returns a property that is a list of integers or booleans."""
        value = self.op.properties.get(name)
        return tuple(int(each) for each in value.values) if isinstance(value, DenseArrayAttr) else tuple(default)

    def integer(self, name: str, default: int = 0) -> int:
        """Returns a property that is an integer or a boolean."""
        value = self.op.properties.get(name)
        return int(value.value) if isinstance(value, IntegerAttr) else default

    def text(self, name: str) -> str:
        """Returns a property that is a string, an enumerator or a symbol; empty if it is absent."""
        value = self.op.properties.get(name)
        if isinstance(value, SymbolRefAttr):
            return value.root
        return value.data if isinstance(value, StringAttr) else value.value if isinstance(value, EnumeratorAttr) else ""

    def pairs(self, name: str, rank: int) -> list[tuple[int, int]]:
        """Returns a property of two numbers for each dimension, such as padding; zeros if it is absent."""
        value = self.op.properties.get(name)
        if value is None:
            return [(0, 0)] * rank
        return [(int(low), int(high)) for low, high in tensor_data.to_array(value).reshape(rank, 2)]

    def broadcast(self, tensor: EmittedTensor, shape: EmittedTensor, sizes: Shape) -> EmittedTensor:
        """Returns a tensor repeated to a shape; ops that broadcast by themselves use the tensor instead of it.

        Args:
            tensor: The tensor, whose dimensions are the last ones of the shape, equal to them or 1.
            shape: The shape, a vector of integers.
            sizes: The same, as `sizes` returns it.
        """
        if self.sizes(tensor) == sizes:
            return tensor
        # It isn't folded: what is repeated is rarely needed as a whole.
        element = types.element_of(tensor.value.type)
        kind = types.tensor(element, dims.without_symbols(sizes))
        repeated = self.tensor(self._builder.tf("BroadcastTo", (tensor.value, shape.value), kind))
        self._known.note(repeated.value, sizes)
        return repeated

    def elementwise(self, compute: Callable[..., EmittedTensor], *operands: EmittedTensor) -> EmittedTensor:
        """Returns the result of an op of TensorFlow that broadcasts its operands, without repeating them before.

        Args:
            compute: Applies the op.
            operands: Its operands, all of which have the result's shape.
        """
        return compute(*self.unrepeated(operands))

    def unrepeated(self, operands: Sequence[EmittedTensor]) -> Sequence[EmittedTensor]:
        """Returns operands of an op that broadcasts, with as few of them repeated as give the same shape."""
        whole = self._joined(operands)
        found = list(operands)
        for index, operand in enumerate(operands):
            owner = operand.value.owner
            if isinstance(owner, Operation) and owner.name == BROADCAST:
                found[index] = self.tensor(owner.operands[0])
                if self._joined(found) != whole:
                    found[index] = operand
        return found

    def _joined(self, operands: Sequence[EmittedTensor]) -> Shape | None:
        shape: Shape | None = ()
        for operand in operands:
            shape = dims.broadcast(shape, self.sizes(operand))
        return shape


Rows = dict[str, Callable[[RaisedOp], Any]]
"""StableHLO op, without its prefix -> what computes it: a tensor, or a list of its results."""
