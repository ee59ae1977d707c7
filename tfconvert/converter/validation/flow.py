"""Where a value goes: the operands that it reaches unchanged, through casts, reshapes, islands, calls and bodies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tfconvert.converter.executor import control_flow
from tfconvert.schema.dialects.func import FuncOp, defined_functions
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Use, Value

_FIRST = (
    "BroadcastTo",
    "Cast",
    "CheckNumerics",
    "EnsureShape",
    "ExpandDims",
    "GatherV2",
    "Identity",
    "Pad",
    "PreventGradient",
    "Reshape",
    "Reverse",
    "ReverseV2",
    "Slice",
    "Snapshot",
    "Split",
    "SplitV",
    "Squeeze",
    "StopGradient",
    "StridedSlice",
    "Tile",
    "Transpose",
    "Unpack",
)

# Op -> the operands whose elements are its results'; `None` for all.
_THROUGH: Mapping[str, Sequence[int] | None] = {
    **dict.fromkeys(_FIRST, (0,)),
    "ConcatV2": None,
    "Pack": None,
    "Select": (1, 2),
    "SelectV2": (1, 2),
}

# Ops whose every operand is the result at its place.
_POSITIONAL = frozenset(
    ("IdentityN", "tf_executor.Enter", "tf_executor.Exit", "tf_executor.LoopCond", "tf_executor.NextIteration.Sink")
)

_MERGED = frozenset(("tf_executor.Merge", "tf_executor.Switch", "tf_executor._SwitchN"))


class Flow:
    """The paths of values through a module's functions.

    Args:
        module: The module.
    """

    def __init__(self, module: ModuleOp) -> None:
        self._functions = defined_functions(module)
        self._calls: dict[str, list[Operation]] = {}
        for function in self._functions.values():
            for op in control_flow.all_ops(function):
                for name in control_flow.callees(op):
                    self._calls.setdefault(name, []).append(op)

    def uses(self, value: Value) -> Iterator[Use]:
        """Yields the operands of ops without bodies that a value reaches, directly or through others."""
        waiting, seen = [value], {value}
        while waiting:
            for use in waiting.pop().uses:
                if not use.operation.regions:
                    yield use
                for following in self._following(use):
                    if following not in seen:
                        seen.add(following)
                        waiting.append(following)

    def _following(self, use: Use) -> Sequence[Value]:
        """Returns the values that hold what an operand holds."""
        op, name = use.operation, use.operation.name.removeprefix("tf.")
        if name in _POSITIONAL:
            return _sink(op) if name.endswith("Sink") else op.results[use.index : use.index + 1]
        if name in _MERGED:
            return op.results[:1] if name.endswith("Merge") else op.results
        if name in _THROUGH:
            through = _THROUGH[name]
            return op.results if through is None or use.index in through else ()
        if name in ("tf_executor.yield", "tf_executor.fetch", "Yield"):
            return _outer(op, use.index)
        if name == "func.return":
            return self._returned(op, use.index)
        return [*self._arguments(op, use.index), *_bodies(op, use.index)]

    def _arguments(self, op: Operation, index: int) -> Iterator[Value]:
        """Yields the arguments of functions that an operand becomes."""
        for name in control_flow.callees(op):
            function = self._functions.get(name)
            if function is not None:
                arguments = function.body.block.args
                place = index - (len(op.operands) - len(arguments))  # Conditions stand before the arguments.
                if 0 <= place < len(arguments):
                    yield arguments[place]

    def _returned(self, op: Operation, index: int) -> Sequence[Value]:
        function = op.parent_op()
        calls = self._calls.get(function.sym_name, ()) if isinstance(function, FuncOp) else ()
        return [call.results[index] for call in calls if index < len(call.results)]


def _sink(op: Operation) -> Sequence[Value]:
    """Returns the value that a loop's Sink hands to the next iteration: its Source's."""
    token = op.operands[0]
    return token.owner.results[:1] if isinstance(token.owner, Operation) else ()


def _outer(op: Operation, index: int) -> Sequence[Value]:
    """Returns the result, of the op that a terminator is in, that its operand becomes; of a loop the arguments too."""
    parent = op.parent_op()
    if parent is None:
        return ()
    found: list[Value] = list(parent.results[index : index + 1])
    if parent.name == "tf.WhileRegion":
        found += [region.block.args[index] for region in parent.regions if index < len(region.block.args)]
    return found


def _bodies(op: Operation, index: int) -> Iterator[Value]:
    if op.name == "tf.WhileRegion":
        for region in op.regions:
            if index < len(region.block.args):
                yield region.block.args[index]
