"""Pass `fuse-recurrent-loops`: replaces loops that are recurrent layers by LiteRT's operators.

A loop that computes an LSTM or a simple RNN for each step of a sequence becomes one `tfl.unidirectional_sequence_lstm`
or `tfl.unidirectional_sequence_rnn`, or a chain of these. Lists are already tensors. A loop that looks recurrent but
isn't certain to be one stays, and the report gives the reason. With `recurrent-by-speed`, loops that are faster than
the operator also stay.

Before:

    func.func @main(%x: tensor<3x1x2xf32>, %h: tensor<1x2xf32>) -> tensor<1x2xf32> {
      %zero = "tf.Const"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
      %0:3 = "tf.While"(%zero, %x, %h) <{cond = @cond, body = @body, is_stateless = true}>
          : (tensor<i32>, tensor<3x1x2xf32>, tensor<1x2xf32>) -> (tensor<i32>, tensor<3x1x2xf32>, tensor<1x2xf32>)
      func.return %0#2 : tensor<1x2xf32>
    }
    func.func private @cond(%i: tensor<i32>, %x: tensor<3x1x2xf32>, %h: tensor<1x2xf32>) -> tensor<i1> {
      %n = "tf.Const"() <{value = dense<3> : tensor<i32>}> : () -> tensor<i32>
      %0 = "tf.Less"(%i, %n) : (tensor<i32>, tensor<i32>) -> tensor<i1>
      func.return %0 : tensor<i1>
    }
    func.func private @body(%i: tensor<i32>, %x: tensor<3x1x2xf32>, %h: tensor<1x2xf32>)
        -> (tensor<i32>, tensor<3x1x2xf32>, tensor<1x2xf32>) {
      %w = "tf.Const"() <{value = dense<0.5> : tensor<2x2xf32>}> : () -> tensor<2x2xf32>
      %r = "tf.Const"() <{value = dense<0.25> : tensor<2x2xf32>}> : () -> tensor<2x2xf32>
      %zero = "tf.Const"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
      %one = "tf.Const"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
      %next = "tf.AddV2"(%i, %one) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      %0 = "tf.GatherV2"(%x, %i, %zero) : (tensor<3x1x2xf32>, tensor<i32>, tensor<i32>) -> tensor<1x2xf32>
      %1 = "tf.MatMul"(%0, %w) : (tensor<1x2xf32>, tensor<2x2xf32>) -> tensor<1x2xf32>
      %2 = "tf.MatMul"(%h, %r) : (tensor<1x2xf32>, tensor<2x2xf32>) -> tensor<1x2xf32>
      %3 = "tf.AddV2"(%1, %2) : (tensor<1x2xf32>, tensor<1x2xf32>) -> tensor<1x2xf32>
      %4 = "tf.Tanh"(%3) : (tensor<1x2xf32>) -> tensor<1x2xf32>
      func.return %next, %x, %4 : tensor<i32>, tensor<3x1x2xf32>, tensor<1x2xf32>
    }

After:

    func.func @main(%x: tensor<3x1x2xf32>, %h: tensor<1x2xf32>) -> tensor<1x2xf32> {
      %w = "tf.Const"() <{value = dense<0.5> : tensor<2x2xf32>}> : () -> tensor<2x2xf32>
      %r = "tf.Const"() <{value = dense<0.25> : tensor<2x2xf32>}> : () -> tensor<2x2xf32>
      %b = "tf.Const"() <{value = dense<0.0> : tensor<2xf32>}> : () -> tensor<2xf32>
      %0 = "tfl.unidirectional_sequence_rnn"(%x, %w, %r, %b, %h)
        <{fused_activation_function = "TANH", time_major = true}>
        : (tensor<3x1x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2xf32>, tensor<1x2xf32>) -> tensor<3x1x2xf32>
      %last = "tf.Const"() <{value = dense<[-1, 0, 0]> : tensor<3xi32>}> : () -> tensor<3xi32>
      %end = "tf.Const"() <{value = dense<0> : tensor<3xi32>}> : () -> tensor<3xi32>
      %steps = "tf.Const"() <{value = dense<1> : tensor<3xi32>}> : () -> tensor<3xi32>
      %1 = "tf.StridedSlice"(%0, %last, %end, %steps) <{begin_mask = 6 : i64, ellipsis_mask = 0 : i64,
        end_mask = 6 : i64, new_axis_mask = 0 : i64, shrink_axis_mask = 1 : i64}>
        : (tensor<3x1x2xf32>, tensor<3xi32>, tensor<3xi32>, tensor<3xi32>) -> tensor<1x2xf32>
      func.return %1 : tensor<1x2xf32>
    }
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from tfconvert.converter.control_flow.constructs import Construct, construct
from tfconvert.converter.ir import symbol_table
from tfconvert.converter.passes.shape_inference import ShapeInference
from tfconvert.converter.pipeline.pass_result import PassResult
from tfconvert.converter.recurrence.layers import LayerPlan, plan_of
from tfconvert.converter.recurrence.scan import Extents, looks_recurrent, scan_of
from tfconvert.converter.rewrite.pattern import Failure, attempt
from tfconvert.converter.targets.litert.recurrent import speed
from tfconvert.converter.targets.litert.recurrent.replacement import chosen, kept, read_sizes_before, replace_loop
from tfconvert.schema.diagnostics import Diagnostic
from tfconvert.schema.dialects.call_interfaces import KINDS, Kind
from tfconvert.schema.dialects.func import functions_of
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation


@dataclass(frozen=True, slots=True)
class FuseRecurrentLoops:
    """Replaces loops that are recurrent layers by operators."""

    recurrent_by_speed: bool = False  # Whether to replace only those that become faster.
    # What has the times of this model's layers: `host`, the path of a table, or of a directory for files; without it,
    # those of `speed.tsv` decide.
    tune: str | os.PathLike[str] = ""
    name: ClassVar[str] = "fuse-recurrent-loops"

    def apply(self, module: ModuleOp) -> PassResult:
        """Rewrites every function; returns the number of layers of each kind, and why loops have stayed."""
        if not self.recurrent_by_speed:
            return self._apply(module, lambda loop, plan: None)
        if not self.tune:
            return self._apply(module, lambda loop, plan: speed.choose(_sizes(plan)))
        from tfconvert.converter.targets.litert.tuning.layer_choice import LayerChoice
        from tfconvert.converter.targets.litert.tuning.tuner import Tuner

        with Tuner(self.tune) as tuner:
            choice = LayerChoice(module, tuner, FuseRecurrentLoops())

            def choose(loop: Operation, plan: LayerPlan) -> speed.Choice:
                return choice.choose([loop], _sizes(plan), is_open=_steps(plan) < 0)

            return self._apply(module, choose)._replace(tuning=tuner.report)

    def _apply(self, module: ModuleOp, choose: Callable[[Operation, LayerPlan], speed.Choice | None]) -> PassResult:
        functions = functions_of(module)
        extents = Extents(module)
        plans: list[LayerPlan] = []
        notes: list[Diagnostic] = []
        for function in functions.values():
            for op in function.body.walk():
                found = construct(op, functions) if KINDS.get(op.name) is Kind.LOOP else None
                if found is not None and looks_recurrent(found):
                    plan = attempt(_plan, found, extents)
                    if isinstance(plan, Failure):
                        notes.append(kept(found.op, plan.reason))
                        continue
                    choice = choose(found.op, plan)
                    if choice is None or choice.fuse:
                        plans.append(plan)
                    if choice is not None:
                        notes.append(chosen(found.op, choice))
        applied: Counter[str] = Counter()
        for plan in reversed(plans):  # A loop's reads of another's results are examined while the other still exists.
            applied.update(replace_loop(plan))
        for sequence in {layer.steps.value: None for plan in plans for layer in plan.layers if layer.steps}:
            read_sizes_before(sequence)
        if applied:
            symbol_table.erase_unreferenced(functions, symbol_table.names_outside(module))
            ShapeInference().apply(module)
        return PassResult(applied, notes)


def _plan(loop: Construct, extents: Extents) -> LayerPlan:
    return plan_of(scan_of(loop), extents)


def _steps(plan: LayerPlan) -> int:
    return next((layer.steps.length for layer in plan.layers if layer.steps), -1)


def _sizes(plan: LayerPlan) -> list[speed.Sizes]:
    return [speed.sizes_of(layer.cell, speed.LOOP, _steps(plan)) for layer in plan.layers]
