"""The sizes of ops' results, from those of their operands and from the numbers that small operands hold.

What type inference tells of known sizes, these rules tell of those that only running tells.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from tfconvert.converter.targets.stablehlo.buffers.scalars import Number, Scalars
from tfconvert.schema.dialects import tensor_data, types
from tfconvert.schema.dialects.stablehlo import ConvAttr, DimensionNumbersAttr
from tfconvert.schema.ir.attributes import DenseArrayAttr, IntegerAttr
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import DYNAMIC
from tfconvert.schema.ir.values import Value


class Sizing(Protocol):
    """The queries of rules."""

    scalars: Scalars

    def sizes(self, value: Value) -> Sequence[Number]:
        """Returns the sizes of a value."""

    def indices(self, value: Value) -> Sequence[Number]:
        """Returns the numbers that a small value holds, as sizes."""


Rule = Callable[[Sizing, Operation], Sequence[Number]]
"""Returns the sizes of an op's results; if there are several, all of them have these."""


def ints(op: Operation, name: str, default: Sequence[int] = ()) -> tuple[int, ...]:
    """Returns a property that is a list of integers."""
    value = op.properties.get(name)
    return tuple(int(each) for each in value.values) if isinstance(value, DenseArrayAttr) else tuple(default)


def integer(op: Operation, name: str) -> int:
    """Returns a property that is an integer."""
    value = op.properties.get(name)
    return value.value if isinstance(value, IntegerAttr) else 0


def dims_of(op: Operation, name: str) -> DimensionNumbersAttr:
    """Returns the property of the dimensions that an op treats differently."""
    found = op.properties[name]
    assert isinstance(found, DimensionNumbersAttr)
    return found


def rank_of(value: Value) -> int:
    return len(types.shape_of(value.type) or ())


def _like(operand: int) -> Rule:
    return lambda sizing, op: sizing.sizes(op.operands[operand])


def _given(operand: int) -> Rule:
    return lambda sizing, op: sizing.indices(op.operands[operand])


def _span(sizing: Sizing, low: Number, high: Number, step: Number) -> Number:
    """Returns how many numbers there are from one to before another, in steps."""
    return sizing.scalars.binary("ceildivsi", sizing.scalars.binary("subi", high, low), step)


def _transpose(sizing: Sizing, op: Operation) -> Sequence[Number]:
    sizes = sizing.sizes(op.operands[0])
    return [sizes[axis] for axis in ints(op, "permutation")]


def _concatenate(sizing: Sizing, op: Operation) -> Sequence[Number]:
    axis = integer(op, "dimension")
    found = list(sizing.sizes(op.operands[0]))
    whole: Number = 0
    for operand in op.operands:
        whole = sizing.scalars.binary("addi", whole, sizing.sizes(operand)[axis])
    found[axis] = whole
    return found


def _slice(sizing: Sizing, op: Operation) -> Sequence[Number]:
    bounds = zip(ints(op, "start_indices"), ints(op, "limit_indices"), ints(op, "strides"), strict=True)
    return [_span(sizing, *each) for each in bounds]


def _real_dynamic_slice(sizing: Sizing, op: Operation) -> Sequence[Number]:
    starts, limits, strides = (sizing.indices(operand) for operand in op.operands[1:])
    return [_span(sizing, *each) for each in zip(starts, limits, strides, strict=True)]


def _padded(sizing: Sizing, size: Number, low: Number, high: Number, interior: Number) -> Number:
    binary = sizing.scalars.binary
    found = binary("addi", size, binary("addi", low, high))
    if interior == 0:
        return found
    gaps = binary("maxsi", binary("subi", size, 1), 0)
    return binary("addi", found, binary("muli", gaps, interior))


_PADDINGS = (("edge", "_low"), ("edge", "_high"), ("interior", ""))


