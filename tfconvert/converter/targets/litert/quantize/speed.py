"""Estimates whether LiteRT is faster with an operator's integers, or with floats and conversions around it.

XNNPACK has kernels of integers for products, sums and moves. Other operators of integers run on LiteRT's own kernels,
which are many times slower than XNNPACK's on floats: 190 us instead of 4 for the hard swish of 65536 numbers.
`speed.tsv` has the times, measured by `python -m benchmarks.integer_speed` on an x86-64 processor with one thread.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Container, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tfconvert.converter.targets.litert.quantize import lstm
from tfconvert.converter.targets.litert.quantize.candidates import is_constant, is_float
from tfconvert.converter.targets.litert.quantize.cut import SINK, SOURCE, Cut
from tfconvert.converter.targets.litert.quantize.rules import RULES
from tfconvert.schema.dialects import tfl
from tfconvert.schema.dialects.quant import Uniform
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import OpResult, Value

TABLE = Path(__file__).with_name("speed.tsv")

FAR, ZERO_POINT, THIN = ":far", ":zero point", ":thin"
"""Endings of rows of operators whose integers XNNPACK refuses, or is slow with: scales too far apart, a right operand's
zero point, weights of few channels."""

# The number of input channels below which products are thin: XNNPACK's kernels multiply eight integers at once.
_MIN_CHANNELS = {"conv_2d": 3, "fully_connected": 16}

ALIKE = {
    "arg_min": "arg_max",
    "expand_dims": "reshape",
    "greater": "less",
    "greater_equal": "less",
    "less_equal": "less",
    "not_equal": "equal",
    "padv2": "pad",
    "relu_0_to_1": "relu",
    "relu_n1_to_1": "relu",
    "select": "select_v2",
    "split_v": "split",
    "squeeze": "reshape",
    "strided_slice": "slice",
}
"""Operators without rows that are as fast as another one."""

LOOKUPS = ("gather", "gather_nd")
"""Operators that read as much of their operand as is in their result."""

# By how much floats must be faster: integers take a quarter of their memory.
_GAIN = 1.03

# The microseconds that ops must save together by being floats.
_MIN_SAVING = 0.1

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
    """Returns the name of an operator's rows in the table; `None` if it has no rows, or reads a table of integers.

    Args:
        op: The operator.
        operands: The mappings of its operands.
        result: The mapping of its result.
    """
    name = op.name.removeprefix(tfl.PREFIX)
    name = ALIKE.get(name, name)
    if name in LOOKUPS and is_constant(op.operands[0]):
        return None
    if name in _MIN_CHANNELS and (op.operands[1].shape or (0,))[-1] < _MIN_CHANNELS[name]:
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

    It is the number of products of products and LSTMs, of the elements of a lookup's result, or else of the elements of
    the largest operand or result.
    """
    rule = RULES[op.name]
    if rule.weight is not None and rule.axis is not None:
        shape = op.operands[rule.weight].shape or ()
        return _elements(op.results[0]) * math.prod(shape) // shape[rule.axis]
    if op.name == "tfl.unidirectional_sequence_lstm":
        weights = sum(_elements(op.operands[weight]) for weight, _ in lstm.GATES)
        units = (op.results[0].shape or (1,))[-1]
        return weights * _elements(op.results[0]) // abs(units)
    if op.name == "tfl.batch_matmul":
        columns = (op.results[0].shape or (1,))[-1]
        return _elements(op.operands[0]) * abs(columns)
    if op.name.removeprefix(tfl.PREFIX) in LOOKUPS:
        return _elements(op.results[0])
    return max(map(_elements, (*op.operands, *op.results)))


def faster_with_floats(times: Mapping[Operation, Times | None]) -> dict[Operation, Times]:
    """Returns the ops that are to be floats so that all ops and the conversions between them take the least time.

    Ops that together save next to nothing become integers.

    Args:
        times: The ops that can compute with integers, and their times; `None` for those that will.
    """
    free = {op: known for op, known in times.items() if known is not None}
    cut = Cut()
    nodes: dict[Operation | None, int] = {op: cut.node() if op in free else SOURCE for op in times}
    values: dict[Value, None] = {}
    for op, known in free.items():
        cut.edge(SOURCE, nodes[op], known.floats * _GAIN)
        cut.edge(nodes[op], SINK, known.integers)
        values.update(dict.fromkeys(_converted(op)))
    for value in values:
        producer, users = _ends(value)
        source = nodes.get(producer, SINK)
        to_floats, to_integers = cut.node(), cut.node()
        cut.edge(source, to_floats, times_of("dequantize", _elements(value)).floats)
        cut.edge(to_integers, source, times_of("quantize", _elements(value)).floats)
        for node in {nodes.get(user, SINK) for user in users}:
            cut.edge(to_floats, node)
            cut.edge(node, to_integers)
    floats = cut.sink_side()
    chosen = {op: known for op, known in free.items() if nodes[op] in floats}
    idle = {op for group in _connected(chosen) if _saving(group, chosen, times) < _MIN_SAVING for op in group}
    return {op: known for op, known in chosen.items() if op not in idle}


def _connected(ops: Mapping[Operation, Times]) -> list[dict[Operation, Times]]:
    """Returns the groups of ops that floats go between."""
    groups, left = [], dict(ops)
    while left:
        first = next(iter(left))
        group, waiting = {first: left.pop(first)}, [first]
        while waiting:
            for value in _converted(waiting.pop()):
                producer, users = _ends(value)
                for each in (producer, *users):
                    if each is not None and each in left:
                        group[each] = left.pop(each)
                        waiting.append(each)
        groups.append(group)
    return groups


def _saving(
    group: Mapping[Operation, Times], floats: Container[Operation | None], integers: Container[Operation | None]
) -> float:
    """Returns the microseconds that ops and the conversions around them save by being floats.

    Args:
        group: The ops, which no floats leave for other ops of `floats`.
        floats: All ops that are to be floats.
        integers: All ops that can be integers; others are floats.
    """
    saving = sum(known.integers - known.floats for known in group.values())
    for value in dict.fromkeys(value for op in group for value in _converted(op)):
        for sign, chosen in ((-1, floats), (1, ())):
            producer, users = _ends(value)
            is_integer = producer in integers and producer not in chosen
            if any((user in integers and user not in chosen) != is_integer for user in users):
                saving += sign * times_of("dequantize" if is_integer else "quantize", _elements(value)).floats
    return saving


def _converted(op: Operation) -> list[Value]:
    """Returns the operands and results of an op that may need a conversion."""
    return [value for value in (*op.operands, *op.results) if is_float(value) and not is_constant(value)]


def _ends(value: Value) -> tuple[Operation | None, list[Operation]]:
    """Returns the op that produces a value, `None` for an argument, and those that use it."""
    return value.op if isinstance(value, OpResult) else None, list(dict.fromkeys(use.operation for use in value.uses))


def reason(times: Times) -> str:
    """Returns why an operator stays float."""
    if times.floats >= times.integers:
        return "its neighbors are floats, and conversions would take longer"
    return f"LiteRT takes about {times.floats:.2g} us with floats, and {times.integers:.2g} us with integers"


def _elements(value: Value) -> int:
    return math.prod(abs(dim) for dim in value.shape or ())
