"""Pass `prepare-quantize`: replaces ops without an integer kernel by equivalent ops that have one.

Before:

    func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>, %z: tensor<4xf32>) -> tensor<4xf32> {
      %0 = "tfl.square"(%x) : (tensor<4xf32>) -> tensor<4xf32>
      %1 = "tfl.add_n"(%0, %y, %z) : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      func.return %1 : tensor<4xf32>
    }

After:

    func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>, %z: tensor<4xf32>) -> tensor<4xf32> {
      %0 = "tfl.mul"(%x, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      %1 = "tfl.add"(%0, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      %2 = "tfl.add"(%1, %z) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      func.return %2 : tensor<4xf32>
    }
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from tfconvert.converter.ir.edit import replace_op
from tfconvert.converter.pipeline.pass_result import PassResult
from tfconvert.converter.rewrite.rewriter import Rewriter
from tfconvert.converter.targets.litert.forms.builder import FormBuilder
from tfconvert.converter.targets.litert.forms.formulas import negated, squared, sums_of_two
from tfconvert.converter.targets.litert.quantize.candidates import is_float
from tfconvert.converter.targets.litert.quantize.exclusion import Exclusion
from tfconvert.schema.dialects import tfl
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.values import Value
from tfconvert.settings.quantization import INT8, Quantize

# The integer kernel of NEG ignores scales and zero points, and the lowest integer has no opposite.
_REPLACEMENTS: Mapping[str, Callable[[tfl.TFLOp, FormBuilder], Value]] = {
    "tfl.square": squared,
    "tfl.neg": negated,
    "tfl.add_n": sums_of_two,
}


@dataclass(frozen=True, slots=True)
class PrepareQuantize:
    """Replaces ops that have no kernel for integers."""

    quantize: Quantize = INT8  # How to quantize; excluded ops stay.
    name: ClassVar[str] = "prepare-quantize"

    def apply(self, module: ModuleOp) -> PassResult:
        """Rewrites every function; returns the number of replaced ops of each kind."""
        exclusion = Exclusion(self.quantize.exclude)
        counts: Counter[str] = Counter()
        for function in module.ops:
            if not isinstance(function, FuncOp) or function.is_declaration:
                continue
            for op in tuple(function.body.blocks[0].ops if function.body.blocks else ()):
                make = _REPLACEMENTS.get(op.name)
                if make is not None and is_float(op.results[0]) and not exclusion.excludes(op):
                    counts[op.name] += 1
                    assert isinstance(op, tfl.TFLOp)
                    rewriter = Rewriter()
                    rewriter.root = op
                    replace_op(op, make(op, FormBuilder(rewriter, is_fast=True)))
        return PassResult(counts)
