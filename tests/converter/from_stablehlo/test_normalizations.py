"""Batch normalization and Fourier transforms of StableHLO."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.converter.from_stablehlo.against_executor import Array, check, numbers
from tests.converter.from_stablehlo.programs import program, results, type_of

VECTORS = [numbers(4, seed=seed) for seed in (1, 2, 3)]
VARIANCE = abs(numbers(4, seed=4)) + np.float32(0.5)
PROPERTIES = "<{epsilon = 1.0e-03 : f32, feature_index = 1 : i64}>"


@pytest.mark.parametrize("is_open", [False, True])
def test_given_statistics(is_open: bool) -> None:
    op = f'"stablehlo.batch_norm_inference"(%a, %b, %c, %d, %e) {PROPERTIES}'
    check(op, [numbers(3, 4, 5), *VECTORS, VARIANCE], (3, 4, 5), is_open=is_open)


def run(op: str, inputs: list[Array], shapes: list[Any]) -> list[Array]:
    operands = [type_of(x) for x in inputs]
    types = [type_of(np.empty(shape, np.float32)) for shape in shapes]
    listed = ", ".join(types)
    names = ", ".join(f"%0#{index}" for index in range(len(types)))
    text = f"    %0:{len(types)} = {op} : ({', '.join(operands)}) -> ({listed})\n    return {names} : {listed}"
    return results(program(text, operands, types), *inputs)


def test_statistics_of_the_operand() -> None:
    x, (scale, offset, _) = numbers(3, 4, 5), VECTORS
    op = f'"stablehlo.batch_norm_training"(%a, %b, %c) {PROPERTIES}'
    found, mean, variance = run(op, [x, scale, offset], [x.shape, (4,), (4,)])
    np.testing.assert_allclose(mean, x.mean((0, 2)), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(variance, x.var((0, 2)), rtol=1e-4, atol=1e-6)
    wide = [each.reshape(1, 4, 1) for each in (x.mean((0, 2)), x.var((0, 2)), scale, offset)]
    expected = (x - wide[0]) / np.sqrt(wide[1] + 1e-3) * wide[2] + wide[3]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_gradient() -> None:
    x, gradient, scale = numbers(3, 4, 5), numbers(3, 4, 5, seed=9), VECTORS[0]
    mean, variance = x.mean((0, 2)), x.var((0, 2))
    op = f'"stablehlo.batch_norm_grad"(%a, %b, %c, %d, %e) {PROPERTIES}'
    of_x, of_scale, of_offset = run(op, [x, scale, mean, variance, gradient], [x.shape, (4,), (4,)])
    wide = [each.reshape(1, 4, 1) for each in (mean, variance, scale)]
    inverse = 1 / np.sqrt(wide[1] + 1e-3)
    normalized = (x - wide[0]) * inverse
    np.testing.assert_allclose(of_offset, gradient.sum((0, 2)), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(of_scale, (gradient * normalized).sum((0, 2)), rtol=1e-4, atol=1e-4)
    means = [each.mean((0, 2), keepdims=True) for each in (gradient, gradient * normalized)]
    expected = wide[2] * inverse * (gradient - means[0] - normalized * means[1])
    np.testing.assert_allclose(of_x, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("shape", [(2, 8), (2, 6), (3, 4, 5), (7,)])
def test_spectra_of_real_signals_and_back(shape: tuple[int, ...]) -> None:
    x = numbers(*shape)
    kind, half = type_of(x), shape[-1] // 2 + 1
    spectrum = f"tensor<{'x'.join(map(str, (*shape[:-1], half)))}xcomplex<f32>>"
    part = spectrum.replace("complex<f32>", "f32")
    body = f"""    %0 = stablehlo.fft %a, type = RFFT, length = [{shape[-1]}] : ({kind}) -> {spectrum}
    %1 = stablehlo.real %0 : ({spectrum}) -> {part}
    %2 = stablehlo.imag %0 : ({spectrum}) -> {part}
    %3 = stablehlo.fft %0, type = IRFFT, length = [{shape[-1]}] : ({spectrum}) -> {kind}
    return %1, %2, %3 : {part}, {part}, {kind}"""
    real, imaginary, again = results(program(body, [kind], [part, part, kind]), x)
    expected = np.fft.rfft(x)
    np.testing.assert_allclose(real + 1j * imaginary, expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(again, x, rtol=1e-4, atol=1e-5)


def test_angles_of_spectra() -> None:
    """The first and the last part of a spectrum have no imaginary part: negative ones have the angle pi, not -pi."""
    x = np.array([-1, 0, -2, 1, -3, 0, -1, 2], np.float32)
    body = """    %0 = stablehlo.fft %a, type = RFFT, length = [8] : (tensor<8xf32>) -> tensor<5xcomplex<f32>>
    %1 = stablehlo.real %0 : (tensor<5xcomplex<f32>>) -> tensor<5xf32>
    %2 = stablehlo.imag %0 : (tensor<5xcomplex<f32>>) -> tensor<5xf32>
    %3 = stablehlo.atan2 %2, %1 : tensor<5xf32>
    return %3 : tensor<5xf32>"""
    (found,) = results(program(body, ["tensor<8xf32>"], ["tensor<5xf32>"]), x)
    expected = np.angle(np.fft.rfft(x))
    assert expected[0] == expected[4] == np.pi
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize(("name", "lengths"), [("FFT", "5"), ("IFFT", "5"), ("FFT", "3, 5"), ("IFFT", "4, 3, 5")])
def test_spectra_of_complex_signals(name: str, lengths: str) -> None:
    x, y = numbers(4, 3, 5), numbers(4, 3, 5, seed=1)
    kind, whole = type_of(x), "tensor<4x3x5xcomplex<f32>>"
    body = f"""    %0 = stablehlo.complex %a, %b : {whole}
    %1 = stablehlo.fft %0, type = {name}, length = [{lengths}] : ({whole}) -> {whole}
    return %1 : {whole}"""
    (found,) = results(program(body, [kind, kind], [whole]), x, y)
    axes = tuple(range(-len(lengths.split(",")), 0))
    expected = (np.fft.fftn if name == "FFT" else np.fft.ifftn)(x + 1j * y, axes=axes)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
