"""Pass `add-shape-functions`: adds functions that compute the sizes of results from the sizes of arguments.

Callers can then find the sizes of buffers and the cost of a request without running the model. A shape function takes
the dynamic sizes of the arguments in order, and the elements of small integer arguments that sizes depend on. It
returns the dynamic sizes of the results. A function with sizes that are known only after running it gets none.

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
