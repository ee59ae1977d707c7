"""Removes ops that yield their operand unchanged.

    slice(x, 0, shape of x), strided_slice(x) of all of x, tile(x, 1), broadcast_to(x, shape of x),
    concatenation(x), split{1}(x), cast(x) to its own type, max_pool_2d{1x1}(x), resize(x, size of x),
    logical_and(x, x), logical_or(x, x), maximum(x, x), minimum(x, x)  ->  x

Unknown dimensions are taken to change unless the op certainly keeps them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tfconvert.converter.ir.constants import constant_ints
from tfconvert.converter.litert.optimize import matching
from tfconvert.converter.rewrite.pattern import Failure, Pattern
from tfconvert.converter.rewrite.rewriter import Rewriter
from tfconvert.schema.dialects import tfl, types
from tfconvert.schema.ir.operation import Operation


def _same_static_shape(op: Operation) -> bool:
    """Holds for ops whose result, if it has as many elements as the operand, is the operand."""
    dims = matching.static_shape(op.operands[0])
    return dims is not None and dims == matching.shape(op.results[0])


def _takes_all(op: Operation) -> bool:
    begin, size = constant_ints(op.operands[1]), constant_ints(op.operands[2])
    dims = matching.shape(op.operands[0])
    if begin is None or size is None or dims is None or any(begin) or len(size) != len(dims):
        return False
    return all(count in (-1, dim) for count, dim in zip(size, dims, strict=True))


def _strides_over_all(op: Operation) -> bool:
    """Returns whether a strided slice takes each dimension from its begin to its end, one by one."""
    begin, end, strides = (constant_ints(operand) for operand in op.operands[1:4])
    dims = matching.shape(op.operands[0])
    if begin is None or end is None or strides is None or dims is None or set(strides) - {1}:
        return False
    if len(begin) != len(end) or len(begin) > len(dims):
        return False
    if any(tfl.attribute(op, f"{name}_mask") for name in ("ellipsis", "new_axis", "shrink_axis")):
        return False
    open_begin, open_end = tfl.attribute(op, "begin_mask"), tfl.attribute(op, "end_mask")
    return all(
        (open_begin >> index & 1 or first == 0) and (open_end >> index & 1 or 0 < dims[index] <= last)
        for index, (first, last) in enumerate(zip(begin, end, strict=True))
    )


def _repeats_once(op: Operation) -> bool:
    multiples = constant_ints(op.operands[1])
    return multiples is not None and not set(multiples) - {1}


def _is_alone(op: Operation) -> bool:
    return len(op.operands) == 1 and matching.is_plain(op)


def _splits_nothing(op: Operation) -> bool:
    return len(op.results) == 1


def _takes_one_twice(op: Operation) -> bool:
    return op.operands[0] is op.operands[1]


def _keeps_type(op: Operation) -> bool:
    return types.element_of(op.operands[0].type) == types.element_of(op.results[0].type)


def _is_one_pixel(op: Operation) -> bool:
    sizes = (tfl.attribute(op, name) for name in ("filter_height", "filter_width", "stride_h", "stride_w"))
    return matching.is_plain(op) and not set(sizes) - {1}


_IDENTITIES: Mapping[str, tuple[Callable[[Operation], bool], int]] = {
    "tfl.slice": (_takes_all, 0),
    "tfl.strided_slice": (_strides_over_all, 0),
    "tfl.tile": (_repeats_once, 0),
    "tfl.broadcast_to": (_same_static_shape, 0),
    "tfl.concatenation": (_is_alone, 0),
    "tfl.split": (_splits_nothing, 1),
    "tfl.cast": (_keeps_type, 0),
    **dict.fromkeys(("tfl.logical_and", "tfl.logical_or", "tfl.maximum", "tfl.minimum"), (_takes_one_twice, 0)),
    "tfl.max_pool_2d": (_is_one_pixel, 0),
    "tfl.average_pool_2d": (_is_one_pixel, 0),
    "tfl.resize_bilinear": (_same_static_shape, 0),
    "tfl.resize_nearest_neighbor": (_same_static_shape, 0),
}
"""When an op does nothing, and which operand it then yields."""


def _match(op: Operation) -> int | Failure:
    does_nothing, operand = _IDENTITIES[op.name]
    if operand >= len(op.operands) or op.operands[operand].type != op.results[0].type:
        return Failure("it changes its operand's type")
    return operand if does_nothing(op) else Failure("it changes its operand, or may change it")


def _rewrite(op: Operation, match: int, rewriter: Rewriter) -> None:
    rewriter.replace(op.operands[match])


PATTERNS: tuple[Pattern[int], ...] = tuple(
    Pattern(f"identity-{root[4:]}", root, _match, _rewrite, benefit=20) for root in _IDENTITIES
)
