"""Elementwise ops: arithmetic, comparisons, logic, conversions, choices, activations and complex numbers."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tfconvert.converter.ir.constants import constant_array, constant_number
from tfconvert.converter.rewrite.pattern import Declined
from tfconvert.converter.targets.stablehlo.legalize.entry import Rewrite, ints
from tfconvert.converter.targets.stablehlo.legalize.shaping import concatenate, padded, part
from tfconvert.converter.targets.stablehlo.legalize.stablehlo_builder import StableHLOBuilder
from tfconvert.schema.dialects import attributes as attrs
from tfconvert.schema.dialects import tf, types
from tfconvert.schema.dialects.stablehlo import EnumeratorAttr
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import ComplexType, IntegerType, Signedness
from tfconvert.schema.ir.values import Value

UNARY = {
    "Abs": "abs",
    "Acos": "chlo.acos",
    "Acosh": "chlo.acosh",
    "Asin": "chlo.asin",
    "Asinh": "chlo.asinh",
    "Atan": "chlo.atan",
    "Atanh": "chlo.atanh",
    "BesselI1e": "chlo.bessel_i1e",
    "Ceil": "ceil",
    "Cos": "cosine",
    "Cosh": "chlo.cosh",
    "Digamma": "chlo.digamma",
    "Erf": "chlo.erf",
    "Erfc": "chlo.erfc",
    "Erfinv": "chlo.erf_inv",
    "Exp": "exponential",
    "Expm1": "exponential_minus_one",
    "Floor": "floor",
    "Invert": "not",
    "IsFinite": "is_finite",
    "Lgamma": "chlo.lgamma",
    "Log": "log",
    "Log1p": "log_plus_one",
    "LogicalNot": "not",
    "Neg": "negate",
    "Rsqrt": "rsqrt",
    "Sigmoid": "logistic",
    "Sign": "sign",
    "Sin": "sine",
    "Sinh": "chlo.sinh",
    "Sqrt": "sqrt",
    "Tan": "tan",
    "Tanh": "tanh",
}

BINARY = {
    "Add": "add",
    "AddV2": "add",
    "Atan2": "atan2",
    "BitwiseAnd": "and",
    "BitwiseOr": "or",
    "BitwiseXor": "xor",
    "Div": "divide",
    "LogicalAnd": "and",
    "LogicalOr": "or",
    "Maximum": "maximum",
    "Minimum": "minimum",
    "Mod": "remainder",
    "Mul": "multiply",
    "NextAfter": "chlo.next_after",
    "Polygamma": "chlo.polygamma",
    "Pow": "power",
    "RealDiv": "divide",
    "Sub": "subtract",
    "TruncateDiv": "divide",
    "TruncateMod": "remainder",
    "Zeta": "chlo.zeta",
}

COMPARISONS = {"Equal": "EQ", "Greater": "GT", "GreaterEqual": "GE", "Less": "LT", "LessEqual": "LE", "NotEqual": "NE"}


def _unary(name: str) -> Rewrite:
    return lambda op, emit: emit.unary(name, op.operands[0])


def _binary(name: str) -> Rewrite:
    return lambda op, emit: emit.binary(name, *op.operands)


def _compare(direction: str) -> Rewrite:
    return lambda op, emit: emit.compare(direction, *op.operands)


def _is_integer(value: Value) -> bool:
    return types.numpy_dtype(value.element).kind in "iu"


def _round(op: Operation, emit: StableHLOBuilder) -> Value:
    return op.operands[0] if _is_integer(op.operands[0]) else emit.unary("round_nearest_even", op.operands[0])


def _square(op: Operation, emit: StableHLOBuilder) -> Value:
    return emit.binary("multiply", op.operands[0], op.operands[0])


def _squared_difference(op: Operation, emit: StableHLOBuilder) -> Value:
    difference = emit.binary("subtract", *op.operands)
    return emit.binary("multiply", difference, difference)


def _to_bool(op: Operation, emit: StableHLOBuilder) -> Value:
    """Emits whether a number is not 0, or whether a tensor of others than one has elements."""
    value = op.operands[0]
    dims = emit.dims(value)
    if not dims:
        return value if value.element == types.I1 else emit.compare("NE", value, 0)
    return emit.compare("GT", emit.value(emit.product(dims)), 0)


def _floor_div(op: Operation, emit: StableHLOBuilder) -> Value:
    first, second = emit.pair(*op.operands)
    quotient = emit.binary("divide", first, second)
    dtype = types.numpy_dtype(first.element)
    if dtype.kind == "u":
        return quotient
    if dtype.kind != "i":
        return emit.unary("floor", quotient)
    rest = emit.binary("remainder", first, second)
    return emit.select(_signs_differ(emit, rest, second), emit.binary("subtract", quotient, 1), quotient)


def _signs_differ(emit: StableHLOBuilder, rest: Value, divisor: Value) -> Value:
    """Returns whether a remainder is not 0 and has another sign than the divisor."""
    differ = emit.compare("NE", emit.compare("LT", rest, 0), emit.compare("LT", divisor, 0))
    return emit.binary("and", emit.compare("NE", rest, 0), differ)


def _floor_mod(op: Operation, emit: StableHLOBuilder) -> Value:
    first, second = emit.pair(*op.operands)
    kind = types.numpy_dtype(first.element).kind
    if kind not in "iu" and constant_number(op.operands[1]) == 1:
        return emit.binary("subtract", first, emit.unary("floor", first))
    rest = emit.binary("remainder", first, second)
    if kind == "u":
        return rest
    return emit.select(_signs_differ(emit, rest, second), emit.binary("add", rest, second), rest)


def _within_width(emit: StableHLOBuilder, amounts: Value) -> Value:
    """Emits amounts of a shift that are less than the number of bits, as TensorFlow limits others."""
    element = amounts.element
    last = types.numpy_dtype(element).itemsize * 8 - 1
    known = constant_array(amounts)
    if known is not None and ((known >= 0) & (known <= last)).all():
        return amounts
    operands = (emit.scalar(0, element), amounts, emit.scalar(last, element))
    return emit.one("clamp", operands)


def _left_shift(op: Operation, emit: StableHLOBuilder) -> Value:
    return emit.binary("shift_left", op.operands[0], _within_width(emit, op.operands[1]))


def _right_shift(op: Operation, emit: StableHLOBuilder) -> Value:
    is_unsigned = types.numpy_dtype(op.operands[0].element).kind == "u"
    name = "shift_right_logical" if is_unsigned else "shift_right_arithmetic"
    return emit.binary(name, op.operands[0], _within_width(emit, op.operands[1]))


def _select_v2(op: Operation, emit: StableHLOBuilder) -> Value:
    return emit.select(*op.operands)


def _select(op: Operation, emit: StableHLOBuilder) -> Value:
    condition, first, second = op.operands
    dims = emit.dims(first)
    if len(emit.dims(condition)) == 1 and len(dims) > 1:
        condition = emit.broadcast(condition, dims, (0,))
    return emit.select(condition, first, second)


def _clip(op: Operation, emit: StableHLOBuilder) -> Value:
    """Emits one op where a decomposition takes two, if the bounds are known not to be swapped.

    Where they are, TensorFlow returns the lower one, and `clamp` the upper one.
    """
    value, low, high = op.operands
    are_scalars = not emit.dims(low) and not emit.dims(high)
    minimum, maximum = constant_array(low), constant_array(high)
    if are_scalars and minimum is not None and maximum is not None and minimum <= maximum:
        return emit.one("clamp", (low, value, high))
    return emit.binary("maximum", emit.binary("minimum", value, high), low)


def _cast(op: Operation, emit: StableHLOBuilder) -> Value:
    value = op.operands[0]
    element = op.results[0].element
    if any(types.from_mlir(each) is None for each in (element, value.element)):
        raise Declined("StableHLO has no numbers of such a type")
    if element == types.I1:
        return value if value.element == types.I1 else emit.compare("NE", value, 0)
    return emit.convert(value, element)


def _bitcast(op: Operation, emit: StableHLOBuilder) -> Value:
    """Emits the same bits as elements of another type; the last dimension holds those that are one wider element."""
    value, element = op.operands[0], op.results[0].element
    source = value.element
    before, after = (types.numpy_dtype(each).itemsize for each in (source, element))
    dims = emit.dims(value)
    is_plain = min(dims, default=0) >= 0 or ComplexType in map(type, (source, element))
    if after > before:
        if not is_plain and dims[-1] >= 0:
            return _merged(emit, value, element)
        dims = dims[:-1]
    elif after < before:
        if not is_plain:
            return _cut(emit, value, element)
        dims = (*dims, before // after)
    return emit.one("bitcast_convert", (value,), element=element)


def _bits(emit: StableHLOBuilder, value: Value) -> Value:
    """Emits the bits of numbers as whole numbers."""
    element = value.element
    width = 8 * types.numpy_dtype(element).itemsize
    return emit.one("bitcast_convert", (value,), element=_unsigned(width))


def _unsigned(width: int) -> IntegerType:
    return IntegerType.get(width, Signedness.UNSIGNED)


def _merged(emit: StableHLOBuilder, value: Value, element: Attribute) -> Value:
    """Emits wider elements as sums of bits: engines don't accept such a conversion with dynamic sizes."""
    *outer, count = emit.dims(value)
    width = 8 * types.numpy_dtype(element).itemsize
    bits, found = emit.convert(_bits(emit, value), _unsigned(width)), None
    for at in range(count):
        here = emit.reshape(part(emit, bits, len(outer), at, at + 1), outer)
        here = emit.binary("shift_left", here, at * (width // count))
        found = here if found is None else emit.binary("or", found, here)
    assert found is not None
    return emit.one("bitcast_convert", (found,), element=element)


def _cut(emit: StableHLOBuilder, value: Value, element: Attribute) -> Value:
    """Emits narrower elements, those of the lowest bits first, in the same way."""
    dims, bits = emit.dims(value), _bits(emit, value)
    width = 8 * types.numpy_dtype(element).itemsize
    count = 8 * types.numpy_dtype(value.element).itemsize // width
    parts = []
    for at in range(count):
        here = emit.convert(emit.binary("shift_right_logical", bits, at * width), _unsigned(width))
        parts.append(emit.reshape(here, (*dims, 1)))
    whole = concatenate(emit, parts, len(dims))
    return emit.one("bitcast_convert", (whole,), element=element)


def _add_n(op: Operation, emit: StableHLOBuilder) -> Value:
    result = op.operands[0]
    for value in op.operands[1:]:
        result = emit.binary("add", result, value)
    return result


def _ndtri(op: Operation, emit: StableHLOBuilder) -> Value:
    inner = emit.binary("subtract", emit.binary("multiply", op.operands[0], 2), 1)
    return emit.binary("multiply", emit.unary("chlo.erf_inv", inner), float(np.sqrt(2)))


ELEMENTWISE: Mapping[str, Rewrite] = {
    **{name: _unary(target) for name, target in UNARY.items()},
    **{name: _binary(target) for name, target in BINARY.items()},
    **{name: _compare(direction) for name, direction in COMPARISONS.items()},
    **dict.fromkeys(("Round", "Rint"), _round),
    **dict.fromkeys(("AddN", "AccumulateNV2"), _add_n),
    "ComplexAbs": _unary("abs"),
    "Bitcast": _bitcast,
    "Cast": _cast,
    "ClipByValue": _clip,
    "FloorDiv": _floor_div,
    "FloorMod": _floor_mod,
    "LeftShift": _left_shift,
    "Ndtri": _ndtri,
    "RightShift": _right_shift,
    "Select": _select,
    "SelectV2": _select_v2,
    "Square": _square,
    "SquaredDifference": _squared_difference,
    "ToBool": _to_bool,
}


# `Selu`'s factors of exponentials, and of everything.
_SELU_ALPHA = 1.6732632423543772
_SELU_SCALE = 1.0507009873554805


def _relu(op: Operation, emit: StableHLOBuilder) -> Value:
    return emit.binary("maximum", op.operands[0], 0)


def _relu6(op: Operation, emit: StableHLOBuilder) -> Value:
    value = op.operands[0]
    element = value.element
    bounds = emit.scalar(0, element), emit.scalar(6, element)
    return emit.one("clamp", (bounds[0], value, bounds[1]))


def _leaky_relu(op: Operation, emit: StableHLOBuilder) -> Value:
    value = op.operands[0]
    scaled = emit.binary("multiply", value, float(tf.get(op, "alpha", 0.2)))
    return emit.select(emit.compare("GT", value, 0), value, scaled)


def _elu(op: Operation, emit: StableHLOBuilder) -> Value:
    value = op.operands[0]
    return emit.select(emit.compare("GT", value, 0), value, emit.unary("exponential_minus_one", value))


def _selu(op: Operation, emit: StableHLOBuilder) -> Value:
    """Emits one choice for both factors, where a decomposition by `Relu` and `Elu` takes two."""
    value = op.operands[0]
    below = emit.binary("multiply", emit.unary("exponential_minus_one", value), _SELU_ALPHA)
    return emit.binary("multiply", emit.select(emit.compare("GT", value, 0), value, below), _SELU_SCALE)


def _shifted(emit: StableHLOBuilder, value: Value) -> Value:
    """Subtracts the maximum along the last axis, so that no exponential overflows."""
    last = len(emit.dims(value)) - 1
    maximum = emit.reduce("maximum", value, (last,), types.lowest(value.element))
    return emit.binary("subtract", value, emit.broadcast(maximum, emit.dims(value), range(last)))


def _softmax(op: Operation, emit: StableHLOBuilder) -> Value:
    powers = emit.unary("exponential", _shifted(emit, op.operands[0]))
    dims = emit.dims(powers)
    total = emit.reduce("add", powers, (len(dims) - 1,), 0)
    return emit.binary("divide", powers, emit.broadcast(total, dims, range(len(dims) - 1)))


def _log_softmax(op: Operation, emit: StableHLOBuilder) -> Value:
    return log_softmax(emit, op.operands[0])


def log_softmax(emit: StableHLOBuilder, value: Value) -> Value:
    """Emits the logarithms of a softmax along the last axis."""
    shifted = _shifted(emit, value)
    dims = emit.dims(shifted)
    total = emit.reduce("add", emit.unary("exponential", shifted), (len(dims) - 1,), 0)
    return emit.binary("subtract", shifted, emit.broadcast(emit.unary("log", total), dims, range(len(dims) - 1)))


def _bias_add(op: Operation, emit: StableHLOBuilder) -> Value:
    value, bias = op.operands
    dims = emit.dims(value)
    axis = 1 if tf.get(op, "data_format", "NHWC") == "NCHW" else len(dims) - 1
    (size,) = emit.dims(bias)
    joined = tuple(size if at == axis and size >= 0 else dim for at, dim in enumerate(dims))
    return emit.binary("add", value, emit.broadcast(bias, joined, (axis,)))


ACTIVATIONS: Mapping[str, Rewrite] = {
    "BiasAdd": _bias_add,
    "BiasAddV1": _bias_add,
    "Elu": _elu,
    "LeakyRelu": _leaky_relu,
    "LogSoftmax": _log_softmax,
    "Relu": _relu,
    "Relu6": _relu6,
    "Selu": _selu,
    "Softmax": _softmax,
}


def _complex(op: Operation, emit: StableHLOBuilder) -> Value:
    return joined(emit, *emit.pair(*op.operands))


def joined(emit: StableHLOBuilder, real: Value, imaginary: Value) -> Value:
    """Emits complex numbers of two parts."""
    return emit.one("complex", (real, imaginary))


def _part_of(name: str) -> Rewrite:
    def lower(op: Operation, emit: StableHLOBuilder) -> Value:
        value = op.operands[0]
        if isinstance(value.element, ComplexType):
            return emit.unary(name, value)
        return value if name == "real" else emit.binary("multiply", value, 0)

    return lower


def conjugated(emit: StableHLOBuilder, value: Value) -> Value:
    """Emits conjugates; real numbers stay as they are."""
    if not isinstance(value.element, ComplexType):
        return value
    return joined(emit, emit.unary("real", value), emit.unary("negate", emit.unary("imag", value)))


def _conj(op: Operation, emit: StableHLOBuilder) -> Value:
    return conjugated(emit, op.operands[0])


def _conjugate_transpose(op: Operation, emit: StableHLOBuilder) -> Value:
    return conjugated(emit, emit.transpose(op.operands[0], ints(op, 1, "the permutation")))


def _angle(op: Operation, emit: StableHLOBuilder) -> Value:
    value = op.operands[0]
    return emit.binary("atan2", emit.unary("imag", value), emit.unary("real", value))


def _transform(emit: StableHLOBuilder, value: Value, kind: str, lengths: tuple[int, ...]) -> Value:
    """Emits a transform along the last axes."""
    properties: dict[str, attrs.Value] = {"fft_type": EnumeratorAttr.get("fft_type", kind), "fft_length": lengths}
    return emit.one("fft", (value,), properties)


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
    """Resizes an axis by cutting off its end or padding it with zeros."""
    dims = emit.dims(value)
    if dims[axis] < 0:
        raise Declined("a length that it transforms is not known")
    if dims[axis] > size:
        return part(emit, value, axis, 0, size)
    high = [size - dims[axis] if at == axis else 0 for at in range(len(dims))]
    return padded(emit, value, [0] * len(dims), high, emit.scalar(0, value.element))


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
