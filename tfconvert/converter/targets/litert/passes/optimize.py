"""Pass `optimize`: fewer and faster LiteRT ops for the same values.

Before:

    func.func @main(%x: tensor<1x2x2x1xf32>) -> tensor<1x2x2x1xf32> {
      %f = "tfl.pseudo_const"() <{value = dense<2.0> : tensor<1x1x1x1xf32>}> : () -> tensor<1x1x1x1xf32>
      %b = "tfl.pseudo_const"() <{value = dense<0.0> : tensor<1xf32>}> : () -> tensor<1xf32>
      %c = "tfl.pseudo_const"() <{value = dense<3.0> : tensor<1xf32>}> : () -> tensor<1xf32>
      %0 = "tfl.conv_2d"(%x, %f, %b) <{padding = "SAME", stride_w = 1 : i32, stride_h = 1 : i32}>
        : (tensor<1x2x2x1xf32>, tensor<1x1x1x1xf32>, tensor<1xf32>) -> tensor<1x2x2x1xf32>
      %1 = "tfl.mul"(%0, %c) : (tensor<1x2x2x1xf32>, tensor<1xf32>) -> tensor<1x2x2x1xf32>
      %2 = "tfl.add"(%1, %c) : (tensor<1x2x2x1xf32>, tensor<1xf32>) -> tensor<1x2x2x1xf32>
      %3 = "tfl.relu6"(%2) : (tensor<1x2x2x1xf32>) -> tensor<1x2x2x1xf32>
      func.return %3 : tensor<1x2x2x1xf32>
    }

After:

    func.func @main(%x: tensor<1x2x2x1xf32>) -> tensor<1x2x2x1xf32> {
      %f = "tfl.pseudo_const"() <{value = dense<6.0> : tensor<1x1x1x1xf32>}> : () -> tensor<1x1x1x1xf32>
      %b = "tfl.pseudo_const"() <{value = dense<3.0> : tensor<1xf32>}> : () -> tensor<1xf32>
      %0 = "tfl.conv_2d"(%x, %f, %b)
        <{padding = "SAME", stride_w = 1 : i32, stride_h = 1 : i32, fused_activation_function = "RELU6"}>
        : (tensor<1x2x2x1xf32>, tensor<1x1x1x1xf32>, tensor<1xf32>) -> tensor<1x2x2x1xf32>
      func.return %0 : tensor<1x2x2x1xf32>
    }
"""

from __future__ import annotations

from collections import Counter
from typing import Any, ClassVar

from tfconvert.converter.ir.edit import update_function_types, walk
from tfconvert.converter.pipeline.pass_result import PassResult
from tfconvert.converter.rewrite import user_patterns
from tfconvert.converter.rewrite.driver import rewrite_greedily
from tfconvert.converter.rewrite.pattern import Pattern
from tfconvert.converter.rewrite.watched import unused
from tfconvert.converter.targets.litert.optimize import registry
from tfconvert.schema.dialects import tfl
from tfconvert.schema.dialects.func import functions_of
from tfconvert.schema.ir.builtin import ModuleOp


class Optimize:
    """Applies every pattern of `tfconvert.converter.targets.litert.optimize` until none matches.

    Args:
        patterns: More patterns, the user's.
        allow_custom_ops: Whether these may make custom operators.
    """

    __slots__ = ("allow_custom_ops", "patterns")

    name: ClassVar[str] = "optimize"

    def __init__(self, patterns: tuple[Pattern[Any], ...] = (), allow_custom_ops: bool = False) -> None:
        self.patterns = patterns
        self.allow_custom_ops = allow_custom_ops

    def apply(self, module: ModuleOp) -> PassResult:
        """Rewrites every function; returns how often each pattern was applied."""
        applied: Counter[str] = Counter()
        watched = user_patterns.watched(self.patterns, "tfl.", module, allow_custom_ops=self.allow_custom_ops)
        functions = list(functions_of(module).values())
        names = {op.name for op in walk(module)}
        while True:
            known = registry.patterns_for(names)
            patterns = user_patterns.joined(known, [each.pattern for each in watched])
            before = applied.total()
            for function in functions:
                applied += rewrite_greedily(function.body, patterns, tfl.has_side_effects)
            if applied.total() == before:
                break
            # What was made may need patterns that nothing before did.
            names.update(op.name for op in walk(module))
            if registry.patterns_for(names) is known:
                break
        if applied:
            # A result may be a constant now, whose type says more.
            update_function_types(functions)
        return PassResult(applied, [*patterns.notes(applied), *unused(watched, applied)], "fused and folded")
