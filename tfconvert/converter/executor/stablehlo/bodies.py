"""Bodies of reductions, scatters and sorts: as functions of arrays, each element of which is a run of the body.

Bodies of elementwise ops compute all elements at a time; others run once for each. A body that is one common op, such
as an addition, is recognised, so that numpy's own reduction does the work.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tfconvert.converter.executor.stablehlo import elementwise
from tfconvert.converter.executor.tasks import Machine, bad
from tfconvert.ops.call import Array, Results
from tfconvert.schema.dialects import tensor_data
from tfconvert.schema.ir.block import Block
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

_UFUNCS: Mapping[str, np.ufunc] = {
    "stablehlo.add": np.add,
    "stablehlo.and": np.bitwise_and,
    "stablehlo.maximum": np.maximum,
    "stablehlo.minimum": np.minimum,
    "stablehlo.multiply": np.multiply,
    "stablehlo.or": np.bitwise_or,
    "stablehlo.xor": np.bitwise_xor,
}

_CONSTANTS = frozenset({"stablehlo.constant", "tf.Const"})


class Body:
    """A region of a reduction, a scatter or a sort.

    Args:
        machine: Runs ops that are not elementwise.
        op: The op.
        region: The region's number.

    Attributes:
        ufunc: The function of numpy that the body is, of its two arguments; `None` if it is none.
    """

    __slots__ = ("_block", "_machine", "_op", "is_elementwise", "ufunc")

    def __init__(self, machine: Machine, op: Operation, region: int = 0) -> None:
        self._machine, self._op = machine, op
        self._block: Block = op.regions[region].block
        ops = list(self._block.ops)[:-1]
        self.is_elementwise = all(each.name in elementwise.KERNELS or each.name in _CONSTANTS for each in ops)
        self.ufunc = self._as_ufunc(ops)

    def _as_ufunc(self, ops: Sequence[Operation]) -> np.ufunc | None:
        last = self._block.last_op
        if len(ops) != 1 or last is None or tuple(last.operands) != tuple(ops[0].results):
            return None
        same = len(self._block.args) == 2 and set(ops[0].operands) == set(self._block.args)
        return _UFUNCS.get(ops[0].name) if same else None

    @property
    def comparison(self) -> tuple[Operation, int, bool] | None:
        """The comparison that is the whole body, of which operand, and whether of the second value with the first."""
        ops, last = list(self._block.ops), self._block.last_op
        args: list[Value] = list(self._block.args)
        if len(ops) != 2 or ops[0].name != "stablehlo.compare" or last is None:
            return None
        if tuple(last.operands) != tuple(ops[0].results) or not set(ops[0].operands) <= set(args):
            return None
        one, other = (args.index(value) for value in ops[0].operands)
        return (ops[0], one // 2, one > other) if one // 2 == other // 2 and one != other else None

    def yielded(self) -> int | None:
        """Returns which argument the body returns as it is, `None` if it does something."""
        last = self._block.last_op
        args: list[Value] = list(self._block.args)
        if last is None or len(last.operands) != 1 or last.operands[0] not in args:
            return None
        return args.index(last.operands[0])

    def __call__(self, *inputs: Array) -> Results:
        """Returns the body's results for each element of arrays that broadcast to each other."""
        if len(inputs) != len(self._block.args):
            raise bad(self._op, f"the body takes {len(self._block.args)} values, not {len(inputs)}")
        if self.is_elementwise:
            found = self._run(inputs)
            shape = np.broadcast_shapes(*(each.shape for each in inputs))
            return tuple(np.broadcast_to(each, shape) for each in found)
        arrays = np.broadcast_arrays(*inputs)
        runs = [self._run(tuple(np.asarray(each[at]) for each in arrays)) for at in np.ndindex(arrays[0].shape)]
        if not runs:
            return tuple(np.zeros(arrays[0].shape, each.dtype) for each in inputs[: len(self._results())])
        return tuple(np.stack(column).reshape(arrays[0].shape) for column in zip(*runs, strict=True))

    def _results(self) -> Sequence[Value]:
        last = self._block.last_op
        return () if last is None else last.operands

    def _run(self, inputs: Results) -> Results:
        values: dict[Value, Array] = dict(zip(self._block.args, inputs, strict=True))
        for op in self._block.ops:
            missing = [value for value in op.operands if value not in values]
            if missing:
                raise bad(self._op, "the body uses a value from outside", "no-reference-kernel")
            operands = tuple(values[value] for value in op.operands)
            if op.name == "stablehlo.return":
                return operands
            if op.name in _CONSTANTS:
                found: Results = (tensor_data.to_array(op.properties["value"]),)
            elif self.is_elementwise:
                # Not by the machine, which checks shapes: here they are those of all elements.
                found = (np.asarray(elementwise.KERNELS[op.name](op, operands)),)
            else:
                found = self._machine.execute(op, operands)
            values.update(zip(op.results, found, strict=True))
        return ()
