"""The values that ops accept for operands such as indices, partitions, splits, axes and sizes.

The limits depend on the other operands while the op runs, so dynamic sizes don't matter.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from tfconvert.converter.composites.marks import IMPLEMENTS
from tfconvert.converter.executor.resources import LookupTable
from tfconvert.ops.call import Array, Call
from tfconvert.schema.dialects import types
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.ir.attributes import StringAttr

INDEX = "index"
SORTED = "sorted"
SPLITS = "splits"
PERMUTATION = "permutation"
SHAPE = "shape"
KEYS = "keys"
BOXES = "boxes"
SCORES = "scores"

# Kinds, the most restrictive first: it is the one that counts if a value is used in several ways.
_STRICTEST = (SPLITS, KEYS, PERMUTATION, SHAPE, SORTED, INDEX, BOXES, SCORES)

# Sizes, counts and depths are smaller.
_SIZES = 5


class Domain(NamedTuple):
    """The values that an operand may have."""

    # `index`: from `low` to `high`, which is excluded; `sorted`: the same, in order; `splits`: in order from 0 to
    # `high` itself; `permutation`: different numbers below `high`; `shape`: sizes whose product is `high`; `numerals`:
    # texts that are numbers; `keys`: some of `keys`; `boxes`: corners of boxes that are not empty, in rows of four, or
    # other numbers without equal ones; `scores`: shares without equal ones.
    kind: str
    high: int = 0  # The limit.
    low: int = 0  # The minimum value.
    keys: tuple[Any, ...] = ()  # The values to choose from.

    def draw(self, shape: Sequence[int], dtype: np.dtype[Any], random: np.random.Generator) -> Array:
        """Returns a value."""
        count = math.prod(shape)
        kind = SCORES if self.kind == BOXES and tuple(shape)[-1:] != (4,) else self.kind
        return _DRAWS[kind](self, count, random).reshape(shape).astype(dtype)


def narrower(one: Domain | None, other: Domain) -> Domain:
    """Returns the values that suit two uses."""
    if one is None:
        return other
    first, second = sorted((one, other), key=lambda each: _STRICTEST.index(each.kind))
    if {first.kind, second.kind} == {BOXES, SCORES}:
        return second  # Each part of such an input is a box or a score: shares suit both.
    if first.kind in (SORTED, INDEX):
        return first._replace(high=min(one.high, other.high), low=max(one.low, other.low))
    return first._replace(low=max(one.low, other.low)) if first.kind == second.kind else first


def _index(domain: Domain, count: int, random: np.random.Generator) -> Array:
    return random.integers(domain.low, max(domain.high, domain.low + 1), count)


def _splits(domain: Domain, count: int, random: np.random.Generator) -> Array:
    inner = np.sort(random.integers(0, domain.high + 1, max(count - 2, 0)))
    return np.concatenate([[0], inner, [domain.high]])[:count]


def _permutation(domain: Domain, count: int, random: np.random.Generator) -> Array:
    return np.resize(random.permutation(max(domain.high, 1)), count)


def _shape(domain: Domain, count: int, random: np.random.Generator) -> Array:
    sizes = np.ones(count, np.int64)
    if count:
        sizes[random.integers(0, count)] = domain.high
    return sizes


def _keys(domain: Domain, count: int, random: np.random.Generator) -> Array:
    found = np.empty(count, object)
    found[:] = [domain.keys[at] for at in random.integers(0, len(domain.keys), count)]
    return found


def _scores(domain: Domain, count: int, random: np.random.Generator) -> Array:
    return (random.permutation(count) + 0.5) / max(count, 1)


def _boxes(domain: Domain, count: int, random: np.random.Generator) -> Array:
    """Returns boxes that overlap in part: two corners each, below and above."""
    if count % 4:
        return _scores(domain, count, random)
    low = random.uniform(0, 0.7, (count // 4, 2))
    return np.concatenate([low, low + random.uniform(0.1, 0.3, low.shape)], axis=1).reshape(-1)


_DRAWS: Mapping[str, Callable[[Domain, int, np.random.Generator], Array]] = {
    INDEX: _index,
    SORTED: lambda domain, count, random: np.sort(_index(domain, count, random)),
    SPLITS: _splits,
    PERMUTATION: _permutation,
    SHAPE: _shape,
    KEYS: _keys,
    BOXES: _boxes,
    SCORES: _scores,
}

Rule = Callable[[Call, int], Domain | None]
"""Returns the values that a call's operand may have, given the other operands; `None` for any."""


