"""Emits StableHLO before the op that is legalized: the plain form where sizes are known, else that with operands.

Sizes are numbers or symbols (`sizes.Dims`). Equal symbols are equal sizes, so that ops on them need nothing more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import numpy as np

from tfconvert.converter.ir.constants import constant_int, integers
from tfconvert.converter.rewrite.pattern import Declined
from tfconvert.converter.targets.stablehlo.legalize.constraints import EQUAL_OR_ONE, require_equal_or_one
from tfconvert.converter.targets.stablehlo.legalize.sizes import Dims, Sizes, static_shape
from tfconvert.schema.dialects import attributes as attrs
from tfconvert.schema.dialects import stablehlo, tensor_data, tf, types, upstream
from tfconvert.schema.dialects.stablehlo import EnumeratorAttr
from tfconvert.schema.dialects.stablehlo_inference import Dry, infer, infer_element
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.block import Block, Region
from tfconvert.schema.ir.builder import OpBuilder
from tfconvert.schema.ir.dim import OPERATIONS, simplified
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import INDEX
from tfconvert.schema.ir.values import OpResult, Value

Op = TypeVar("Op", bound=Operation)

Operand = Value | float | int
"""A value, or a number that becomes a scalar of the other operand's element type."""

# Operations on scalars that may be sizes: equal ones are computed once.
_OF_SIZES = frozenset({"add", "divide", "maximum", "minimum", "multiply", "subtract"})


class HLOBuilder(OpBuilder):
    """Inserts ops of StableHLO and of MLIR's own dialects."""

    __slots__ = ()

    def op(
        self,
        name: str,
        operands: Sequence[Value],
        result_types: Sequence[Attribute],
        properties: Mapping[str, attrs.Value] | None = None,
        regions: Sequence[Region] = (),
    ) -> Operation:
        """Inserts an op by its name; without a dialect it is StableHLO's."""
        return self.insert(_built(name, operands, result_types, properties, regions))


def _built(
    name: str,
    operands: Sequence[Value],
    result_types: Sequence[Attribute],
    properties: Mapping[str, attrs.Value] | None,
    regions: Sequence[Region],
) -> Operation:
    full = name if "." in name else f"stablehlo.{name}"
    build = stablehlo.build if stablehlo.class_of(full) is not None else upstream.build
    return build(full, operands, result_types, properties, regions)


class _Inferred(Dry):
    """The sizes that those of an op's results are inferred from: numbers, and symbols that are not computed with."""

    __slots__ = ("sizes",)

    def __init__(self, sizes: Callable[[Value], Dims]) -> None:
        self.sizes = sizes

    def compute(self, name: str, *operands: int, kind: Attribute = INDEX) -> int:
        assert min(operands) >= 0, "the sizes of a result that is computed from symbols are given"
        return OPERATIONS[name](*operands)


