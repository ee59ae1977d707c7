"""Pass `complex-to-parts`: computes with the real and imaginary parts of complex numbers.

Before:

    func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
      %0 = "tf.Complex"(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xcomplex<f32>>
      %1 = "tf.Conj"(%0) : (tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>>
      %2 = "tf.Imag"(%1) : (tensor<4xcomplex<f32>>) -> tensor<4xf32>
      func.return %2 : tensor<4xf32>
    }

After:

    func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
      %0 = "tf.Neg"(%y) : (tensor<4xf32>) -> tensor<4xf32>
      func.return %0 : tensor<4xf32>
    }

LiteRT hardly computes with complex numbers, and making them is slow. Those that remain are results, or are passed to
control flow.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import ClassVar

from tfconvert.converter.ir.edit import erase
from tfconvert.converter.ir.tensors import EmittedTensor, expand
from tfconvert.converter.ir.tf_builder import TFBuilder
from tfconvert.converter.pipeline.pass_result import PassResult
from tfconvert.converter.rewrite.decompose import failure_of
from tfconvert.converter.targets.litert.legalize.decomposed import KINDS
from tfconvert.ops.complex_numbers import FORMULAS, KNOWN, LINEAR, MOVING, complex_of, is_made, parts, unsigned_zero
from tfconvert.ops.declaration import Formula
from tfconvert.ops.registry import decompositions
from tfconvert.schema.dialects import tf, tf_effects, types
from tfconvert.schema.dialects.func import functions_of
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import ComplexType
from tfconvert.schema.ir.values import OpResult, Value


class ComplexToParts:
    """Computes with the parts of complex numbers."""

    __slots__ = ()

    name: ClassVar[str] = "complex-to-parts"

    def apply(self, module: ModuleOp) -> PassResult:
        """Rewrites every function, in program order, so that operands are parts already."""
        applied: Counter[str] = Counter()
        for function in functions_of(module).values():
            ops = [op for op in function.body.walk() if isinstance(op, tf.TFOp)]
            touched = [op for op in ops if any(map(_is_complex, (*op.operands, *op.results))) or op.name == "tf.Atan2"]
            for op in touched:
                found = _computed(op)
                if found is not None:
                    applied[op.name.removeprefix("tf.")] += 1
                    for old, new in zip(op.results, found, strict=True):
                        old.replace_all_uses_with(new)
            _erase_unused([op for op in function.body.walk() if isinstance(op, tf.TFOp)] if touched else [])
        return PassResult(applied)


def _is_complex(value: Value) -> bool:
    return isinstance(value.element, ComplexType)


def _erase_unused(ops: Sequence[Operation]) -> None:
    for op in reversed(ops):
        if not any(result.uses for result in op.results) and op.results and tf_effects.is_pure(op):
            erase(op)


def _computed(op: Operation) -> Sequence[Value] | None:
    """Inserts what computes the same by parts; returns the results, or `None` if the op stays."""
    name, builder = op.name.removeprefix("tf."), TFBuilder(op)
    if name == "Atan2":
        return _without_signed_zeros(op, builder)
    operands = [EmittedTensor(builder, operand) for operand in op.operands if _is_complex(operand)]
    if name in KNOWN and not any(map(is_made, operands)):
        return None
    if name in MOVING or name in LINEAR:
        return _by_each_part(op, builder) if operands else None
    formula = FORMULAS.get(name) if operands else None
    formula = formula or _decomposition(op)
    return None if formula is None else expand(formula, op, builder)


def _decomposition(op: Operation) -> Formula | None:
    """Returns the formula of a transform, of which parts are known."""
    for each in decompositions(op.name.removeprefix("tf.")):
        if failure_of(each, op, KINDS) is None:
            return each.formula
    return None


def _by_each_part(op: Operation, builder: TFBuilder) -> Sequence[Value]:
    """Does the same with the real and with the imaginary parts."""
    pairs = [
        tuple(each.value for each in parts(EmittedTensor(builder, operand))) if _is_complex(operand) else (operand,) * 2
        for operand in op.operands
    ]
    kinds = [types.tensor(types.F32, result.shape) for result in op.results]
    name = op.name.removeprefix("tf.")
    real, imaginary = (
        builder.tf_op(name, [pair[index] for pair in pairs], kinds, op.properties).results for index in (0, 1)
    )
    both = zip(real, imaginary, strict=True)
    return [complex_of(*(EmittedTensor(builder, each) for each in pair)).value for pair in both]


def _without_signed_zeros(op: Operation, builder: TFBuilder) -> Sequence[Value] | None:
    """Makes the zeros positive that a transform has as imaginary parts, also where they were moved."""
    source = y = op.operands[0]
    while isinstance(source, OpResult) and source.op.name.removeprefix("tf.") in MOVING:
        source = source.op.operands[0]
    if not isinstance(source, OpResult) or source.op.name != "tf.Imag":
        return None
    tensor = EmittedTensor(builder, y)
    positive = unsigned_zero(tensor) if source is y else tensor.equal(0).where(0.0, tensor)
    angle = builder.tf("Atan2", (positive.value, op.operands[1]), op.results[0].type)
    return [angle]
