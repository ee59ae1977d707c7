"""Inserts ops of MLIR's own dialects and StableHLO: numbers of type `index`, loop nests, unsigned integers as bits.

An `Index` is a number where it is known, else a value of type `index`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from tfconvert.converter.targets.stablehlo.legalize.stablehlo_builder import HLOBuilder
from tfconvert.schema.dialects import attributes as attrs
from tfconvert.schema.dialects import stablehlo, tensor_data, types
from tfconvert.schema.dialects.arith import INTEGER_OPS, ConstantOp
from tfconvert.schema.dialects.upstream import AffineMapAttr, IteratorAttr
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.attributes import ArrayAttr, DenseArrayAttr, FloatAttr, IntegerAttr
from tfconvert.schema.ir.block import Block, Region
from tfconvert.schema.ir.dim import COMPARISONS, simplified
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import INDEX, FloatType, IntegerType, Signedness
from tfconvert.schema.ir.values import OpResult, Value

Index = Value | int

DYNAMIC = -(1 << 63)
"""Stands for an operand among the numbers of an attribute."""

Map = Sequence[int | str]
"""The element that a loop nest reads or writes: loop numbers, or expressions of them."""


class LinalgBuilder(HLOBuilder):
    """Inserts ops before one."""

    __slots__ = ()

    def one(
        self,
        name: str,
        operands: Sequence[Value],
        result_type: Attribute,
        properties: Mapping[str, attrs.Value] | None = None,
        regions: Sequence[Region] = (),
    ) -> Value:
        """Inserts an op with one result, and returns that."""
        return self.op(name, operands, (result_type,), properties, regions).results[0]

    # Numbers.

    def index(self, number: Index) -> Value:
        if isinstance(number, Value):
            return number
        return self.create(ConstantOp, properties={"value": IntegerAttr.get(number, INDEX)}).results[0]

    def real(self, number: float, element: FloatType) -> Value:
        return self.create(ConstantOp, properties={"value": FloatAttr.get(number, element)}).results[0]

    def scalar(self, number: float, element: Attribute) -> Value:
        array = np.array(number).astype(types.numpy_dtype(element))
        return self.insert(stablehlo.constant(tensor_data.of_array(array, element))).results[0]

    def vector(self, numbers: Sequence[Index]) -> Value:
        return self.one(
            "tensor.from_elements", [self.index(each) for each in numbers], types.tensor(INDEX, (len(numbers),))
        )

    def element(self, tensor: Value, *places: Index) -> Value:
        places_ = [self.index(place) for place in places]
        return self.one("tensor.extract", (tensor, *places_), tensor.element)

    def compute(self, name: str, one: Index, other: Index) -> Index:
        """Computes an operation of the algebra of sizes, now if it can."""
        found = simplified(name, one, other)
        return self.one(INTEGER_OPS[name], (self.index(one), self.index(other)), INDEX) if found is None else found

    def clamped(self, number: Index, minimum: Index, maximum: Index) -> Index:
        """Clamps a number to a range."""
        return self.compute("minimum", self.compute("maximum", number, minimum), maximum)

    def is_(self, name: str, one: Value, other: Value) -> Value:
        """Inserts a comparison of two integers: `EQ`, `LT`."""
        return self.one(INTEGER_OPS[name], (one, other), types.I1, {"predicate": COMPARISONS.index(name)})

    def choose(self, condition: Value, one: Value, other: Value) -> Value:
        return self.one("arith.select", (condition, one, other), one.type)

    # Tensors.

    def empty(self, element: Attribute, sizes: Sequence[Index], shape: types.Shape) -> Value:
        """Inserts an uninitialized tensor."""
        kind = types.tensor(element, shape)
        dynamic = [self.index(size) for size, dim in zip(sizes, shape, strict=True) if dim < 0]
        return self.one("tensor.empty", dynamic, kind)

    def filled(self, number: Value, element: Attribute, sizes: Sequence[Index], shape: types.Shape) -> Value:
        """Inserts a tensor filled with the element of a scalar tensor."""
        into = self.empty(element, sizes, shape)
        block = Block(arg_types=(element, element))
        inside = LinalgBuilder.at_block_end(block, self.location)
        inside.op("linalg.yield", block.args[:1], ())
        properties = {"operandSegmentSizes": segments(1, 1)}
        return self.one("linalg.fill", (self.element(number), into), into.type, properties, (Region(block),))

    def loops(self, inputs: Sequence[tuple[Value, Map]], into: tuple[Value, Map], iterators: str, body: Body) -> Value:
        """Inserts a loop nest.

        Args:
            inputs: The tensors to read, and their maps.
            into: The tensor to write, and its map.
            iterators: A letter for each loop, `p` for parallel ones, `r` for those of reductions.
            body: Inserts the ops for an element of the result, from the elements that were read and, last, the
                element of the result so far.
        """
        operands = [*[value for value, _ in inputs], into[0]]
        maps = [AffineMapAttr.of(len(iterators), each) for _, each in (*inputs, into)]
        block = Block(arg_types=[value.element for value in operands])
        inside = LinalgBuilder.at_block_end(block, self.location)
        inside.op("linalg.yield", (body(inside, block.args),), ())
        properties: dict[str, attrs.Value] = {
            "indexing_maps": ArrayAttr.get(maps),
            "iterator_types": ArrayAttr.get(
                [IteratorAttr.get("parallel" if each == "p" else "reduction") for each in iterators]
            ),
            "operandSegmentSizes": segments(len(inputs), 1),
        }
        return self.one("linalg.generic", operands, into[0].type, properties, (Region(block),))

    def loop(self, number: int) -> Value:
        return self.one("linalg.index", (), INDEX, {"dim": number})


Body = Callable[[LinalgBuilder, Sequence[Value]], Value]
"""Inserts the ops for an element of the result of a loop nest, from the elements that were read."""


def segments(*counts: int) -> DenseArrayAttr:
    """Returns `operandSegmentSizes`."""
    return DenseArrayAttr.get(types.I32, counts)


def split(numbers: Sequence[Index]) -> tuple[tuple[int, ...], list[Value]]:
    """Splits numbers into an attribute and operands."""
    known = tuple([DYNAMIC if isinstance(each, Value) else each for each in numbers])
    return known, [each for each in numbers if isinstance(each, Value)]


def arithmetic(element: Attribute, name: str) -> str:
    """Returns the op of `arith` for a type of elements: `add`, `mul`."""
    return f"arith.{name}{'f' if isinstance(element, FloatType) else 'i'}"


def constant_ints(value: Value) -> list[int] | None:
    """Returns the elements of a small constant of integers, row by row."""
    if not isinstance(value, OpResult) or value.op.name != "stablehlo.constant":
        return None
    constant = value.op.properties.get("value")
    if not tensor_data.is_constant(constant) or not tensor_data.is_small(constant):
        return None
    array = tensor_data.to_array(constant)
    return [int(each) for each in array.ravel()] if array.dtype.kind in "iu" else None


# Ops that only move elements, and that IREE or a rewrite lowers to other dialects' ops.
_MOVING = frozenset(
    {
        f"stablehlo.{name}"
        for name in (
            "concatenate",
            "dynamic_broadcast_in_dim",
            "dynamic_gather",
            "dynamic_pad",
            "dynamic_reshape",
            "dynamic_update_slice",
            "gather",
            "get_dimension_size",
            "pad",
            "real_dynamic_slice",
        )
    }
)

_WITHOUT = frozenset({"stablehlo.add", "stablehlo.multiply", "stablehlo.return", "stablehlo.subtract"})


def is_unsigned(value: Value) -> bool:
    """Returns whether a tensor's elements are unsigned integers."""
    element = value.element
    return isinstance(element, IntegerType) and element.signedness is Signedness.UNSIGNED


