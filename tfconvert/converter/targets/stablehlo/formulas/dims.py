"""The sizes of results as formulas of those of operands: a rule for each op of StableHLO whose result may have any.

Sizes that the type of a result has need none; those of an op without a rule are unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from tfconvert.converter.executor.stablehlo import elementwise
from tfconvert.converter.executor.stablehlo.properties import integer, ints, pairs
from tfconvert.converter.targets.stablehlo.formulas.elements import Elements
from tfconvert.converter.targets.stablehlo.formulas.formula import Term, make, rank, total
from tfconvert.schema.dialects.stablehlo import ConvAttr, DotAttr, GatherAttr
from tfconvert.schema.ir.operation import Operation

Dims = tuple[Term, ...]


class Operands(NamedTuple):
    """Facts about an op's operands.

    Attributes:
        dims: The sizes of each.
        elements: The elements of each, `None` if they are not known.
    """

    dims: Sequence[Dims]
    elements: Sequence[Elements | None]


Rule = Callable[[Operation, Operands], Dims | None]
"""Returns the sizes of an op's results, of which all have the same; `None` if they are not known."""


def _of(number: int) -> Rule:
    return lambda op, known: known.dims[number]


def _elements(number: int) -> Rule:
    """Returns the rule of an op that has its result's sizes as an operand."""
    return lambda op, known: known.elements[number]


def _first(op: Operation, known: Operands) -> Dims:
    """Returns the sizes of operands that have the same ones: the simplest formula of each."""
    ranked = [dims for dims in known.dims if len(dims) == max(map(len, known.dims))]
    return tuple(min(each, key=rank) for each in zip(*ranked, strict=True))


def _transpose(op: Operation, known: Operands) -> Dims:
    return tuple(known.dims[0][axis] for axis in ints(op, "permutation"))


def _concatenate(op: Operation, known: Operands) -> Dims:
    axis = integer(op, "dimension")
    joined = total("add", [dims[axis] for dims in known.dims], 0)
    return (*known.dims[0][:axis], joined, *known.dims[0][axis + 1 :])


def _padded(size: Term, low: Term, high: Term, interior: Term) -> Term:
    gaps = make("multiply", make("maximum", make("subtract", size, 1), 0), interior)
    return make("add", make("add", make("add", size, gaps), low), high)


def _pad(op: Operation, known: Operands) -> Dims:
    lists = [ints(op, name) for name in ("edge_padding_low", "edge_padding_high", "interior_padding")]
    return tuple(map(_padded, known.dims[0], *lists))


def _dynamic_pad(op: Operation, known: Operands) -> Dims | None:
    low, high, interior = known.elements[2:5]
    if low is None or high is None or interior is None:
        return None
    return tuple(map(_padded, known.dims[0], low, high, interior))


def _rounded_up(number: Term, by: Term) -> Term:
    return make("divide", make("add", number, make("subtract", by, 1)), by)


def _real_dynamic_slice(op: Operation, known: Operands) -> Dims | None:
    starts, limits, strides = known.elements[1:4]
    if starts is None or limits is None or strides is None:
        return None
    return tuple(
        _rounded_up(make("subtract", limit, start), stride)
        for start, limit, stride in zip(starts, limits, strides, strict=True)
    )


def _dot(op: Operation, known: Operands) -> Dims:
    dims = op.properties["dot_dimension_numbers"]
    assert isinstance(dims, DotAttr)
    one, other = known.dims
    batch = dims.of("lhs_batching_dimensions")
    gone = (*batch, *dims.of("lhs_contracting_dimensions"))
    other_gone = (*dims.of("rhs_batching_dimensions"), *dims.of("rhs_contracting_dimensions"))
    free = [size for axis, size in enumerate(one) if axis not in gone]
    other_free = [size for axis, size in enumerate(other) if axis not in other_gone]
    return (*(one[axis] for axis in batch), *free, *other_free)


def _windows(size: Term, window: Term, stride: int, dilation: int) -> Term:
    """Returns how many windows there are; none if the first one doesn't fit."""
    span = make("add", make("multiply", make("subtract", window, 1), dilation), 1)
    # Not the quotient plus one: it is truncated, so that of a window that is just too large would be one window.
    return make("maximum", make("divide", make("add", make("subtract", size, span), stride), stride), 0)


