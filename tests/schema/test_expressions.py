"""Deferred expressions: every box and every sequence of blocks says what the whole value says."""

from __future__ import annotations

import itertools
import math
import tracemalloc
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import google_crc32c
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.dialects import boxes, expressions, types
from tfconvert.schema.dialects.expressions import EXPRESSIONS, Deferred
from tfconvert.schema.dialects.sources import BufferSource, DataSource, FileSlice
from tfconvert.schema.dialects.tensor_data import TensorData
from tfconvert.schema.files import InputFile
from tfconvert.schema.ir.types import TensorType

Array = np.ndarray[Any, np.dtype[Any]]
Shape = tuple[int, ...]
# A handle and what its value should be.
Pair = tuple[TensorData, Array]

DTYPES = [np.dtype(name) for name in ("float32", "float64", "int8", "int32", "float16")] + [
    np.dtype(ml_dtypes.bfloat16)
]
SHAPES = st.lists(st.integers(0, 5), max_size=4).map(tuple)


def handle(value: Array, source: DataSource | None = None) -> TensorData:
    tensor_type = types.tensor(types.from_dtype(value.dtype).mlir, value.shape)
    assert isinstance(tensor_type, TensorType)
    return TensorData.get(tensor_type, source or BufferSource(value))


def random(shape: Shape, seed: int = 0, dtype: Any = np.float32) -> Array:
    return (np.random.default_rng(seed).normal(size=shape) * 20).astype(dtype)


def deferred(function: str, arguments: Sequence[Pair], parameter: Any, expected: Array) -> Pair:
    return handle(expected, Deferred(function, tuple(each for each, _ in arguments), parameter)), expected


def of(value: Array) -> Pair:
    return handle(value), value


def joined(blocks: Sequence[Array], like: Array) -> Array:
    flat = [block.reshape(-1) for block in blocks]
    return np.concatenate([*flat, np.empty(0, like.dtype)]).reshape(like.shape)


def check(pair: Pair, data: st.DataObject) -> None:
    """Compares the whole, its blocks of any size, and some box, bit by bit."""
    got, expected = pair
    assert got.array().tobytes() == expected.tobytes()
    assert got.array().shape == expected.shape
    size = data.draw(st.sampled_from([1, 4, 12, 40, 200, 1 << 20]), "block")
    tile = data.draw(st.sampled_from([1, 16, 100, 1 << 20]), "tile")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(expressions, "_TILE", tile)
        patch.setattr(expressions, "_FACE", data.draw(st.sampled_from([1, 1 << 20]), "face"))
        patch.setattr(expressions, "_LANES", 2)
        patch.setattr(expressions, "_WIDE", 1)
        blocks = list(got.source.blocks(got.dtype, got.shape, size))
        assert all(block.flags.c_contiguous and block.dtype == expected.dtype for block in blocks)
        assert all(block.size == 1 or block.nbytes <= max(size, block.itemsize) for block in blocks)
        assert joined(blocks, expected).tobytes() == expected.tobytes()
        box = tuple(slice(*sorted(data.draw(st.tuples(*[st.integers(0, dim)] * 2)))) for dim in got.shape)
        part = got.part(box)
        assert part.shape == boxes.extent(box)
        assert part.tobytes() == expected[box].tobytes()


@given(SHAPES, st.randoms(use_true_random=False), st.sampled_from(DTYPES), st.data())
def test_transpositions(shape: Shape, order: Any, dtype: Any, data: st.DataObject) -> None:
    permutation = list(range(len(shape)))
    order.shuffle(permutation)
    value = random(shape, dtype=dtype)
    check(deferred("transpose", [of(value)], tuple(permutation), value.transpose(permutation)), data)


@st.composite
def factored(draw: st.DrawFn) -> tuple[Shape, Shape]:
    """Two shapes of as many elements."""
    factors = draw(st.lists(st.sampled_from([1, 2, 3, 5]), max_size=5))

    def shape() -> Shape:
        cuts = sorted(draw(st.lists(st.integers(0, len(factors)), max_size=4)))
        ends = [0, *cuts, len(factors)]
        return tuple(math.prod(factors[start:stop]) for start, stop in itertools.pairwise(ends))

    return shape(), shape()


