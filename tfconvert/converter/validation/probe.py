"""The reference executor, watched or disturbed: to find which inputs suit a model, and what rounding may change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from tfconvert.converter.executor.executor import Executor
from tfconvert.converter.executor.resources import value_behind
from tfconvert.converter.validation.domains import RULES, Domain, narrower
from tfconvert.ops.kernels.call import Array, Results
from tfconvert.ops.kernels.op_call import call_of
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.ir.operation import Operation

Watched = Mapping[Operation, Mapping[int, tuple[int, ...]]]
"""Op -> operand -> the inputs that reach it."""

_CONSTANTS = frozenset(("tf.Const", "tf.ReadVariableOp"))


@dataclass(slots=True)
class Probe(Executor):
    """Finds which values the ops that inputs reach take for them.

    Attributes:
        watched: The ops.
        domains: Input -> the values that suit it, as far as the run came.
    """

    watched: Watched = field(default_factory=dict)
    domains: dict[int, Domain] = field(default_factory=dict)

    def execute(self, op: Operation, inputs: Results) -> Results:
        for index, reached in self.watched.get(op, {}).items():
            rule = RULES[op.name.removeprefix("tf.")][index]
            try:
                domain = rule(call_of(op, tuple(value_behind(op, value) for value in inputs)), index)
            except ConversionError:
                continue  # The op itself will say the same.
            for number in reached if domain is not None else ():
                assert domain is not None
                self.domains[number] = narrower(self.domains.get(number), domain)
        return Executor.execute(self, op, inputs)


@dataclass(slots=True)
class Shaken(Executor):
    """Rounds otherwise: every number that is computed is off by a random few units in its last place.

    What comes out different is what rounding decides: which of two nearly equal numbers is the greater, small
    differences of large numbers, and all that follows from them.

    Attributes:
        share: The largest relative error, for 32-bit floats.
        random: Where the errors come from.
    """

    share: float = 1e-6
    random: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))

    def execute(self, op: Operation, inputs: Results) -> Results:
        results = Executor.execute(self, op, inputs)
        return results if op.name in _CONSTANTS else tuple(map(self._off, results))

    def _off(self, value: Array) -> Array:
        if value.dtype.kind != "f":
            return value
        share = max(self.share, 2 * float(np.finfo(value.dtype).eps)) if value.dtype.itemsize < 4 else self.share
        return np.asarray(value * (1 + share * self.random.uniform(-1, 1, value.shape)), value.dtype)
