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
from tfconvert.converter.ir.interface import entry_functions
from tfconvert.converter.ir.symbol_table import PRIVATE, erase_unreferenced, names_outside
from tfconvert.converter.pipeline.pass_result import PassResult
from tfconvert.schema.dialects.func import INITIALIZER, defined_functions, functions_of
from tfconvert.schema.dialects.stablehlo import POSITIVE_SIZES, is_of_jax
from tfconvert.schema.dialects.tf_saved_model import EXPORTED_NAMES
from tfconvert.schema.ir.builtin import ModuleOp


def _hide_functions(module: ModuleOp) -> None:
    """Erases functions that are neither exported nor used: JAX leaves comparators behind, which are not private."""
    functions = functions_of(module)
    entries = entry_functions(module)
    for function in functions.values():
        if function not in entries and not _EXPORTED & function.attributes.keys():
            function.sym_visibility = PRIVATE
    erase_unreferenced(functions, names_outside(module))


# Attributes of functions that are called from outside.
_EXPORTED = frozenset({EXPORTED_NAMES, INITIALIZER})


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
        has_positive_sizes = module.attributes.pop(POSITIVE_SIZES, None) is not None or is_of_jax(module)
        _hide_functions(module)
        raising = Raising(int(has_positive_sizes))
        raising.run(defined_functions(module))
        if raising.left and self.target == "litert":
            raise unsupported(raising.left)
        erase_unreferenced(functions_of(module), names_outside(module))
        return PassResult(raising.applied)