@given(factored(), st.booleans(), st.data())
def test_reshapes(shapes: tuple[Shape, Shape], computed: bool, data: st.DataObject) -> None:
    value = random(shapes[0])
    argument = deferred("transpose", [of(value.T.copy())], tuple(reversed(range(value.ndim))), value)
    target = shapes[1]
    check(deferred("reshape", [argument if computed else of(value)], target, value.reshape(target)), data)


@given(SHAPES, st.sampled_from(DTYPES), st.sampled_from(DTYPES), st.data())
def test_casts(shape: Shape, source: Any, target: Any, data: st.DataObject) -> None:
    value = random(shape, dtype=source)
    check(deferred("cast", [of(value)], target, value.astype(target)), data)


@given(SHAPES, st.data())
def test_reversals(shape: Shape, data: st.DataObject) -> None:
    value = random(shape)
    axes = [*range(len(shape)), *range(-len(shape), 0)]
    chosen = data.draw(
        st.lists(st.sampled_from(axes), unique_by=lambda axis: axis % len(shape)) if axes else st.just([])
    )
    parameter = data.draw(st.sampled_from([tuple(chosen), None]))
    check(deferred("reverse", [of(value)], parameter, np.flip(value, parameter)), data)


@given(SHAPES, st.data())
def test_pads(shape: Shape, data: st.DataObject) -> None:
    value = random(shape)
    pads = tuple(data.draw(st.tuples(st.integers(0, 3), st.integers(0, 3))) for _ in shape)
    check(deferred("pad", [of(value)], pads, np.pad(value, pads) if pads else value), data)


@given(SHAPES.filter(len), st.lists(st.integers(0, 4), min_size=1, max_size=4), st.data())
def test_concatenations(shape: Shape, lengths: list[int], data: st.DataObject) -> None:
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    position = axis % len(shape)
    values = [random((*shape[:position], each, *shape[position + 1 :]), seed) for seed, each in enumerate(lengths)]
    check(deferred("concat", list(map(of, values)), axis, np.concatenate(values, axis)), data)


@given(SHAPES, st.lists(st.integers(0, 4), min_size=1, max_size=4), st.randoms(use_true_random=False), st.data())
def test_places(inner: Shape, lengths: list[int], order: Any, data: st.DataObject) -> None:
    tables = [random((each, *inner), seed) for seed, each in enumerate(lengths)]
    places = list(range(sum(lengths)))
    order.shuffle(places)
    expected = np.empty((len(places), *inner), np.float32)
    for place, row in zip(places, itertools.chain(*tables), strict=True):
        expected[place] = row
    numbers = np.array(places, np.int64)
    check(deferred("place", [*map(of, tables), of(numbers)], None, expected), data)


FUNCTIONS: dict[str, Callable[[Array, Array], Array]] = {
    "mul": np.multiply,
    "add": np.add,
    "sub": np.subtract,
    "div": np.divide,
}


@given(SHAPES, st.sampled_from(sorted(FUNCTIONS)), st.booleans(), st.booleans(), st.data())
def test_arithmetic(shape: Shape, name: str, swapped: bool, computed: bool, data: st.DataObject) -> None:
    keep = data.draw(st.lists(st.booleans(), min_size=len(shape), max_size=len(shape)))
    other = tuple(dim if kept else 1 for dim, kept in zip(shape, keep, strict=True))
    other = other[data.draw(st.integers(0, len(other))) :]
    one, two = random(shape), random(other, 1)
    first = deferred("transpose", [of(one.T.copy())], tuple(reversed(range(one.ndim))), one) if computed else of(one)
    second = of(two)
    with np.errstate(all="ignore"):
        pairs = [second, first] if swapped else [first, second]
        expected = np.asarray(FUNCTIONS[name](pairs[0][1], pairs[1][1]))
    check(deferred(name, pairs, None, expected), data)


