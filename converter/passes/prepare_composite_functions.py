"""Pass `prepare-composite-functions`: puts fused operators into functions that say what they implement.

A function with `tf._implements` or `tf.api_implements` is looked up in the table of fusions. If it fits the interface,
its body goes and the operator comes; inlining puts that where the function is called. If it doesn't fit, the body,
which computes the same, stays, and the report says why. Custom operators are put in only where they are allowed.

Before:

    func.func @main(%table: tensor<7x3xf32>, %ids: tensor<4xi32>) -> tensor<4x3xf32> {
      %0 = "tf.PartitionedCall"(%table, %ids) <{f = @rows}> : (tensor<7x3xf32>, tensor<4xi32>) -> tensor<4x3xf32>
      func.return %0 : tensor<4x3xf32>
    }
    func.func private @rows(%table: tensor<7x3xf32>, %ids: tensor<4xi32>) -> tensor<4x3xf32>
        attributes {tf._implements = "embedding_matmul"} {
      %axis = "tf.Const"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
      %0 = "tf.GatherV2"(%table, %ids, %axis) : (tensor<7x3xf32>, tensor<4xi32>, tensor<i32>) -> tensor<4x3xf32>
      func.return %0 : tensor<4x3xf32>
    }

After:

    func.func @main(%table: tensor<7x3xf32>, %ids: tensor<4xi32>) -> tensor<4x3xf32> {
      %0 = "tf.PartitionedCall"(%table, %ids) <{f = @rows}> : (tensor<7x3xf32>, tensor<4xi32>) -> tensor<4x3xf32>
      func.return %0 : tensor<4x3xf32>
    }
    func.func private @rows(%table: tensor<7x3xf32>, %ids: tensor<4xi32>) -> tensor<4x3xf32>
        attributes {tf._implements = "embedding_matmul"} {
      %0 = "tfl.embedding_lookup"(%ids, %table) : (tensor<4xi32>, tensor<7x3xf32>) -> tensor<4x3xf32>
      func.return %0 : tensor<4x3xf32>
    }
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from xdsl.dialects.builtin import DictionaryAttr, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation

from converter.composites import table
from converter.composites.body import Body
from converter.composites.composite import Composite
from converter.composites.fusion import Fusion
from converter.composites.presence import API_IMPLEMENTS, IMPLEMENTS
from converter.control_flow.functional import KINDS, Kind, callees
from converter.rewrite.edit import erase, restate_results
from converter.rewrite.symbols import callees_first, functions_of, is_private, names
from schema.diagnostics import NOTE, WARNING, ConversionError, Diagnostic, error
from schema.dialects import tf, types
from schema.dialects.locations import place_of

KEPT = "composite-kept"
"""Code of the note that a function has kept its body."""

_ALLOW = "allow custom ops if your runtime registers an operator of this name"


@dataclass(frozen=True, slots=True)
class PrepareCompositeFunctions:
    """Puts fused operators into marked functions.

    Attributes:
        allow_custom_ops: Whether custom operators may be put in.
        composites: Fusions of the user's, looked at first.
        notes: What has been decided, for the report.
    """

    allow_custom_ops: bool = False
    composites: tuple[Fusion, ...] = ()
    notes: list[Diagnostic] = field(default_factory=list, compare=False)
    name: ClassVar[str] = "prepare-composite-functions"

    def apply(self, module: ModuleOp) -> Counter[str]:
        """Rewrites the functions that fit; returns how many for each fusion.

        Raises:
            ConversionError: A function doesn't fit and its fusion insists (`composite-misfit`, one diagnostic each),
                or one of the user's fusions is none (`wrong-option`) or gives other results (`bad-fusion`).
        """
        fusions = table.all_fusions(self.composites)
        applied: Counter[str] = Counter()
        problems: list[Diagnostic] = []
        told: dict[tuple[str, str], None] = {}
        for composite, mark in _marked(module):
            fusion = table.find(fusions, composite, mark)
            if fusion is None:
                continue
            reason = fusion.check(composite)
            if reason is None and fusion.is_custom and not self.allow_custom_ops:
                self.notes.append(_finding(composite, KEPT, "it would be a custom op", NOTE, _ALLOW))
            elif reason is None:
                _rewrite(composite, fusion)
                applied[fusion.name] += 1
                told[fusion.name, fusion.note(composite)] = None
            elif fusion.on_misfit == "error":
                problems.append(_finding(composite, "composite-misfit", reason))
            else:
                self.notes.append(_finding(composite, KEPT, reason, NOTE))
        if problems:
            raise ConversionError(problems)
        self.notes.extend(
            Diagnostic("unchecked-or-inexact", f"{name}: {note}", severity=WARNING) for name, note in told if note
        )
        return applied


@dataclass(slots=True)
class _Uses:
    """Who runs a function."""

    calls: list[Operation] = field(default_factory=list)
    runs_in_loop: bool = False
    is_run_otherwise: bool = False


def _marked(module: ModuleOp) -> Iterator[tuple[Composite, str]]:
    """Yields the marked functions that are in use, callers first, so that what a fusion erases is never looked at."""
    functions = functions_of(module)
    uses = {name: _Uses(is_run_otherwise=not is_private(function)) for name, function in functions.items()}
    live = {name for op in module.ops if not isinstance(op, FuncOp) for name in names(op)}
    live |= {name for name, function in functions.items() if not is_private(function)}
    for function in reversed(callees_first(functions)):
        name = function.sym_name.data
        if name not in live or len(function.body.blocks) != 1:
            continue
        mark = _mark_of(function)
        if mark is not None:
            attribute, implemented, attributes = mark
            own = uses[name]
            yield (
                Composite(implemented, function, attributes, own.calls, own.runs_in_loop, own.is_run_otherwise),
                attribute,
            )
        for op in function.body.walk():
            live.update(names(op))
            _note_uses(op, function, functions, uses)


def _note_uses(op: Operation, function: FuncOp, functions: Mapping[str, FuncOp], uses: Mapping[str, _Uses]) -> None:
    kind = KINDS.get(op.name)
    named = callees(op) if kind is not None else names(op)
    in_loop = kind is Kind.LOOP or op.parent_op() is not function or uses[function.sym_name.data].runs_in_loop
    for callee in named:
        entry = uses.get(callee)
        if entry is not None:
            entry.runs_in_loop |= in_loop
            if kind is Kind.CALL and _fits(op, functions[callee]):
                entry.calls.append(op)
            else:
                entry.is_run_otherwise = True


def _fits(call: Operation, function: FuncOp) -> bool:
    """Tells whether a call gives and takes as many values as a function does; inlining complains if it doesn't."""
    kind = function.function_type
    return len(call.operands) == len(kind.inputs) and len(call.results) == len(kind.outputs)


