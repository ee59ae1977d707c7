"""Accelerators on a module in the `tfl` dialect: each operator's verdict, and how the graph is split.

Accelerators know some composites by name, in some forms, and leave others to the CPU.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

from tfconvert.converter.ir.interface import entry_functions
from tfconvert.converter.ir.symbol_table import names
from tfconvert.converter.targets.litert.accelerator_verdicts import ALL_OR_NONE, COMPILED, COMPOSITE, verdict_of
from tfconvert.exporters.c_array import micro_program
from tfconvert.ops.operands import Known
from tfconvert.ops.tfl_relations import inferred
from tfconvert.schema.diagnostics import size_text
from tfconvert.schema.dialects import tfl, tfl_file, types
from tfconvert.schema.dialects.func import FuncOp, ReturnOp
from tfconvert.schema.dialects.locations import place_of
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value
from tfconvert.schema.tflite.accelerators.acceptance import CRASHES, LOAD_FAILS, REFUSED, UNKNOWN, WRONG, Verdict, table

TITLES: Mapping[str, str] = {
    "gpu": "the GPU",
    "npu": "the NPU (Intel)",
    "micro": "microcontrollers",
    "ethos-u": "Ethos-U",
}
"""The accelerators' titles."""

# Accelerators whose delegate takes one part of a graph only.
_ONE_PART = ("gpu",)

_VERBS: Mapping[str, str] = {
    REFUSED: "is not supported",
    WRONG: "may be computed wrongly",
    CRASHES: "crashes",
    LOAD_FAILS: "keeps the file from loading",
    UNKNOWN: "was never tried",
}
_DEQUANTIZE = tfl.PREFIX + "dequantize"


@dataclass(frozen=True, slots=True)
class Obstacle:
    """An operator that an accelerator does not compute, or not correctly."""

    operator: str  # The operator; empty for a limit of the whole function.
    outcome: str  # The outcome, one of `acceptance.OUTCOMES`.
    reason: str  # Why.
    node: str = ""  # The node that it comes from; may be empty.
    source: str = ""  # Its source line; may be empty.
    function: str = ""  # The function.
    splits_off: int = 0  # How many operators that the accelerator would take it keeps from it, alone.
    is_left: bool = False  # Whether it would be computed wrongly, or crash, but runs on the CPU as its neighbours do.

    @property
    def text(self) -> str:
        """The obstacle in a sentence."""
        where = [f"at {self.node}"] if self.node else []
        where += [f"({self.source})"] if self.source else []
        subject = " ".join([self.operator or "the file", *where])
        why = f": {self.reason}" if self.reason else ""
        plural = "s" if self.splits_off > 1 else ""
        off = f"; it splits off {self.splits_off} operator{plural}" if self.splits_off else ""
        verb = f"runs on the CPU as its neighbours do; else it {_VERBS[self.outcome]}" if self.is_left else ""
        return f"{subject} {verb or _VERBS[self.outcome]}{why}{off}"

    def to_dict(self) -> dict[str, Any]:
        """Returns plain data."""
        return {
            "operator": self.operator,
            "outcome": self.outcome,
            "reason": self.reason,
            "node": self.node,
            "source": self.source,
            "function": self.function,
            "splits_off": self.splits_off,
            "is_left": self.is_left,
        }