def _pad(sizing: Sizing, op: Operation) -> Sequence[Number]:
    low, high, interior = (ints(op, f"{name}_padding{end}") for name, end in _PADDINGS)
    sizes = sizing.sizes(op.operands[0])
    return [_padded(sizing, *each) for each in zip(sizes, low, high, interior, strict=True)]


def _dynamic_pad(sizing: Sizing, op: Operation) -> Sequence[Number]:
    low, high, interior = (sizing.indices(operand) for operand in op.operands[2:])
    sizes = sizing.sizes(op.operands[0])
    return [_padded(sizing, *each) for each in zip(sizes, low, high, interior, strict=True)]


def _dot(sizing: Sizing, op: Operation) -> Sequence[Number]:
    dims = dims_of(op, "dot_dimension_numbers")
    lhs, rhs = (sizing.sizes(operand) for operand in op.operands)
    batch = dims.of("lhs_batching_dimensions")
    left = {*batch, *dims.of("lhs_contracting_dimensions")}
    right = {*dims.of("rhs_batching_dimensions"), *dims.of("rhs_contracting_dimensions")}
    return [
        *(lhs[axis] for axis in batch),
        *(size for axis, size in enumerate(lhs) if axis not in left),
        *(size for axis, size in enumerate(rhs) if axis not in right),
    ]


def _windows(sizing: Sizing, size: Number, window: Number, amounts: Sequence[Number], steps: Sequence[int]) -> Number:
    """Returns how many windows fit; `steps` are the stride and the dilations of the input and the window."""
    stride, base, dilation = steps
    binary = sizing.scalars.binary
    low, high = amounts
    padded = _padded(sizing, size, low, high, base - 1)
    extent = binary("addi", binary("muli", binary("subi", window, 1), dilation), 1)
    room = binary("maxsi", binary("addi", binary("subi", padded, extent), stride), 0)
    return binary("divsi", room, stride)


def _static_padding(op: Operation, rank: int) -> list[tuple[int, int]]:
    value = op.properties.get("padding")
    if value is None:
        return [(0, 0)] * rank
    return [(int(low), int(high)) for low, high in tensor_data.to_array(value).reshape(rank, 2)]


def _reduce_window(sizing: Sizing, op: Operation) -> Sequence[Number]:
    sizes, window = sizing.sizes(op.operands[0]), ints(op, "window_dimensions")
    ones = (1,) * len(window)
    steps = zip(
        *(ints(op, name, ones) for name in ("window_strides", "base_dilations", "window_dilations")), strict=True
    )
    rows = zip(sizes, window, _static_padding(op, len(window)), steps, strict=True)
    return [_windows(sizing, *row) for row in rows]


def convolution_layouts(op: Operation) -> ConvAttr:
    """Returns what the dimensions of a convolution are."""
    found = op.properties["dimension_numbers"]
    assert isinstance(found, ConvAttr)
    return found


def _convolution(sizing: Sizing, op: Operation) -> Sequence[Number]:
    lhs, kernel, result = convolution_layouts(op).layouts
    inputs, window = (sizing.sizes(operand) for operand in op.operands[:2])
    count = len(lhs) - 2
    ones = (1,) * count
    if op.name == "stablehlo.dynamic_conv":
        held = sizing.indices(op.operands[2])
        padding: Sequence[Sequence[Number]] = [held[2 * axis : 2 * axis + 2] for axis in range(count)]
    else:
        padding = _static_padding(op, count)
    steps = list(
        zip(*(ints(op, name, ones) for name in ("window_strides", "lhs_dilation", "rhs_dilation")), strict=True)
    )
    found: dict[str, Number] = {
        "b": sizing.scalars.binary("divsi", inputs[lhs.index("b")], integer(op, "batch_group_count") or 1),
        "f": window[kernel.index("o")],
    }
    for axis in range(count):
        name = str(axis)
        found[name] = _windows(sizing, inputs[lhs.index(name)], window[kernel.index(name)], padding[axis], steps[axis])
    return [found[name] for name in result]


