"""Shapes of LiteRT's operators that compute whole sequences: fusions insert them long before any other op of LiteRT's.

Batch and time of a result are those of the input, whichever comes first; its last dimension was set by the fusion.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tfconvert.ops.operands import Operands, ShapeFunction
from tfconvert.schema.dialects.dims import with_rank
from tfconvert.schema.dialects.types import Shape


def _sequence(operands: Operands) -> Sequence[Shape | None]:
    batch_and_time = with_rank(operands.shape(0), 3)[:2]
    return [(*batch_and_time, -1) for _ in operands.op.results]


SHAPES: Mapping[str, ShapeFunction] = {
    "tfl.unidirectional_sequence_lstm": _sequence,
    "tfl.unidirectional_sequence_rnn": _sequence,
}
"""Op name -> shape function."""