@dataclass(frozen=True, slots=True)
class Acceptance:
    """The part of a model that an accelerator takes."""

    accelerator: str  # Its name.
    release: str  # What the verdicts were made with.
    operators: int  # How many operators there are.
    taken: int  # How many run on it.
    obstacles: tuple[Obstacle, ...] = field(default=())  # The operators that do not, or not correctly.
    is_open: bool = False  # Whether it compiles models for fixed sizes, and inputs of this one have dynamic sizes.
    # The bytes that the interpreter of a microcontroller needs for tensors and for itself, an estimate; `None` for
    # others.
    arena: int | None = None

    @property
    def is_whole(self) -> bool:
        """Whether all runs on the accelerator, correctly."""
        return not self.obstacles

    @property
    def headline(self) -> str:
        """The verdict in a line."""
        title = TITLES[self.accelerator]
        condition = ", once its dynamic sizes are fixed" if self.is_open else ""
        if self.is_whole:
            return f"whole on {title}{condition}"
        outcomes = Counter(each.outcome for each in self.obstacles if not each.is_left)
        if LOAD_FAILS in outcomes:
            return f"does not load on {title}"
        if CRASHES in outcomes:
            return f"crashes on {title}"
        if self.accelerator in ALL_OR_NONE and REFUSED in outcomes:
            return f"does not run on {title}"
        wrong = ", with wrong numbers" if WRONG in outcomes else ""
        unknown = f", {outcomes[UNKNOWN]} never tried" if UNKNOWN in outcomes else ""
        return f"{self.taken} of {self.operators} operators on {title}{wrong}{unknown}{condition}"

    def lines(self, most: int | None = None) -> list[str]:
        """Returns the verdict and the obstacles as text.

        Args:
            most: How many obstacles to list, `None` for all.
        """
        shown = self.obstacles[:most]
        left = len(self.obstacles) - len(shown)
        arena = [] if self.arena is None else [f"  in an arena of about {size_text(self.arena)}"]
        return [
            self.headline,
            *arena,
            *(f"  {each.text}" for each in shown),
            *([f"  ... and {left} more (-v shows all)"] if left else []),
        ]

    def to_dict(self) -> dict[str, Any]:
        """Returns plain data."""
        return {
            "accelerator": self.accelerator,
            "made_with": self.release,
            "verdict": self.headline,
            "is_whole": self.is_whole,
            "operators": self.operators,
            "taken": self.taken,
            "obstacles": [each.to_dict() for each in self.obstacles],
            **({} if self.arena is None else {"arena": self.arena}),
        }


Content = Callable[[], bytes | memoryview]
"""Returns the file of a module."""


def check_all(module: ModuleOp, content: Content | None = None) -> tuple[Acceptance, ...]:
    """Returns what each accelerator takes of a module that is ready for export."""
    return tuple(check(module, name, content) for name in TITLES)


def check(module: ModuleOp, accelerator: str, content: Content | None = None) -> Acceptance:
    """Returns what an accelerator takes of a module that is ready for export.

    Args:
        module: The module.
        accelerator: A key of `acceptance.ACCELERATORS`.
        content: Its file, for the arena; called only if a microcontroller runs it.
    """
    operators = taken = 0
    obstacles: list[Obstacle] = []
    entries = entry_functions(module)
    hidden = _hidden(module) if accelerator in COMPILED else frozenset()
    for function in module.ops:
        if isinstance(function, FuncOp) and function.body.blocks and function.sym_name not in hidden:
            nodes = [op for op in function.body.blocks[0].ops if tfl.is_node(op)]
            verdicts = _verdicts(nodes, accelerator)
            on_it = _taken(nodes, verdicts, accelerator)
            operators += len(nodes)
            taken += len(on_it)
            obstacles += _obstacles(function, nodes, verdicts, on_it, accelerator)
            if accelerator in COMPILED:
                obstacles += _limits(function, is_called=function not in entries)
                if accelerator in _ONE_PART and function in entries:
                    obstacles += _open_sizes(function, nodes)
    if accelerator in ALL_OR_NONE and obstacles:
        taken = 0
    is_open = accelerator in COMPILED and not all(map(_has_fixed_inputs, entries))
    arena = None
    if content is not None and accelerator == "micro" and not obstacles:
        arena = micro_program(content()).arena
    return Acceptance(accelerator, table(accelerator).release, operators, taken, tuple(obstacles), is_open, arena)


def verdicts(module: ModuleOp, accelerator: str) -> list[list[Verdict]]:
    """Returns the verdicts on the operators of each function, in order.

    Args:
        module: The module.
        accelerator: A key of `acceptance.ACCELERATORS`.
    """
    return [
        _verdicts([op for op in function.body.blocks[0].ops if tfl.is_node(op)], accelerator)
        for function in module.ops
        if isinstance(function, FuncOp) and function.body.blocks
    ]


def _hidden(module: ModuleOp) -> frozenset[str]:
    """Returns the names of the functions of composites, which count as one operator."""
    return frozenset(name for op in module.walk() if op.name == COMPOSITE for name in names(op))


def _verdicts(nodes: Sequence[Operation], accelerator: str) -> list[Verdict]:
    return [verdict_of(op, accelerator) for op in nodes]


def _taken(nodes: Sequence[Operation], verdicts: Sequence[Verdict], accelerator: str) -> set[int]:
    """Returns the indices of the operators that run on an accelerator."""
    is_taken = [each.outcome not in (REFUSED, UNKNOWN) for each in verdicts]
    if accelerator == "gpu":
        _leave_constants(nodes, is_taken)
    if accelerator not in _ONE_PART:
        return {index for index, each in enumerate(is_taken) if each}
    return set(_largest(nodes, is_taken))