def _along(operand: int, axis: int, call: Call, index: int) -> Domain | None:
    """Returns indices along an axis of another operand."""
    shape = call.inputs[operand].shape
    return Domain(INDEX, shape[axis]) if shape else None


def _gathered(call: Call, index: int) -> Domain | None:
    shape = call.inputs[0].shape
    axis = int(call.inputs[2].reshape(-1)[0]) if len(call.inputs) > 2 and call.inputs[2].size else 0
    return Domain(INDEX, shape[axis]) if -len(shape) <= axis < len(shape) else None


def _coordinates(operand: int, call: Call, index: int) -> Domain | None:
    """Returns coordinates in another operand: below the smallest size that they count along."""
    sizes, depth = call.inputs[operand].shape, (*call.inputs[index].shape[-1:], 1)[0]
    return Domain(INDEX, min(sizes[:depth], default=1))


def _in_shape(operand: int, call: Call, index: int) -> Domain | None:
    """Returns coordinates in a tensor whose shape is another operand."""
    return Domain(INDEX, int(min(call.inputs[operand].reshape(-1).tolist(), default=1)))


def _rows(call: Call, index: int) -> Domain | None:
    return Domain(SORTED, max(call.inputs[index].size, 1))


def _below(operand: int, call: Call, index: int) -> Domain | None:
    """Returns numbers below another operand."""
    value = call.inputs[operand]
    return Domain(INDEX, int(value.reshape(-1)[0])) if value.size else None


def _partitions(call: Call, index: int) -> Domain | None:
    count = call.attributes.get("num_partitions")
    return Domain(INDEX, count) if isinstance(count, int) else None


def _axes(operand: int, call: Call, index: int) -> Domain | None:
    return Domain(PERMUTATION, call.inputs[operand].ndim)


def _own_permutation(call: Call, index: int) -> Domain | None:
    return Domain(PERMUTATION, call.inputs[index].size)


def _elements(call: Call, index: int) -> Domain | None:
    return Domain(SHAPE, call.inputs[0].size)


def _sizes(call: Call, index: int) -> Domain | None:
    return Domain(INDEX, _SIZES, 1)


def _counts(call: Call, index: int) -> Domain | None:
    return Domain(INDEX, _SIZES)


def _nonzero(call: Call, index: int) -> Domain | None:
    return Domain(INDEX, 8, 1) if call.inputs[index].dtype.kind in "iu" else None


def _best(call: Call, index: int) -> Domain | None:
    return Domain(INDEX, (*call.inputs[0].shape, 1)[-2 if call.inputs[0].ndim else -1] + 1, 1)


def _lengths(call: Call, index: int) -> Domain | None:
    axis = call.attributes.get("seq_dim", 0)
    shape = call.inputs[0].shape
    return Domain(INDEX, shape[axis] + 1) if isinstance(axis, int) and axis < len(shape) else None


def _dense_splits(call: Call, index: int) -> Domain | None:
    return Domain(SPLITS, call.inputs[-1].shape[0]) if call.inputs[-1].ndim else None


def _ragged_rows(call: Call, index: int) -> Domain | None:
    """Returns the partitions that `RaggedTensorToTensor` accepts."""
    values = call.inputs[1]
    return Domain(SPLITS, values.shape[0]) if index >= 3 and values.ndim and call.inputs[index].ndim else None


def _known_keys(call: Call, index: int) -> Domain | None:
    table = call.inputs[0].item() if call.inputs[0].shape == () else None
    entries = table.entries if isinstance(table, LookupTable) else None
    return Domain(KEYS, keys=tuple(entries)) if entries else None


def _of_kind(kind: str, call: Call, index: int) -> Domain | None:
    return Domain(kind) if call.inputs[index].dtype.kind == "f" else None


