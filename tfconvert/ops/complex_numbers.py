"""Arithmetic of complex numbers with their real and imaginary parts, with which targets compute."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np

from tfconvert.ops.declaration import Formula
from tfconvert.ops.formula import Tensor

T = TypeVar("T", bound=Tensor)

MOVING = frozenset(
    {
        "BroadcastTo",
        "ExpandDims",
        "Fill",
        "Reshape",
        "ReverseV2",
        "Select",
        "SelectV2",
        "Slice",
        "Squeeze",
        "StridedSlice",
        "Tile",
        "Transpose",
    }
)
"""Ops that move the elements of any type, which kernels do for complex numbers, too."""

LINEAR = frozenset(
    {
        *("Add", "AddN", "AddV2", "Cumsum", "Mean", "Neg", "Sub", "Sum", "UnsortedSegmentSum"),
        *("BatchToSpaceND", "ConcatV2", "MirrorPad", "Pack", "Pad", "PadV2", "ReverseSequence", "Roll"),
        *("GatherNd", "GatherV2", "ScatterNd", "TensorScatterAdd", "TensorScatterSub", "TensorScatterUpdate"),
        *("SpaceToBatchND", "Split", "SplitV", "Unpack"),
        *(f"Matrix{what}{version}" for what in ("Diag", "DiagPart", "SetDiag") for version in ("", "V2", "V3")),
        "MatrixBandPart",
    }
)
"""Further ops that do the same with the real and with the imaginary parts."""


def parts(x: T) -> tuple[T, T]:
    """Returns the real and the imaginary part of complex numbers: what they were made of, if that is known."""
    made = x.produced("Complex")
    if made is not None:
        return made[0], made[1]
    cast = x.produced("Cast")
    if cast is not None and cast[0].dtype.kind != "c":
        real = cast[0].cast(real_dtype(x))
        return real, real.op("ZerosLike", real)
    constant = x.constant
    if constant is not None:
        return x.of(constant.real.copy()), x.of(constant.imag.copy())
    return x.op("Real", x, Tout=real_dtype(x)), x.op("Imag", x, Tout=real_dtype(x))


def is_made(x: Tensor) -> bool:
    """Returns whether the parts of complex numbers are there already."""
    return x.produced("Complex") is not None


def complex_of(real: T, imaginary: T) -> T:
    """Returns complex numbers of their parts."""
    dtype = np.dtype(np.complex128 if real.dtype == np.float64 else np.complex64)
    return real.op("Complex", real, imaginary, Tout=dtype)  # type: ignore[no-any-return]


def real_dtype(x: Tensor) -> np.dtype[Any]:
    """Returns the type of the parts of complex numbers."""
    return np.dtype(np.float64 if x.dtype == np.complex128 else np.float32)


def phase(real: T, imaginary: T) -> T:
    """Returns the angle of complex numbers."""
    return unsigned_zero(imaginary).atan2(real)


def unsigned_zero(imaginary: T) -> T:
    """Returns numbers without -0, which LiteRT's transform has for imaginary parts that are 0: its angle is -pi."""
    return imaginary if imaginary.produced("Imag") is None else imaginary.equal(0).where(0.0, imaginary)


def size(x: T) -> T:
    """Returns the magnitude of complex numbers."""
    if not is_made(x):
        return x.op("ComplexAbs", x, Tout=real_dtype(x))  # type: ignore[no-any-return]
    real, imaginary = parts(x)
    return (real * real + imaginary * imaginary).sqrt()


def _size_of(a: T, b: T) -> T:
    found: T = (a * a + b * b).sqrt()
    return found


def product(a: T, b: T, c: T, d: T) -> tuple[T, T]:
    return a * c - b * d, a * d + b * c


def quotient(a: T, b: T, c: T, d: T) -> tuple[T, T]:
    divisor = c * c + d * d
    return (a * c + b * d) / divisor, (b * c - a * d) / divisor


def quotient_or_zero(a: T, b: T, c: T, d: T) -> tuple[T, T]:
    """Numbers divided by zero become zero."""
    divisor = c * c + d * d
    inverse = divisor.equal(0).where(0.0, 1 / divisor)
    return (a * c + b * d) * inverse, (b * c - a * d) * inverse


def exponential(a: T, b: T) -> tuple[T, T]:
    radius = a.exp()
    return radius * b.cos(), radius * b.sin()


def logarithm(a: T, b: T) -> tuple[T, T]:
    return (a * a + b * b).log() * 0.5, phase(a, b)


def sign(a: T, b: T) -> tuple[T, T]:
    radius = _size_of(a, b)
    radius = radius.equal(0).where(radius + 1, radius)
    return a / radius, b / radius


def root(a: T, b: T) -> tuple[T, T]:
    """The greater of both parts comes from a sum, which doesn't cancel, and the other one by a division."""
    greater = ((a.maximum(-a) + _size_of(a, b)) * 0.5).sqrt()
    lesser = b / greater.equal(0).where(1.0, greater) * 0.5
    is_right = a >= 0
    signed = (b < 0).where(-greater, greater)
    return is_right.where(greater, lesser.maximum(-lesser)), is_right.where(lesser, signed)


def sine(a: T, b: T) -> tuple[T, T]:
    even, odd = b.op("Cosh", b), b.op("Sinh", b)
    return a.sin() * even, a.cos() * odd


