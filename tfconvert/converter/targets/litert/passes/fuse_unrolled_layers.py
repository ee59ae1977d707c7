"""Pass `fuse-unrolled-layers`: replaces unrolled recurrent layers by operators.

A framework that unrolls a layer repeats the same step with the same weights, for each step of a sequence of known
length. Two or more steps become one `tfl.unidirectional_sequence_lstm` or `tfl.unidirectional_sequence_rnn`. With
`recurrent-by-speed`, steps that are faster than the operator stay.

Before:

    func.func @main(%x: tensor<2x1x2xf32>, %h: tensor<1x2xf32>) -> tensor<1x2xf32> {
      %w = "tf.Const"() <{value = dense<0.5> : tensor<2x2xf32>}> : () -> tensor<2x2xf32>
      %r = "tf.Const"() <{value = dense<0.25> : tensor<2x2xf32>}> : () -> tensor<2x2xf32>
      %0:2 = "tf.Unpack"(%x) <{axis = 0 : i64}> : (tensor<2x1x2xf32>) -> (tensor<1x2xf32>, tensor<1x2xf32>)
      %1 = "tf.MatMul"(%0#0, %w) : (tensor<1x2xf32>, tensor<2x2xf32>) -> tensor<1x2xf32>
      %2 = "tf.MatMul"(%h, %r) : (tensor<1x2xf32>, tensor<2x2xf32>) -> tensor<1x2xf32>
      %3 = "tf.AddV2"(%1, %2) : (tensor<1x2xf32>, tensor<1x2xf32>) -> tensor<1x2xf32>
      %4 = "tf.Tanh"(%3) : (tensor<1x2xf32>) -> tensor<1x2xf32>
      %5 = "tf.MatMul"(%0#1, %w) : (tensor<1x2xf32>, tensor<2x2xf32>) -> tensor<1x2xf32>
      %6 = "tf.MatMul"(%4, %r) : (tensor<1x2xf32>, tensor<2x2xf32>) -> tensor<1x2xf32>
      %7 = "tf.AddV2"(%5, %6) : (tensor<1x2xf32>, tensor<1x2xf32>) -> tensor<1x2xf32>
      %8 = "tf.Tanh"(%7) : (tensor<1x2xf32>) -> tensor<1x2xf32>
      func.return %8 : tensor<1x2xf32>
    }

After:

    func.func @main(%x: tensor<2x1x2xf32>, %h: tensor<1x2xf32>) -> tensor<1x2xf32> {
      %w = "tf.Const"() <{value = dense<0.5> : tensor<2x2xf32>}> : () -> tensor<2x2xf32>
      %r = "tf.Const"() <{value = dense<0.25> : tensor<2x2xf32>}> : () -> tensor<2x2xf32>
      %b = "tf.Const"() <{value = dense<0.0> : tensor<2xf32>}> : () -> tensor<2xf32>
      %0 = "tfl.unidirectional_sequence_rnn"(%x, %w, %r, %b, %h)
        <{fused_activation_function = "TANH", time_major = true}>
        : (tensor<2x1x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2xf32>, tensor<1x2xf32>) -> tensor<2x1x2xf32>
      %last = "tf.Const"() <{value = dense<[-1, 0, 0]> : tensor<3xi32>}> : () -> tensor<3xi32>
      %end = "tf.Const"() <{value = dense<0> : tensor<3xi32>}> : () -> tensor<3xi32>
      %steps = "tf.Const"() <{value = dense<1> : tensor<3xi32>}> : () -> tensor<3xi32>
      %1 = "tf.StridedSlice"(%0, %last, %end, %steps) <{begin_mask = 6 : i64, ellipsis_mask = 0 : i64,
        end_mask = 6 : i64, new_axis_mask = 0 : i64, shrink_axis_mask = 1 : i64}>
        : (tensor<2x1x2xf32>, tensor<3xi32>, tensor<3xi32>, tensor<3xi32>) -> tensor<1x2xf32>
      func.return %1 : tensor<1x2xf32>
    }
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from tfconvert.converter.passes.shape_inference import ShapeInference
from tfconvert.converter.pipeline.pass_result import PassResult
from tfconvert.converter.recurrence.layers import Chain, chains_of, inner_ops, narrow_states
from tfconvert.converter.recurrence.scan import Extents
from tfconvert.converter.recurrence.unrolled import StepPlace
from tfconvert.converter.rewrite.pattern import Failure, attempt
from tfconvert.converter.targets.litert.recurrent import speed
from tfconvert.converter.targets.litert.recurrent.replacement import chosen, replace_chain
from tfconvert.schema.diagnostics import Diagnostic
from tfconvert.schema.dialects.func import functions_of
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value


@dataclass(frozen=True, slots=True)
class FuseUnrolledLayers:
    """Replaces the unrolled steps of recurrent layers by operators."""

    recurrent_by_speed: bool = False  # Whether to replace only those that become faster.
    # What has the times of this model's layers: `host`, the path of a table, or of a directory for files; without it,
    # those of `speed.tsv` decide.
    tune: str | os.PathLike[str] = ""
    name: ClassVar[str] = "fuse-unrolled-layers"

    def apply(self, module: ModuleOp) -> PassResult:
        """Rewrites every function; returns the number of layers of each kind."""
        if not self.recurrent_by_speed:
            return self._apply(module, lambda chain: None)
        if not self.tune:
            return self._apply(module, lambda chain: speed.choose([_sizes(chain)]))
        from tfconvert.converter.targets.litert.tuning.layer_choice import LayerChoice
        from tfconvert.converter.targets.litert.tuning.tuner import Tuner

        with Tuner(self.tune) as tuner:
            choice = LayerChoice(module, tuner, FuseUnrolledLayers())
            done = self._apply(module, lambda chain: choice.choose(_ops(chain), [_sizes(chain)], is_open=False))
            return done._replace(tuning=tuner.report)

    def _apply(self, module: ModuleOp, choose: Callable[[Chain], speed.Choice | None]) -> PassResult:
        applied: Counter[str] = Counter()
        blocks = [block for function in functions_of(module).values() for block in function.body.blocks]
        chains = [chain for block in blocks for chain in chains_of(block)]
        extents = Extents(module)
        narrow = [narrow_states(chain, extents) for chain in chains]
        places: dict[Value, StepPlace] = {}
        notes: list[Diagnostic] = []
        for chain, states in zip(chains, narrow, strict=True):
            first = chain.steps[0].output.owner
            assert isinstance(first, Operation)
            choice = choose(chain)
            if choice is not None and not choice.fuse:
                notes.append(chosen(first, choice))
                continue
            note = [] if choice is None else [chosen(first, choice)]
            layer = attempt(replace_chain, chain, places, states)
            if isinstance(layer, Failure):
                continue  # its steps are ordinary ops, which need no note
            applied[layer] += 1
            notes += note
        if applied:
            ShapeInference().apply(module)
        return PassResult(applied, notes)


def _sizes(chain: Chain) -> speed.Sizes:
    return speed.sizes_of(chain.steps[0], speed.UNROLLED, len(chain.steps))


def _ops(chain: Chain) -> set[Operation]:
    """Returns the ops of a layer's steps, and those that take its inputs from a sequence."""
    return inner_ops(chain) | {row.owner for row in chain.rows if isinstance(row.owner, Operation)}
