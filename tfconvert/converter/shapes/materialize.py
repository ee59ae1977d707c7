"""Materializes dynamic dimensions as values at a point in a function.

A dimension is read from a value that has it, if one is available. A dimension that only ops in a loop determine is
computed by running these once before the loop, on zeros of the same shapes, since only the result's shape matters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from tfconvert.converter.ir.tf_builder import TFBuilder
from tfconvert.converter.shapes.symbolic import Symbols, SymbolSource
from tfconvert.ops.registry import shape_function
from tfconvert.schema.dialects import tensor_data, types
from tfconvert.schema.dialects.dims import UNKNOWN
from tfconvert.schema.dialects.tf_effects import is_pure
from tfconvert.schema.ir.block import Block
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import OpResult, Value

# Maximum number of additional ops for computing one dimension.
_MAX_STAND_INS = 64

MAKERS = frozenset({"tf.EmptyTensorList", "tf.TensorListReserve"})
"""Ops whose tensor is created at its first use, so that its shape can't be read earlier."""


class Positions:
    """The order of ops in their blocks before any insertion."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[Block, dict[Operation, int]] = {}

    def of(self, op: Operation) -> int | None:
        """Returns an op's index in its block, or `None` if it was inserted later."""
        block = op.parent
        assert block is not None
        if block not in self._known:
            self._known[block] = {each: index for index, each in enumerate(block.ops)}
        return self._known[block].get(op)


@dataclass(slots=True)
class MaterializedSizes:
    """Materializes dimensions as scalars before an op.

    Attributes:
        symbols: The module's symbolic shapes.
        positions: The order of ops.
        anchor: The op.
    """

    symbols: Symbols
    positions: Positions
    anchor: Operation
    _known: dict[int, Value] = field(default_factory=dict)
    _waiting: set[int] = field(default_factory=set)

    @property
    def _insert(self) -> TFBuilder:
        return TFBuilder(self.anchor)

    def scalar(self, dim: int) -> Value | None:
        """Returns a dimension as a scalar `i32` before the anchor, or `None` if it isn't available there."""
        dim = self.symbols.find(dim)
        if dim >= 0:
            return self._insert.number(dim)
        if dim not in self._known:
            if dim >= UNKNOWN or dim in self._waiting or len(self._waiting) > _MAX_STAND_INS:
                return None
            self._waiting.add(dim)
            found = self._taken(dim) or self._broadcast(dim) or self._computed(dim)
            if found is None:
                return None
            self._known[dim] = found
        return self._known[dim]

    def _taken(self, dim: int) -> Value | None:
        """Returns a dimension of an available value."""
        for source in self.symbols.sources(dim):
            if self._is_there(source.value):
                if source.axis is None:
                    return self._insert.i32(source.value)
                rank = len(self.symbols.shape(source.value) or ())
                return self._insert.pick(self._insert.shape(source.value, rank), source.axis)
        return None

    def _is_there(self, value: Value) -> bool:
        if not isinstance(value, OpResult):
            return value.owner is self.anchor.parent
        op = value.op
        if op.parent is not self.anchor.parent or op.name in MAKERS:
            return False
        here, there = self.positions.of(self.anchor), self.positions.of(op)
        return here is not None and there is not None and there < here

    def _broadcast(self, dim: int) -> Value | None:
        """Returns the dimension to which others are broadcast: the one that is not 1."""
        scalars = self._scalars(sorted(self.symbols.broadcasts.get(dim, ()), reverse=True))
        if not scalars:
            return None
        scalar, bit = types.tensor(types.I32, ()), types.tensor(types.I1, ())
        result = scalars[0]
        for other in scalars[1:]:
            is_one = self._insert.tf("Equal", (result, 1), bit, {"incompatible_shape_error": True})
            result = self._insert.tf("SelectV2", (is_one, other, result), scalar)
        return result

    def _computed(self, dim: int) -> Value | None:
        """Returns a dimension of an op's result on stand-in operands."""
        for source in self.symbols.sources(dim):
            if isinstance(source.value, OpResult) and source.axis is not None and _is_plain(source.value.op):
                return self._rerun(source.value, source)
        return None

    def _rerun(self, result: OpResult, source: SymbolSource) -> Value | None:
        op = result.op
        operands: list[Value] = []
        for value in op.operands:
            found = self._stand_in(value)
            if found is None:
                return None
            operands.append(found)
        copy = op.clone(dict(zip(op.operands, operands, strict=True)))
        self._insert.insert(copy)
        assert source.axis is not None
        return self._insert.pick(self._insert.shape(copy.results[result.index]), source.axis)

    def _stand_in(self, value: Value) -> Value | None:
        """Returns a stand-in with the shape of a value, and with equal elements if shapes may depend on them."""
        if self._is_there(value):
            return value
        constant = self.symbols.known.constants.get(value)
        if constant is not None:
            return self._insert.constant(constant)
        shape = self.symbols.shape(value)
        entry = types.from_mlir(value.element)
        if shape is None or entry is None or entry.name in ("variant", "resource"):
            return None
        if entry.dtype.kind in "iu" and len(shape) <= 1:
            return self._numbers(value, shape, entry.dtype)
        sizes = self._scalars(shape)
        return None if sizes is None else self._insert.zeros(sizes, entry.mlir)

    def _numbers(self, value: Value, shape: types.Shape, dtype: np.dtype[np.generic]) -> Value | None:
        """Returns an integer scalar or vector, such as a shape, whose every element is known or a dimension."""
        elements = self.symbols.known.partials.get(value)
        if elements is None or any(element == UNKNOWN for element in elements):
            return None
        if all(element > UNKNOWN for element in elements):
            return self._insert.constant(
                np.array(elements, dtype).reshape(shape if len(shape) == 0 else (len(elements),))
            )
        scalars = [self._insert.number(one) if one > UNKNOWN else self.scalar(one) for one in elements]
        known = [one for one in scalars if one is not None]
        if len(known) < len(scalars):
            return None
        whole = self._insert.pack(known) if shape else known[0]
        return self._insert.cast(whole, value.element)

    def _scalars(self, shape: Sequence[int]) -> list[Value] | None:
        found = [self.scalar(dim) for dim in shape]
        known = [one for one in found if one is not None]
        return known if len(known) == len(found) else None


