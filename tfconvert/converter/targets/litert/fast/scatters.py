"""A few updates of a large tensor by LiteRT's `STABLEHLO_SCATTER`, instead of operators that visit all of its rows.

    gather(concat(x, updates), maximum(unsorted_segment_max(numbers, ids), rows))  ->  scatter(x, ids, updates)
    gather(concat(x, updates), places)                                            ->  scatter(x, ids, updates)
    select(unsorted_segment_max(ones, ids) > 0, value, x)                         ->  scatter(x, ids, fill(value))
    x + unsorted_segment_sum(updates, ids)                                        ->  scatter(x, ids, updates){add}
    x + scatter_nd(indices, updates)                                              ->  scatter(x, indices, updates){add}

It is the same for products and extremes. The operator applies the updates one by one, in order, and skips those that
are outside: so checks that make such a row -1 become needless. It takes about 80 ns for each element of the updates, so
rows that are long, or many, keep their form.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from tfconvert.converter.ir.constants import constant_array, constant_ints, constant_number
from tfconvert.converter.ir.symbol_table import FunctionMaker
from tfconvert.converter.rewrite.pattern import Pattern, need
from tfconvert.converter.targets.litert.accelerators.builder import ints_of, like, shape_of
from tfconvert.converter.targets.litert.fast.fast_form import Emit, fast, worth
from tfconvert.converter.targets.litert.fast.scatter_speed import Sizes, is_faster
from tfconvert.converter.targets.litert.legalize.litert_builder import LiteRTBuilder
from tfconvert.converter.targets.litert.optimize.matching import is_plain, producer, sole_producer
from tfconvert.schema.dialects import tensor_data, tfl, types
from tfconvert.schema.dialects.func import FuncOp, ReturnOp
from tfconvert.schema.dialects.tensor_data import Array
from tfconvert.schema.ir.attributes import SymbolRefAttr
from tfconvert.schema.ir.block import Block
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import FunctionType
from tfconvert.schema.ir.values import Value

_ELEMENTS = frozenset("f16 f32 f64 i1 i8 i16 i32 i64 ui8 ui16 ui32 ui64".split())
"""The types of elements that the kernel takes."""

# The number of elements of constant places up to which they are read.
_MAX_READ = 1 << 22

_SET = ""
_ADD, _MULTIPLY, _MAXIMUM, _MINIMUM = (f"stablehlo_{name}" for name in ("add", "multiply", "maximum", "minimum"))

Insert = Callable[[LiteRTBuilder], Value]


class _Indices(NamedTuple):
    """The places of updates.

    Attributes:
        x: The tensor that they count the dimensions of.
        depth: The number of dimensions that they index, the first ones.
        insert: Inserts them, as a matrix of one row for each update.
    """

    x: Value
    depth: int
    insert: Insert


def _scatter(form: str, body: str, indices: _Indices, updates: Insert, count: int, result: Value) -> Emit:
    """Returns what emits the operator.

    Args:
        form: The usual form, by its name in `scatter_speed.tsv`.
        body: The operator that combines an element with an update; empty if updates replace elements.
        indices: The places of the updates.
        updates: Inserts the updates.
        count: Their number, -1 if it is unknown.
        result: The result that it replaces.
    """
    x, depth = indices.x, indices.depth
    shape = shape_of(x)
    need(str(types.element_of(x.type)) in _ELEMENTS, "the kernel doesn't take its elements")
    rest = shape[depth:]
    need(types.is_static(rest), "the size of its rows is unknown")
    sizes = Sizes(abs(math.prod(shape[:depth])), math.prod(rest), abs(count))
    worth(is_faster(form, sizes), "LiteRT isn't faster with its operator for scatters")

    def emit_scatter(emit: LiteRTBuilder) -> Value:
        operands = (x, indices.insert(emit), emit.reshape(updates(emit), (count, *rest)))
        options = {
            "indices_are_sorted": False,
            "update_window_dims": tuple(range(1, 1 + len(rest))),
            "inserted_window_dims": tuple(range(depth)),
            "scatter_dims_to_operand_dims": tuple(range(depth)),
            "index_vector_dim": 1,
            "unique_indices": False,
            "update_computation": _body(emit, body, types.element_of(x.type)),
        }
        found = emit.tfl("stablehlo_scatter", operands, x.type, options)
        return emit.reshape(found, shape_of(result))

    return emit_scatter


def _body(emit: LiteRTBuilder, name: str, element: Any) -> SymbolRefAttr:
    """Returns the function that combines an element with an update, which all scatters of a module share."""
    module = emit.rewriter.root.parent_op()
    while not isinstance(module, ModuleOp):
        assert module is not None
        module = module.parent_op()
    scalar = types.tensor(element, ())
    block = Block(arg_types=[scalar, scalar])
    result = block.args[1]
    if name:
        combined = tfl.build(name, block.args, [scalar])
        block.add_op(combined)
        result = combined.results[0]
    block.add_op(ReturnOp.of([result]))
    maker = FunctionMaker(module)
    symbol = f"scatter_{name.removeprefix('stablehlo_') or 'set'}_{element}"
    known = maker.functions.get(symbol)
    if known is None or not _is_same(known, block):
        symbol = maker.add(symbol, block, emit.rewriter.root.location)
    return SymbolRefAttr.get(symbol)


def _is_same(function: FuncOp, block: Block) -> bool:
    """Returns whether a function is one that was made before for the same."""
    kind = FunctionType.get([each.type for each in block.args], [block.args[0].type])
    names = [[op.name for op in each.ops] for each in (*function.body.blocks, block)]
    return function.function_type == kind and len(names) == 2 and names[0] == names[1]


# Places.


def _places(rows: Value, ids: Value) -> _Indices:
    """Returns indices for the numbers of rows, where those that are negative or too large are skipped.

    Rows that were points of a tensor are its points again.
    """
    constant = tensor_data.constant_of(ids)
    if constant is not None:
        return _known_places(rows, tensor_data.to_array(constant))
    together = _numbered_together(rows, ids)
    if together is not None:
        return together
    guarded = _unguarded(rows, ids)
    return _Indices(rows, 1, lambda emit: emit.reshape(guarded, (shape_of(ids)[0], 1)))


def _unguarded(rows: Value, ids: Value) -> Value:
    """Returns the numbers that were checked to be below the number of rows, with -1 for the others."""
    choice = producer(ids, "tfl.select_v2")
    if choice is None or constant_number(choice.operands[2]) != -1:
        return ids
    check, number, _ = choice.operands
    less = producer(check, "tfl.less")
    is_checked = less is not None and less.operands[0] is number and _is_height(less.operands[1], rows)
    return number if is_checked and shape_of(number) == shape_of(ids) else ids


def _numbered_together(rows: Value, ids: Value) -> _Indices | None:
    """Returns indices along several dimensions, of which the numbers of rows were made.

    The numbers are sums of products of the indices with the steps of the dimensions; with a check whether each index is
    inside, and with a remainder if negative ones count from the end.
    """
    reshape, choice = producer(rows, "tfl.reshape"), producer(ids, "tfl.select_v2")
    total = ids
    if choice is not None:
        if constant_number(choice.operands[2]) != -1:
            return None
        total = choice.operands[1]
    total = _source(total, "tfl.cast")
    summed = producer(total, "tfl.sum")
    product = None if summed is None else producer(summed.operands[0], "tfl.mul")
    if reshape is None or product is None or summed is None or not is_plain(product):
        return None
    x, (places, steps) = reshape.operands[0], (product.operands[0], constant_array(product.operands[1]))
    shape, own = shape_of(x), shape_of(places)
    depth = own[-1]
    if len(own) != 2 or not 0 < depth <= len(shape) or steps is None or not types.is_static(shape):
        return None
    sizes = np.array(shape[:depth])
    wanted = [math.prod(shape[at + 1 : depth]) for at in range(depth)]
    is_along = ints_of(summed.operands[1]) in ([1], [-1]) and shape_of(ids) == own[:1]
    if not is_along or np.broadcast_to(steps, depth).tolist() != wanted or math.prod(sizes) != shape_of(rows)[0]:
        return None
    if choice is None:
        return _Indices(x, depth, lambda emit: places)
    return _checked(x, choice.operands[0], places, sizes)


def _checked(x: Value, check: Value, places: Value, sizes: Array) -> _Indices | None:
    """Returns indices that were limited, and replaced by -1 where this changed one."""
    depth, remainder = len(sizes), producer(places, "tfl.floor_mod")
    limited = places if remainder is None else remainder.operands[0]
    every = producer(check, "tfl.reduce_all")
    equal = None if every is None else producer(every.operands[0], "tfl.equal")
    high = producer(limited, "tfl.maximum")
    low = None if high is None else producer(high.operands[0], "tfl.minimum")
    if every is None or equal is None or high is None or low is None:
        return None
    index, first, last = low.operands[0], constant_array(high.operands[1]), constant_array(low.operands[1])
    if set(equal.operands) != {index, limited} or ints_of(every.operands[1]) not in ([1], [-1]):
        return None
    if first is None or last is None or (np.broadcast_to(last, depth) != sizes - 1).any():
        return None
    first = np.broadcast_to(first, depth)
    wraps = np.where(first == 0, 0, sizes)
    if (first != -wraps).any() or wraps.any() != (remainder is not None):
        return None
    if remainder is not None:
        divisor = constant_array(remainder.operands[1])
        if divisor is None or (np.broadcast_to(divisor, depth) != sizes).any():
            return None

    def insert(emit: LiteRTBuilder) -> Value:
        if not wraps.any():
            return index
        zero = emit.scalar(0, types.element_of(index.type))
        from_end = emit.tfl("add", (index, emit.constant(wraps.astype(_dtype(index)))), index.type)
        is_negative = emit.tfl("less", (index, zero), types.tensor(types.I1, shape_of(index)))
        return emit.tfl("select_v2", (is_negative, from_end, index), index.type)

    return _Indices(x, depth, insert)


def _dtype(value: Value) -> Any:
    return types.numpy_dtype(types.element_of(value.type))


def _source(value: Value, name: str) -> Value:
    """Returns the operand of the op of a name that computes a value, or the value."""
    owner = producer(value, name)
    return value if owner is None else owner.operands[0]


def _is_height(value: Value, rows: Value) -> bool:
    """Returns whether a number is the number of rows."""
    height = shape_of(rows)[0]
    if height >= 0:
        return constant_number(value) == height
    part = producer(value, "tfl.strided_slice")
    shape = None if part is None else producer(part.operands[0], "tfl.shape")
    if part is None or shape is None or shape.operands[0] is not rows:
        return False
    return [constant_ints(each) for each in part.operands[1:]] == [(0,), (1,), (1,)]


def _of_places(rows: Value, ids: Value, updates: Value, form: str, body: str, result: Value) -> Emit:
    need(len(shape_of(ids)) == 1, "the rows of updates have several dimensions")
    need(shape_of(updates)[1:] == shape_of(rows)[1:], "the updates aren't rows")
    return _scatter(form, body, _places(rows, ids), lambda emit: updates, shape_of(updates)[0], result)


# The usual forms.


def _replaced(op: Operation) -> Emit:
    """Rows of a tensor or, behind it, of updates: those that the last update of each row names."""
    joined = sole_producer(op.operands[0], "tfl.concatenation")
    need(joined is not None and len(joined.operands) == 2 and is_plain(joined), "it isn't of a tensor and its updates")
    assert isinstance(joined, tfl.TFLOp)
    assert isinstance(op, tfl.TFLOp)
    is_first = tfl.attribute(joined, "axis") == tfl.attribute(op, "axis") == tfl.attribute(op, "batch_dims") == 0
    need(is_first, "it is along other dimensions than the first")
    rows, updates = joined.operands
    need(shape_of(op.results[0]) == shape_of(rows), "it isn't of all rows")
    constant = tensor_data.constant_of(op.operands[1])
    if constant is not None:
        return _replaced_at(op, rows, updates, constant)
    last = sole_producer(op.operands[1], "tfl.maximum")
    need(last is not None, "it isn't of the last updates")
    assert last is not None
    for found, own in (last.operands, last.operands[::-1]):
        segment = sole_producer(found, "tfl.unsorted_segment_max")
        if segment is not None and _is_own(own, segment, rows) and _is_numbered(segment, rows):
            return _of_places(rows, segment.operands[1], updates, "set", _SET, op.results[0])
    need(False, "it isn't of the last updates")
    raise AssertionError


def _is_own(own: Value, segment: Operation, rows: Value) -> bool:
    """Returns whether numbers are those of the rows, as many as there are segments."""
    if not _is_height(segment.operands[2], rows):
        return False
    constant, counted = tensor_data.constant_of(own), producer(own, "tfl.range")
    if constant is not None:
        return np.array_equal(tensor_data.to_array(constant), np.arange(shape_of(rows)[0]))
    if counted is None:
        return False
    start, limit, step = counted.operands
    return constant_number(start) == 0 and _is_height(limit, rows) and constant_number(step) == 1


def _is_numbered(segment: Operation, rows: Value) -> bool:
    """Returns whether the updates have the numbers that follow those of the rows."""
    numbers = segment.operands[0]
    constant = tensor_data.constant_of(numbers)
    if constant is not None:
        array, height = tensor_data.to_array(constant), shape_of(rows)[0]
        return array.ndim == 1 and np.array_equal(array, np.arange(height, height + array.size))
    counted = producer(numbers, "tfl.range")
    return counted is not None and _is_height(counted.operands[0], rows) and constant_number(counted.operands[2]) == 1


def _replaced_at(op: Operation, rows: Value, updates: Value, constant: tensor_data.Constant) -> Emit:
    """Rows of which known ones are replaced."""
    height, count = shape_of(rows)[0], shape_of(updates)[0]
    need(0 <= height <= _MAX_READ and count >= 0, "a size is unknown")
    taken = tensor_data.to_array(constant)
    is_new = taken >= height
    need(bool((is_new | (taken == np.arange(height))).all()), "rows are moved")
    need(np.unique(taken[is_new]).size == is_new.sum(), "an update replaces several rows")
    ids = np.full(count, -1, np.int32)
    ids[taken[is_new] - height] = np.flatnonzero(is_new)
    return _scatter("place", _SET, _known_places(rows, ids), lambda emit: updates, count, op.results[0])


def _known_places(rows: Value, ids: Array) -> _Indices:
    """Returns constant indices: those of a tensor, if the rows were its points."""
    x = _source(rows, "tfl.reshape")
    shape, height = shape_of(x), shape_of(rows)[0]
    depths = [depth for depth in range(1, len(shape) + 1) if math.prod(shape[:depth]) == height]
    if not types.is_static(shape) or not depths or shape[depths[0] :] != shape_of(rows)[1:]:
        return _Indices(rows, 1, lambda emit: emit.constant(ids.reshape(-1, 1)))
    places = np.stack(np.unravel_index(ids.clip(0, height - 1), shape[: depths[0]]), -1)
    places[(ids < 0) | (ids >= height)] = -1
    return _Indices(x, depths[0], lambda emit: emit.constant(places.astype(np.int32)))


def _filled(op: Operation) -> Emit:
    """One value in all rows that are named."""
    mask, value, rows = op.operands
    hit = producer(mask, "tfl.greater")
    need(hit is not None and constant_number(hit.operands[1]) == 0, "it isn't of rows that are named")
    assert hit is not None
    segment = producer(_source(hit.operands[0], "tfl.reshape"), "tfl.unsorted_segment_max")
    need(segment is not None and _is_height(segment.operands[2], rows), "it isn't of rows that are named")
    assert segment is not None
    ones, ids, _ = segment.operands
    array = constant_array(ones)
    need(array is not None and bool((array > 0).all()), "it isn't of rows that are named")
    shape = shape_of(rows)
    named = [shape[0], *[1] * (len(shape) - 1)]
    need(math.prod(shape_of(value)) == 1 and list(shape_of(mask)) == named, "it isn't one value in whole rows")
    need(len(shape_of(ids)) == 1 and shape_of(op.results[0]) == shape, "the rows are broadcast")
    count = shape_of(ids)[0]
    need(count >= 0, "the number of updates is unknown")
    kind, places = like(value, (count, *shape[1:])), _places(rows, ids)

    def fill(emit: LiteRTBuilder) -> Value:
        number = constant_array(value)
        if number is not None:
            return emit.constant(np.full((count, *shape[1:]), number.reshape(())), types.element_of(value.type))
        return emit.tfl("fill", (emit.ints((count, *shape[1:])), emit.reshape(value, ())), kind)

    return _scatter("fill", _SET, places, fill, count, op.results[0])


# Operators that combine rows with what was combined before of their updates -> the other one, and the body.
_COMBINED: Mapping[str, tuple[str, str]] = {
    "add": ("tfl.unsorted_segment_sum", _ADD),
    "maximum": ("tfl.unsorted_segment_max", _MAXIMUM),
    "minimum": ("tfl.unsorted_segment_min", _MINIMUM),
    "mul": ("tfl.unsorted_segment_prod", _MULTIPLY),
}


def _combined(op: Operation) -> Emit:
    segments, body = _COMBINED[op.name.removeprefix(tfl.PREFIX)]
    need(is_plain(op), "an activation follows")
    for rows, found in (op.operands, op.operands[::-1]):
        segment = sole_producer(found, segments)
        if segment is not None and shape_of(rows) == shape_of(op.results[0]) and _is_height(segment.operands[2], rows):
            need(not _is_own(rows, segment, rows), "it is of the numbers of rows")
            updates, ids, _ = segment.operands
            return _of_places(rows, ids, updates, "combine", body, op.results[0])
    need(False, "it isn't of rows and their updates")
    raise AssertionError


def _extreme(op: Operation) -> Emit:
    """The extremes of rows and their updates, but the rows as they are where the limit says that no update is there."""
    check, rows, changed = op.operands
    equal, both = producer(check, "tfl.equal"), sole_producer(changed, ("tfl.maximum", "tfl.minimum"))
    need(equal is not None and both is not None and rows in both.operands, "it isn't of rows and their updates")
    assert equal is not None
    assert both is not None
    segments, body = _COMBINED[both.name.removeprefix(tfl.PREFIX)]
    found = both.operands[1 - tuple(both.operands).index(rows)]
    segment = producer(found, segments)
    need(segment is not None and equal.operands[0] is found, "it isn't of rows and their updates")
    assert segment is not None
    limit = float(np.finfo(np.float32).max) * (-1 if body == _MAXIMUM else 1)
    need(constant_number(equal.operands[1]) == limit, "it isn't of rows and their updates")
    need(shape_of(rows) == shape_of(op.results[0]) and _is_height(segment.operands[2], rows), "the rows are broadcast")
    return _of_places(rows, segment.operands[1], segment.operands[0], "extreme", body, op.results[0])


def _added(sign: int, op: Operation) -> Emit:
    """A tensor with the sums of the updates of each place."""
    need(is_plain(op), "an activation follows")
    pairs = (op.operands, op.operands[::-1]) if sign > 0 else (op.operands,)
    for x, found in pairs:
        scatter = sole_producer(found, "tfl.scatter_nd")
        if scatter is None or shape_of(x) != shape_of(found) or shape_of(x) != shape_of(op.results[0]):
            continue
        indices, updates, _ = scatter.operands
        need(types.is_static(shape_of(x)) and types.is_static(shape_of(indices)), "a size is unknown")
        count, depth = math.prod(shape_of(indices)[:-1]), shape_of(indices)[-1]
        need(0 < depth, "nothing is indexed")
        places = _Indices(x, depth, lambda emit: emit.reshape(indices, (count, depth)))
        rows = (count, *shape_of(x)[depth:])

        def insert(emit: LiteRTBuilder) -> Value:
            moved = emit.reshape(updates, rows)
            return moved if sign > 0 else emit.tfl("neg", (moved,), moved.type)

        return _scatter("add", _ADD, places, insert, count, op.results[0])
    need(False, "it isn't of a tensor and its updates")
    raise AssertionError


# Checks of indices are ten operators above what uses the rows.
_DEPTH = 16

PATTERNS: tuple[Pattern[Any], ...] = (
    fast("scatter-rows", "gather", _replaced, depth=_DEPTH),
    fast("scatter-value", "select_v2", _filled, depth=_DEPTH),
    fast("scatter-extremes", "select_v2", _extreme, depth=_DEPTH),
    *(fast(f"scatter-by-{name}", name, _combined, benefit=2, depth=_DEPTH) for name in _COMBINED),
    fast("scatter-sums", "add", partial(_added, 1), depth=_DEPTH),
    fast("scatter-differences", "sub", partial(_added, -1), depth=_DEPTH),
)
