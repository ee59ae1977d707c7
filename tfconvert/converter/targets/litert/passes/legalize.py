"""Pass `legalize`: lowers `tf` ops to `tfl` ops, which LiteRT's kernels compute.

Before:

    func.func @main(%x: tensor<2x3xf32>) -> tensor<3xf32> {
      %0 = "tf.Const"() <{value = dense<0> : tensor<1xi32>}> : () -> tensor<1xi32>
      %1 = "tf.Relu"(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32>
      %2 = "tf.Sum"(%1, %0) <{keep_dims = false}> : (tensor<2x3xf32>, tensor<1xi32>) -> tensor<3xf32>
      func.return %2 : tensor<3xf32>
    }

After:

    func.func @main(%x: tensor<2x3xf32>) -> tensor<3xf32> {
      %0 = "tfl.pseudo_const"() <{value = dense<0> : tensor<1xi32>}> : () -> tensor<1xi32>
      %1 = "tfl.relu"(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32>
      %2 = "tfl.sum"(%1, %0) <{keep_dims = false}> : (tensor<2x3xf32>, tensor<1xi32>) -> tensor<3xf32>
      func.return %2 : tensor<3xf32>
    }

Ops that no pattern matches become flex ops or custom ops, where the user allows them, or are reported together.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, ClassVar

import numpy as np

from tfconvert.converter.ir.edit import erase, replace_op, update_function_type
from tfconvert.converter.pipeline.pass_result import PassResult
from tfconvert.converter.rewrite.driver import rewrite_greedily
from tfconvert.converter.rewrite.pattern_set import PatternSet
from tfconvert.converter.targets.litert.legalize import elementwise, legalizations
from tfconvert.schema.diagnostics import ConversionError, Diagnostic
from tfconvert.schema.dialects import tf, tfl, types
from tfconvert.schema.dialects.func import FuncOp, functions_of
from tfconvert.schema.ir.builder import OpBuilder
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation

_CONSTANT = "tf.Const"

_ERASED = frozenset({"tf.NoOp", "tf.Assert"})


class Legalize:
    """Lowers `tf` ops to `tfl` ops.

    Args:
        allow_custom_ops: Whether an op that LiteRT doesn't have becomes a custom op, which the app must register,
            instead of an error.
        allow_flex: Whether an op that LiteRT doesn't have becomes a flex op, which TensorFlow's own kernel computes in
            an app that links the Flex delegate. Flex ops are preferred to custom ops.
        flex_ops: Names, or patterns of names, of additional ops that the delegate runs.
    """

    __slots__ = ("allow_custom_ops", "allow_flex", "flex_ops")

    name: ClassVar[str] = "legalize"

    def __init__(
        self, allow_custom_ops: bool = False, allow_flex: bool = False, flex_ops: tuple[str, ...] = ()
    ) -> None:
        self.allow_custom_ops = allow_custom_ops
        self.allow_flex = allow_flex
        self.flex_ops = flex_ops

    def apply(self, module: ModuleOp) -> PassResult:
        """Rewrites every function; returns the number of applications of each pattern.

        Raises:
            ConversionError: Some ops have no counterpart (`unsupported-op`, one diagnostic for each kind of op); a
                constant never becomes a custom op.
        """
        applied: Counter[str] = Counter()
        phases, left, notes = self._rewrite(module, applied)
        notes += [note for patterns in phases for note in patterns.notes(applied)]
        if left and self.allow_flex:
            left, told = self._to_flex(left, phases[-1])
            notes += told
        refused = [op for op in left if not self.allow_custom_ops or op.name == _CONSTANT]
        if refused:
            raise self._unsupported(refused, phases[-1])
        for op in left:
            _customize(op)
        return PassResult(applied, notes)

    def _to_flex(self, ops: list[Operation], patterns: PatternSet) -> tuple[list[Operation], list[Diagnostic]]:
        """Replaces the ops that can become flex ops; returns the others, and notes."""
        # Few models need them.
        from tfconvert.converter.targets.litert.flex import conversion
        from tfconvert.converter.targets.litert.legalize.left_over import by_reason

        taken = [op for op in ops if isinstance(op, tf.TFOp) and conversion.why_not(op, self.flex_ops) is None]
        if not taken:
            return ops, []
        told = conversion.notes(by_reason(taken, patterns))
        for op in taken:
            replace_op(op, OpBuilder(op).insert(conversion.flex_op(op)).results)
        done = set(taken)
        return [op for op in ops if op not in done], told

    def _unsupported(self, ops: list[Operation], patterns: PatternSet) -> ConversionError:
        """Returns the error about the remaining ops."""
        from tfconvert.converter.targets.litert.legalize.left_over import unsupported  # only where the conversion fails

        return unsupported(ops, patterns, self.flex_ops if self.allow_flex else None)

    def _rewrite(
        self, module: ModuleOp, applied: Counter[str]
    ) -> tuple[legalizations.Phases, list[Operation], list[Diagnostic]]:
        """Applies patterns; returns the needed ones, the remaining ops, and notes about float types."""
        notes: list[Diagnostic] = []
        functions = list(functions_of(module).values())
        names, constants = _names_with_constants(module)
        if constants:
            applied[elementwise.CONSTANT.pattern_name] = constants
        is_first = True
        while True:
            phases = legalizations.phases_for(names)
            # What was lowered may have become what a pattern needs, but not before anything was.
            needed = [each for each in phases if not (is_first and each.gates and each.gates.isdisjoint(names))]
            is_first = False
            for function in functions:
                for patterns in needed:
                    applied += rewrite_greedily(function.body, patterns, _has_side_effects)
            left = [op for function in functions for op in _left_over(function)]
            names.update(op.name for op in left)
            if legalizations.phases_for(names) is not phases:
                continue
            told = self._compute_as_floats(functions, {op.name for op in left}, phases[-1], applied) if left else None
            if told is None:
                break
            notes = told
        for function in functions:
            update_function_type(function)
        return phases, left, notes

    def _compute_as_floats(
        self, functions: list[FuncOp], names: set[str], declined_by: PatternSet, applied: Counter[str]
    ) -> list[Diagnostic] | None:
        """Rewrites ops that remain only because of their element type; returns notes, or `None`."""
        # Few models have remaining ops, and TensorFlow's own kernels compute doubles.
        from tfconvert.converter.targets.litert.legalize import other_floats

        patterns = other_floats.patterns(names, declined_by, takes_doubles=not self.allow_flex)
        done: Counter[str] = Counter()
        for function in functions:
            done += rewrite_greedily(function.body, patterns, _has_side_effects)
        applied += done
        return other_floats.notes(applied) if done else None


def _names_with_constants(module: ModuleOp) -> tuple[set[str], int]:
    """Returns the names of all ops; lowers constants on the way, which are the most frequent ops, and counts them."""
    names: set[str] = set()
    count = 0
    for op in module.walk():
        names.add(op.name)
        if op.name == _CONSTANT and op.results[0].first_use is not None and elementwise.lower_constant(op):
            count += 1
    return names, count


def _has_side_effects(op: Operation) -> bool:
    return tf.has_side_effects(op) if isinstance(op, tf.TFOp) else tfl.has_side_effects(op)


def _left_over(function: FuncOp) -> list[Operation]:
    """Erases ops that are useless on a device; returns the other remaining `tf` ops."""
    left = []
    for op in reversed([op for op in function.walk() if op.name.startswith("tf.")]):
        if op.name in _ERASED:
            erase(op)
        else:
            left.append(op)
    left.reverse()
    return left


def _customize(op: Operation) -> None:
    """Replaces an op by a custom op of its name, whose options are its attributes as a flexbuffer map."""
    assert isinstance(op, tf.TFOp)
    from flatbuffers import flexbuffers  # few models have ops without a builtin

    attributes = {name: _plain(tf.python_value(value)) for name, value in sorted(op.properties.items())}
    options = flexbuffers.Dumps({name: value for name, value in attributes.items() if value is not None})
    new = tfl.custom(op.op_name, bytes(options), op.operands, op.result_types)
    replace_op(op, OpBuilder(op).insert(new).results)


def _plain(value: Any) -> Any:
    """Returns an attribute's value for a flexbuffer; element types are numbers."""
    if isinstance(value, np.dtype):
        return types.from_dtype(value).number
    if isinstance(value, np.ndarray):
        return value.tolist()
    return [_plain(item) for item in value] if isinstance(value, tuple) else value
