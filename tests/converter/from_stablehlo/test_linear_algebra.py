"""Cholesky decompositions and triangular systems of StableHLO."""

from __future__ import annotations

import numpy as np
import pytest

from tests.converter.from_stablehlo.against_executor import check, numbers
from tests.converter.from_stablehlo.programs import convert, program, results
from tfconvert.schema.diagnostics import ConversionError

FLAGS = ("false", "true")


@pytest.mark.parametrize("lower", FLAGS)
@pytest.mark.parametrize("shape", [(4, 4), (2, 3, 3), (1, 1)])
def test_decompositions(shape: tuple[int, ...], lower: str) -> None:
    x = numbers(*shape)
    matrix = (x @ np.swapaxes(x, -1, -2) + 4 * np.eye(shape[-1])).astype(np.float32)
    check(f'"stablehlo.cholesky"(%a) <{{lower = {lower}}}>', [matrix], shape)


@pytest.mark.parametrize("turn", ["NO_TRANSPOSE", "TRANSPOSE"])
@pytest.mark.parametrize("unit", FLAGS)
@pytest.mark.parametrize("left", FLAGS)
@pytest.mark.parametrize("lower", FLAGS)
def test_triangular_systems(lower: str, left: str, unit: str, turn: str) -> None:
    matrix = numbers(2, 3, 3) + 4 * np.eye(3, dtype=np.float32)
    properties = f"left_side = {left}, lower = {lower}, unit_diagonal = {unit}"
    op = f'"stablehlo.triangular_solve"(%a, %b) <{{{properties}, transpose_a = #stablehlo<transpose {turn}>}}>'
    shape = (2, 3, 4) if left == "true" else (2, 4, 3)
    check(op, [matrix, numbers(*shape, seed=1)], shape)


LAPACK = """    %0:2 = stablehlo.custom_call @lapack_spotrf_ffi(%a) {mhlo.backend_config = {uplo = 76 : ui8}}
        : (tensor<3x3xf32>) -> (tensor<3x3xf32>, tensor<i32>)
    return %0#1 : tensor<i32>"""


@pytest.mark.parametrize(("sign", "expected"), [(1, 0), (-1, 1)])
def test_matrices_without_a_decomposition(sign: int, expected: int) -> None:
    text = program(LAPACK, ["tensor<3x3xf32>"], ["tensor<i32>"])
    assert results(text, sign * np.eye(3, dtype=np.float32))[0] == expected


def test_large_matrices_are_refused() -> None:
    with pytest.raises(ConversionError, match="only matrices of 1 to 32 rows"):
        check('"stablehlo.cholesky"(%a) <{lower = true}>', [np.eye(33, dtype=np.float32)], (33, 33))


def test_decompositions_of_lapack_are_refused_with_a_way_out() -> None:
    kind = "tensor<3x3xf32>"
    body = f"    %0 = stablehlo.custom_call @lapack_sgeqrf_ffi(%a) : ({kind}) -> {kind}\n    return %0 : {kind}"
    with pytest.raises(ConversionError) as caught:
        convert(program(body, [kind], [kind]))
    assert "cho_solve" in caught.value.diagnostics[0].hint