class StableHLOBuilder(HLOBuilder):
    """Inserts ops before one.

    Attributes:
        sizes: The symbolic shapes.
        checks_indices: Whether the program checks indices when it runs.
    """

    __slots__ = ("checks_indices", "sizes")

    def __init__(self, op: Operation, sizes: Sizes, *, checks_indices: bool = False) -> None:
        super().__init__(op)
        self.sizes = sizes
        self.checks_indices = checks_indices

    # Ops.

    def one(
        self,
        name: str,
        operands: Sequence[Value],
        properties: Mapping[str, attrs.Value] | None = None,
        regions: Sequence[Region] = (),
        *,
        element: Attribute | None = None,
        dims: Sequence[int] | None = None,
    ) -> Value:
        """Inserts an op with one result, and returns that.

        Args:
            name: The op.
            operands: Its operands.
            properties: Its properties.
            regions: Its regions.
            element: The result's element type where operands don't tell it.
            dims: The result's sizes where operands don't tell them, or only by further ops.
        """
        return self.several(name, operands, (element,), properties, regions, dims=dims)[0]

    def several(
        self,
        name: str,
        operands: Sequence[Value],
        elements: Sequence[Attribute | None],
        properties: Mapping[str, attrs.Value] | None = None,
        regions: Sequence[Region] = (),
        *,
        dims: Sequence[int] | None = None,
    ) -> Sequence[OpResult]:
        """Inserts an op with results of the same sizes, and returns them; takes their element types, else as `one`."""
        op = _built(name, operands, [each or types.I1 for each in elements], properties, regions)
        found = infer(_Inferred(self.dims), op) if dims is None else dims
        assert found is not None, f"the sizes of the results of {name} are not given"
        for result, element in zip(op.results, elements, strict=True):
            result.type = types.tensor(element or infer_element(op), static_shape(found))
        self.insert(op)
        for result in op.results:
            self.sizes.note(result, found)
        return op.results

    def dims(self, value: Value) -> Dims:
        """Returns a value's shape.

        Raises:
            Declined: Its rank is unknown.
        """
        found = self.sizes.of(value)
        if found is None:
            raise Declined("the rank of an operand is not known")
        return found

    def constant(self, array: tensor_data.Array, element: Attribute | None = None) -> Value:
        return self.insert(tf.constant(tensor_data.of_array(array, element))).results[0]

    def constant_of(self, numbers: Sequence[float], element: Attribute) -> Value:
        """Inserts a vector of numbers as those of an element type."""
        return self.constant(np.array(numbers, np.float64).astype(types.numpy_dtype(element)), element)

    def scalar(self, number: float, element: Attribute) -> Value:
        return self.constant(np.array(number).astype(types.numpy_dtype(element)), element)

    def ints(self, values: Sequence[int]) -> Value:
        return self.constant(integers(values, np.dtype(np.int32)).reshape(len(values)))

    # Sizes at run time: scalars of i32, or numbers where they are known.

    def size(self, dim: int) -> Value | int:
        dim = self.sizes.find(dim)
        if dim >= 0:
            return dim
        found = self.sizes.cached(self.block, dim)
        if found is None:
            place = self.sizes.place(self.block, dim)
            if place is None:
                raise Declined("a size that it needs is not known where it is needed")
            found = self.one("get_dimension_size", (place[0],), {"dimension": place[1]})
            self.sizes.cache(self.block, dim, found)
        return found

    def value(self, scalar: Value | int) -> Value:
        return self.scalar(scalar, types.I32) if isinstance(scalar, int) else scalar

    def compute(self, name: str, one: Value | int, other: Value | int) -> Value | int:
        """Returns the result of an op on two `i32` scalars; known scalars are computed here.

        Equal computations give the same value, so that the sizes that they compute are known to be equal.
        """
        first, second = (each if (known := constant_int(each)) is None else known for each in (one, other))
        found = simplified(name, first, second)
        if found is not None:
            return found
        return (self._sum if name in ("add", "subtract") else self._computed)(name, first, second)

    def _sum(self, name: str, one: Value | int, other: Value | int) -> Value | int:
        """Returns a sum or a difference, with all that is known added up at its end."""
        sign = 1 if name == "add" else -1
        (first, before), (second, behind) = _parts(one), _parts(other)
        amount = before + sign * behind
        if second is None:
            assert first is not None
            result: Value | int = first
        elif first is None:
            result, amount = (second, amount) if sign > 0 else (self._computed(name, amount, second), 0)
        elif first is second and sign < 0:
            return amount
        else:
            result = self._computed(name, first, second)
        return self._computed("add", result, amount) if amount else result

    def _computed(self, name: str, one: Value | int, other: Value | int) -> Value:
        found = self.sizes.computed(self.block, name, one, other)
        if found is None:
            found = self.one(name, (self.value(one), self.value(other)))
            self.sizes.keep(self.block, name, one, other, found)
        return found

    def at_least_zero(self, scalar: Value | int) -> Value | int:
        """Returns a size minus an amount, but at least 0."""
        if isinstance(scalar, int):
            return max(scalar, 0)
        owner = scalar.owner
        is_size = isinstance(owner, Operation) and owner.name == "stablehlo.get_dimension_size"
        if is_size or _parts(scalar)[1] > 0:
            return scalar
        return self.compute("maximum", scalar, 0)

    def plus(self, dim: int, amount: Value | int) -> int:
        """Returns a size plus an amount."""
        return self.size_of(self.compute("add", self.size(dim), amount))

    def size_of(self, scalar: Value | int) -> int:
        """Returns the size that a scalar holds."""
        return scalar if isinstance(scalar, int) else self.sizes.fresh(scalar)

    def vector(self, scalars: Sequence[Value | int]) -> Value:
        """Returns scalars of `i32` as a vector."""
        known = [constant_int(each) for each in scalars]
        if None not in known:
            return self.ints([each for each in known if each is not None])
        parts = [self.one("reshape", (self.value(each),), dims=(1,)) for each in scalars]
        if len(parts) == 1:
            return parts[0]
        return self.one("concatenate", parts, {"dimension": 0}, dims=(len(parts),))

    def shape(self, dims: Sequence[int]) -> Value:
        return self.vector([self.size(dim) for dim in dims])

    def product(self, dims: Sequence[int]) -> Value | int:
        """Returns the product of sizes."""
        result: Value | int = 1
        for dim in sorted(map(self.sizes.find, dims), reverse=True):
            result = self.compute("multiply", result, self.size(dim))
        return result

    # Shapes.

    def reshape(self, value: Value, dims: Sequence[int], shape: Value | None = None) -> Value:
        """Inserts a reshape.

        Args:
            value: The value.
            dims: The new sizes.
            shape: The same as a vector, if there is one already.
        """
        own = self.dims(value)
        dims = tuple(map(self.sizes.find, dims))
        if own == dims:
            return value
        if min((*own, *dims), default=0) >= 0:
            return self.one("reshape", (value,), dims=dims)
        shape = self.shape(dims) if shape is None else shape
        return self.one("dynamic_reshape", (value, shape), dims=dims)

    def transpose(self, value: Value, permutation: Sequence[int]) -> Value:
        if tuple(permutation) == tuple(range(len(permutation))):
            return value
        return self.one("transpose", (value,), {"permutation": tuple(permutation)})

    def broadcast(self, value: Value, dims: Sequence[int], axes: Sequence[int] | None = None) -> Value:
        """Inserts a broadcast.

        Args:
            value: The value.
            dims: The result's sizes.
            axes: The result's dimension of each of the value's; the last ones by default.
        """
        own, dims = self.dims(value), tuple(map(self.sizes.find, dims))
        axes = tuple(range(len(dims) - len(own), len(dims)) if axes is None else axes)
        if own == dims and axes == tuple(range(len(dims))):
            return value
        if min((*own, *dims), default=0) >= 0:
            return self.one("broadcast_in_dim", (value,), {"broadcast_dimensions": axes}, dims=dims)
        kept = tuple(number for number, axis in enumerate(axes) if own[number] == dims[axis])
        grown = tuple(number for number, axis in enumerate(axes) if own[number] == 1 != dims[axis])
        properties = {
            "broadcast_dimensions": axes,
            "known_expanding_dimensions": grown,
            "known_nonexpanding_dimensions": kept,
        }
        return self.one("dynamic_broadcast_in_dim", (value, self.shape(dims)), properties, dims=dims)

    def filled(self, number: float, element: Attribute, dims: Sequence[int]) -> Value:
        return self.broadcast(self.scalar(number, element), dims)

    def join(self, one: Dims, other: Dims) -> Dims:
        """Returns the shape that two shapes are broadcast to."""
        rank = max(len(one), len(other))
        pairs = zip((1,) * (rank - len(one)) + one, (1,) * (rank - len(other)) + other, strict=True)
        return tuple([self._joined(*pair) for pair in pairs])

    def _joined(self, one: int, other: int) -> int:
        if other in (one, 1):
            return one
        if one == 1:
            return other
        if one >= 0 and other >= 0:
            raise Declined(f"sizes {one} and {other} can't be broadcast to each other")
        # A size that isn't known must be 1 or equal to one that is.
        if one >= 0 or other >= 0:
            require_equal_or_one(self, min(one, other), max(one, other), EQUAL_OR_ONE)
            return max(one, other)
        joined = self.sizes.joined(one, other)
        if joined not in (one, other) and self.sizes.cached(self.block, joined) is None:
            require_equal_or_one(self, one, other, EQUAL_OR_ONE)
            first, second = self.value(self.size(one)), self.value(self.size(other))
            is_one = self.compare("EQ", first, self.scalar(1, types.I32))
            chosen = self.one("select", (is_one, second, first))
            self.sizes.cache(self.block, joined, chosen)
        return joined

    # Elementwise ops.

    def unary(self, name: str, value: Value) -> Value:
        """Inserts an op of one operand."""
        return self.one(name, (value,))

    def pair(self, one: Operand, other: Operand) -> tuple[Value, Value]:
        """Returns two operands with the shape that they are broadcast to; numbers become constants."""
        kind = one.type if isinstance(one, Value) else other.type if isinstance(other, Value) else types.F32
        element = types.element_of(kind)
        first = one if isinstance(one, Value) else self.scalar(one, element)
        second = other if isinstance(other, Value) else self.scalar(other, element)
        dims = self.join(self.dims(first), self.dims(second))
        return self.broadcast(first, dims), self.broadcast(second, dims)

    def binary(self, name: str, one: Operand, other: Operand) -> Value:
        """Inserts an op of two operands, which are broadcast to each other."""
        first, second = self.pair(one, other)
        element, dims = first.element, self.dims(first)
        is_open = constant_int(first) is None or constant_int(second) is None
        if name in _OF_SIZES and not dims and element == types.I32 and is_open:
            return self.value(self.compute(name, first, second))
        return self.one(name, (first, second))

    def compare(self, direction: str, one: Operand, other: Operand) -> Value:
        """Inserts a comparison of two operands, which are broadcast to each other."""
        first, second = self.pair(one, other)
        properties = {"comparison_direction": EnumeratorAttr.get("comparison_direction", direction)}
        return self.one("compare", (first, second), properties)

    def select(self, condition: Value, one: Operand, other: Operand) -> Value:
        """Inserts a choice for each element; all three are broadcast to each other, a scalar condition is not."""
        first, second = self.pair(one, other)
        dims = self.dims(condition)
        if dims:
            joined = self.join(dims, self.dims(first))
            condition, first, second = (self.broadcast(each, joined) for each in (condition, first, second))
        return self.one("select", (condition, first, second))

    def convert(self, value: Value, element: Attribute) -> Value:
        """Returns a value as one of another element type."""
        if value.element == element:
            return value
        return self.one("convert", (value,), element=element)

    # Regions.

    def body(self, name: str, element: Attribute) -> Region:
        """Returns a region that returns the result of an op on two scalars; without a name the second one."""
        kind = types.tensor(element, ())
        block = Block(arg_types=(kind, kind))
        result: Value = block.args[1]
        if name:
            op = stablehlo.build(f"stablehlo.{name}", block.args, (kind,), location=self.location)
            block.add_op(op)
            result = op.results[0]
        block.add_op(stablehlo.build(stablehlo.RETURN, (result,), (), location=self.location))
        return Region(block)

    def reduce(self, name: str, value: Value, axes: Sequence[int], initial: float) -> Value:
        """Inserts a reduction along axes, which the result doesn't have."""
        element = value.element
        operands = (value, self.scalar(initial, element))
        return self.one("reduce", operands, {"dimensions": tuple(axes)}, (self.body(name, element),))

    def iota(self, dims: Sequence[int], axis: int, element: Attribute) -> Value:
        """Inserts a tensor that counts along an axis."""
        dims = tuple(map(self.sizes.find, dims))
        if min(dims, default=0) >= 0:
            return self.one("iota", (), {"iota_dimension": axis}, element=element, dims=dims)
        return self.one("dynamic_iota", (self.shape(dims),), {"iota_dimension": axis}, element=element, dims=dims)


def _parts(scalar: Value | int) -> tuple[Value | None, int]:
    """Splits a scalar into a computed summand, if any, and a known one."""
    if isinstance(scalar, int):
        return None, scalar
    owner = scalar.owner
    if isinstance(owner, Operation) and owner.name == "stablehlo.add":
        amount = constant_int(owner.operands[1])
        if amount is not None:
            return owner.operands[0], amount
    return scalar, 0
