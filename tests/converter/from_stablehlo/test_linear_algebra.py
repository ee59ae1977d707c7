"""Cholesky decompositions and triangular systems of StableHLO."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import lapack

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


def _call(name: str, inputs: list[np.ndarray], outputs: list[str]) -> list[np.ndarray]:
    """Returns the results of a function of LAPACK, converted."""
    kinds = [f"tensor<{'x'.join(map(str, each.shape))}xf32>" for each in inputs]
    names, count = ", ".join(("%a", "%b")[: len(inputs)]), len(outputs)
    body = f"    %0:{count} = stablehlo.custom_call @{name}({names}) : ({', '.join(kinds)}) -> ({', '.join(outputs)})\n"
    returned = ", ".join(f"%0#{index}" for index in range(count))
    return results(program(f"{body}    return {returned} : {', '.join(outputs)}", kinds, outputs), *inputs)


SHAPES = [(1, 1), (2, 2), (5, 5), (5, 3), (3, 5), (4, 1), (1, 4)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", ["usual", "singular", "zeros", "ordered"])
def test_lu_decompositions(shape: tuple[int, int], kind: str) -> None:
    matrix = numbers(*shape)
    if kind == "singular":
        matrix[:, -1] = matrix[:, 0] = np.arange(shape[0])
    matrix = {"zeros": matrix * 0, "ordered": np.sort(matrix, 0)}.get(kind, matrix)
    size, kinds = min(shape), "x".join(map(str, shape))
    expected, swaps, status = lapack.sgetrf(matrix)
    found = _call("lapack_sgetrf_ffi", [matrix], [f"tensor<{kinds}xf32>", f"tensor<{size}xi32>", "tensor<i32>"])
    np.testing.assert_allclose(found[0], expected, atol=1e-5)
    np.testing.assert_array_equal(found[1], swaps + 1)
    assert found[2] == status


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", ["usual", "zeros", "upper"])
def test_qr_decompositions(shape: tuple[int, int], kind: str) -> None:
    matrix = numbers(*shape)
    matrix = {"zeros": matrix * 0, "upper": np.triu(matrix)}.get(kind, matrix)
    size, kinds = min(shape), "x".join(map(str, shape))
    expected, factors, _, _ = lapack.sgeqrf(matrix)
    found = _call("lapack_sgeqrf_ffi", [matrix], [f"tensor<{kinds}xf32>", f"tensor<{size}xf32>"])
    np.testing.assert_allclose(found[0], expected, atol=1e-5)
    np.testing.assert_allclose(found[1], factors, atol=1e-5)
    if shape[0] >= shape[1]:
        (q,) = _call("lapack_sorgqr_ffi", [expected, factors], [f"tensor<{kinds}xf32>"])
        np.testing.assert_allclose(q, lapack.sorgqr(expected, factors)[0], atol=1e-5)


def test_lu_decompositions_of_batches() -> None:
    matrix = numbers(2, 3, 3)
    found = _call("lapack_sgetrf_ffi", [matrix], ["tensor<2x3x3xf32>", "tensor<2x3xi32>", "tensor<2xi32>"])
    for index in range(2):
        expected, swaps, _ = lapack.sgetrf(matrix[index])
        np.testing.assert_allclose(found[0][index], expected, atol=1e-5)
        np.testing.assert_array_equal(found[1][index], swaps + 1)


def test_decompositions_of_lapack_are_refused_with_a_way_out() -> None:
    kind = "tensor<3x3xf32>"
    body = f"    %0 = stablehlo.custom_call @lapack_ssyevd_ffi(%a) : ({kind}) -> {kind}\n    return %0 : {kind}"
    with pytest.raises(ConversionError) as caught:
        convert(program(body, [kind], [kind]))
    assert "jnp.linalg.solve" in caught.value.diagnostics[0].hint
