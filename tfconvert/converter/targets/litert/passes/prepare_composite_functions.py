"""Pass `prepare-composite-functions`: replaces the bodies of marked functions by fused operators.

A function with `tf._implements` or `tf.api_implements` is looked up in the table of fusions. If it fits the interface,
the operator replaces its body, and inlining moves the operator to the calls. If it doesn't fit, the equivalent body
stays, and the report gives the reason. Custom operators are created only if they are allowed.

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
from functools import partial
from typing import ClassVar

from tfconvert.converter.composites import fusion_registry
from tfconvert.converter.composites.composite import Composite
from tfconvert.converter.composites.fusion import Body, Fusion, misfit, new_results, note_of
from tfconvert.converter.composites.marks import API_IMPLEMENTS, IMPLEMENTS, KEPT, plain_name
from tfconvert.converter.control_flow.constructs import construct
from tfconvert.converter.ir.edit import erase, update_function_type
from tfconvert.converter.ir.symbol_table import callees_first, is_private, names
from tfconvert.converter.pipeline import refusals
from tfconvert.converter.pipeline.pass_result import PassResult
from tfconvert.converter.recurrence.scan import looks_recurrent
from tfconvert.converter.targets.litert.fusions.registry import FUSIONS
from tfconvert.schema.diagnostics import INEXACT, NOTE, WARNING, ConversionError, Diagnostic
from tfconvert.schema.dialects import tf
from tfconvert.schema.dialects.call_interfaces import KINDS, Kind, callees
from tfconvert.schema.dialects.func import FuncOp, functions_of
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.attributes import StringAttr
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import BlockArgument, Value

_ALLOW = "allow custom ops if your runtime registers an operator of this name"

# The maximum number of function names in a hint.
_SHOWN = 12


@dataclass(frozen=True, slots=True)
class PrepareCompositeFunctions:
    """Replaces the bodies of marked functions by fused operators."""

    allow_custom_ops: bool = False  # Whether custom operators may be created.
    composites: tuple[Fusion, ...] = ()  # The user's fusions, which come first.
    fuses_recurrent: bool = True  # Whether loops that are recurrent layers may be fused.
    name: ClassVar[str] = "prepare-composite-functions"

    def apply(self, module: ModuleOp) -> PassResult:
        """Rewrites the functions that fit; returns their number for each fusion, and why others have kept their bodies.

        Raises:
            ConversionError: A function doesn't fit and its fusion insists (`composite-misfit`, one diagnostic each),
                or one of the user's fusions is not a fusion (`wrong-option`) or is wrong (`bad-fusion`).
        """
        fusions = [
            each
            for each in fusion_registry.all_fusions(self.composites, FUSIONS)
            if self.fuses_recurrent or not each.is_recurrent
        ]
        functions = functions_of(module)
        applied: Counter[str] = Counter()
        problems: list[Diagnostic] = []
        notes: list[Diagnostic] = []
        reported: dict[tuple[str, str], None] = {}
        met: set[str] = set()
        for composite, mark in _marked(module, functions, [each for each in fusions if each.function]):
            fusion = fusion_registry.find(fusions, composite, mark)
            if fusion is None:
                problems += _python_calls(composite)
                continue
            met.add(fusion.name)
            finding = self._why_not(fusion, composite)
            if finding is None:
                _rewrite(composite, fusion)
                applied[fusion.name] += 1
                reported[fusion.name, note_of(fusion, composite)] = None
            elif finding.severity == NOTE:
                if not (fusion.is_recurrent and _is_loop(composite, functions)):
                    notes.append(finding)
                problems += _python_calls(composite)
            else:
                problems.append(finding)
        notes += [_unmet(each, functions) for each in self.composites if each in fusions and each.name not in met]
        if problems:
            raise ConversionError([*problems, *notes])
        notes += [Diagnostic(INEXACT, f"{name}: {note}", severity=WARNING) for name, note in reported if note]
        return PassResult(applied, notes)

    def _why_not(self, fusion: Fusion, composite: Composite) -> Diagnostic | None:
        """Returns the note or error why a function is not fused, `None` if it should be."""
        reason = misfit(fusion, composite)
        if reason is not None and fusion.on_misfit == "error":
            return _finding(composite, "composite-misfit", reason)
        if reason is not None:
            return _finding(composite, KEPT, reason, NOTE)
        if fusion.is_custom and not self.allow_custom_ops:
            return _finding(composite, KEPT, "it would be a custom op", NOTE, _ALLOW)
        return None


@dataclass(slots=True)
class _Uses:
    """The users of a function."""

    calls: list[Operation] = field(default_factory=list)
    runs_in_loop: bool = False
    is_run_otherwise: bool = False


def _marked(
    module: ModuleOp, functions: Mapping[str, FuncOp], by_name: Sequence[Fusion]
) -> Iterator[tuple[Composite, str]]:
    """Yields the marked functions that are in use, callers first, so that functions which a fusion erases are skipped.

    Args:
        module: The module.
        functions: Its functions.
        by_name: The fusions by function name, which need no mark.
    """
    uses = {name: _Uses(is_run_otherwise=not is_private(function)) for name, function in functions.items()}
    live = {name for op in module.ops if not isinstance(op, FuncOp) for name in names(op)}
    live |= {name for name, function in functions.items() if not is_private(function)}
    for function in reversed(callees_first(functions)):
        name = function.sym_name
        if name not in live or len(function.body.blocks) != 1:
            continue
        mark = _mark_of(function)
        if mark is None and is_private(function) and any(fusion.names(name) for fusion in by_name):
            mark = "", plain_name(name), {}
        if mark is not None:
            attribute, implemented, attributes = mark
            own = uses[name]
            known = own.calls, own.runs_in_loop, own.is_run_otherwise, partial(_passed_in, uses=uses)
            yield Composite(implemented, function, attributes, *known), attribute
        for op in function.body.walk():
            live.update(names(op))
            _note_uses(op, function, functions, uses)


def _note_uses(op: Operation, function: FuncOp, functions: Mapping[str, FuncOp], uses: Mapping[str, _Uses]) -> None:
    kind = KINDS.get(op.name)
    named = callees(op) if kind is not None else names(op)
    in_loop = kind is Kind.LOOP or op.parent_op() is not function or uses[function.sym_name].runs_in_loop
    for callee in named:
        entry = uses.get(callee)
        if entry is not None:
            entry.runs_in_loop |= in_loop
            if kind is Kind.CALL and _fits(op, functions[callee]):
                entry.calls.append(op)
            else:
                entry.is_run_otherwise = True


def _passed_in(argument: Value, uses: Mapping[str, _Uses]) -> Sequence[Value]:
    """Returns the operands that all callers of a function pass for an argument; empty if some are unknown."""
    if not isinstance(argument, BlockArgument) or not isinstance(function := argument.owner.parent_op(), FuncOp):
        return []
    own = uses[function.sym_name]
    return [] if own.is_run_otherwise else [call.operands[argument.index] for call in own.calls]


def _fits(call: Operation, function: FuncOp) -> bool:
    """Returns whether a call has as many operands and results as its callee; inlining reports it if it doesn't."""
    kind = function.function_type
    return len(call.operands) == len(kind.inputs) and len(call.results) == len(kind.results)


