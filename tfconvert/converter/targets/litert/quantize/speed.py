"""Estimates whether LiteRT is faster with an operator's integers, or with floats and conversions around it.

XNNPACK has kernels of integers for products, sums and moves. Other operators of integers run on LiteRT's own kernels,
which are many times slower than XNNPACK's on floats: 190 us instead of 4 for the hard swish of 65536 numbers.
`speed.tsv` has the times, measured by `python -m benchmarks.integer_speed` on an x86-64 processor with one thread.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tfconvert.converter.targets.litert.quantize import lstm
from tfconvert.converter.targets.litert.quantize.candidates import is_constant, is_float
from tfconvert.converter.targets.litert.quantize.cut import SINK, SOURCE, Cut
from tfconvert.converter.targets.litert.quantize.rules import RULES
from tfconvert.schema.dialects import tfl, types
from tfconvert.schema.dialects.quant import Uniform
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import OpResult, Value

TABLE = Path(__file__).with_name("speed.tsv")

FAR, ZERO_POINT, THIN = ":far", ":zero point", ":thin"
"""Endings of rows of operators whose integers XNNPACK refuses, or is slow with: scales too far apart, a right operand's
zero point, weights of few channels."""

# The number of input channels below which products are thin: XNNPACK's kernels multiply eight integers at once.
_MIN_CHANNELS = {"conv_2d": 3, "fully_connected": 16}

# Operators without rows that are as fast as another one.
_ALIKE = {"expand_dims": "reshape", "squeeze": "reshape", "strided_slice": "slice"}

# By how much floats must be faster: integers take a quarter of their memory.
_GAIN = 1.03

# The scales of operands in relation to the result's that XNNPACK takes, of products for `mul`.
_NEAR = {"add": (2.0**-10, 2.0**8), "sub": (2.0**-10, 2.0**8), "mul": (2.0**-16, 2.0**8)}


class Times(NamedTuple):
    """The microseconds of an operator.

    Attributes:
        integers: With integers.
        floats: With floats.
    """

    integers: float
    floats: float


@cache
def _table() -> dict[str, list[tuple[int, Times]]]:
    table: dict[str, list[tuple[int, Times]]] = {}
    for line in TABLE.read_text().splitlines()[1:]:
        kind, work, integers, floats = line.split("\t")
        table.setdefault(kind, []).append((int(work), Times(float(integers), float(floats))))
    return table


def kind_of(op: Operation, operands: list[Uniform | None], result: Uniform | None) -> str | None:
    """Returns the name of an operator's rows in the table; `None` if it has no rows.

    Args:
        op: The operator.
        operands: The mappings of its operands.
        result: The mapping of its result.
    """
    name = op.name.removeprefix(tfl.PREFIX)
    name = _ALIKE.get(name, name)
    if name in _MIN_CHANNELS and (types.shape_of(op.operands[1].type) or (0,))[-1] < _MIN_CHANNELS[name]:
        name += THIN
    elif name == "batch_matmul" and operands[1] is not None and operands[1].zero_points[0]:
        name += ZERO_POINT
    elif name in _NEAR and result is not None:
        scales = [each.scales[0] for each in operands if each is not None]
        name += "" if _are_near(name, scales, result.scales[0]) else FAR
    return name if name in _table() else None


def _are_near(operator: str, operands: list[float], result: float) -> bool:
    low, high = _NEAR[operator]
    scales = [math.prod(operands)] if operator == "mul" else operands
    return all(low <= scale / result < high for scale in scales)


def nearest(operator: str, others: list[float], result: float) -> float:
    """Returns the minimum scale of an operand that XNNPACK takes.

    Args:
        operator: The operator's name.
        others: The scales of its other operands.
        result: The scale of its result.
    """
    low, _ = _NEAR.get(operator, (0.0, 0.0))
    return low * result / (math.prod(others) if operator == "mul" else 1.0)


def times_of(kind: str, work: int) -> Times:
    """Returns the times of an operator, interpolated between the measured ones.

    Args:
        kind: The name of its rows.
        work: The operator's work.
    """
    rows = _table()[kind]
    largest, times = rows[-1]
    if work >= largest:
        return Times(*(time * work / largest for time in times))
    at = max(bisect.bisect(rows, work, key=lambda row: row[0]), 1)
    (before, start), (after, end) = rows[at - 1], rows[at]
    share = max(work - before, 0) / (after - before)
    return Times(*(low + share * (high - low) for low, high in zip(start, end, strict=True)))


def is_swish(op: Operation) -> bool:
    """Returns whether an op multiplies a value by its `logistic`: XNNPACK looks up the product of integers at once."""
    return op.name == "tfl.mul" and any(
        isinstance(gate, OpResult)
        and gate.op.name == "tfl.logistic"
        and gate.op.operands[0] is value
        and gate.has_one_use()
        for value, gate in (op.operands, reversed(op.operands))
    )


def work_of(op: Operation) -> int:
    """Returns how much an operator computes; unknown sizes count as 1.

    It is the number of products of products and LSTMs, or else of the elements of the largest operand or result.
    """
    rule = RULES[op.name]
    if rule.weight is not None and rule.axis is not None:
        shape = types.shape_of(op.operands[rule.weight].type) or ()
        return _elements(op.results[0]) * math.prod(shape) // shape[rule.axis]
    if op.name == "tfl.unidirectional_sequence_lstm":
        weights = sum(_elements(op.operands[weight]) for weight, _ in lstm.GATES)
        units = (types.shape_of(op.results[0].type) or (1,))[-1]
        return weights * _elements(op.results[0]) // abs(units)
    if op.name == "tfl.batch_matmul":
        columns = (types.shape_of(op.results[0].type) or (1,))[-1]
        return _elements(op.operands[0]) * abs(columns)
    return max(map(_elements, (*op.operands, *op.results)))


def faster_with_floats(times: Mapping[Operation, Times | None]) -> dict[Operation, Times]:
    """Returns the ops that are to be floats so that all ops and the conversions between them take the least time.

    Args:
        times: The ops that can compute with integers, and their times; `None` for those that will.
    """
    free = {op: known for op, known in times.items() if known is not None}
    cut = Cut()
    nodes = {op: cut.node() if op in free else SOURCE for op in times}
    values: dict[Value, None] = {}
    for op, known in free.items():
        cut.edge(SOURCE, nodes[op], known.floats * _GAIN)
        cut.edge(nodes[op], SINK, known.integers)
        values.update(dict.fromkeys(filter(_is_converted, (*op.operands, *op.results))))
    for value in values:
        producer = nodes.get(value.op, SINK) if isinstance(value, OpResult) else SINK
        users = {nodes.get(use.operation, SINK) for use in value.uses}
        to_floats, to_integers = cut.node(), cut.node()
        cut.edge(producer, to_floats, times_of("dequantize", _elements(value)).floats)
        cut.edge(to_integers, producer, times_of("quantize", _elements(value)).floats)
        for user in users:
            cut.edge(to_floats, user)
            cut.edge(user, to_integers)
    floats = cut.sink_side()
    return {op: known for op, known in free.items() if nodes[op] in floats}


def reason(times: Times) -> str:
    """Returns why an operator stays float."""
    if times.floats >= times.integers:
        return "its neighbors are floats, and conversions would take longer"
    return f"LiteRT takes about {times.floats:.2g} us with floats, and {times.integers:.2g} us with integers"


def _is_converted(value: Value) -> bool:
    return is_float(value) and not is_constant(value)


def _elements(value: Value) -> int:
    return math.prod(abs(dim) for dim in types.shape_of(value.type) or ())
