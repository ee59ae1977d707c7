"""Sorts of several operands, by one operand with the keys and their positions."""

from __future__ import annotations

from collections.abc import Sequence

from tfconvert.converter.targets.iree.rewrites.indexing import extract, within
from tfconvert.converter.targets.iree.rewrites.linalg_builder import LinalgBuilder
from tfconvert.converter.targets.iree.rewrites.numbers import Context, is_dynamic, shape_of
from tfconvert.schema.dialects import stablehlo, types
from tfconvert.schema.dialects.stablehlo import EnumeratorAttr
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.attributes import IntegerAttr
from tfconvert.schema.ir.block import Block, Region
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import BlockArgument, Value

_BITS = 32


def sort(op: Operation, context: Context) -> Sequence[Value] | None:
    """Returns a sort by 64-bit numbers: the key above, the position below, which also keeps the order of equal keys.

    IREE sorts one operand of a dynamic size, not several.
    """
    if len(op.operands) == 1 or not is_dynamic(*op.operands):
        return None
    direction = _direction(op)
    key = op.operands[0]
    element = key.element
    if direction is None or element not in (types.F32, types.I32, types.I64):
        return None
    axis = op.properties.get("dimension")
    dimension = axis.value if isinstance(axis, IntegerAttr) else -1
    dimension += len(shape_of(key)) if dimension < 0 else 0
    work = _Work(key, dimension, context)
    places = _order(key, dimension, context, is_descending=direction == "GT")
    return [work.taken(operand, places) for operand in op.operands]


def top_k(op: Operation, context: Context) -> Sequence[Value] | None:
    """Returns the largest integers and their positions, by a sort."""
    value = op.operands[0]
    shape, count = shape_of(op.results[0]), op.properties["k"]
    if value.element is not types.I32 or not isinstance(count, IntegerAttr):
        return None
    work = _Work(value, len(shape) - 1, context)
    places = _order(value, len(shape) - 1, context, is_descending=True)
    emit, sizes = context.emit, context.numbers.sizes(value)
    narrow = emit.one("stablehlo.convert", (places,), types.tensor(types.I32, shape_of(value)))
    within(context, 0, count.value, sizes[-1])
    kept, none, ones = [*sizes[:-1], count.value], [0] * len(sizes), [1] * len(sizes)
    return [extract(emit, each, none, kept, ones, shape) for each in (work.taken(value, places), narrow)]


def _order(key: Value, axis: int, context: Context, *, is_descending: bool) -> Value:
    """Returns the positions of the sorted elements; the order of equal ones stays.

    64-bit integers are sorted by their lower halves and then, since the sort is stable, by their upper halves.
    """
    work = _Work(key, axis, context)
    if key.element is not types.I64:
        return work.places(work.sorted(work.packed(is_descending=is_descending)))
    low, high = work.half_words()
    first = _order(low, axis, context, is_descending=is_descending)
    then = _order(work.taken(high, first), axis, context, is_descending=is_descending)
    return work.taken(first, then)


def _direction(op: Operation) -> str | None:
    """Returns the direction of the comparison, if only the first operand is compared."""
    ops = tuple(op.regions[0].block.ops)
    if len(ops) != 2 or ops[0].name != "stablehlo.compare" or ops[1].operands[0] is not ops[0].results[0]:
        return None
    found = ops[0].properties["comparison_direction"]
    one, other = ops[0].operands
    if not isinstance(found, EnumeratorAttr) or not isinstance(one, BlockArgument):
        return None
    if not isinstance(other, BlockArgument) or (one.index, other.index) != (0, 1):
        return None
    return {"GE": "GT", "LE": "LT"}.get(found.value, found.value) if found.value in ("GT", "GE", "LT", "LE") else None


class _Work:
    """The ops of one sort.

    Args:
        key: The keys.
        axis: The axis.
        context: The context of the rewrite.
    """

    def __init__(self, key: Value, axis: int, context: Context) -> None:
        self._key, self._axis, self._context = key, axis, context
        self._shape = shape_of(key)
        self._sizes = context.numbers.sizes(key)

    def _kind(self, element: Attribute) -> Attribute:
        return types.tensor(element, self._shape)

    def _unary(self, name: str, value: Value, element: Attribute) -> Value:
        return self._context.emit.one(f"stablehlo.{name}", (value,), self._kind(element))

    def _binary(self, name: str, one: Value, other: Value) -> Value:
        return self._context.emit.one(f"stablehlo.{name}", (one, other), one.type)

    def _all(self, number: int | float, element: Attribute) -> Value:
        emit = self._context.emit
        return emit.filled(emit.scalar(number, element), element, self._sizes, self._shape)

    def packed(self, *, is_descending: bool) -> Value:
        """Returns the keys, as integers of the same order, above their positions."""
        key = self._key
        if key.element is types.F32:
            # Adding zero turns a negative zero into a positive one; the bits of negative numbers count downwards.
            bits = self._unary("bitcast_convert", self._binary("add", key, self._all(0.0, types.F32)), types.I32)
            sign = self._binary("shift_right_arithmetic", bits, self._all(31, types.I32))
            key = self._binary("xor", bits, self._binary("and", sign, self._all(0x7FFFFFFF, types.I32)))
        if is_descending:
            key = self._unary("not", key, types.I32)
        high = self._unary("convert", key, types.I64)
        high = self._binary("shift_left", high, self._all(_BITS, types.I64))
        return self._binary("or", high, self._places())

    def half_words(self) -> tuple[Value, Value]:
        """Returns the halves of 64-bit integers as integers of the same order."""
        flipped = self._binary("xor", self._key, self._all(1 << (_BITS - 1), types.I64))
        high = self._binary("shift_right_arithmetic", self._key, self._all(_BITS, types.I64))
        low, upper = (self._unary("convert", each, types.I32) for each in (flipped, high))
        return low, upper

    def _places(self) -> Value:
        emit, axis = self._context.emit, self._axis
        everything = list(range(len(self._shape)))
        into = emit.empty(types.I64, self._sizes, self._shape)
        return emit.loops(
            [],
            (into, everything),
            "p" * len(everything),
            lambda inside, arguments: inside.one("arith.index_cast", (inside.loop(axis),), types.I64),
        )

    def sorted(self, packed: Value) -> Value:
        emit, kind = self._context.emit, types.tensor(types.I64, ())
        block = Block(arg_types=(kind, kind))
        less = EnumeratorAttr.get("comparison_direction", "LT")
        compare = stablehlo.build(
            "stablehlo.compare", block.args, (types.tensor(types.I1, ()),), {"comparison_direction": less}
        )
        block.add_op(compare)
        block.add_op(stablehlo.build(stablehlo.RETURN, compare.results, ()))
        properties = {"dimension": self._axis, "is_stable": False}
        return emit.one("stablehlo.sort", (packed,), packed.type, properties, (Region(block),))

    def places(self, packed: Value) -> Value:
        mask = self._all((1 << _BITS) - 1, types.I64)
        return self._binary("and", packed, mask)

    def taken(self, value: Value, places: Value) -> Value:
        emit, axis = self._context.emit, self._axis
        everything = list(range(len(self._shape)))
        into = emit.empty(value.element, self._sizes, self._shape)

        def body(inside: LinalgBuilder, arguments: Sequence[Value]) -> Value:
            place = inside.one("arith.index_cast", arguments[:1], inside.index(0).type)
            return inside.element(value, *[place if at == axis else inside.loop(at) for at in everything])

        return emit.loops([(places, everything)], (into, everything), "p" * len(everything), body)