def _mark_of(function: FuncOp) -> tuple[str, str, dict[str, Attribute]] | None:
    """Returns a function's mark: which attribute, the interface's name, and the attributes that come with it."""
    for attribute in (IMPLEMENTS, API_IMPLEMENTS):
        value = function.attributes.get(attribute)
        if isinstance(value, StringAttr):
            return attribute, value.data, {}
        if attribute == IMPLEMENTS and isinstance(value, tf.FunctionAttr):
            arguments = value.arguments
            own = arguments.data if isinstance(arguments, DictionaryAttr) else {}
            return attribute, value.function.root_reference.data, dict(own)
    return None


def _rewrite(composite: Composite, fusion: Fusion) -> None:
    """Puts the fused body in the place of the function's own."""
    function = composite.function
    block = function.body.block
    terminator = block.last_op
    assert terminator is not None
    owner = terminator.operands[0].owner if terminator.operands else terminator
    location = owner.location if isinstance(owner, Operation) else terminator.location
    terminator.detach()
    terminator.operands = ()
    _clear(block)
    body = Body(block, location)
    results = fusion.rewrite(composite, body)
    _check_results(composite, fusion, [value.type for value in results])
    body.finish(results, terminator)
    restate_results(function)


def _check_results(composite: Composite, fusion: Fusion, made: Sequence[Attribute]) -> None:
    """Checks that a fusion, which may be the user's, returns what the function has returned.

    Raises:
        ConversionError: It does not (`bad-fusion`).
    """
    hint = "correct its rewrite"
    if len(made) != len(composite.results):
        message = f"fusion {fusion.name!r} gives {len(made)} results, not {len(composite.results)}"
        raise error("bad-fusion", message, hint=hint)
    for index, kinds in enumerate(zip(made, composite.results, strict=True)):
        mine, wanted = map(types.element_of, kinds)
        if mine != wanted:
            raise error("bad-fusion", f"fusion {fusion.name!r} gives {mine} as result {index}, not {wanted}", hint=hint)


def _clear(block: Block) -> None:
    for op in reversed(list(block.ops)):
        erase(op)


def _finding(composite: Composite, code: str, reason: str, severity: str = "error", hint: str = "") -> Diagnostic:
    calls: Sequence[Operation] = composite.calls
    place = place_of(calls[0].location if calls else composite.function.location)
    message = f"the function {composite.function.sym_name.data!r} implements {composite.name!r}, but {reason}"
    return Diagnostic(code, message, "", place.node, str(place), hint, severity)
