"""Complex numbers and Fourier transforms."""

from __future__ import annotations

from collections.abc import Mapping

from tfconvert.converter.rewrite.pattern import Declined
from tfconvert.converter.targets.stablehlo.legalize.entry import Rewrite, ints
from tfconvert.converter.targets.stablehlo.legalize.shaping import padded, part
from tfconvert.converter.targets.stablehlo.legalize.stablehlo_builder import StableHLOBuilder
from tfconvert.schema.dialects import attributes as attrs
from tfconvert.schema.dialects import types
from tfconvert.schema.dialects.stablehlo import EnumeratorAttr
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import ComplexType
from tfconvert.schema.ir.values import Value


def _complex(op: Operation, emit: StableHLOBuilder) -> Value:
    return joined(emit, *emit.pair(*op.operands))


def joined(emit: StableHLOBuilder, real: Value, imaginary: Value) -> Value:
    """Emits complex numbers of two parts."""
    element = ComplexType.get(types.element_of(real.type))
    return emit.one("complex", (real, imaginary), element, emit.dims(real))


def _part(emit: StableHLOBuilder, value: Value, name: str) -> Value:
    element = types.element_of(value.type)
    assert isinstance(element, ComplexType)
    return emit.one(name, (value,), element.element_type, emit.dims(value))


def _part_of(name: str) -> Rewrite:
    def lower(op: Operation, emit: StableHLOBuilder) -> Value:
        value = op.operands[0]
        if isinstance(types.element_of(value.type), ComplexType):
            return _part(emit, value, name)
        return value if name == "real" else emit.binary("multiply", value, 0)

    return lower


def conjugated(emit: StableHLOBuilder, value: Value) -> Value:
    """Emits conjugates; those of real numbers are what they are."""
    if not isinstance(types.element_of(value.type), ComplexType):
        return value
    return joined(emit, _part(emit, value, "real"), emit.unary("negate", _part(emit, value, "imag")))


def _conj(op: Operation, emit: StableHLOBuilder) -> Value:
    return conjugated(emit, op.operands[0])


def _conjugate_transpose(op: Operation, emit: StableHLOBuilder) -> Value:
    return conjugated(emit, emit.transpose(op.operands[0], ints(op, 1, "the permutation")))


def _angle(op: Operation, emit: StableHLOBuilder) -> Value:
    value = op.operands[0]
    return emit.binary("atan2", _part(emit, value, "imag"), _part(emit, value, "real"))


def _transform(emit: StableHLOBuilder, value: Value, kind: str, lengths: tuple[int, ...]) -> Value:
    """Emits a transform along the last axes."""
    dims, element = list(emit.dims(value)), types.element_of(value.type)
    if kind == "RFFT":
        element, dims[-1] = ComplexType.get(element), lengths[-1] // 2 + 1
    elif kind == "IRFFT":
        assert isinstance(element, ComplexType)
        element, dims[-1] = element.element_type, lengths[-1]
    properties: dict[str, attrs.Value] = {"fft_type": EnumeratorAttr.get("fft_type", kind), "fft_length": lengths}
    return emit.one("fft", (value,), element, dims, properties)


def _complex_fft(kind: str, rank: int) -> Rewrite:
    def lower(op: Operation, emit: StableHLOBuilder) -> Value:
        lengths = emit.dims(op.operands[0])[-rank:]
        if min(lengths) < 0:
            raise Declined("a length that it transforms is not known")
        return _transform(emit, op.operands[0], kind, lengths)

    return lower


def _real_fft(kind: str, rank: int) -> Rewrite:
    """Returns a lowering that first cuts or pads its operand to the lengths that are asked for."""

    def lower(op: Operation, emit: StableHLOBuilder) -> Value:
        value = op.operands[0]
        lengths = ints(op, 1, "its lengths")
        needed = (*lengths[:-1], lengths[-1] // 2 + 1) if kind == "IRFFT" else lengths
        first = len(emit.dims(value)) - rank
        for axis, size in enumerate(needed, first):
            value = _fitted(emit, value, axis, size)
        return _transform(emit, value, kind, lengths)

    return lower


def _fitted(emit: StableHLOBuilder, value: Value, axis: int, size: int) -> Value:
    """Emits a tensor whose size along an axis is another one: cut off at its end, or padded with zeros."""
    dims = emit.dims(value)
    if dims[axis] < 0:
        raise Declined("a length that it transforms is not known")
    if dims[axis] > size:
        return part(emit, value, axis, 0, size)
    high = [size - dims[axis] if at == axis else 0 for at in range(len(dims))]
    return padded(emit, value, [0] * len(dims), high, emit.scalar(0, types.element_of(value.type)))


COMPLEX_NUMBERS: Mapping[str, Rewrite] = {
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
