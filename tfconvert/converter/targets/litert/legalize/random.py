"""Random numbers: the runtime's own generators, seeded as in the model."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tfconvert.converter.rewrite.pattern import Failure
from tfconvert.converter.targets.litert.legalize.entry import Attr, BuiltinRow, Entry, Lowering, element_name, ints
from tfconvert.converter.targets.litert.legalize.litert_builder import LiteRTBuilder
from tfconvert.ops.random_bits import THREEFRY, halves
from tfconvert.schema.dialects import tensor_data, types
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

# The binary digits of uniform numbers in halves, as TensorFlow draws them.
_DIGITS = {"f16": 10, "bf16": 7}

_SEEDS = {"seed": Attr("seed", 0), "seed2": Attr("seed2", 0)}


def _gives_floats(op: Operation) -> Failure | None:
    return None if op.results[0].element == types.F32 else Failure("only 32-bit floats are generated")


def _gives_halves(op: Operation) -> Failure | None:
    is_half = element_name(op.results[0].element) in ("f16", "bf16")
    return None if is_half else Failure("only floats of 32 and 16 bits are generated")


def _rounded(op: Operation, emit: LiteRTBuilder) -> Value:
    """Draws floats of 32 bits; uniform ones stay below 1 since their lowest bits are cut off."""
    result = op.results[0].type
    element = types.element_of(result)
    name = op.name.removeprefix("tf.")
    seeds = {key: op.properties[key] for key in _SEEDS if key in op.properties}
    wide = emit.tf(name, op.operands, types.tensor(types.F32, types.shape_of(result)), seeds)
    if name == "RandomUniform":
        steps = 1 << _DIGITS[element_name(element)]
        wide = emit.binary("Mul", emit.unary("Floor", emit.binary("Mul", wide, steps)), 1 / steps)
    return emit.cast(wide, element)


def _gives_indices(op: Operation) -> Failure | None:
    known = op.results[0].element in (types.I32, types.I64)
    return None if known else Failure("only i32 and i64 are generated")


def _is_of_words(op: Operation) -> Failure | None:
    if any(tensor_data.constant_of(op.operands[index]) is None for index in (0, 2)):
        return Failure("its algorithm or shape is not a constant")
    is_word = element_name(op.results[1].element) in ("i32", "ui32")
    return None if is_word else Failure("only words of 32 bits are generated")


def _bits(op: Operation, emit: LiteRTBuilder) -> Sequence[Value]:
    """The kernel makes Threefry's pairs of words one after the other; XLA puts them along a dimension."""
    state, kind = op.operands[1], op.results[1].type
    shape, element = ints(op.operands[2]), types.element_of(kind)
    if ints(op.operands[0]) != [THREEFRY]:
        return _generated(emit, "PHILOX", state, kind)
    (sizes, axis) = divided = halves(shape)
    new, bits = _generated(emit, "THREEFRY", state, types.tensor(element, [2 * math.prod(sizes)]))
    if not divided.is_flat:
        order = [*range(axis + 1), len(sizes), *range(axis + 1, len(sizes))]
        bits = emit.transpose(emit.reshape(bits, (*sizes, 2)), order)
    full = [size * (1 + (at == axis)) for at, size in enumerate(sizes)]
    bits = emit.reshape(bits, full)
    if full != shape:
        wanted = shape or [1]
        begin, size = (emit.constant(np.array(each, np.int32)) for each in ([0] * len(full), wanted))
        bits = emit.reshape(emit.tf("Slice", (bits, begin, size), types.tensor(element, wanted)), shape)
    return new, bits


def _generated(emit: LiteRTBuilder, algorithm: str, state: Value, kind: Attribute) -> tuple[Value, Value]:
    options = {"algorithm": algorithm}
    new, bits = emit.tfl_op("stablehlo_rng_bit_generator", (state,), (state.type, kind), options).results
    return new, bits


ENTRIES: tuple[Entry, ...] = (
    BuiltinRow("RandomUniform", "random_uniform", narrow=(0,), options=_SEEDS, constraint=_gives_floats),
    BuiltinRow("RandomStandardNormal", "random_standard_normal", narrow=(0,), options=_SEEDS, constraint=_gives_floats),
    Lowering("RandomUniform", "RandomUniform Floor Cast", _rounded, constraint=_gives_halves),
    Lowering("RandomStandardNormal", "RandomStandardNormal Cast", _rounded, constraint=_gives_halves),
    Lowering("XlaRngBitGenerator", "stablehlo_rng_bit_generator", _bits, constraint=_is_of_words),
    BuiltinRow("Multinomial", "multinomial", "f32", narrow=(1,), options=_SEEDS, constraint=_gives_indices),
)