def cosine(a: T, b: T) -> tuple[T, T]:
    even, odd = b.op("Cosh", b), b.op("Sinh", b)
    return a.cos() * even, -(a.sin() * odd)


def sigmoid(a: T, b: T) -> tuple[T, T]:
    """`1 / (1 + exp(-z))`."""
    c, d = exponential(-a, -b)
    divisor = (c + 1) * (c + 1) + d * d
    return (c + 1) / divisor, -d / divisor


def tanh(a: T, b: T) -> tuple[T, T]:
    """Twice the sigmoid of twice the number, less 1."""
    c, d = sigmoid(a * 2, b * 2)
    return c * 2 - 1, d * 2


def power(a: T, b: T, c: T, d: T) -> tuple[T, T]:
    return exponential(*product(*logarithm(a, b), c, d))


def _of_parts(compute: Callable[..., tuple[Any, Any]]) -> Formula:
    return lambda *operands: complex_of(*compute(*(part for operand in operands for part in parts(operand))))


def _matmul(name: str) -> Formula:
    def formula(x: Tensor, y: Tensor, **flags: bool) -> Tensor:
        (a, b), (c, d) = parts(x), parts(y)
        # Adjoint matrices are conjugates, too.
        b = -b if flags.get("adj_x") else b
        d = -d if flags.get("adj_y") else d

        def multiply(x: Tensor, y: Tensor) -> Tensor:
            return x.op(name, x, y, **flags)  # type: ignore[no-any-return]

        return complex_of(multiply(a, c) - multiply(b, d), multiply(a, d) + multiply(b, c))

    return formula


def _batch_mat_mul(x: Tensor, y: Tensor, *, adj_x: bool = False, adj_y: bool = False) -> Tensor:
    return _matmul("BatchMatMulV2")(x, y, adj_x=adj_x, adj_y=adj_y)  # type: ignore[no-any-return]


def _mat_mul(x: Tensor, y: Tensor, *, transpose_a: bool = False, transpose_b: bool = False) -> Tensor:
    return _matmul("MatMul")(x, y, transpose_a=transpose_a, transpose_b=transpose_b)  # type: ignore[no-any-return]


def _einsum(*operands: Tensor, equation: str = "") -> Tensor:
    def multiply(*factors: Tensor) -> Tensor:
        return factors[0].op("Einsum", *factors, equation=equation)  # type: ignore[no-any-return]

    (a, b), *others = map(parts, operands)
    if not others:
        return complex_of(multiply(a), multiply(b))
    ((c, d),) = others
    return complex_of(multiply(a, c) - multiply(b, d), multiply(a, d) + multiply(b, c))


def _conjugate_transpose(x: Tensor, order: Tensor) -> Tensor:
    real, imaginary = (each.op("Transpose", each, order) for each in parts(x))
    return complex_of(real, -imaginary)  # type: ignore[no-any-return]


def _equal(x: Tensor, y: Tensor) -> Tensor:
    (a, b), (c, d) = parts(x), parts(y)
    return a.equal(c) & b.equal(d)


def _shape(x: Tensor, *, out_type: Any = np.int32) -> Tensor:
    real = parts(x)[0]
    return real.op("Shape", real, out_type=np.dtype(out_type))  # type: ignore[no-any-return]


def _cast(x: Tensor, *, DstT: Any = np.float32) -> Tensor:  # noqa: N803 (the attribute's name)
    return parts(x)[0].cast(DstT)


_QUOTIENT = _of_parts(quotient)

FORMULAS: Mapping[str, Formula] = {
    "Angle": lambda x: phase(*parts(x)),
    "BatchMatMul": _batch_mat_mul,
    "BatchMatMulV2": _batch_mat_mul,
    "Cast": _cast,
    "ComplexAbs": size,
    "Conj": _of_parts(lambda a, b: (a, -b)),
    "ConjugateTranspose": _conjugate_transpose,
    "Cos": _of_parts(cosine),
    "Div": _QUOTIENT,
    "DivNoNan": _of_parts(quotient_or_zero),
    "Einsum": _einsum,
    "Equal": _equal,
    "Exp": _of_parts(exponential),
    "Imag": lambda x: parts(x)[1],
    "Log": _of_parts(logarithm),
    "MatMul": _mat_mul,
    "Mul": _of_parts(product),
    "NotEqual": lambda x, y: ~_equal(x, y),
    "Pow": _of_parts(power),
    "Real": lambda x: parts(x)[0],
    "RealDiv": _QUOTIENT,
    "Reciprocal": _of_parts(lambda a, b: (a / (a * a + b * b), -b / (a * a + b * b))),
    "Shape": _shape,
    "Sigmoid": _of_parts(sigmoid),
    "Sign": _of_parts(sign),
    "Sin": _of_parts(sine),
    "Sqrt": _of_parts(root),
    "Tanh": _of_parts(tanh),
    "Square": _of_parts(lambda a, b: product(a, b, a, b)),
}
"""Ops that compute something else of complex numbers, as formulas of the parts."""

KNOWN = frozenset(("ComplexAbs", "Imag", "Mul", "Real", "Shape", "Square")) | MOVING
"""Ops that kernels compute of complex numbers: those of parts take their place where the parts are there."""
