"""Pass `stablehlo-to-tf`: replaces StableHLO ops by `tf` ops.

Before:

    func.func @main(%x: tensor<2x3xf32>, %b: tensor<3xf32>) -> tensor<2x3xf32> {
      %0 = "stablehlo.broadcast_in_dim"(%b) <{broadcast_dimensions = array<i64: 1>}>
          : (tensor<3xf32>) -> tensor<2x3xf32>
      %1 = "stablehlo.add"(%x, %0) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
      %2 = "stablehlo.tanh"(%1) : (tensor<2x3xf32>) -> tensor<2x3xf32>
      func.return %2 : tensor<2x3xf32>
    }

After:

    func.func @main(%x: tensor<2x3xf32>, %b: tensor<3xf32>) -> tensor<2x3xf32> {
      %0 = "tf.AddV2"(%x, %b) : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
      %1 = "tf.Tanh"(%0) : (tensor<2x3xf32>) -> tensor<2x3xf32>
      func.return %1 : tensor<2x3xf32>
    }

Options:
    target: For `litert`, ops without a form in TensorFlow are refused; other targets keep them.
"""

from __future__ import annotations

from typing import ClassVar

from tfconvert.converter.from_stablehlo.raising import Raising, unsupported
from tfconvert.converter.ir.symbol_table import erase_unreferenced, names_outside
from tfconvert.converter.pipeline.pass_result import PassResult
from tfconvert.schema.dialects.func import defined_functions, functions_of
from tfconvert.schema.dialects.stablehlo import POLYMORPHISM, POSITIVE_SIZES
from tfconvert.schema.dialects.stablehlo_properties import integer_of
from tfconvert.schema.ir.builtin import ModuleOp


class StablehloToTf:
    """Turns StableHLO into `tf` ops."""

    __slots__ = ("target",)

    name: ClassVar[str] = "stablehlo-to-tf"

    def __init__(self, target: str = "litert") -> None:
        self.target = target

    def apply(self, module: ModuleOp) -> PassResult:
        """Rewrites every function; returns the number of replaced ops by name.

        Raises:
            ConversionError: Ops have no form, and the target doesn't have them either (`unsupported-op`).
        """
        is_of_jax = module.attributes.pop(POSITIVE_SIZES, None) is not None
        raising = Raising(1 if is_of_jax else integer_of(module.attributes.get(POLYMORPHISM)))
        raising.run(defined_functions(module))
        if raising.left and self.target == "litert":
            raise unsupported(raising.left)
        erase_unreferenced(functions_of(module), names_outside(module))
        return PassResult(raising.applied)
