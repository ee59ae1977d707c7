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
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

_SEEDS = {"seed": Attr("seed", 0), "seed2": Attr("seed2", 0)}


def _gives_floats(op: Operation) -> Failure | None:
    return None if types.element_of(op.results[0].type) == types.F32 else Failure("only 32-bit floats are generated")


def _gives_indices(op: Operation) -> Failure | None:
    known = types.element_of(op.results[0].type) in (types.I32, types.I64)
    return None if known else Failure("only i32 and i64 are generated")


def _is_of_words(op: Operation) -> Failure | None:
    if any(tensor_data.constant_of(op.operands[index]) is None for index in (0, 2)):
        return Failure("its algorithm or shape is not a constant")
    return (
        None
        if element_name(types.element_of(op.results[1].type)) in ("i32", "ui32")
        else Failure("only words of 32 bits are generated")
    )


def _bits(op: Operation, emit: LiteRTBuilder) -> Sequence[Value]:
    """The kernel makes Threefry's pairs of words one after the other; XLA puts them along a dimension."""
    (algorithm,), shape = ints(op.operands[0]), ints(op.operands[2])
    state, element = op.operands[1], types.element_of(op.results[1].type)
    name = "THREEFRY" if algorithm == THREEFRY else "PHILOX"
    divided = halves(shape) if algorithm == THREEFRY else None
    made = shape if divided is None else [2 * math.prod(divided.sizes)]
    kinds = state.type, types.tensor(element, made)
    new, bits = emit.tfl_op("stablehlo_rng_bit_generator", (state,), kinds, {"algorithm": name}).results
    if divided is not None:
        sizes, axis = divided
        if not divided.is_flat:
            order = [*range(axis + 1), len(sizes), *range(axis + 1, len(sizes))]
            bits = emit.transpose(emit.reshape(bits, (*sizes, 2)), order)
        full = [size * (1 + (at == axis)) for at, size in enumerate(sizes)]
        bits = emit.reshape(bits, full)
        if full != shape:
            kind = types.tensor(element, shape or [1])
            bits = emit.tf(
                "Slice",
                (bits, emit.constant(np.zeros(len(full), np.int32)), emit.constant(np.array(shape or [1], np.int32))),
                kind,
            )
            bits = bits if shape else emit.reshape(bits, ())
    return new, bits


ENTRIES: tuple[Entry, ...] = (
    BuiltinRow("RandomUniform", "random_uniform", narrow=(0,), options=_SEEDS, constraint=_gives_floats),
    BuiltinRow("RandomStandardNormal", "random_standard_normal", narrow=(0,), options=_SEEDS, constraint=_gives_floats),
    Lowering("XlaRngBitGenerator", "stablehlo_rng_bit_generator", _bits, constraint=_is_of_words),
    BuiltinRow("Multinomial", "multinomial", "f32", narrow=(1,), options=_SEEDS, constraint=_gives_indices),
)