SUPPRESSIONS = frozenset(
    (*(f"NonMaxSuppression{version}" for version in ("", "V2", "V3", "V4", "V5")), "CombinedNonMaxSuppression")
)
"""Ops that choose boxes by their scores; these are their first operands."""


def suppresses(function: FuncOp) -> bool:
    """Returns whether a function declares that it chooses boxes by their scores, its first arguments."""
    name = function.attributes.get(IMPLEMENTS)
    return isinstance(name, StringAttr) and name.data.startswith("non_max_suppression")


_SEGMENTS = ("Max", "Mean", "Min", "Prod", "Sum")
_DIVISIONS = (
    *("Div", "FloorDiv", "FloorMod", "Mod", "RealDiv", "TruncateDiv", "TruncateMod"),
    *("stablehlo.divide", "stablehlo.remainder"),
)
_REDUCTIONS = ("All", "Any", "EuclideanNorm", "Max", "Mean", "Min", "Prod", "Sum")

RULES: Mapping[str, Mapping[int, Rule]] = {
    "ArgMax": {1: partial(_axes, 0)},
    "ArgMin": {1: partial(_axes, 0)},
    "Bincount": {0: _counts, 1: _sizes},
    "BroadcastTo": {1: _sizes},
    "Cumprod": {1: partial(_axes, 0)},
    "Cumsum": {1: partial(_axes, 0)},
    "DenseBincount": {0: _counts, 1: _sizes},
    "DynamicPartition": {1: _partitions},
    "ExpandDims": {1: partial(_axes, 0)},
    "Fill": {0: _sizes},
    "Gather": {1: _gathered},
    "GatherNd": {1: partial(_coordinates, 0)},
    "GatherV2": {1: _gathered, 2: partial(_axes, 0)},
    "InvertPermutation": {0: _own_permutation},
    "LookupTableFind": {1: _known_keys},
    "LookupTableFindV2": {1: _known_keys},
    "OneHot": {0: partial(_below, 1), 1: _sizes},
    "Pad": {1: _counts},
    "PadV2": {1: _counts},
    "RaggedTensorToSparse": {0: _dense_splits},
    "RaggedTensorToTensor": dict.fromkeys(range(3, 8), _ragged_rows),
    "Range": {0: _counts, 1: _sizes, 2: _sizes},
    "Reshape": {1: _elements},
    "ResizeBilinear": {1: _sizes},
    "ResizeNearestNeighbor": {1: _sizes},
    "ResourceGather": {1: partial(_along, 0, 0)},
    "ResourceGatherNd": {1: partial(_coordinates, 0)},
    "ReverseSequence": {1: _lengths},
    "ReverseV2": {1: partial(_axes, 0)},
    "ScatterNd": {0: partial(_in_shape, 2), 2: _sizes},
    "SparseToDense": {0: partial(_in_shape, 1), 1: _sizes},
    "Tile": {1: _sizes},
    "TopKV2": {1: _best},
    "Transpose": {1: partial(_axes, 0)},
    **{f"TensorScatter{name}": {1: partial(_coordinates, 0)} for name in ("Add", "Max", "Min", "Sub", "Update")},
    **{f"Segment{name}": {1: _rows} for name in _SEGMENTS},
    **{f"UnsortedSegment{name}": {1: partial(_below, 2), 2: _sizes} for name in _SEGMENTS},
    **{
        f"SparseSegment{name}": {1: partial(_along, 0, 0), 2: _rows}
        for name in ("Mean", "MeanWithNumSegments", "SqrtN", "SqrtNWithNumSegments", "Sum", "SumWithNumSegments")
    },
    **{name: {0: partial(_of_kind, BOXES), 1: partial(_of_kind, SCORES)} for name in SUPPRESSIONS},
    **{name: {1: _nonzero} for name in _DIVISIONS},
    **{name: {1: partial(_axes, 0)} for name in _REDUCTIONS},
}
"""Op -> operand -> the accepted values."""


def fits(tensor_type: Any) -> bool:
    """Returns whether an input's elements can be limited: numbers and strings, but not booleans or handles."""
    entry = types.from_mlir(types.element_of(tensor_type))
    return entry is not None and entry.name not in ("bool", "resource", "variant")
