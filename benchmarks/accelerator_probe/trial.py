"""One form of an operator as a small file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np

from benchmarks.kernel_probe.case import constant_op
from benchmarks.kernel_probe.tensors import Array, Tensor, weights
from tfconvert.exporters.tflite.model import export
from tfconvert.schema.dialects import tfl, types
from tfconvert.schema.dialects.func import FuncOp, ReturnOp
from tfconvert.schema.ir.block import Block, Region
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.types import FunctionType
from tfconvert.schema.ir.values import Value
from tfconvert.schema.tflite.versions import Call

Shape = Sequence[int]
One = TypeVar("One")
Other = TypeVar("Other")

_RNG = np.random.default_rng(7)


@dataclass(frozen=True, slots=True)
class Result:
    """A result, before its shape is known."""

    type: str = "f32"  # Its type in short, a key of `tensors.ELEMENTS`.
    scale: float = 0.0  # Its scale; 0 if its numbers are stored as they are.
    zero_point: int = 0  # Its zero point.

    def tensor(self, shape: Shape) -> Tensor:
        """Returns it with a shape."""
        quantized = ((self.scale,), (self.zero_point,)) if self.scale else ((), ())
        return Tensor(self.type, np.zeros(shape, np.float32), *quantized)


@dataclass(frozen=True, slots=True)
class Trial:
    """A form that is to be tried."""

    operator: str  # Enumerator of `BuiltinOperator`.
    operands: Sequence[Tensor | None]  # The operands, `None` where one is absent; the same object twice is one tensor.
    results: Sequence[Result] = (Result(),)  # The results.
    options: Mapping[str, Any] = field(default_factory=dict)  # Fields of the options table.
    note: str = ""  # Words that tell the form from others, for people.
    origins: frozenset[int] = frozenset()  # Indices of the operands that `DEQUANTIZE` makes of constants.

    @property
    def inputs(self) -> list[Array]:
        """The inputs of the file."""
        return [each.stored for each in self._given]

    @property
    def _given(self) -> list[Tensor]:
        found = [each for each in self.operands if each is not None and not each.is_constant and not each.is_variable]
        return list({id(each): each for each in found}.values())

    def build(self, shapes: Sequence[Shape] | None = None) -> tuple[bytes, Call]:
        """Returns the file, and the call as the tables see it.

        Args:
            shapes: The shapes of the results; without them the runtime finds them.
        """
        block = Block(arg_types=[each.tensor_type for each in self._given])
        values: dict[int, Value] = dict(zip(map(id, self._given), block.args, strict=True))
        operands = []
        for index, each in enumerate(self.operands):
            if each is None or id(each) not in values:
                values[id(each)] = _constant(block, each, is_dequantized=index in self.origins)
            operands.append(values[id(each)])
        stated = shapes or [()] * len(self.results)
        kinds = [result.tensor(shape).tensor_type for result, shape in zip(self.results, stated, strict=True)]
        op = tfl.build(self.operator.lower(), operands, kinds, self.options)
        block.add_op(op)
        block.add_op(ReturnOp.of(op.results))
        signature = FunctionType.get([each.type for each in block.args], kinds)
        module = ModuleOp.of([FuncOp.of("main", signature, Region(block))])
        return export(module).to_bytes(), tfl.whole_call_of(op)


def _constant(block: Block, operand: Tensor | None, *, is_dequantized: bool) -> Value:
    op = constant_op(operand)
    block.add_op(op)
    if operand is None or not is_dequantized:
        return op.results[0]
    whole = tfl.build("dequantize", op.results, [types.tensor(types.F32, operand.value.shape)])
    block.add_op(whole)
    return whole.results[0]


def pairs(groups: Mapping[One, Sequence[Other]]) -> Iterator[tuple[One, Other]]:
    """Yields the shapes with each of those that they are tried with."""
    return ((one, other) for one, others in groups.items() for other in others)


SCALE, ZERO = 0.02, 3
"""The scale and the zero point of quantized data."""

_MAPPINGS = {"i8": (SCALE, ZERO), "u8": (SCALE, 128), "i16": (1e-4, 0)}


def draw(shape: Shape, low: float = -1.0, high: float = 1.0) -> Array:
    """Returns random numbers."""
    return np.asarray(_RNG.uniform(low, high, tuple(shape)))


def data(kind: str, shape: Shape, low: float = -1.0, high: float = 1.0, *, constant: bool = False) -> Tensor:
    """Returns an operand of a type: `i8` is quantized, integers are 1 to 4, or -4 to -1 if no number is positive."""
    if kind in _MAPPINGS:
        scale, zero = _MAPPINGS[kind]
        return Tensor(kind, draw(shape, low, high), (scale,), (zero,), is_constant=constant)
    if kind == "bool":
        return Tensor(kind, draw(shape) > 0, is_constant=constant)
    if kind in ("i32", "i64"):
        numbers = _RNG.integers(1, 5, tuple(shape))
        return Tensor(kind, numbers if high > 0 else -numbers, is_constant=constant)
    return Tensor(kind, draw(shape, low, high), is_constant=constant)


def integers(values: Any, kind: str = "i32", *, constant: bool = True) -> Tensor:
    """Returns a parameter."""
    return Tensor(kind, np.array(values, np.int64), is_constant=constant)


def floats(values: Any, *, constant: bool = True) -> Tensor:
    """Returns a tensor of certain numbers."""
    return Tensor("f32", np.array(values, np.float32), is_constant=constant)


def result_of(kind: str) -> Result:
    """Returns a result of the type and the scale that `data` has."""
    return Result(kind, *_MAPPINGS.get(kind, ()))


def weight(mode: str, shape: Shape, axis: int = 0) -> tuple[Tensor, bool]:
    """Returns weights, and whether `DEQUANTIZE` makes them.

    Args:
        mode: `f32`, `f16`, `computed`, `i8` (one scale), `i8c` (one a channel), `f32<i8`, `f32<i8c`.
        shape: The shape.
        axis: The axis of the scales.
    """
    values = draw(shape, -0.5, 0.5)
    if mode == "computed":
        return Tensor("f32", values), False
    kind = mode.rpartition("<")[2]
    own = weights(kind.removesuffix("c"), values, axis if kind.endswith("c") else None)
    return own, "<" in mode


def without_constants(trials: Iterator[Trial]) -> Iterator[Trial]:
    """Yields trials that have an input: an accelerator computes nothing else."""
    for trial in trials:
        if trial.inputs:
            yield trial


def noted(trial: Trial, note: str) -> Trial:
    """Returns a trial with a note."""
    return replace(trial, note=note)
