"""Pass `stablehlo-to-iree-input`: rewrites the StableHLO ops that IREE does not compile to `tensor` and `linalg`.

These are ops on dynamic sizes. Sizes become numbers of type `index`, computed beside the program. Checks prevent reads
past the end of a tensor and, in programs with branches or loops, sizes that are too large for IREE.

Before:

    func.func @main(%x: tensor<?x4xf32>) -> tensor<?xf32> {
      %0 = "stablehlo.get_dimension_size"(%x) <{dimension = 0 : i64}> : (tensor<?x4xf32>) -> tensor<i32>
      %1 = stablehlo.constant dense<4> : tensor<i32>
      %2 = "stablehlo.multiply"(%0, %1) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      %3 = "stablehlo.reshape"(%2) : (tensor<i32>) -> tensor<1xi32>
      %4 = "stablehlo.dynamic_reshape"(%x, %3) : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<?xf32>
      func.return %4 : tensor<?xf32>
    }

After:

    func.func @main(%x: tensor<?x4xf32>) -> tensor<?xf32> {
      %0 = "tensor.collapse_shape"(%x) <{reassociation = [[0 : i64, 1 : i64]]}> : (tensor<?x4xf32>) -> tensor<?xf32>
      func.return %0 : tensor<?xf32>
    }
"""

from __future__ import annotations

from collections import Counter
from typing import ClassVar

from tfconvert.converter.pipeline.pass_result import PassResult
from tfconvert.converter.targets.iree.rewrites.control_flow import bound_sizes, keep_carried, late, mixed_up
from tfconvert.converter.targets.iree.rewrites.linalg_builder import LinalgBuilder, without_sign
from tfconvert.converter.targets.iree.rewrites.numbers import Context, Numbers
from tfconvert.converter.targets.iree.rewrites.rules import REFUSED, RULES
from tfconvert.converter.targets.iree.rewrites.shapes import number
from tfconvert.schema.diagnostics import WARNING, ConversionError, Diagnostic
from tfconvert.schema.dialects import stablehlo, upstream
from tfconvert.schema.dialects.func import FuncOp, defined_functions
from tfconvert.schema.dialects.locations import told_at
from tfconvert.schema.dialects.stablehlo import POLYMORPHIC
from tfconvert.schema.ir.attributes import StringAttr
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.traits import Trait
from tfconvert.schema.ir.values import Value


class StablehloToIreeInput:
    """Rewrites the ops that IREE does not compile."""

    __slots__ = ()

    name: ClassVar[str] = "stablehlo-to-iree-input"

    def apply(self, module: ModuleOp) -> PassResult:
        """Rewrites every function; returns how many ops of each name were replaced.

        Raises:
            ConversionError: IREE can't compile some of the ops (`unsupported-op`).
        """
        module.attributes.pop(POLYMORPHIC, None)
        applied: Counter[str] = Counter()
        warnings: list[Diagnostic] = []
        for function in defined_functions(module).values():
            is_bounded = bound_sizes(function)
            numbers = _rewrite(function, applied)
            _erase_dead(function)
            if not is_bounded or numbers.has_quotients:
                warnings += map(_warning, mixed_up(function))
        left = [
            Diagnostic("unsupported-op", f"{op.name} can't be compiled: {REFUSED[op.name]}", op.name, hint=_OTHERS)
            for op in module.walk()
            if op.name in REFUSED
        ]
        left += [
            Diagnostic(
                "unsupported-op", f"a check in a loop is unreliable in IREE: {_message(op)}", op.name, hint=_FIXED
            )
            for op in late(module)
        ]
        if left:
            raise ConversionError(list(dict.fromkeys(left)))
        return PassResult(applied, warnings)


_OTHERS = "another compiler may support it: write StableHLO for it (--target stablehlo)"
_VERIFIED = "compare the program with --verify, or fix the sizes that the loop works on (--input-shape, --batch)"
_FIXED = "fix the sizes that the loop works on (--input-shape, --batch), so that no check is needed"


def _warning(loop: Operation) -> Diagnostic:
    message = "the loop carries several tensors of dynamic sizes; IREE 3.13 may mistake one for another"
    text, hint = told_at(loop.location, message), _VERIFIED
    return Diagnostic("iree-loop", text, loop.name, severity=WARNING, hint=hint)


def _message(op: Operation) -> str:
    message = op.properties["msg"]
    assert isinstance(message, StringAttr)
    return message.data


def _rewrite(function: FuncOp, applied: Counter[str]) -> Numbers:
    """Rewrites a function; returns its numbers."""
    for op in list(function.walk()):
        if op.name == "stablehlo.while" and keep_carried(op):
            applied[op.name] += 1
    numbers = Numbers()
    gone: set[Operation] = set()
    for op in list(function.walk()):
        if op in gone:
            continue
        without_sign(op)
        rule = RULES.get(op.name)
        context = Context(LinalgBuilder(op), numbers)
        found = rule.rewrite(op, context) if rule is not None else number(op, context)
        if found is None:
            continue
        if rule is not None:
            applied[op.name] += 1
        for old, new in zip(op.results, (found,) if isinstance(found, Value) else found, strict=True):
            old.replace_all_uses_with(new)
        if op.regions:
            gone.update(list(op.walk()))
        op.erase()
    return numbers


def _erase_dead(function: FuncOp) -> None:
    for op in reversed(list(function.walk())):
        if op is not function and not _stays(op) and all(result.is_unused for result in op.results):
            op.erase()


def _stays(op: Operation) -> bool:
    return op.has_trait(Trait.TERMINATOR) or stablehlo.has_side_effects(op) or op.name in _EFFECTS


_EFFECTS = upstream.EFFECTS | {"func.call"}
