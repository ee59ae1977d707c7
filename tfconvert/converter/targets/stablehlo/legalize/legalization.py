"""Takes a module to StableHLO: every function in program order, op by op, so that what is known of sizes stays known.

Ops without a form are gathered; nothing is returned unless all ops have one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from tfconvert.converter.control_flow.calls import Calls, FunctionCall
from tfconvert.converter.ir.edit import erase
from tfconvert.converter.ir.tasks import Task, drive
from tfconvert.converter.rewrite.pattern import Declined, Failure, attempt
from tfconvert.converter.shapes.symbolic import Symbols
from tfconvert.converter.targets.stablehlo.legalize import regions
from tfconvert.converter.targets.stablehlo.legalize.decomposed import why_not
from tfconvert.converter.targets.stablehlo.legalize.lowerings import LOWERINGS
from tfconvert.converter.targets.stablehlo.legalize.sizes import Sizes
from tfconvert.converter.targets.stablehlo.legalize.stablehlo_builder import StableHLOBuilder
from tfconvert.schema.diagnostics import ConversionError, Diagnostic
from tfconvert.schema.dialects import stablehlo, tensor_data, types
from tfconvert.schema.dialects.call_interfaces import callees
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.dialects.locations import place_of
from tfconvert.schema.ir.block import Block
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.traits import Trait
from tfconvert.schema.ir.types import TensorType
from tfconvert.schema.ir.values import Value

# How many further nodes of one kind a message names.
_NAMED = 3

_HINTS = {
    "strings": "export a function that begins behind what works on texts, or keep that part in TensorFlow",
    "constant": "pass it as a constant, or pin the sizes of the inputs that it is computed from (--input-shape)",
    "not known": "pin the sizes of the inputs that it depends on (--input-shape)",
}


def unsupported(left: Mapping[Operation, str]) -> ConversionError:
    """Returns the error about ops that stay.

    Args:
        left: The ops, with why each one stays.
    """
    groups: dict[tuple[str, str], list[Operation]] = {}
    for op, reason in left.items():
        groups.setdefault((op.name, reason), []).append(op)
    return ConversionError([_diagnostic(reason, ops) for (_, reason), ops in groups.items()])


def _diagnostic(reason: str, ops: list[Operation]) -> Diagnostic:
    places = [place_of(op.location) for op in ops]
    others = [place.node for place in places[1 : 1 + _NAMED] if place.node]
    also = f"; also at {', '.join(others)}" if others else ""
    more = len(places) - 1 - len(others)
    also += f" and {more} more" if others and more > 0 else ""
    hint = next((hint for words, hint in _HINTS.items() if words in reason), "")
    return Diagnostic(
        "unsupported-op",
        f"{ops[0].name} can't be taken to StableHLO: {reason}{also}",
        ops[0].name,
        places[0].node,
        str(places[0]),
        hint=hint,
    )


# Ops that compute nothing.
_ERASED = frozenset({"tf.NoOp", "tf.Assert"})

_NO_FORM = "StableHLO has no such op, and no others that compute the same are known yet"

_NO_STRINGS = "StableHLO has no strings"


def _holds_strings(value: Value) -> bool:
    return value.element == types.STRING


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
        blocks = [function.body.block for function in functions.values() if function.body.block not in self._calls.to]
        # Regions come before what follows them, so that they use nothing that is not there yet.
        for block in reversed(blocks):
            drive(self._rewrite(block))
        for block in blocks:
            function = block.parent_op()
            assert function is not None
            self._finish(function)
        if self._left:
            raise unsupported(self._left)

    def _rewrite(self, block: Block) -> Task[None]:
        """Rewrites the ops of a block; waits for the blocks of new regions, which must be rewritten before the rest."""
        for argument in block.args:
            self._sizes.see(argument)
        for op in tuple(block.ops):
            if op.name in _ERASED:
                erase(op)
            elif op.name.startswith("tf.") and op.name != "tf.Const":
                for inner in reversed(self._lower(op)):
                    yield self._rewrite(inner)

    def _lower(self, op: Operation) -> list[Block]:
        """Replaces an op, or notes why it stays; returns the blocks of new regions."""
        lowered = attempt(self._lowered, op)
        if isinstance(lowered, Failure):
            self._left[op] = lowered.reason
            return []
        values, blocks = lowered
        for old, new in zip(op.results, (values,) if isinstance(values, Value) else values, strict=False):
            self._sizes.replace(old, new)
            old.replace_all_uses_with(new)
        self.applied[op.name] += 1
        op.erase()
        return blocks

    def _lowered(self, op: Operation) -> tuple[Value | Sequence[Value], list[Block]]:
        """Emits what replaces an op; returns the new results, and the blocks of new regions."""
        emit = StableHLOBuilder(op, self._sizes, checks_indices=self._checks_indices)
        if op.name in regions.HANDLED:
            return regions.lower(emit, op, self._bodies(op))
        if op.name in LOWERINGS:
            return LOWERINGS[op.name](op, emit), []
        values = (*op.operands, *op.results)
        raise Declined(_NO_STRINGS if any(map(_holds_strings, values)) else why_not(op) or _NO_FORM)

    def _bodies(self, op: Operation) -> Sequence[FunctionCall]:
        calls = self._calls.of[op]
        if len(calls) < len(callees(op)):
            raise Declined("a function that it runs is only declared")
        return calls

    def _finish(self, function: Operation) -> None:
        """Erases dead ops and replaces the constants that are left."""
        for op in reversed(list(function.walk())):
            if op is function or op.has_trait(Trait.TERMINATOR) or op in self._left:
                continue
            if all(result.is_unused for result in op.results) and not stablehlo.has_side_effects(op):
                op.erase()
            elif op.name == "tf.Const":
                self._constant(op)

    def _constant(self, op: Operation) -> None:
        element = op.results[0].element
        entry = types.from_mlir(element)
        if entry is None or entry.dtype.kind not in "biufcV" or not isinstance(op.results[0].type, TensorType):
            if not all(use.operation in self._left for use in op.results[0].uses):
                self._left[op] = f"StableHLO has no constants of {element}"
            return
        value = op.properties["value"]
        assert tensor_data.is_constant(value)
        new = StableHLOBuilder(op, self._sizes).insert(stablehlo.constant(value))
        op.results[0].replace_all_uses_with(new.results[0])
        op.erase()