@given(SHAPES.filter(len), st.sampled_from([np.dtype(np.int8), np.dtype(ml_dtypes.int4)]), st.booleans(), st.data())
def test_integers(shape: Shape, dtype: Any, computed: bool, data: st.DataObject) -> None:
    """Computed arguments may be overwritten; those that are views of others, such as weights in files, may not."""
    axis = data.draw(st.one_of(st.none(), st.integers(0, len(shape) - 1)), "axis")
    count = 1 if axis is None else shape[axis]
    aligned = [1] * len(shape)
    aligned[axis or 0] = count
    value, zero = random(shape), np.zeros(count, np.int32) + data.draw(st.integers(-3, 3), "zero point")
    scales = np.random.default_rng(1).uniform(0.5, 9, count).astype(np.float32)
    whole = np.rint(value * (np.float32(1) / scales).reshape(aligned)) + zero.reshape(aligned)
    reverse = tuple(reversed(range(len(shape))))
    argument = deferred("transpose", [of(value.T.copy())], reverse, value) if computed else of(value)
    before = value.copy()
    expected = np.clip(whole, -7, 7).astype(dtype)
    check(deferred("quantize", [argument, of(scales), of(zero)], (axis, -7, 7), expected), data)
    assert value.tobytes() == before.tobytes()


@given(SHAPES, st.data())
def test_halves(shape: Shape, data: st.DataObject) -> None:
    value = random(shape) * np.float32(10.0) ** np.random.default_rng(1).integers(-9, 9, shape).astype(np.float32)
    check(deferred("half", [of(value)], None, np.clip(value, -65504, 65504).astype(np.float16)), data)


@given(SHAPES, st.data())
def test_results_of_other_dimensions_and_types(shape: Shape, data: st.DataObject) -> None:
    """A result takes the form of its handle: dimensions of 1 may come or go, and elements are cast."""
    value, factor = random(shape), random((), 1)
    expected = (value * factor).reshape(1, *shape, 1).astype(np.float16)
    check(deferred("mul", [of(value), of(factor)], None, expected), data)


