"""Elementwise ops: arithmetic, comparisons, conversions."""

from __future__ import annotations

from collections.abc import Callable

from tfconvert.converter.from_stablehlo.raised_op import RaisedOp, Rows
from tfconvert.converter.ir.tensors import EmittedTensor


def _op(name: str) -> Callable[[RaisedOp], EmittedTensor]:
    """Returns the row of an op that TensorFlow has, too."""
    return lambda raised: _applied(raised, name)


def _applied(raised: RaisedOp, name: str) -> EmittedTensor:
    first, *others = raised.unrepeated(raised.operands)
    found: EmittedTensor = first.op(name, first, *others)
    return found


_COMPARISONS = {"EQ": "Equal", "GE": "GreaterEqual", "GT": "Greater", "LE": "LessEqual", "LT": "Less", "NE": "NotEqual"}


def _compare(raised: RaisedOp) -> EmittedTensor:
    return _applied(raised, _COMPARISONS[raised.text("comparison_direction")])


def _convert(raised: RaisedOp) -> EmittedTensor:
    return raised.operands[0].cast(raised.dtype())


_SAME = {
    "abs": "Abs",
    "add": "AddV2",
    "divide": "RealDiv",
    "exponential": "Exp",
    "logistic": "Sigmoid",
    "maximum": "Maximum",
    "minimum": "Minimum",
    "multiply": "Mul",
    "negate": "Neg",
    "rsqrt": "Rsqrt",
    "select": "SelectV2",
    "subtract": "Sub",
    "tanh": "Tanh",
}

ROWS: Rows = {**{name: _op(same) for name, same in _SAME.items()}, "compare": _compare, "convert": _convert}
