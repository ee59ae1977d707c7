"""Pass `separate-activations`: fused activations that LiteRT doesn't compute become operators.

The format has five fused activations and a field for one in many operators. LiteRT accepts some combinations that no
kernel computes, and refuses others. The operator's definition decides: the activation applies.

Before:

    func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = "tfl.add"(%x, %x) <{fused_activation_function = "TANH"}>
          : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      func.return %0 : tensor<2xf32>
    }

After:

    func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = "tfl.add"(%x, %x) <{fused_activation_function = "NONE"}>
          : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      %1 = "tfl.tanh"(%0) : (tensor<2xf32>) -> tensor<2xf32>
      func.return %1 : tensor<2xf32>
    }

Quantized integers can only be clamped: the file doesn't tell which numbers they are before another function.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

import numpy as np

from tfconvert.converter.ir.tf_builder import TFLBuilder
from tfconvert.converter.pipeline.pass_result import PassResult
from tfconvert.converter.targets.litert.forms.questions import ACTIVATION, activation
from tfconvert.schema.diagnostics import WARNING, ConversionError, Diagnostic
from tfconvert.schema.dialects import attributes, tfl, types
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.dialects.locations import place_of
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.values import Value
from tfconvert.schema.tflite.operators import computed_activations

CODE = "fused-activation"
"""Code of the warning about an activation that the runtime doesn't compute in the file as it was."""


class SeparateActivations:
    """Gives fused activations that aren't computed an operator of their own."""

    __slots__ = ()

    name: ClassVar[str] = "separate-activations"

    def apply(self, module: ModuleOp) -> PassResult:
        """Rewrites every function; returns the number of separated activations, with a warning for each kind.

        Raises:
            ConversionError: One can't be separated (`fused-activation`).
        """
        separated: dict[tuple[str, str], list[tfl.TFLOp]] = {}
        problems: list[Diagnostic] = []
        for function in module.ops:
            for op in list(function.walk()) if isinstance(function, FuncOp) else ():
                if not isinstance(op, tfl.TFLOp) or (kind := activation(op)) == "NONE":
                    continue
                computed = computed_activations(op.op_name)
                if computed is None or kind in computed:
                    continue
                if _separate(op, kind):
                    separated.setdefault((op.op_name, kind), []).append(op)
                else:
                    problems.append(_diagnostic([op], kind, _KEPT)._replace(hint=_HINT))
        if problems:
            raise ConversionError(problems)
        notes = [_diagnostic(ops, kind, _SEPARATED)._replace(severity=WARNING) for (_, kind), ops in separated.items()]
        return PassResult(Counter({"separated": sum(map(len, separated.values()))} if separated else {}), notes)


def _separate(op: tfl.TFLOp, kind: str) -> bool:
    """Moves an op's activation to an operator behind it; returns whether an operator computes it."""
    result = op.results[0]
    if kind not in _CLAMPS and result.element != types.F32:
        return False
    assert op.parent is not None
    op.properties[ACTIVATION] = attributes.string("NONE")
    uses = list(result.uses)
    builder = TFLBuilder(op.next_op)
    builder.location = op.location
    made = _FORMS[kind](builder, result)
    for use in uses:
        use.operation.set_operand(use.index, made)
    return True


def _operator(name: str) -> Callable[[TFLBuilder, Value], Value]:
    return lambda builder, value: builder.tfl(name, (value,), value.type)


def _sign_bit(builder: TFLBuilder, value: Value) -> Value:
    """Returns 1 where the sign is set, as for -0.0, else 0."""
    shape = value.shape
    bits = builder.tfl("bitcast", (value,), types.tensor(types.I32, shape))
    zero = builder.constant(np.zeros((), np.int32))
    is_negative = builder.tfl("less", (bits, zero), types.tensor(types.I1, shape))
    return builder.tfl("cast", (is_negative,), value.type)


_CLAMPS = frozenset(("RELU", "RELU6", "RELU_N1_TO_1"))
_FORMS: Mapping[str, Callable[[TFLBuilder, Value], Value]] = {
    **{kind: _operator(kind.lower()) for kind in (*_CLAMPS, "TANH")},
    "SIGN_BIT": _sign_bit,
}


_SEPARATED = "the result applies it, in an operator of its own, and so has other numbers than the original in LiteRT"
_KEPT = "it can't be separated from integers"
_HINT = "write the activation as an operator of its own, whose operand has a scale"


def _diagnostic(ops: Sequence[tfl.TFLOp], kind: str, outcome: str) -> Diagnostic:
    first, *others = ops
    name = first.op_name.upper()
    calls = f"{name} and {len(others)} more" if others else name
    message = f"{calls}: LiteRT runs {name} without the fused activation {kind}, or refuses it; {outcome}"
    return Diagnostic(CODE, message, first.name, place_of(first.location).node)
