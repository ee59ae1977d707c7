"""Fourier transforms of any length, and what is computed of complex numbers, against TensorFlow."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tfconvert
from tests.converter.targets.litert.legalize.cases import Case, Check
from tests.support.litert import RunTFLite

_LENGTHS = (*range(1, 65), 100, 400, 480, 512, 600, 1030, 4096)


@pytest.mark.parametrize("length", _LENGTHS)
def test_lengths(length: int, check: Check) -> None:
    half = length // 2 + 1
    check(Case("FFT", (f"c64[?2,{length}]",), tolerance=1e-6))
    check(Case("IFFT", (f"c64[{length}]",), tolerance=1e-6))
    check(Case("RFFT", (f"f32[?2,{length + 1}]", [length]), tolerance=1e-6))
    check(Case("IRFFT", (f"c64[?2,?3,{half + 1}]", [length]), tolerance=1e-6))


DIMENSIONS = (
    Case("FFT2D", ("c64[?2,6,10]",)),
    Case("IFFT2D", ("c64[6,8]",)),
    Case("FFT3D", ("c64[?2,3,6,10]",)),
    Case("IFFT3D", ("c64[3,4,5]",)),
    Case("RFFT2D", ("f32[?2,6,10]", [5, 9])),
    Case("RFFT2D", ("f32[?2,8,8]", [8, 1])),
    Case("RFFT2D", ("f32[8,8]", [8, 4])),
    Case("IRFFT2D", ("c64[?2,6,10]", [5, 18])),
    Case("RFFT3D", ("f32[?2,4,4,4]", [4, 3, 4])),
    Case("IRFFT3D", ("c64[?2,4,4,4]", [4, 3, 5])),
    Case("FFT", ("c64[?2,?3,1030]",)),
    Case("IFFT", ("c64[?2,?3,6]",)),
    Case("RFFT", ("f32[?2,?3,2050]", [2050])),
)


@pytest.mark.parametrize("case", DIMENSIONS, ids=str)
def test_dimensions(case: Case, check: Check) -> None:
    check(Case(case.op, case.operands, tolerance=1e-6))


def test_a_power_of_two_is_the_kernels(check: Check) -> None:
    assert "RFFT2D" in check(Case("RFFT", ("f32[2,64]", [64])))


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        (Case("FFT", ("c64[2,?100]",)), "the length is not known"),
        (Case("FFT", ("c64[2,2062]",)), "2062 is not a product of two numbers up to 1024"),
        (Case("IRFFT", ("c64[2,?11]", [20])), "the size of the operand is not known"),
    ],
    ids=str,
)
def test_declined(case: Case, reason: str, check: Check) -> None:
    with pytest.raises(tfconvert.ConversionError, match=reason):
        check(case)


Function = Callable[..., Any]


def _signals(tf: ModuleType) -> Mapping[str, tuple[Function, Sequence[int]]]:
    signal = tf.signal
    dct = {
        f"{name}-{kind}-{norm}-{size}": (
            lambda x, name=name, kind=kind, norm=norm: getattr(signal, name)(x, type=kind, norm=norm),
            (2, size),
        )
        for name in ("dct", "idct")
        for kind in (1, 2, 3, 4)
        for norm in (None, "ortho")
        for size in (8, 13)
        if kind > 1 or norm is None
    }
    stft = {
        f"stft-{size}": (lambda x, size=size: tf.abs(signal.stft(x, size, size // 4, size)), (2, 2000))
        for size in (400, 480, 512, 600)
    }
    back = {
        f"inverse-stft-{size}": (
            lambda x, size=size: signal.inverse_stft(signal.stft(x, size, size // 4, size), size, size // 4, size),
            (2, 2000),
        )
        for size in (400, 512)
    }
    return {
        **dct,
        **stft,
        **back,
        "mfcc-40": (signal.mfccs_from_log_mel_spectrograms, (2, 3, 40)),
        "mfcc-80": (signal.mfccs_from_log_mel_spectrograms, (2, 3, 80)),
        "shorter": (lambda x: tf.abs(signal.rfft(x, [20])), (2, 64)),
        "longer": (lambda x: tf.abs(signal.rfft(x, [100])), (2, 64)),
        "of-real": (lambda x: tf.abs(signal.fft(tf.cast(x, tf.complex64))), (2, 60)),
        # The imaginary parts of the first and the last number are zero.
        "angle": (lambda x: tf.math.angle(signal.rfft(x)), (2, 64)),
        "atan2": (lambda x: tf.atan2(tf.math.imag(signal.rfft(x)), tf.math.real(signal.rfft(x))), (2, 64)),
        "moved": (
            lambda x: tf.atan2(
                tf.transpose(tf.math.imag(signal.rfft(x)))[:, :1], tf.transpose(tf.math.real(signal.rfft(x)))[:, :1]
            ),
            (2, 64),
        ),
        "angle-of-any": (lambda x: tf.math.angle(signal.rfft(x)), (2, 60)),
    }


def _same(tf: ModuleType, run_tflite: RunTFLite, function: Function, arrays: Sequence[np.ndarray]) -> tfconvert.Model:
    module = tf.Module()
    specs = [tf.TensorSpec([None, *array.shape[1:]], array.dtype, f"x{i}") for i, array in enumerate(arrays)]
    module.run = tf.function(function, input_signature=specs, autograph=False)
    model = tfconvert.convert(module)
    expected = tf.nest.flatten(module.run(*map(tf.constant, arrays)))
    for got, wanted in zip(run_tflite(bytes(model), list(arrays)), expected, strict=True):
        limit = 3e-6 * max(1.0, float(np.abs(wanted).max()))
        np.testing.assert_allclose(got, wanted.numpy(), 3e-6, limit)
    return model


@pytest.fixture(scope="module")
def signals(tf: ModuleType) -> Mapping[str, tuple[Function, Sequence[int]]]:
    return _signals(tf)


@pytest.mark.parametrize("name", _signals(pytest.importorskip("tensorflow")))
def test_signals(
    name: str, signals: Mapping[str, tuple[Function, Sequence[int]]], tf: ModuleType, run_tflite: RunTFLite
) -> None:
    function, shape = signals[name]
    x = np.random.default_rng(1).normal(size=shape).astype(np.float32)
    _same(tf, run_tflite, function, [x])


_NUMBERS = np.random.default_rng(2).normal(size=(2, 4, 4)).astype(np.float32)
OF_COMPLEX: Mapping[str, Callable[[Any, Any, Any], Any]] = {
    "add": lambda tf, z, k: z + k,
    "bmm": lambda tf, z, k: tf.matmul(z[None], k[None], adjoint_b=True),
    "broadcast": lambda tf, z, k: tf.expand_dims(z, 1) * k,
    "concat": lambda tf, z, k: tf.concat([z, k], 1),
    "cond": lambda tf, z, k: tf.cond(tf.reduce_sum(tf.math.real(z)) > 0, lambda: z * 2, lambda: z - 1),
    "conj": lambda tf, z, k: tf.math.conj(z),
    "cos": lambda tf, z, k: tf.cos(z),
    "cumsum": lambda tf, z, k: tf.cumsum(z, 1),
    "div": lambda tf, z, k: k / z,
    "einsum": lambda tf, z, k: tf.einsum("ij,kj->ik", z, k),
    "exp": lambda tf, z, k: tf.exp(z),
    "gather": lambda tf, z, k: tf.gather(z, [1, 0], axis=1),
    "log": lambda tf, z, k: tf.math.log(z),
    "loop": lambda tf, z, k: tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * z), [0, z])[1],
    "matmul": lambda tf, z, k: tf.matmul(k, z, adjoint_a=True),
    "mean": lambda tf, z, k: tf.reduce_mean(z, 0),
    "mul": lambda tf, z, k: z * k,
    "neg": lambda tf, z, k: -z,
    "no-nan": lambda tf, z, k: tf.math.divide_no_nan(k, z - z[:, :1]),
    "pad": lambda tf, z, k: tf.pad(z, [[0, 0], [1, 2]]),
    "pow": lambda tf, z, k: z**k,
    "reciprocal": lambda tf, z, k: tf.math.reciprocal(z),
    "roll": lambda tf, z, k: tf.signal.fftshift(z),
    "scale": lambda tf, z, k: tf.cast(tf.abs(z), tf.complex64) * z,
    "sigmoid": lambda tf, z, k: tf.sigmoid(z),
    "sign": lambda tf, z, k: tf.sign(z),
    "sin": lambda tf, z, k: tf.sin(z),
    "slice": lambda tf, z, k: tf.reshape(z[:, 1:3], [-1, 4]),
    "sqrt": lambda tf, z, k: tf.sqrt(z),
    "square": lambda tf, z, k: tf.square(z),
    "stack": lambda tf, z, k: tf.stack([z, k], 1),
    "sum": lambda tf, z, k: tf.reduce_sum(z, 1),
    "tanh": lambda tf, z, k: tf.tanh(z),
    "transpose": lambda tf, z, k: tf.transpose(z, conjugate=True),
    "unstack": lambda tf, z, k: tf.unstack(z, axis=1)[2],
    "where": lambda tf, z, k: tf.where(tf.constant([True, False, True, False]), z, k),
}


@pytest.mark.parametrize("name", OF_COMPLEX)
def test_complex_numbers(name: str, tf: ModuleType, run_tflite: RunTFLite) -> None:
    def function(x: Any, y: Any) -> tuple[Any, Any]:
        other = tf.constant(_NUMBERS[0] + 1j * _NUMBERS[1].T)
        found = OF_COMPLEX[name](tf, tf.complex(x, y), other)
        return tf.math.real(found), tf.math.imag(found)

    model = _same(tf, run_tflite, function, list(_NUMBERS))
    if name not in ("cond", "loop"):
        assert not {"IMAG", "REAL", "RFFT2D"} & set(model.report.operators)


def test_results_and_inputs_may_be_complex(tf: ModuleType, run_tflite: RunTFLite) -> None:
    z = (_NUMBERS[0] + 1j * _NUMBERS[1]).astype(np.complex64)
    _same(tf, run_tflite, lambda z: (tf.math.conj(z) * z + 2 * z, tf.math.equal(z, z)), [z])
