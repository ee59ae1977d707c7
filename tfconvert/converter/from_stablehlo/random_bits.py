"""Random bits of XLA's generators."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tfconvert.converter.from_stablehlo.raised_op import RaisedOp, Rows
from tfconvert.converter.ir.tensors import EmittedTensor
from tfconvert.converter.rewrite.pattern import need
from tfconvert.ops.random_bits import ALGORITHMS, THREEFRY


def _rng_bit_generator(raised: RaisedOp) -> Sequence[EmittedTensor]:
    state, *sizes = raised.operands
    algorithm = ALGORITHMS.index(raised.text("rng_algorithm"))
    shape = raised.target(sizes[0], 1) if sizes else raised.declared(1)
    need(state.dtype == np.uint64, "its state is not of 64 bits")
    need(state.shape == (2,) or (state.shape == (3,) and algorithm != THREEFRY), "its state has another length")
    need(raised.dtype(1).itemsize <= 4, "it makes numbers of 64 bits")
    need(min(shape, default=0) >= 0, "how many numbers it makes isn't known before it runs; a fixed batch settles that")
    new, bits = state.op(
        "XlaRngBitGenerator", algorithm, state, np.array(shape, np.int32), results=2, dtype=np.dtype("uint32")
    )
    return new, bits.cast(raised.dtype(1))


ROWS: Rows = {"@stablehlo.dynamic_rng_bit_generator": _rng_bit_generator, "rng_bit_generator": _rng_bit_generator}