def _convolution(op: Operation, known: Operands) -> Dims | None:
    dims = op.properties["dimension_numbers"]
    assert isinstance(dims, ConvAttr)
    layout, of_kernel, of_result = dims.layouts
    rank = len(layout) - 2
    ones = (1,) * rank
    if op.name == "stablehlo.dynamic_conv":
        flat = known.elements[2]
        if flat is None:
            return None
        padding: list[tuple[Term, Term]] = list(zip(flat[::2], flat[1::2], strict=True))
    else:
        padding = list(pairs(op, "padding", rank))
    strides, dilations = ints(op, "window_strides", ones), ints(op, "rhs_dilation", ones)
    gaps = ints(op, "lhs_dilation", ones)
    image, kernel = known.dims[:2]
    batch = make("divide", image[layout.index("b")], integer(op, "batch_group_count", 1))
    found: dict[str, Term] = {"b": batch, "f": kernel[of_kernel.index("o")]}
    for axis in range(rank):
        low, high = padding[axis]
        size = _padded(image[layout.index(str(axis))], low, high, gaps[axis] - 1)
        found[str(axis)] = _windows(size, kernel[of_kernel.index(str(axis))], strides[axis], dilations[axis])
    return tuple(found[letter] for letter in of_result)


def _reduce(op: Operation, known: Operands) -> Dims:
    gone = ints(op, "dimensions")
    return tuple(size for axis, size in enumerate(known.dims[0]) if axis not in gone)


def _reduce_window(op: Operation, known: Operands) -> Dims:
    rank = len(known.dims[0])
    ones = (1,) * rank
    lists = [ints(op, name, ones) for name in ("window_strides", "base_dilations", "window_dilations")]
    return tuple(
        _windows(_padded(size, low, high, gap - 1), window, stride, dilation)
        for size, (low, high), window, stride, gap, dilation in zip(
            known.dims[0], pairs(op, "padding", rank), ints(op, "window_dimensions"), *lists, strict=True
        )
    )


def _gathered(op: Operation, known: Operands, sizes: Sequence[Term]) -> Dims:
    dims = op.properties["dimension_numbers"]
    assert isinstance(dims, GatherAttr)
    vector = dims.dims[-1]
    rows = iter([size for axis, size in enumerate(known.dims[1]) if axis != vector])
    gone = (*dims.of("collapsed_slice_dims"), *dims.of("operand_batching_dims"))
    parts = iter([size for axis, size in enumerate(sizes) if axis not in gone])
    offsets = dims.of("offset_dims")
    rank = len(known.dims[1]) - (vector != len(known.dims[1])) + len(offsets)
    return tuple(next(parts) if axis in offsets else next(rows) for axis in range(rank))


def _gather(op: Operation, known: Operands) -> Dims:
    return _gathered(op, known, ints(op, "slice_sizes"))


def _dynamic_gather(op: Operation, known: Operands) -> Dims | None:
    sizes = known.elements[2]
    return None if sizes is None else _gathered(op, known, sizes)


def _top_k(op: Operation, known: Operands) -> Dims:
    return (*known.dims[0][:-1], integer(op, "k"))


def _slice(op: Operation, known: Operands) -> Dims:
    lists = [ints(op, name) for name in ("start_indices", "limit_indices", "strides")]
    return tuple(_rounded_up(limit - start, stride) for start, limit, stride in zip(*lists, strict=True))


RULES: Mapping[str, Rule] = {
    "chlo.top_k": _top_k,
    "stablehlo.batch_norm_inference": _of(0),
    "stablehlo.bitcast_convert": _of(0),
    "stablehlo.cholesky": _of(0),
    "stablehlo.concatenate": _concatenate,
    "stablehlo.convolution": _convolution,
    "stablehlo.dot_general": _dot,
    "stablehlo.dynamic_broadcast_in_dim": _elements(1),
    "stablehlo.dynamic_conv": _convolution,
    "stablehlo.dynamic_gather": _dynamic_gather,
    "stablehlo.dynamic_iota": _elements(0),
    "stablehlo.dynamic_pad": _dynamic_pad,
    "stablehlo.dynamic_reshape": _elements(1),
    "stablehlo.dynamic_update_slice": _of(0),
    "stablehlo.fft": _of(0),
    "stablehlo.gather": _gather,
    "stablehlo.pad": _pad,
    "stablehlo.real_dynamic_slice": _real_dynamic_slice,
    "stablehlo.reduce": _reduce,
    "stablehlo.reduce_window": _reduce_window,
    "stablehlo.reverse": _of(0),
    "stablehlo.rng": _elements(2),
    "stablehlo.scatter": _of(0),
    "stablehlo.select_and_scatter": _of(0),
    "stablehlo.slice": _slice,
    "stablehlo.sort": _of(0),
    "stablehlo.transpose": _transpose,
    "stablehlo.triangular_solve": _of(1),
    **dict.fromkeys(elementwise.KERNELS, _first),
}
"""Op -> rule."""
