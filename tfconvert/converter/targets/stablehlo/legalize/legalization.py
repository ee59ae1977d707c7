"""Takes a module to StableHLO: every function in program order, op by op, so that what is known of sizes stays known.

What has no form is gathered; nothing is returned unless all ops have one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from tfconvert.converter.control_flow.calls import Calls, FunctionCall
from tfconvert.converter.ir.edit import erase, walk
from tfconvert.converter.shapes.symbolic import Symbols
from tfconvert.converter.targets.stablehlo.legalize import control_flow
from tfconvert.converter.targets.stablehlo.legalize.emit import DeclinedError, Emit
from tfconvert.converter.targets.stablehlo.legalize.left_over import unsupported
from tfconvert.converter.targets.stablehlo.legalize.registry import LOWERINGS
from tfconvert.converter.targets.stablehlo.legalize.sizes import Sizes
from tfconvert.schema.dialects import stablehlo, tensor_data, types
from tfconvert.schema.dialects.call_interfaces import callees
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.ir.block import Block
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.traits import Trait
from tfconvert.schema.ir.types import TensorType
from tfconvert.schema.ir.values import Value

# Ops that compute nothing.
_ERASED = frozenset({"tf.NoOp", "tf.Assert"})

_NO_FORM = "StableHLO has no such op, and no others that compute the same are known yet"

_NO_STRINGS = "StableHLO has no strings"


def _holds_strings(value: Value) -> bool:
    return types.element_of(value.type) == types.STRING


class Legalization:
    """The work on one module.

    Attributes:
        applied: How often an op of each name was replaced.

    Args:
        module: The module.
        checks_indices: Whether the program checks indices when it runs.
    """

    def __init__(self, module: ModuleOp, *, checks_indices: bool = False) -> None:
        self.applied: Counter[str] = Counter()
        self._checks_indices = checks_indices
        self._calls = Calls(module)
        self._sizes = Sizes(Symbols(self._calls, {}, supposes=False))
        self._left: dict[Operation, str] = {}

    def run(self, functions: Mapping[str, FuncOp]) -> None:
        """Rewrites all functions; those that became regions are left without a body.

        Raises:
            ConversionError: Some ops have no form (`unsupported-op`, one diagnostic for each kind of op and reason).
        """
        pending = [function.body.block for function in functions.values() if function.body.block not in self._calls.to]
        roots = list(pending)
        # Regions come before what follows them, so that they use nothing that is not there yet.
        iterators = [self._steps(block) for block in pending]
        while iterators:
            blocks = next(iterators[-1], None)
            if blocks is None:
                iterators.pop()
            else:
                iterators += [self._steps(block) for block in blocks]
        for block in roots:
            function = block.parent_op()
            assert function is not None
            self._finish(function)
        if self._left:
            raise unsupported(self._left)

    def _steps(self, block: Block) -> Iterator[list[Block]]:
        """Rewrites the ops of a block; yields the blocks of new regions, which must be rewritten before the rest."""
        for argument in block.args:
            self._sizes.see(argument)
        for op in tuple(block.ops):
            if op.name in _ERASED:
                erase(op)
            elif op.name.startswith("tf.") and op.name != "tf.Const":
                blocks = self._lower(op)
                if blocks:
                    yield blocks

    def _lower(self, op: Operation) -> list[Block]:
        """Replaces an op, or notes why it stays; returns the blocks of new regions."""
        emit = Emit(op, self._sizes, checks_indices=self._checks_indices)
        blocks: list[Block] = []
        values: Value | Sequence[Value]
        try:
            if op.name in control_flow.HANDLED:
                values, blocks = control_flow.lower(op, self._bodies(op), emit)
            elif op.name in LOWERINGS:
                values = LOWERINGS[op.name](op, emit)
            else:
                values = (*op.operands, *op.results)
                raise DeclinedError(_NO_STRINGS if any(map(_holds_strings, values)) else _NO_FORM)
        except DeclinedError as problem:
            self._left[op] = str(problem)
            return []
        for old, new in zip(op.results, (values,) if isinstance(values, Value) else values, strict=False):
            self._sizes.replace(old, new)
            old.replace_all_uses_with(new)
        self.applied[op.name] += 1
        op.erase()
        return blocks

    def _bodies(self, op: Operation) -> Sequence[FunctionCall]:
        calls = self._calls.of[op]
        if len(calls) < len(callees(op)):
            raise DeclinedError("a function that it runs is only declared")
        return calls

    def _finish(self, function: Operation) -> None:
        """Erases dead ops and replaces the constants that are left."""
        for op in reversed(walk(function)):
            if op is function or op.has_trait(Trait.TERMINATOR) or op in self._left:
                continue
            if all(result.is_unused for result in op.results) and not stablehlo.has_side_effects(op):
                op.erase()
            elif op.name == "tf.Const":
                self._constant(op)

    def _constant(self, op: Operation) -> None:
        element = types.element_of(op.results[0].type)
        entry = types.from_mlir(element)
        if entry is None or entry.dtype.kind not in "biufcV" or not isinstance(op.results[0].type, TensorType):
            if not all(use.operation in self._left for use in op.results[0].uses):
                self._left[op] = f"StableHLO has no constants of {element}"
            return
        value = op.properties["value"]
        assert tensor_data.is_constant(value)
        new = Emit(op, self._sizes).insert(stablehlo.constant(value))
        op.results[0].replace_all_uses_with(new.results[0])
        op.erase()
