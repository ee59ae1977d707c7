"""Equality of dynamic dimensions."""

from __future__ import annotations

from tfconvert.converter.control_flow.calls import Calls
from tfconvert.converter.ir.constants import constant_int
from tfconvert.converter.shapes.symbolic import Symbols
from tfconvert.schema.dialects import types
from tfconvert.schema.dialects.dims import UNKNOWN
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.values import OpResult, Value


class Extents:
    """Dimensions and scalars, as numbers or as symbols, which are comparable.

    Args:
        module: The module; its symbolic shapes are computed when they are first read.
    """

    __slots__ = ("_module", "_symbols")

    def __init__(self, module: ModuleOp) -> None:
        self._module = module
        self._symbols: Symbols | None = None

    def dim(self, value: Value, axis: int) -> int | None:
        """Returns a dimension of a value, `None` if it has no symbol."""
        shape = types.shape_of(value.type)
        if shape is None or len(shape) <= axis:
            return None
        if shape[axis] >= 0:
            return shape[axis]
        known = self._all().shape(value)
        return None if known is None or known[axis] == -1 else known[axis]

    def scalar(self, value: Value | int) -> int | None:
        """Returns a scalar, `None` if it has no symbol."""
        value = value if isinstance(value, int) else _absorbed(value)
        number = constant_int(value)
        if number is not None or isinstance(value, int):
            return number
        elements = self._all().known.partial(value)
        if elements is None or len(elements) != 1 or elements[0] == UNKNOWN:
            return None
        return self._all().find(elements[0])

    def _all(self) -> Symbols:
        if self._symbols is None:
            self._symbols = Symbols(Calls(self._module), {})
        return self._symbols


def _absorbed(value: Value) -> Value:
    """Returns `x` for `minimum(x, maximum(x, y))`, in any order, as `dynamic_rnn` computes a sequence's length."""
    while (pair := _defined_by(value, "tf.Minimum")) is not None:
        first, second = pair.op.operands
        if _is_at_least(second, first):
            value = first
        elif _is_at_least(first, second):
            value = second
        else:
            break
    return value


def _is_at_least(value: Value, other: Value) -> bool:
    larger = _defined_by(value, "tf.Maximum")
    return value is other or (larger is not None and other in larger.op.operands)


def _defined_by(value: Value, name: str) -> OpResult | None:
    return value if isinstance(value, OpResult) and value.op.name == name else None
