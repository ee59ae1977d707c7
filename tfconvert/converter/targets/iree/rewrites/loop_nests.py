"""Products, Fourier transforms and random integers as loop nests."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tfconvert.converter.targets.iree.rewrites.linalg_builder import Body, Index, LinalgBuilder, arithmetic
from tfconvert.converter.targets.iree.rewrites.numbers import Context, is_dynamic, shape_of
from tfconvert.schema.diagnostics import error
from tfconvert.schema.dialects import stablehlo, tensor_data, types
from tfconvert.schema.dialects.boxes import Array
from tfconvert.schema.dialects.stablehlo import DotAttr, EnumeratorAttr
from tfconvert.schema.dialects.stablehlo_properties import ints
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import ComplexType, FloatType, IntegerType, Signedness
from tfconvert.schema.ir.values import Value


def dot_general(op: Operation, context: Context) -> Value | None:
    """Returns a product as one loop nest."""
    lhs, rhs = op.operands
    numbers = op.properties["dot_dimension_numbers"]
    assert isinstance(numbers, DotAttr)
    batch = numbers.of("lhs_batching_dimensions"), numbers.of("rhs_batching_dimensions")
    summed = numbers.of("lhs_contracting_dimensions"), numbers.of("rhs_contracting_dimensions")
    free = [
        [axis for axis in range(len(shape_of(value))) if axis not in (*batch[side], *summed[side])]
        for side, value in enumerate((lhs, rhs))
    ]
    element = op.results[0].element
    if not is_dynamic(lhs, rhs) or (len(free[0]) == len(free[1]) == len(summed[0]) == 1) or not is_computable(element):
        return None
    emit, size = context.emit, context.numbers.size
    places = [dict[int, int](), dict[int, int]()]
    sizes: list[Index] = []
    for side, value, dims in ((0, lhs, batch[0]), (0, lhs, free[0]), (1, rhs, free[1])):
        for position, axis in enumerate(dims):
            places[side][axis] = len(sizes)
            if dims is batch[0]:
                places[1][batch[1][position]] = len(sizes)
            sizes.append(size(value, axis))
    outer = len(sizes)
    for position, axis in enumerate(summed[0]):
        places[0][axis] = places[1][summed[1][position]] = outer + position
    into = emit.filled(emit.scalar(0, element), element, sizes, shape_of(op.results[0]))
    maps = [[places[side][axis] for axis in range(len(shape_of(value)))] for side, value in enumerate((lhs, rhs))]
    iterators = "p" * outer + "r" * len(summed[0])
    return emit.loops([(lhs, maps[0]), (rhs, maps[1])], (into, list(range(outer))), iterators, multiply_add(element))


def is_computable(element: Attribute) -> bool:
    """Returns whether loop nests can compute with an element type."""
    return isinstance(element, FloatType) or (
        isinstance(element, IntegerType) and element.signedness is Signedness.SIGNLESS and element.width > 1
    )


def multiply_add(element: Attribute) -> Body:
    """Returns the body of a loop nest that adds a product to the result so far."""

    def body(inside: LinalgBuilder, arguments: Sequence[Value]) -> Value:
        one, other, total = arguments
        one, other = (_widened(inside, each, element) for each in (one, other))
        product = inside.one(arithmetic(element, "mul"), (one, other), element)
        return inside.one(arithmetic(element, "add"), (total, product), element)

    return body


def _widened(inside: LinalgBuilder, value: Value, element: Attribute) -> Value:
    if value.type is element:
        return value
    return inside.one("arith.extf" if isinstance(element, FloatType) else "arith.extsi", (value,), element)


# The maximum length of a transform that becomes a product; it is also the size of its matrices.
_MAX_LENGTH = 4096

Parts = tuple[Value, Value | None]
"""Real and imaginary parts; real numbers have only those."""


def fft(op: Operation, context: Context) -> Value | None:
    """Returns a Fourier transform as matrix products, axis by axis.

    IREE only has those of one axis whose size is fixed and a power of two.

    Raises:
        ConversionError: It is too long (`unsupported-op`).
    """
    (value,) = op.operands
    kind, lengths = op.properties["fft_type"], ints(op, "fft_length")
    assert isinstance(kind, EnumeratorAttr)
    is_power = len(lengths) == 1 and lengths[0] & (lengths[0] - 1) == 0
    if is_power and not is_dynamic(value) and kind.value in ("FFT", "RFFT"):
        return None
    if max(lengths) > _MAX_LENGTH:
        raise error(
            "unsupported-op",
            f"{op.name} can't be compiled: IREE only has transforms of one axis, of fixed sizes, whose length is a "
            f"power of two, and {max(lengths)} is too long for a product",
            hint=f"transform at most {_MAX_LENGTH} numbers, or fix the sizes (--input-shape)",
        )
    work = _Transform(context)
    last = len(shape_of(value)) - 1
    others = [(last - 1 - at, length) for at, length in enumerate(reversed(lengths[:-1]))]
    if kind.value == "RFFT":
        found = work.real(value, last, lengths[-1])
        return work.joined(work.complex(found, others, is_inverse=False), op)
    parts = work.split(value)
    if kind.value == "IRFFT":
        return work.to_real(work.complex(parts, others, is_inverse=True), last, lengths[-1])
    return work.joined(work.complex(parts, [(last, lengths[-1]), *others], is_inverse=kind.value == "IFFT"), op)


class _Transform:
    def __init__(self, context: Context) -> None:
        self._context = context

    def split(self, value: Value) -> Parts:
        kind = value.element
        assert isinstance(kind, ComplexType)
        part = types.tensor(kind.element_type, shape_of(value))
        real, imaginary = (self._context.emit.one(f"stablehlo.{name}", (value,), part) for name in ("real", "imag"))
        return real, imaginary

    def joined(self, parts: Parts, op: Operation) -> Value:
        real, imaginary = parts
        assert imaginary is not None
        return self._context.emit.one("stablehlo.complex", (real, imaginary), op.results[0].type)

    def complex(self, parts: Parts, places: Sequence[tuple[int, int]], *, is_inverse: bool) -> Parts:
        """Transforms parts along axes of the given lengths."""
        real, imaginary = parts
        for axis, length in places:
            assert imaginary is not None
            angles = _angles(length, length)
            scale = 1 / length if is_inverse else 1.0
            cosine, sine = np.cos(angles) * scale, np.sin(angles) * (scale if is_inverse else -scale)
            real, imaginary = (
                self._pair("subtract", (real, cosine), (imaginary, sine), axis),
                self._pair("add", (real, sine), (imaginary, cosine), axis),
            )
        return real, imaginary

    def real(self, value: Value, axis: int, length: int) -> Parts:
        """Returns half of the transform of real numbers; the other half is its conjugate."""
        angles = _angles(length, length // 2 + 1)
        return self._product(value, np.cos(angles), axis), self._product(value, -np.sin(angles), axis)

    def to_real(self, parts: Parts, axis: int, length: int) -> Value:
        """Returns the real numbers from half of their transform."""
        real, imaginary = parts
        assert imaginary is not None
        angles = _angles(length // 2 + 1, length, length)
        # All but the first one, and the middle one of an even length, also represent their conjugates.
        weights = np.full((length // 2 + 1, 1), 2 / length)
        weights[0] = 1 / length
        if length % 2 == 0:
            weights[-1] = 1 / length
        return self._pair("subtract", (real, np.cos(angles) * weights), (imaginary, np.sin(angles) * weights), axis)

    def _pair(self, name: str, one: tuple[Value, Array], other: tuple[Value, Array], axis: int) -> Value:
        first, second = (self._product(*each, axis) for each in (one, other))
        return self._context.emit.one(f"stablehlo.{name}", (first, second), first.type)

    def _product(self, value: Value, matrix: Array, axis: int) -> Value:
        emit, element = self._context.emit, value.element
        factor = emit.insert(stablehlo.constant(_constant(matrix, element))).results[0]
        shape, sizes = list(shape_of(value)), self._context.numbers.sizes(value)
        shape[axis] = sizes[axis] = matrix.shape[1]
        rank = len(shape)
        into = emit.filled(emit.scalar(0, element), element, sizes, tuple(shape))
        everything = list(range(rank))
        read = [rank if at == axis else at for at in everything]
        return emit.loops(
            [(value, read), (factor, [rank, axis])], (into, everything), "p" * rank + "r", multiply_add(element)
        )


def _constant(matrix: Array, element: Attribute) -> tensor_data.Constant:
    return tensor_data.of_array(matrix.astype(types.numpy_dtype(element)), element)


def _angles(rows: int, columns: int, length: int = 0) -> Array:
    """Returns the angles of a transform's factors."""
    turns = np.outer(np.arange(rows), np.arange(columns)) % (length or rows)
    return np.asarray(turns * (2 * np.pi / (length or rows)))


