"""Pass `canonicalize`: erases `tf` ops that do nothing at run time, and dead ops.

Before:

    func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = "tf.Identity"(%x) : (tensor<2xf32>) -> tensor<2xf32>
      %1 = "tf.StopGradient"(%0) : (tensor<2xf32>) -> tensor<2xf32>
      "tf.NoOp"() : () -> ()
      func.return %1 : tensor<2xf32>
    }

After:

    func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
      func.return %x : tensor<2xf32>
    }
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import ClassVar

from tfconvert.converter.pipeline.greedy_pass import GreedyPass
from tfconvert.converter.pipeline.pass_result import PassResult
from tfconvert.converter.rewrite.declarative import own_rule
from tfconvert.converter.rewrite.dsl import op, rest
from tfconvert.converter.rewrite.pattern import Failure, Pattern
from tfconvert.converter.rewrite.pattern_set import PatternSet
from tfconvert.converter.rewrite.rewriter import Rewriter
from tfconvert.schema.dialects import tf, types
from tfconvert.schema.dialects.func import functions_of
from tfconvert.schema.dialects.tf_traits import IDENTITIES
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation

# Identities, and ops that are identities on a device, where nothing is checked or printed.
_FORWARDING = (
    *sorted(IDENTITIES),
    "PlaceholderWithDefault",
    "CheckNumerics",
    "CheckNumericsV2",
    "DebugIdentity",
    "DebugIdentityV2",
    "DebugIdentityV3",
    "EnsureShape",
    "OptimizationBarrier",
    "Print",
    "XlaSharding",
)

# Ops whose operands' types are repeated elsewhere.
_EXACT = frozenset({"func.call", "tf_executor.fetch", "tf_executor.yield"})

_SUMMARIES = (
    "WriteAudioSummary",
    "WriteGraphSummary",
    "WriteHistogramSummary",
    "WriteImageSummary",
    "WriteRawProtoSummary",
    "WriteScalarSummary",
    "WriteSummary",
)

# Effects without use on a device. The official converter erases asserts, and refuses ops that print.
_ERASED = ("NoOp", "Assert", "PrintV2", *_SUMMARIES)

# Identities -> the patterns that forward them.
_OF_IDENTITIES: Mapping[str, str] = {f"tf.{name}": f"forward-{name}" for name in IDENTITIES}

_UNCHECKED = "infinities and NaN pass unseen"
_UNPRINTED = "nothing is printed when the model runs"

# Notes for the user where ops of these names were erased.
_NOTES: Mapping[str, str] = {
    "Assert": "Assert: the model stops at nothing, whatever its input",
    "CheckNumerics": f"CheckNumerics: {_UNCHECKED}",
    "CheckNumericsV2": f"CheckNumericsV2: {_UNCHECKED}",
    "Print": f"Print: {_UNPRINTED}",
    "PrintV2": f"PrintV2: {_UNPRINTED}",
    **{name: f"{name}: no summary is written" for name in _SUMMARIES},
}


class Canonicalize(GreedyPass):
    """Forwards identities and erases what is dead."""

    __slots__ = ()

    name: ClassVar[str] = "canonicalize"
    dialect: ClassVar[str] = "tf."
    has_side_effects = staticmethod(tf.has_side_effects)

    def own_patterns(self, module: ModuleOp, names: set[str]) -> PatternSet:
        return PATTERNS

    def apply(self, module: ModuleOp) -> PassResult:
        # A user's patterns may begin at identities.
        forwarded: Counter[str] = Counter() if self.patterns else _forward_identities(module)
        result = super().apply(module)
        return result._replace(counts=forwarded + result.counts)


def _forward_identities(module: ModuleOp) -> Counter[str]:
    """Does the commonest forwarding in one walk, without a worklist: SavedModels of JAX have hundreds of identities."""
    applied: Counter[str] = Counter()
    for function in functions_of(module).values():
        for each in function.body.walk():
            pattern = _OF_IDENTITIES.get(each.name)
            if pattern is None:
                continue
            if not all(result.is_unused for result in each.results):
                pairs = list(zip(each.results, each.operands, strict=False))
                if any(result.type is not operand.type for result, operand in pairs):
                    continue
                for result, operand in pairs:
                    result.replace_all_uses_with(operand)
                applied[pattern] += 1
            each.erase()
    return applied


def _match_forwarding(op: Operation) -> Failure | None:
    for result, operand in zip(op.results, op.operands, strict=False):
        if result.type != operand.type and result.element != operand.element:
            return Failure("it changes the element type")
        if result.type != operand.type and any(use.operation.name in _EXACT for use in (*result.uses, *operand.uses)):
            return Failure("a user requires a value of exactly this type")
    return None


def _forward(op: Operation, match: None, rewriter: Rewriter) -> None:
    """Replaces results by operands; a more specific result type moves to the operand."""
    for result, operand in zip(op.results, op.operands, strict=False):
        merged = types.most_specific(operand.type, result.type)
        if merged is not operand.type and isinstance(operand.owner, Operation):
            operand.type = merged
        rewriter.replace_value(result, operand)
    rewriter.erase(op)


PATTERNS = PatternSet(
    [
        *(
            Pattern(f"forward-{name}", f"tf.{name}", _match_forwarding, _forward, note=_NOTES.get(name, ""))
            for name in _FORWARDING
        ),
        Pattern("forward-cast", "tf.Cast", _match_forwarding, _forward),
        *(
            own_rule(f"erase-{name}", op(f"tf.{name}", rest("operands")), (), note=_NOTES.get(name, ""))
            for name in _ERASED
        ),
    ]
)
