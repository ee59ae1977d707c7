"""A copy of a module whose loops and branches return the ranges of their values.

The tensors of a loop's body only have the values of the last iteration. So the copy computes the ranges as it runs:
each subgraph returns the minima and maxima of its values as two vectors, a loop carries them between iterations, and a
branch that isn't taken returns a range whose minimum exceeds its maximum.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from tfconvert.converter.ir.edit import replace_op, update_function_type
from tfconvert.converter.ir.tf_builder import TFLBuilder
from tfconvert.converter.targets.litert.quantize.calls import CALLS, LOOP, callees
from tfconvert.schema.dialects import tfl, types
from tfconvert.schema.dialects.func import FuncOp, functions_of
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

# The minimum of no numbers; not infinity, which kernels handle differently.
_NOTHING = float(np.finfo(np.float32).max)


class Extremes(NamedTuple):
    """The ranges of some values, as vectors that the copy computes.

    Attributes:
        values: The values of the original module.
        low: Their minima.
        high: Their maxima.
    """

    values: tuple[Value, ...]
    low: Value
    high: Value


class Instrumented(NamedTuple):
    """A copy of a module.

    Attributes:
        module: The copy.
        values: The values of the copy, by those of the original.
        extremes: The ranges of values in subgraphs.
    """

    module: ModuleOp
    values: Mapping[Value, Value]
    extremes: Sequence[Extremes]


def instrument(module: ModuleOp, observed: Mapping[FuncOp, Sequence[Value]]) -> Instrumented:
    """Returns a copy of a module that returns the ranges of values in loops and branches.

    Args:
        module: The module.
        observed: The values to observe, by function.
    """
    values: dict[Value, Value] = {}
    copy = module.clone(values)
    originals = {function.sym_name: function for function in observed}
    wanted = {name: tuple(observed[function]) for name, function in originals.items()}
    work = _Instrumentation(copy, values, wanted)
    return Instrumented(copy, values, work.run())


class _Instrumentation:
    def __init__(self, module: ModuleOp, values: dict[Value, Value], wanted: Mapping[str, tuple[Value, ...]]) -> None:
        self._functions = functions_of(module)
        self._values = values
        self._originals: dict[Value, Value] = {copy: original for original, copy in values.items()}
        self._wanted = wanted
        self._done: dict[str, tuple[Value, ...]] = {}

    def run(self) -> list[Extremes]:
        """Rewrites all functions; returns the ranges that the calls in entry functions return."""
        calls = [op for function in self._functions.values() for op in function.walk() if op.name in CALLS]
        called = {name for op in calls for name in callees(op)}
        return [
            extremes
            for name, function in self._functions.items()
            if name not in called
            for extremes in self._calls(function)
        ]

    def _calls(self, function: FuncOp) -> list[Extremes]:
        """Rewrites the calls in a function; returns the ranges that they return."""
        found = [self._call(op) for op in list(function.body.block.ops) if op.name in CALLS]
        return [extremes for extremes in found if extremes.values]

    def _call(self, op: Operation) -> Extremes:
        first, second = callees(op)
        if op.name == LOOP:
            values = self._function(second, carries=True)
            if values:
                self._carry(self._functions[first], len(values))
            return self._rebuilt(op, values, carries=True)
        if first == second:
            return self._rebuilt(op, self._function(first), carries=False)
        shown = [self._function(name) for name in (first, second)]
        both = (*shown[0], *shown[1])
        for name, before, after in ((first, 0, len(shown[1])), (second, len(shown[0]), 0)):
            self._fill(self._functions[name], len(self._done[name]), before, after)
        return self._rebuilt(op, both, carries=False)

    def _function(self, name: str, *, carries: bool = False) -> tuple[Value, ...]:
        """Makes a subgraph return ranges; returns the values that they belong to."""
        known = self._done.get(name)
        if known is not None:
            return known
        function = self._functions[name]
        inner = self._calls(function)
        own = [value for value in self._wanted.get(name, ()) if value.shape is not None]
        values = (*own, *(value for extremes in inner for value in extremes.values))
        self._done[name] = values
        if not values:
            return values
        end = function.body.block.last_op
        assert end is not None
        builder = TFLBuilder(end)
        vectors = []
        for low in (True, False):
            parts = [self._own(builder, own, low=low)] if own else []
            parts += [extremes.low if low else extremes.high for extremes in inner]
            vectors.append(_joined(builder, parts))
        if carries:
            arguments = self._carry(function, len(values))
            names = ("minimum", "maximum")
            vectors = [
                builder.tfl(each, (vector, argument), vector.type)
                for each, vector, argument in zip(names, vectors, arguments, strict=True)
            ]
        end.set_operands([*end.operands, *vectors])
        update_function_type(function)
        return values

    def _own(self, builder: TFLBuilder, values: Sequence[Value], *, low: bool) -> Value:
        """Returns the minimum, or the maximum, of each value."""
        scalars = []
        for value in values:
            copy = self._values[value]
            rank = len(copy.shape or ())
            name = "reduce_min" if low else "reduce_max"
            scalar = types.tensor(types.F32, ())
            scalars.append(builder.tfl(name, (copy, builder.ints(range(rank))), scalar) if rank else copy)
        options = {"values_count": len(scalars), "axis": 0}
        return builder.tfl("pack", scalars, types.tensor(types.F32, (len(scalars),)), options)

    def _carry(self, function: FuncOp, count: int) -> list[Value]:
        """Gives a function of a loop two more arguments."""
        vector = types.tensor(types.F32, (count,))
        added: list[Value] = [function.body.block.add_arg(vector) for _ in range(2)]
        update_function_type(function)
        return added

    def _fill(self, function: FuncOp, count: int, before: int, after: int) -> None:
        """Makes a branch return the ranges of both branches, empty ranges for the other's."""
        end = function.body.block.last_op
        assert end is not None
        builder = TFLBuilder(end)
        operands = list(end.operands)
        own = operands[-2:] if count else []
        operands = operands[:-2] if count else operands
        for position, nothing in enumerate((_NOTHING, -_NOTHING)):
            parts = [own[position]] if count else []
            parts = [_filled(builder, before, nothing)] * bool(before) + parts
            parts += [_filled(builder, after, nothing)] * bool(after)
            if parts:
                operands.append(_joined(builder, parts))
        end.set_operands(operands)
        update_function_type(function)

    def _rebuilt(self, op: Operation, values: tuple[Value, ...], *, carries: bool) -> Extremes:
        """Replaces a call by one with two additional results."""
        if not values:
            return Extremes((), op.results[0], op.results[0])
        builder = TFLBuilder(op)
        vector = types.tensor(types.F32, (len(values),))
        operands = list(op.operands)
        if carries:
            operands += [_filled(builder, len(values), nothing) for nothing in (_NOTHING, -_NOTHING)]
        call = builder.tfl_op(
            op.name.removeprefix(tfl.PREFIX), operands, [*op.result_types, vector, vector], op.properties
        )
        results = call.results[: len(op.results)]
        for old, new in zip(op.results, results, strict=True):
            original = self._originals.get(old)
            if original is not None:
                self._values[original] = new
        replace_op(op, results)
        return Extremes(values, call.results[-2], call.results[-1])


def _filled(builder: TFLBuilder, count: int, value: float) -> Value:
    return builder.constant(np.full(count, value, np.float32))


def _joined(builder: TFLBuilder, parts: Sequence[Value]) -> Value:
    if len(parts) == 1:
        return parts[0]
    length = sum((part.shape or (0,))[0] for part in parts)
    options = {"axis": 0, "fused_activation_function": "NONE"}
    return builder.tfl("concatenation", parts, types.tensor(types.F32, (length,)), options)
