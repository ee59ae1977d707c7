"""Random bits of XLA's generators, and the positions of 64 bits that JAX counts elements by."""

from __future__ import annotations

import numpy as np
import pytest

from tests.converter.from_stablehlo.programs import convert, operators, program, results
from tfconvert.schema.diagnostics import ConversionError

STATE = np.array([1 + (2 << 32), 3 + (4 << 32)], np.uint64)

# What XLA makes of this key and counter.
PHILOX = [512747620, 1298009047, 1267190206, 761827841, 1383286907]
THREEFRY = [1576285164, 2249660814, 740599976, 2425682526, 2436392515]


def _text(algorithm: str, kind: str) -> str:
    words = "tensor<4xui32>"
    body = f"""    %0 = stablehlo.reshape %a : ({words}) -> tensor<2x2xui32>
    %1 = stablehlo.bitcast_convert %0 : (tensor<2x2xui32>) -> tensor<2xui64>
    %2, %3 = "stablehlo.rng_bit_generator"(%1) {{rng_algorithm = #stablehlo<rng_algorithm {algorithm}>}}
        : (tensor<2xui64>) -> (tensor<2xui64>, {kind})
    %4 = stablehlo.bitcast_convert %2 : (tensor<2xui64>) -> tensor<2x2xui32>
    %5 = stablehlo.reshape %4 : (tensor<2x2xui32>) -> {words}
    return %5, %3 : {words}, {kind}"""
    return program(body, [words], [words, kind])


@pytest.mark.parametrize(
    ("algorithm", "kind", "counter", "expected"),
    [
        ("PHILOX", "tensor<5xui32>", 5, PHILOX),
        ("DEFAULT", "tensor<5xui32>", 5, PHILOX),
        ("DEFAULT", "tensor<ui32>", 4, PHILOX[0]),
        ("DEFAULT", "tensor<5xui8>", 5, [number % 256 for number in PHILOX]),
        ("THREE_FRY", "tensor<5xui32>", 6, THREEFRY),
        ("THREE_FRY", "tensor<ui32>", 4, THREEFRY[0]),
        # Both words of a pair are in one column.
        ("THREE_FRY", "tensor<2x3xui32>", 6, [[1576285164, 740599976, 2436392515]]),
    ],
)
def test_bits(algorithm: str, kind: str, counter: int, expected: object) -> None:
    state, bits = results(_text(algorithm, kind), STATE.view(np.uint32))
    np.testing.assert_array_equal(state, [1, 2, counter, 4])
    if bits.ndim == 2:
        np.testing.assert_array_equal(bits[1, :2], THREEFRY[1::2])
        bits = bits[:1]
    np.testing.assert_array_equal(bits, expected)


def test_a_known_key_is_computed() -> None:
    body = """    %0 = stablehlo.constant dense<[8589934593, 17179869187]> : tensor<2xui64>
    %1, %2 = "stablehlo.rng_bit_generator"(%0) {rng_algorithm = #stablehlo<rng_algorithm PHILOX>}
        : (tensor<2xui64>) -> (tensor<2xui64>, tensor<5xui32>)
    %3 = stablehlo.xor %2, %a : tensor<5xui32>
    return %3 : tensor<5xui32>"""
    text = program(body, ["tensor<5xui32>"], ["tensor<5xui32>"])
    assert operators(convert(text)) == {"BITWISE_XOR": 1}
    np.testing.assert_array_equal(results(text, np.zeros(5, np.uint32))[0], PHILOX)


def test_numbers_of_64_bits_are_refused() -> None:
    with pytest.raises(ConversionError, match="makes numbers of 64 bits"):
        convert(_text("PHILOX", "tensor<5xui64>"))


POSITIONS = """    %c0 = stablehlo.constant dense<3> : tensor<ui64>
    %c1 = stablehlo.constant dense<32> : tensor<ui64>
    %0 = "stablehlo.get_dimension_size"(%a) {dimension = 0 : i64} : (tensor<?x3xf32>) -> tensor<i32>
    %1 = stablehlo.reshape %0 : (tensor<i32>) -> tensor<1xi32>
    %c2 = stablehlo.constant dense<3> : tensor<1xi32>
    %2 = stablehlo.concatenate %1, %c2, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %3 = stablehlo.dynamic_iota %2, dim = 0 : (tensor<2xi32>) -> tensor<?x3xui64>
    %4 = stablehlo.dynamic_iota %2, dim = 1 : (tensor<2xi32>) -> tensor<?x3xui64>
    %5 = stablehlo.dynamic_broadcast_in_dim %c0, %2, dims = [] : (tensor<ui64>, tensor<2xi32>) -> tensor<?x3xui64>
    %6 = stablehlo.multiply %5, %3 : tensor<?x3xui64>
    %7 = stablehlo.add %6, %4 : tensor<?x3xui64>
    %8 = stablehlo.dynamic_broadcast_in_dim %c1, %2, dims = [] : (tensor<ui64>, tensor<2xi32>) -> tensor<?x3xui64>
    %9 = stablehlo.shift_right_logical %7, %8 : tensor<?x3xui64>
    %10 = stablehlo.convert %7 : (tensor<?x3xui64>) -> tensor<?x3xui32>
    %11 = stablehlo.convert %9 : (tensor<?x3xui64>) -> tensor<?x3xui32>
    return %10, %11 : tensor<?x3xui32>, tensor<?x3xui32>"""
OPEN = "tensor<?x3xui32>"


def test_positions_of_64_bits() -> None:
    low, high = results(program(POSITIONS, ["tensor<?x3xf32>"], [OPEN, OPEN]), np.zeros((4, 3), np.float32))
    np.testing.assert_array_equal(low, np.arange(12).reshape(4, 3))
    np.testing.assert_array_equal(high, np.zeros((4, 3)))


def test_the_upper_words_of_larger_numbers_are_not_taken_for_zero() -> None:
    """Products with numbers that are no strides may have more than 32 bits."""
    text = program(
        POSITIONS.replace("dense<3> : tensor<ui64>", "dense<2654435761> : tensor<ui64>"),
        ["tensor<?x3xf32>"],
        [OPEN, OPEN],
    )
    with pytest.raises(ConversionError, match="ui64"):
        convert(text)
