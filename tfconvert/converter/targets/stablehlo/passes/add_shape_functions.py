"""Pass `add-shape-functions`: each function gets one that computes its results' sizes from its arguments'.

So callers know what to allocate, and how much a request costs, without running the model. It takes the open sizes of
the arguments in order, and the elements of arguments of few integers that sizes depend on; it returns the open sizes of
the results. A function whose sizes only running it tells gets none.

Before:

    func.func @main(%x: tensor<?x3xf32>, %y: tensor<?x3xf32>) -> tensor<?x3xf32> {
      %0 = "stablehlo.concatenate"(%x, %y) <{dimension = 0 : i64}>
        : (tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<?x3xf32>
      func.return %0 : tensor<?x3xf32>
    }

After:

    module {
      func.func @main(%x: tensor<?x3xf32>, %y: tensor<?x3xf32>) -> tensor<?x3xf32> {
        %0 = "stablehlo.concatenate"(%x, %y) <{dimension = 0 : i64}>
          : (tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<?x3xf32>
        func.return %0 : tensor<?x3xf32>
      }
      func.func @main__shape(%0: index, %1: index) -> index {
        %2 = arith.addi %0, %1 : index
        func.return %2 : index
      }
    }
"""

from __future__ import annotations

from collections import Counter
from typing import ClassVar

from tfconvert.converter.pipeline.pass_result import PassResult
from tfconvert.converter.targets.stablehlo.shape_functions import SUFFIX, Formulas, shape_function
from tfconvert.schema.dialects.func import defined_functions
from tfconvert.schema.ir.builtin import ModuleOp


class AddShapeFunctions:
    """Adds functions that compute sizes."""

    __slots__ = ()

    name: ClassVar[str] = "add-shape-functions"

    def apply(self, module: ModuleOp) -> PassResult:
        """Adds a function for each one that has none; returns how many."""
        functions = defined_functions(module)
        counts = Counter[str]()
        for name, function in functions.items():
            if name.endswith(SUFFIX) or f"{name}{SUFFIX}" in functions:
                continue
            added = shape_function(function, Formulas.of(function, functions))
            if added is not None:
                module.body.block.add_op(added)
                counts["shape functions"] += 1
        return PassResult(counts)
