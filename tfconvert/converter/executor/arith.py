"""Arithmetic on sizes: the ops of `arith` in functions that compute them, on numbers of 64 bits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from tfconvert.converter.executor.resources import Simple
from tfconvert.converter.executor.stablehlo.elementwise import divide, remainder
from tfconvert.converter.executor.tasks import Machine
from tfconvert.ops.call import Array, Results
from tfconvert.schema.dialects import tensor_data
from tfconvert.schema.dialects.stablehlo_properties import integer
from tfconvert.schema.ir.attributes import IntegerAttr
from tfconvert.schema.ir.operation import Operation

Function = Callable[[Array, Array], Any]


def _floor_divide(x: Array, y: Array) -> Any:
    return np.floor_divide(x, np.where(y == 0, 1, y))


def _ceil_divide(x: Array, y: Array) -> Any:
    return -_floor_divide(-x, y)


_BINARY: Mapping[str, Function] = {
    "addi": np.add,
    "andi": np.bitwise_and,
    "ceildivsi": _ceil_divide,
    "divsi": divide,
    "floordivsi": _floor_divide,
    "maxsi": np.maximum,
    "minsi": np.minimum,
    "muli": np.multiply,
    "ori": np.bitwise_or,
    "remsi": remainder,
    "subi": np.subtract,
    "xori": np.bitwise_xor,
}

# By the number of the predicate, of signed integers.
_COMPARISONS: tuple[Function, ...] = (np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal)


def _constant(machine: Machine, op: Operation, inputs: Results) -> Results:
    value = op.properties["value"]
    if isinstance(value, IntegerAttr):
        is_truth = getattr(value.type, "width", 64) == 1
        return (np.array(value.value, np.bool_ if is_truth else np.int64),)
    return (tensor_data.to_array(value),)


def _binary(function: Function, machine: Machine, op: Operation, inputs: Results) -> Results:
    one, other = inputs
    return (np.asarray(function(one, other)),)


def _compare(machine: Machine, op: Operation, inputs: Results) -> Results:
    one, other = inputs
    return (np.asarray(_COMPARISONS[integer(op, "predicate")](one, other)),)


def _select(machine: Machine, op: Operation, inputs: Results) -> Results:
    return (np.where(*inputs),)


OPS: Mapping[str, Simple] = {
    "arith.cmpi": _compare,
    "arith.constant": _constant,
    "arith.select": _select,
    **{f"arith.{name}": partial(_binary, function) for name, function in _BINARY.items()},
}
"""Op -> its handler."""