def _leave_constants(nodes: Sequence[Operation], is_taken: list[bool]) -> None:
    """Leaves what makes constants of stored ones to the CPU if all that use them is."""
    position = {id(op): index for index, op in enumerate(nodes)}
    for index, op in enumerate(nodes):
        if op.name == _DEQUANTIZE and tfl.is_constant(op.operands[0]):
            users = [position.get(id(use.operation), -1) for use in op.results[0].uses]
            is_taken[index] &= any(at >= 0 and is_taken[at] for at in users)


def _largest(nodes: Sequence[Operation], is_taken: Sequence[bool]) -> list[int]:
    return max(_parts(nodes, is_taken), key=len, default=[])


def _parts(nodes: Sequence[Operation], is_taken: Sequence[bool]) -> Iterator[list[int]]:
    """Yields the parts that a delegate may take, as the runtime forms them, each as the indices of its operators.

    Operators that are ready join a part as long as they are of its kind; then the next part begins.
    """
    waiting = dict.fromkeys(range(len(nodes)))
    position = {id(op): index for index, op in enumerate(nodes)}
    while waiting:
        kind: bool | None = None
        part: list[int] = []
        for index in list(waiting):
            is_ready = not any(
                isinstance(value.owner, Operation) and position.get(id(value.owner), -1) in waiting
                for value in nodes[index].operands
            )
            if is_ready and (kind is None or is_taken[index] == kind):
                kind = is_taken[index]
                part.append(index)
                del waiting[index]
        if kind is None:
            return
        if kind:
            yield part


def _obstacles(
    function: FuncOp, nodes: Sequence[Operation], verdicts: Sequence[Verdict], on_it: Set[int], accelerator: str
) -> Iterator[Obstacle]:
    for index, (op, found) in enumerate(zip(nodes, verdicts, strict=True)):
        if found.is_ok:
            continue
        place = place_of(op.location)
        splits_off = 0
        if accelerator in _ONE_PART and found.outcome in (REFUSED, UNKNOWN):
            alone = [at != index for at in range(len(nodes))]
            splits_off = len(nodes) - 1 - len(_largest(nodes, alone))
        yield Obstacle(
            _name(op),
            found.outcome,
            found.reason,
            place.node,
            place.source,
            function.sym_name,
            splits_off,
            is_left=found.outcome in (WRONG, CRASHES) and index not in on_it,
        )


def _name(op: Operation) -> str:
    name = op.name.removeprefix(tfl.PREFIX)
    return (
        str(tfl.attribute(op, "custom_code")) if name == "custom" and "custom_code" in op.properties else name.upper()
    )


def _has_fixed_inputs(function: FuncOp) -> bool:
    return all(types.is_static(value.shape) for value in function.body.blocks[0].args)


def _open_sizes(function: FuncOp, nodes: Sequence[Operation]) -> Iterator[Obstacle]:
    """Yields the first op whose result has a size that only running tells, although all inputs have known sizes."""
    if not _has_fixed_inputs(function):
        return
    known = Known()  # Files of before 2023 don't say that scalars have a rank.
    for op in nodes:
        assert isinstance(op, tfl.TFLOp)
        if not all(map(types.is_static, inferred(op, known))):
            place = place_of(op.location)
            why = "running tells a size of its result"
            yield Obstacle(_name(op), LOAD_FAILS, why, place.node, place.source, function.sym_name)
            return


def _limits(function: FuncOp, *, is_called: bool) -> Iterator[Obstacle]:
    """Yields what CompiledModel does not load or computes wrongly, on whatever hardware.

    Args:
        function: The function.
        is_called: Whether an operator calls it, so that its results are copied.
    """
    block = function.body.blocks[0]
    if any(value.element == types.STRING for value in block.args):
        yield Obstacle("", LOAD_FAILS, "an input holds strings", function=function.sym_name)
    if any(tfl_file.IS_VARIABLE in op.attributes or tfl.state_operands(op) for op in block.ops):
        yield Obstacle("", LOAD_FAILS, "it has variable tensors", function=function.sym_name)
    for op in block.ops:
        if isinstance(op, ReturnOp) and not is_called:
            yield from _doubled(function, op.operands)


def _doubled(function: FuncOp, results: Sequence[Value]) -> Iterator[Obstacle]:
    arguments = function.body.blocks[0].args
    if any(value in arguments for value in results):
        yield Obstacle("", WRONG, "an output is an input", function=function.sym_name)
    if len(set(results)) < len(results):
        yield Obstacle("", WRONG, "one tensor is two outputs", function=function.sym_name)