def _reduce(sizing: Sizing, op: Operation) -> Sequence[Number]:
    dropped = ints(op, "dimensions")
    return [size for axis, size in enumerate(sizing.sizes(op.operands[0])) if axis not in dropped]


def _gathered(sizing: Sizing, op: Operation, sizes: Sequence[Number]) -> Sequence[Number]:
    dims = dims_of(op, "dimension_numbers")
    at = dims.dims[-1]
    assert isinstance(at, int)
    indices = sizing.sizes(op.operands[1])
    batch = iter([size for axis, size in enumerate(indices) if axis != at])
    dropped = {*dims.of("collapsed_slice_dims"), *dims.of("operand_batching_dims")}
    kept = iter([size for axis, size in enumerate(sizes) if axis not in dropped])
    offsets = dims.of("offset_dims")
    return [next(kept) if axis in offsets else next(batch) for axis in range(rank_of(op.results[0]))]


def _gather(sizing: Sizing, op: Operation) -> Sequence[Number]:
    return _gathered(sizing, op, ints(op, "slice_sizes"))


def _dynamic_gather(sizing: Sizing, op: Operation) -> Sequence[Number]:
    return _gathered(sizing, op, sizing.indices(op.operands[2]))


def _top_k(sizing: Sizing, op: Operation) -> Sequence[Number]:
    return [*sizing.sizes(op.operands[0])[:-1], integer(op, "k")]


def _set_size(sizing: Sizing, op: Operation) -> Sequence[Number]:
    found = list(sizing.sizes(op.operands[0]))
    found[integer(op, "dimension")] = sizing.indices(op.operands[1])[0]
    return found


# Ops whose results have the sizes of the first operand, as far as their types don't tell them.
_FIRST = (
    "stablehlo.abs",
    "stablehlo.batch_norm_inference",
    "stablehlo.bitcast_convert",
    "stablehlo.compare",
    "stablehlo.complex",
    "stablehlo.convert",
    "stablehlo.dynamic_update_slice",
    "stablehlo.fft",
    "stablehlo.imag",
    "stablehlo.is_finite",
    "stablehlo.real",
    "stablehlo.scatter",
    "stablehlo.select_and_scatter",
    "stablehlo.sort",
    "chlo.is_inf",
    "chlo.is_neg_inf",
    "chlo.is_pos_inf",
)

RULES: Mapping[str, Rule] = {
    **dict.fromkeys(_FIRST, _like(0)),
    "chlo.top_k": _top_k,
    "stablehlo.clamp": _like(1),
    "stablehlo.concatenate": _concatenate,
    "stablehlo.convolution": _convolution,
    "stablehlo.dot_general": _dot,
    "stablehlo.dynamic_broadcast_in_dim": _given(1),
    "stablehlo.dynamic_conv": _convolution,
    "stablehlo.dynamic_gather": _dynamic_gather,
    "stablehlo.dynamic_iota": _given(0),
    "stablehlo.dynamic_pad": _dynamic_pad,
    "stablehlo.dynamic_reshape": _given(1),
    "stablehlo.gather": _gather,
    "stablehlo.pad": _pad,
    "stablehlo.real_dynamic_slice": _real_dynamic_slice,
    "stablehlo.reduce": _reduce,
    "stablehlo.reduce_window": _reduce_window,
    "stablehlo.rng": _given(2),
    "stablehlo.select": _like(1),
    "stablehlo.set_dimension_size": _set_size,
    "stablehlo.slice": _slice,
    "stablehlo.transpose": _transpose,
    "stablehlo.triangular_solve": _like(1),
}
"""Op -> rule, of those whose table doesn't say that operands and results have one type."""


def merged(kind: Sequence[int], sizes: Sequence[Number]) -> list[Number]:
    """Returns sizes, those that a type tells from it."""
    return [size if dim == DYNAMIC else dim for dim, size in zip(kind, sizes, strict=True)]
