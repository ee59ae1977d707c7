"""Pass `outline-composites`: writes subgraphs that accelerators execute as one as `odml.*` composites.

A composite has a name, attributes, and a function that computes the same, which runtimes without an operator for the
name execute. The function has the operators that were there. Recognised are attention, layer norms, group norms, RMS
norms, rotary embeddings and gated linear units, in floats.

Before:

    func.func @main(%a: tensor<1x4x8xf32>, %b: tensor<1x4x8xf32>) -> tensor<1x4x8xf32> {
      %0 = "tfl.logistic"(%a) : (tensor<1x4x8xf32>) -> tensor<1x4x8xf32>
      %1 = "tfl.mul"(%a, %0) <{fused_activation_function = "NONE"}>
          : (tensor<1x4x8xf32>, tensor<1x4x8xf32>) -> tensor<1x4x8xf32>
      %2 = "tfl.mul"(%1, %b) <{fused_activation_function = "NONE"}>
          : (tensor<1x4x8xf32>, tensor<1x4x8xf32>) -> tensor<1x4x8xf32>
      func.return %2 : tensor<1x4x8xf32>
    }

After:

    func.func @main(%a: tensor<1x4x8xf32>, %b: tensor<1x4x8xf32>) -> tensor<1x4x8xf32> {
      %0 = "tfl.stablehlo_composite"(%a, %b) <{name = "odml.swiglu", decomposition = @odml.swiglu,
          composite_attributes = #tfl<const_bytes : "0x00000100002401">, composite_attributes_format = "FLEXBUFFERS",
          version = 1 : i32}> : (tensor<1x4x8xf32>, tensor<1x4x8xf32>) -> tensor<1x4x8xf32>
      func.return %0 : tensor<1x4x8xf32>
    }
    func.func private @odml.swiglu(%a: tensor<1x4x8xf32>, %b: tensor<1x4x8xf32>) -> tensor<1x4x8xf32> {
      %0 = "tfl.logistic"(%a) : (tensor<1x4x8xf32>) -> tensor<1x4x8xf32>
      %1 = "tfl.mul"(%a, %0) <{fused_activation_function = "NONE"}>
          : (tensor<1x4x8xf32>, tensor<1x4x8xf32>) -> tensor<1x4x8xf32>
      %2 = "tfl.mul"(%1, %b) <{fused_activation_function = "NONE"}>
          : (tensor<1x4x8xf32>, tensor<1x4x8xf32>) -> tensor<1x4x8xf32>
      func.return %2 : tensor<1x4x8xf32>
    }
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import ClassVar

from tfconvert.converter.ir.symbol_table import FunctionMaker, names
from tfconvert.converter.pipeline.pass_result import NOTHING_DONE, PassResult
from tfconvert.converter.targets.litert.odml import attention, elementwise, norms
from tfconvert.converter.targets.litert.odml.outline import Recognized, outline
from tfconvert.schema.dialects import tfl_file
from tfconvert.schema.dialects.func import FuncOp, defined_functions
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation

_RECOGNIZERS: Sequence[Callable[[Operation], Recognized | None]] = (
    attention.recognize,
    elementwise.recognize_rope,
    norms.recognize,
    elementwise.recognize_swiglu,
)


class OutlineComposites:
    """Replaces subgraphs that are recognised by composites."""

    __slots__ = ()

    name: ClassVar[str] = "outline-composites"

    def apply(self, module: ModuleOp) -> PassResult:
        """Rewrites every function; returns the numbers of composites."""
        if tfl_file.is_image(module):
            return NOTHING_DONE
        maker = FunctionMaker(module)
        counts: Counter[str] = Counter()
        outlined = {name for op in module.walk() if op.name == "tfl.stablehlo_composite" for name in names(op)}
        for function in tuple(defined_functions(module).values()):
            if function.sym_name not in outlined:
                _rewrite(function, maker, counts)
        return PassResult.of(counts)._replace(heading="composites")


def _rewrite(function: FuncOp, maker: FunctionMaker, counts: Counter[str]) -> None:
    for recognize in _RECOGNIZERS:
        for op in tuple(function.body.block.ops):
            # What an op was a part of may be in a composite by now.
            found = recognize(op) if op.parent is not None else None
            if found is not None and outline(found, maker):
                counts[found.kind] += 1
