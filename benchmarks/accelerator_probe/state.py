"""Forms of operators that keep state: a variable that is assigned and read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchmarks.accelerator_probe.trial import Shape, Trial, data, result_of
from tfconvert.exporters.tflite.model import export
from tfconvert.schema.dialects import tfl, types
from tfconvert.schema.dialects.func import FuncOp, ReturnOp
from tfconvert.schema.ir.block import Block, Region
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.types import FunctionType
from tfconvert.schema.tflite.versions import Call

_OPERATORS = ("VAR_HANDLE", "ASSIGN_VARIABLE", "READ_VARIABLE")


class _StateTrial(Trial):
    """An operator on a variable. It needs the others, so that the file has all three."""

    __slots__ = ()

    def build(self, shapes: Sequence[Shape] | None = None) -> tuple[bytes, Call]:
        """Returns the file, and the call as the tables see it."""
        (value,) = self._given
        block = Block(arg_types=[value.tensor_type])
        handle = tfl.build("var_handle", [], [types.resource_of(value.tensor_type)], {"shared_name": "v"})
        assign = tfl.build("assign_variable", [handle.results[0], block.args[0]], [], {})
        read = tfl.build("read_variable", handle.results, [value.tensor_type], {})
        for op in (handle, assign, read, ReturnOp.of(read.results)):
            block.add_op(op)
        signature = FunctionType.get([value.tensor_type], [value.tensor_type])
        file = export(ModuleOp.of([FuncOp.of("main", signature, Region(block))])).to_bytes()
        return file, tfl.whole_call_of(dict(zip(_OPERATORS, (handle, assign, read), strict=True))[self.operator])


def trials() -> Iterator[Trial]:
    """Yields the forms."""
    for kind in ("f32", "i32", "i64", "bool", "i8", "i16"):
        for operator in _OPERATORS:
            for shape in ((1, 4), (2, 3, 4)):
                yield _StateTrial(operator, [data(kind, shape)], [result_of(kind)])
