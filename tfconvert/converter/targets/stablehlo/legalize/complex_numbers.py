"""Complex numbers and Fourier transforms."""

from __future__ import annotations

from collections.abc import Mapping

from tfconvert.converter.targets.stablehlo.legalize.emit import DeclinedError, Emit
from tfconvert.converter.targets.stablehlo.legalize.entry import Lowering, ints
from tfconvert.converter.targets.stablehlo.legalize.shaping import padded, part
from tfconvert.schema.dialects import attributes as attrs
from tfconvert.schema.dialects import types
from tfconvert.schema.dialects.stablehlo import EnumeratorAttr
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import ComplexType
from tfconvert.schema.ir.values import Value


def _complex(op: Operation, emit: Emit) -> Value:
    return joined(*emit.pair(*op.operands), emit)


def joined(real: Value, imaginary: Value, emit: Emit) -> Value:
    """Emits complex numbers of two parts."""
    element = ComplexType.get(types.element_of(real.type))
    return emit.one("complex", (real, imaginary), element, emit.dims(real))


def _part(value: Value, name: str, emit: Emit) -> Value:
    element = types.element_of(value.type)
    assert isinstance(element, ComplexType)
    return emit.one(name, (value,), element.element_type, emit.dims(value))


def _part_of(name: str) -> Lowering:
    def lower(op: Operation, emit: Emit) -> Value:
        value = op.operands[0]
        if isinstance(types.element_of(value.type), ComplexType):
            return _part(value, name, emit)
        return value if name == "real" else emit.binary("multiply", value, 0)

    return lower


def conjugated(value: Value, emit: Emit) -> Value:
    """Emits conjugates; those of real numbers are what they are."""
    if not isinstance(types.element_of(value.type), ComplexType):
        return value
    return joined(_part(value, "real", emit), emit.unary("negate", _part(value, "imag", emit)), emit)


def _conj(op: Operation, emit: Emit) -> Value:
    return conjugated(op.operands[0], emit)


def _conjugate_transpose(op: Operation, emit: Emit) -> Value:
    return conjugated(emit.transpose(op.operands[0], ints(op, 1, "the permutation")), emit)


def _angle(op: Operation, emit: Emit) -> Value:
    value = op.operands[0]
    return emit.binary("atan2", _part(value, "imag", emit), _part(value, "real", emit))


def _transform(value: Value, kind: str, lengths: tuple[int, ...], emit: Emit) -> Value:
    """Emits a transform along the last axes."""
    dims, element = list(emit.dims(value)), types.element_of(value.type)
    if kind == "RFFT":
        element, dims[-1] = ComplexType.get(element), lengths[-1] // 2 + 1
    elif kind == "IRFFT":
        assert isinstance(element, ComplexType)
        element, dims[-1] = element.element_type, lengths[-1]
    properties: dict[str, attrs.Value] = {"fft_type": EnumeratorAttr.get("fft_type", kind), "fft_length": lengths}
    return emit.one("fft", (value,), element, dims, properties)


def _complex_fft(kind: str, rank: int) -> Lowering:
    def lower(op: Operation, emit: Emit) -> Value:
        lengths = emit.dims(op.operands[0])[-rank:]
        if min(lengths) < 0:
            raise DeclinedError("a length that it transforms is not known")
        return _transform(op.operands[0], kind, lengths, emit)

    return lower


def _real_fft(kind: str, rank: int) -> Lowering:
    """Returns a lowering that first cuts or pads its operand to the lengths that are asked for."""

    def lower(op: Operation, emit: Emit) -> Value:
        value = op.operands[0]
        lengths = ints(op, 1, "its lengths")
        needed = (*lengths[:-1], lengths[-1] // 2 + 1) if kind == "IRFFT" else lengths
        first = len(emit.dims(value)) - rank
        for axis, size in enumerate(needed, first):
            value = _fitted(value, axis, size, emit)
        return _transform(value, kind, lengths, emit)

    return lower


def _fitted(value: Value, axis: int, size: int, emit: Emit) -> Value:
    """Emits a tensor whose size along an axis is another one: cut off at its end, or padded with zeros."""
    dims = emit.dims(value)
    if dims[axis] < 0:
        raise DeclinedError("a length that it transforms is not known")
    if dims[axis] > size:
        return part(value, axis, 0, size, emit)
    high = [size - dims[axis] if at == axis else 0 for at in range(len(dims))]
    return padded(value, [0] * len(dims), high, emit.scalar(0, types.element_of(value.type)), emit)


LOWERINGS: Mapping[str, Lowering] = {
    "Angle": _angle,
    "Complex": _complex,
    "Conj": _conj,
    "ConjugateTranspose": _conjugate_transpose,
    "Imag": _part_of("imag"),
    "Real": _part_of("real"),
    **{
        f"{prefix}{kind}{suffix}": _complex_fft(kind, rank)
        for prefix in ("", "Batch")
        for kind in ("FFT", "IFFT")
        for rank, suffix in ((1, ""), (2, "2D"), (3, "3D"))
    },
    **{
        f"{kind}{suffix}": _real_fft(kind, rank)
        for kind in ("RFFT", "IRFFT")
        for rank, suffix in ((1, ""), (2, "2D"), (3, "3D"))
    },
}