def _mark_of(function: FuncOp) -> tuple[str, str, dict[str, Attribute]] | None:
    """Returns a function's mark: the attribute's name, the interface's name, and the mark's other attributes."""
    for attribute in (IMPLEMENTS, API_IMPLEMENTS):
        value = function.attributes.get(attribute)
        if isinstance(value, StringAttr):
            return attribute, value.data, {}
        if attribute == IMPLEMENTS and isinstance(value, tf.FunctionAttr):
            return attribute, value.function.root, dict(value.arguments.data)
    return None


def _rewrite(composite: Composite, fusion: Fusion) -> None:
    """Replaces the function's body by the fused one."""
    function = composite.function
    block = function.body.block
    terminator = block.last_op
    assert terminator is not None
    owner = terminator.operands[0].owner if terminator.operands else terminator
    terminator.location = owner.location if isinstance(owner, Operation) else terminator.location
    terminator.set_operands(())
    for op in reversed(list(block.ops)[:-1]):
        erase(op)
    terminator.set_operands(new_results(fusion, composite, Body(terminator)))
    update_function_type(function)


def _is_loop(composite: Composite, functions: Mapping[str, FuncOp]) -> bool:
    """Returns whether there is a loop that `fuse-recurrent-loops` will fuse or report."""
    found = (construct(op, functions) for op in composite.function.walk() if KINDS.get(op.name) is Kind.LOOP)
    return any(loop is not None and looks_recurrent(loop) for loop in found)


def _finding(composite: Composite, code: str, reason: str, severity: str = "error", hint: str = "") -> Diagnostic:
    place = composite.place
    message = f"the function {composite.function_name!r} implements {composite.name!r}, but {reason}"
    return Diagnostic(code, message, "", place.node, str(place), hint, severity)


def _unmet(fusion: Fusion, functions: Mapping[str, FuncOp]) -> Diagnostic:
    message = f"no function in use implements {fusion.interface!r}, which the fusion {fusion.name!r} is for"
    if not fusion.function:
        return Diagnostic("unused-fusion", message, severity=NOTE)
    message = f"no function in use is named {fusion.function!r}, which the fusion {fusion.name!r} is for"
    known = sorted({plain_name(name) for name, function in functions.items() if is_private(function)})
    shown = f"{', '.join(known[:_SHOWN])}{', ...' if len(known) > _SHOWN else ''}" or "none"
    return Diagnostic("unused-fusion", message, hint=f"the model's functions are: {shown}", severity=NOTE)


def _python_calls(composite: Composite) -> Iterator[Diagnostic]:
    """Yields an error for a body that is only a placeholder for an operator but wasn't replaced."""
    for op in composite.function.walk():
        if op.name in refusals.PYTHON:
            yield refusals.python_function(op)
