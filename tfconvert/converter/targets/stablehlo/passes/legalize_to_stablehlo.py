"""Pass `legalize-to-stablehlo`: `tf` ops become StableHLO; branches and loops get regions.

Static sizes are attributes. Dynamic sizes are operands, computed from the sizes of inputs.

Before:

    func.func @serve(%x: tensor<?x3xf32>) -> tensor<?xf32> {
      %0 = "tf.Const"() <{value = dense<1> : tensor<1xi32>}> : () -> tensor<1xi32>
      %1 = "tf.Tanh"(%x) : (tensor<?x3xf32>) -> tensor<?x3xf32>
      %2 = "tf.Sum"(%1, %0) <{keep_dims = false}> : (tensor<?x3xf32>, tensor<1xi32>) -> tensor<?xf32>
      func.return %2 : tensor<?xf32>
    }

After:

    module attributes {jax.uses_shape_polymorphism = true} {
      func.func @main(%x: tensor<?x3xf32>) -> tensor<?xf32> {
        %0 = "stablehlo.tanh"(%x) : (tensor<?x3xf32>) -> tensor<?x3xf32>
        %1 = stablehlo.constant dense<0.0> : tensor<f32>
        %2 = "stablehlo.reduce"(%0, %1) <{dimensions = array<i64: 1>}> ({
        ^bb0(%3: tensor<f32>, %4: tensor<f32>):
          %5 = "stablehlo.add"(%3, %4) : (tensor<f32>, tensor<f32>) -> tensor<f32>
          "stablehlo.return"(%5) : (tensor<f32>) -> ()
        }) : (tensor<?x3xf32>, tensor<f32>) -> tensor<?xf32>
        func.return %2 : tensor<?xf32>
      }
    }

A single exported function is named `main`; if there are several, each has the name of its signature.

Options:
    target: For `iree`, assertions check that indices are in range; XLA has no assertions on values.
    check_indices: Whether to add these assertions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from tfconvert.converter.ir import symbol_table
from tfconvert.converter.ir.edit import erase, update_function_type
from tfconvert.converter.pipeline.pass_result import PassResult
from tfconvert.converter.targets.stablehlo.legalize.legalization import Legalization
from tfconvert.schema.diagnostics import INEXACT, NOTE, Diagnostic
from tfconvert.schema.dialects.func import INITIALIZER, FuncOp, defined_functions
from tfconvert.schema.dialects.stablehlo import POLYMORPHIC
from tfconvert.schema.dialects.tf_saved_model import EXPORTED_NAMES
from tfconvert.schema.ir.attributes import TRUE, ArrayAttr, StringAttr
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.types import TensorType

MAIN = "main"

RANDOM = frozenset(
    {
        "tf.Multinomial",
        "tf.ParameterizedTruncatedNormal",
        "tf.RandomShuffle",
        "tf.RandomStandardNormal",
        "tf.RandomUniform",
        "tf.RandomUniformInt",
        "tf.TruncatedNormal",
    }
)
"""Ops that use the engine's random numbers, regardless of their seeds."""

_GLOBAL = "ml_program.global"


class LegalizeToStablehlo:
    """Turns `tf` ops into StableHLO."""

    __slots__ = ("check_indices", "target")

    name: ClassVar[str] = "legalize-to-stablehlo"

    def __init__(self, target: str = "stablehlo", check_indices: bool = True) -> None:
        self.target = target
        self.check_indices = check_indices

    def apply(self, module: ModuleOp) -> PassResult:
        """Rewrites every function; returns the number of replaced ops by name."""
        legalization = Legalization(module, checks_indices=self.check_indices and self.target == "iree")
        functions = defined_functions(module)
        legalization.run(functions)
        for op in tuple(module.ops):
            is_kept = op.body.blocks if isinstance(op, FuncOp) else op.name == _GLOBAL
            if not is_kept:
                erase(op)
        left = [function for function in functions.values() if function.parent is not None]
        for function in left:
            update_function_type(function)
        public = [function for function in left if not symbol_table.is_private(function)]
        _name([function for function in public if INITIALIZER not in function.attributes])
        if any(_has_open_sizes(function) for function in left):
            module.attributes[POLYMORPHIC] = TRUE
        return PassResult(legalization.applied, _notes(legalization.applied))


def _notes(applied: Mapping[str, int]) -> list[Diagnostic]:
    """Returns a note for each kind of op with other random numbers than in TensorFlow."""
    message = "the random numbers are the engine's own, not those that TensorFlow makes of its seeds"
    drawn = [name.removeprefix("tf.") for name in applied if name in RANDOM]
    return [Diagnostic(INEXACT, f"{name}: {message}", f"tf.{name}", severity=NOTE) for name in drawn]


def _name(entries: Sequence[FuncOp]) -> None:
    if len(entries) == 1:
        entries[0].sym_name = MAIN
        return
    for function in entries:
        names = function.attributes.get(EXPORTED_NAMES)
        if isinstance(names, ArrayAttr) and names.data and isinstance(names.data[0], StringAttr):
            function.sym_name = names.data[0].data


def _has_open_sizes(function: FuncOp) -> bool:
    return not all(isinstance(arg.type, TensorType) and arg.type.is_static for arg in function.body.block.args)