def _is_plain(op: Operation) -> bool:
    """Returns whether an op's result shape depends only on shapes and on small integer operands."""
    name = op.name.removeprefix("tf.")
    if shape_function(name) is None or name in _VALUES_TELL or not is_pure(op):
        return False
    return name not in _TABLES_TELL or all(tensor_data.constant_of(value) is not None for value in op.operands[1:])


# Ops whose result shape depends on their operands' elements.
_VALUES_TELL = frozenset(
    {
        "Bincount",
        "CombinedNonMaxSuppression",
        "DynamicPartition",
        "DynamicStitch",
        "LinSpace",
        "ListDiff",
        "NonMaxSuppression",
        "NonMaxSuppressionV2",
        "NonMaxSuppressionV3",
        "NonMaxSuppressionV4",
        "NonMaxSuppressionV5",
        "ParallelDynamicStitch",
        "Range",
        "SegmentMax",
        "SegmentMean",
        "SegmentMin",
        "SegmentProd",
        "SegmentSum",
        "SparseSegmentMean",
        "SparseSegmentSqrtN",
        "SparseSegmentSum",
        "SparseToDense",
        "Unique",
        "UniqueV2",
        "UniqueWithCounts",
        "UniqueWithCountsV2",
        "Where",
    }
)

# Ops whose result's shape depends on matrices of integers.
_TABLES_TELL = frozenset(
    {"BatchToSpace", "BatchToSpaceND", "MirrorPad", "Pad", "PadV2", "SpaceToBatch", "SpaceToBatchND"}
)