@given(st.integers(1, 40), st.integers(1, 3), st.data())
def test_a_filter_as_passes_leave_it(rows: int, kernel: int, data: st.DataObject) -> None:
    # Either may be long; blocks of single elements of filters that are long and wide take seconds.
    columns = data.draw(st.integers(1, min(40, max(3, 1300 // (kernel * kernel * rows)))), "columns")
    filters, scale = random((kernel, kernel, rows, columns)), random((columns,), 1)
    order = (3, 0, 1, 2)
    transposed = deferred("transpose", [of(filters)], order, filters.transpose(order))
    aligned = deferred("reshape", [of(scale)], (columns, 1, 1, 1), scale.reshape(columns, 1, 1, 1))
    scaled = deferred("mul", [transposed, aligned], None, transposed[1] * aligned[1])
    flat = (columns, kernel * kernel * rows)
    check(deferred("reshape", [scaled], flat, scaled[1].reshape(flat)), data)


@given(SHAPES.filter(len), st.data())
def test_fake_quantization(shape: Shape, data: st.DataObject) -> None:
    axis = data.draw(st.sampled_from([None, *range(len(shape))]))
    count = 1 if axis is None else shape[axis]
    low, high = data.draw(st.sampled_from([(-128, 127), (-127, 127), (-7, 7), (-32768, 32767)]))
    # Powers of two, so that every other arithmetic gives the same.
    scales = np.float32(2.0) ** np.arange(-5, count - 5, dtype=np.float32)
    zeros = np.arange(count, dtype=np.int32) * 3 - 5
    value = np.round(random(shape) * 64) / 64  # Exact in any order of computing, so that ties are the same ones.
    aligned = [-1 if at == axis else 1 for at in range(len(shape))]
    scale, zero = scales.reshape(aligned), zeros.reshape(aligned)
    stored = np.clip(np.floor(value / scale + np.float32(0.5)) + zero, low, high)
    expected = ((stored - zero) * scale).astype(np.float32)
    check(deferred("fake_quant", [of(value), of(scales), of(zeros)], (axis, low, high), expected), data)


def test_fake_quantization_of_a_scalar() -> None:
    scale, zero = np.array([0.5], np.float32), np.array([1], np.int32)
    got, _ = deferred(
        "fake_quant", [of(np.array(1.7, np.float32)), of(scale), of(zero)], (None, -8, 7), np.zeros((), np.float32)
    )
    assert got.array() == np.float32(1.5)


def test_every_expression_has_its_test() -> None:
    moving = {"transpose", "reshape", "cast", "reverse", "pad", "concat", "place"}
    assert set(EXPRESSIONS) == {*moving, *FUNCTIONS, "fake_quant", "quantize", "half"}


def test_strings() -> None:
    words = np.array([[b"a", b"bc"], [b"", b"d"]], object)
    for function, parameter, expected in (
        ("transpose", (1, 0), words.T),
        ("reshape", (4,), words.reshape(4)),
        ("reverse", (0,), words[::-1]),
        ("concat", 0, np.concatenate([words, words])),
    ):
        arguments = [of(words)] * (2 if function == "concat" else 1)
        got, _ = deferred(function, arguments, parameter, expected)
        assert got.array().tolist() == expected.tolist()
        blocks = got.source.blocks(got.dtype, got.shape, 8)
        assert [word for block in blocks for word in block.ravel()] == expected.ravel().tolist()


def _large_file(folder: Path, damaged: bool = False) -> tuple[TensorData, Array]:
    """Returns a matrix of 8 MB in a file."""
    value = random((1024, 2048))
    path = folder / "shard"
    path.write_bytes(b"head" * 999 + value.tobytes())
    crc32c = google_crc32c.value(value.tobytes()) ^ damaged
    return handle(value, FileSlice(InputFile(path), 4 * 999, value.nbytes, crc32c, "w")), value


@pytest.mark.parametrize("function", ["transpose", "mul", "cast", "reshape", "reverse", "pad", "concat"])
def test_damage_is_found_before_a_block_is_computed(tmp_path: Path, function: str) -> None:
    matrix, _ = _large_file(tmp_path, damaged=True)
    parameter = {
        "transpose": (1, 0),
        "cast": np.dtype(np.float16),
        "reshape": (2048, 1024),
        "reverse": (0,),
        "pad": ((0, 0), (0, 0)),
        "concat": 0,
    }
    source = Deferred(function, (matrix,) * (2 if function == "mul" else 1), parameter.get(function))
    with pytest.raises(ConversionError, match="'w'") as caught:
        next(iter(source.blocks(matrix.dtype, source.shape, 1 << 16)))
    assert caught.value.code == "bad-checksum"


def test_blocks_take_the_memory_of_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expressions, "_TILE", 1 << 18)
    matrix, value = _large_file(tmp_path)
    scale = random((2048, 1), 1)
    scaled, expected = deferred(
        "mul", [deferred("transpose", [(matrix, value)], (1, 0), value.T), of(scale)], None, value.T * scale
    )
    size = 1 << 17
    position = 0
    flat = expected.reshape(-1)
    tracemalloc.start()
    for block in scaled.source.blocks(scaled.dtype, scaled.shape, size):
        assert block.tobytes() == flat[position : position + block.size].tobytes()
        position += block.size
        del block
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert position == expected.size
    assert peak < 16 * size < value.nbytes / 2


@pytest.mark.parametrize("function", ["quantize", "half"])
def test_blocks_of_few_bytes_are_computed_from_few_floats(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, function: str
) -> None:
    monkeypatch.setattr(expressions, "_TILE", 1 << 18)
    monkeypatch.setattr(expressions, "_WIDE", 1)
    matrix, value = _large_file(tmp_path)
    turned = deferred("transpose", [(matrix, value)], (1, 0), value.T)
    factors = [of(random((2048,), 1) ** 2 + 1), of(np.zeros(2048, np.int32))] if function == "quantize" else []
    result, _ = deferred(
        function, [turned, *factors], (0, -127, 127), np.empty((2048, 1024), np.int8 if factors else np.float16)
    )
    size = 1 << 17
    largest = 0
    tracemalloc.start()
    for block in result.source.blocks(result.dtype, result.shape, size):
        largest = max(largest, block.nbytes)
        del block
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert largest == size * result.dtype.itemsize // 4
    assert peak < 4 * size


def test_a_file_is_read_tile_by_tile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file is read a tile at a time, and each part about once."""
    tile = 1 << 18
    monkeypatch.setattr(expressions, "_TILE", tile)
    matrix, value = _large_file(tmp_path)
    matrix.array()
    read: list[int] = []
    read_into = InputFile.read_into

    def record(self: InputFile, offset: int, target: memoryview) -> None:
        read.append(len(target))
        read_into(self, offset, target)

    monkeypatch.setattr(InputFile, "read_into", record)
    source = Deferred("transpose", (matrix,), (1, 0))
    next(iter(source.blocks(matrix.dtype, source.shape, 1 << 17)))
    assert max(read) <= tile
    assert sum(read) <= value.nbytes