def bits(emit: LinalgBuilder, value: Value) -> Value:
    """Returns a tensor with signless elements of the same bits."""
    return emit.one("stablehlo.bitcast_convert", (value,), _signless(value))


def without_sign(op: Operation) -> None:
    """Makes an op that only moves elements work on signless bits.

    IREE accepts unsigned integers in StableHLO's ops only.
    """
    if not any(map(is_unsigned, (*op.operands, *op.results))) or not (op.name in _MOVING or _is_scatter(op)):
        return
    for region in op.regions:
        for value in (*region.block.args, *[result for inner in region.block.ops for result in inner.results]):
            value.type = _signless(value)
    emit = LinalgBuilder(op)
    for number, operand in enumerate(op.operands):
        if is_unsigned(operand):
            op.set_operand(number, bits(emit, operand))
    after = op.next_op
    assert after is not None
    for result in op.results:
        if is_unsigned(result):
            _give_sign(LinalgBuilder(after), result)


def _give_sign(emit: LinalgBuilder, result: OpResult) -> None:
    """Makes a result signless; its uses get it with its sign."""
    kind, uses = result.type, tuple(result.uses)
    result.type = _signless(result)
    signed = emit.one("stablehlo.bitcast_convert", (result,), kind)
    for use in uses:
        use.operation.set_operand(use.index, signed)


def _is_scatter(op: Operation) -> bool:
    """Returns whether an op is a scatter whose body computes the same with and without signs."""
    return op.name == "stablehlo.scatter" and all(inner.name in _WITHOUT for inner in op.regions[0].block.ops)


def _signless(value: Value) -> Attribute:
    element, shape = value.element, value.shape
    assert isinstance(element, IntegerType)
    assert shape is not None
    return types.tensor(IntegerType.get(element.width), shape)
