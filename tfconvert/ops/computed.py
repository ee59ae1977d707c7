"""Tensors of formulas that are numbers: numpy arrays, which kernels compute with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np

from tfconvert.ops import elementwise, special_functions
from tfconvert.ops.call import Array, Call, Results, typed, wide
from tfconvert.ops.declaration import Formula, keywords
from tfconvert.ops.formula import Tensor
from tfconvert.schema.dialects.types import Shape

Evaluate = Callable[[Call], Results]

_KERNELS = {op.name: op.compute for op in (*elementwise.OPS, *special_functions.OPS)}


def compute_elementwise(call: Call) -> Results:
    """Computes one of the ops that any tensor of a formula has."""
    kernel = _KERNELS[call.op]
    assert kernel is not None
    with np.errstate(all="ignore"):
        return kernel(call)


class ComputedTensor(Tensor):
    """An array in a formula.

    Attributes:
        array: The array.

    Args:
        array: The array.
        evaluate: Computes ops; by default it can compute those alone that any tensor of a formula has.
    """

    __slots__ = ("_evaluate", "array")

    def __init__(self, array: Array, evaluate: Evaluate = compute_elementwise) -> None:
        self.array = array
        self._evaluate = evaluate

    @property
    def shape(self) -> Shape:
        return tuple(self.array.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.array.dtype

    @property
    def constant(self) -> Array:
        return self.array

    def of(self, array: Array) -> Self:
        return type(self)(array, self._evaluate)

    def _apply(self, name: str, *operands: Self | float) -> Self:
        dtype = [each.dtype for each in operands if isinstance(each, ComputedTensor)][-1]
        arrays = [each.array if isinstance(each, ComputedTensor) else typed(each, dtype) for each in operands]
        return self._results(name, arrays, {})[0]

    def reshape(self, dims: Sequence[int]) -> Self:
        return type(self)(self.array.reshape(tuple(dims)), self._evaluate)

    def sum(self, axes: Sequence[int], *, keep_dims: bool = False) -> Self:
        found = self.array.sum(tuple(axes), dtype=self.dtype, keepdims=keep_dims)
        return type(self)(np.asarray(found), self._evaluate)

    def op(self, name: str, *operands: Self | Any, results: int = 1, **attributes: Any) -> Any:
        arrays = [
            each.array if isinstance(each, ComputedTensor) else np.asarray(each, getattr(each, "dtype", np.int32))
            for each in operands
        ]
        found = self._results(name, arrays, attributes)
        return found if results > 1 else found[0]

    def _results(self, name: str, arrays: list[Array], attributes: dict[str, Any]) -> list[Self]:
        return [type(self)(each, self._evaluate) for each in self._evaluate(Call(name, tuple(arrays), attributes))]


def compute_by(formula: Formula, evaluate: Evaluate, call: Call, *, broadcasts: bool = True) -> Results:
    """Computes an op by its formula; with floats of 16 bits in 32, and rounded once.

    Args:
        formula: The formula.
        evaluate: Computes the ops that it consists of.
        call: The op.
        broadcasts: Whether its operands may have different shapes.
    """
    shapes = {array.shape for array in call.inputs}
    if not broadcasts and len(shapes) > 1:
        raise call.bad(f"the operands' shapes {' and '.join(map(str, shapes))} differ")
    found = formula(
        *(ComputedTensor(wide(array), evaluate) for array in call.inputs), **keywords(formula, call.attributes)
    )
    arrays = [each.array for each in ((found,) if isinstance(found, ComputedTensor) else found)]
    narrow = next((array.dtype for array in call.inputs if wide(array) is not array), None)
    return tuple([array if narrow is None or array.dtype != np.float32 else typed(array, narrow) for array in arrays])