def rng(op: Operation, context: Context) -> Value | None:
    """Returns integers below a bound, computed from floats between 0 and 1."""
    low, high, sizes = op.operands
    result, element = op.results[0], op.results[0].element
    if isinstance(element, FloatType) or not is_computable(element):
        return None
    emit, shape = context.emit, shape_of(result)
    bounds = (emit.scalar(0, types.F32), emit.scalar(1, types.F32), sizes)
    drawn = emit.one("stablehlo.rng", bounds, types.tensor(types.F32, shape), op.properties)
    first = emit.element(low)
    count = emit.one("arith.subi", (emit.element(high), first), element)
    one = emit.element(emit.scalar(1, element))
    last, wide = emit.one("arith.subi", (count, one), element), emit.one("arith.sitofp", (count,), types.F32)

    def body(inside: LinalgBuilder, arguments: Sequence[Value]) -> Value:
        part = inside.one("arith.mulf", (arguments[0], wide), types.F32)
        number = inside.one("arith.fptosi", (part,), element)
        # Rounding may bring the product of the largest float up to the bound.
        below = inside.one("arith.minsi", (number, last), element)
        return inside.one("arith.addi", (below, first), element)

    everything = list(range(len(shape)))
    into = emit.empty(element, context.numbers.elements(sizes), shape)
    return emit.loops([(drawn, everything)], (into, everything), "p" * len(shape), body)
