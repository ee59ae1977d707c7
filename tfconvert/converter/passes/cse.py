"""Pass `cse`: merges ops that compute the same from the same operands into the first.

Before:

    func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = "tfl.pseudo_const"() <{value = dense<1.0> : tensor<f32>}> : () -> tensor<f32>
      %1 = "tfl.pseudo_const"() <{value = dense<1.0> : tensor<f32>}> : () -> tensor<f32>
      %2 = "tfl.add"(%x, %0) : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
      %3 = "tfl.add"(%x, %1) : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
      %4 = "tfl.mul"(%2, %3) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      func.return %4 : tensor<2xf32>
    }

After:

    func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = "tfl.pseudo_const"() <{value = dense<1.0> : tensor<f32>}> : () -> tensor<f32>
      %1 = "tfl.add"(%x, %0) : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
      %2 = "tfl.mul"(%1, %1) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      func.return %2 : tensor<2xf32>
    }
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from functools import cache
from operator import attrgetter
from typing import ClassVar

from tfconvert.converter.ir.edit import replace_op
from tfconvert.converter.pipeline.pass_result import PassResult
from tfconvert.schema.dialects import tf_effects, tfl
from tfconvert.schema.dialects.func import functions_of
from tfconvert.schema.ir.block import Block
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

_APPLIED = "cse"

_TYPE = attrgetter("type")

# Ops that compute the same bits in either order of their operands; extremes don't where one is NaN.
_COMMUTATIVE = frozenset({"tf.AddV2", "tf.Mul", "tfl.add", "tfl.mul"})

_READS_STATE = frozenset({"tfl.read_variable"})


class CommonSubexpressions:
    """Merges equal `tf` and `tfl` ops without side effects where one of them dominates the other.

    Small constants are compared by value, large ones by the source of their bytes.
    """

    __slots__ = ()

    name: ClassVar[str] = "cse"

    def apply(self, module: ModuleOp) -> PassResult:
        merged = sum(_merge(block) for function in functions_of(module).values() for block in function.body.blocks)
        return PassResult.of({_APPLIED: merged})


def _merge(outermost: Block) -> int:
    """Merges equal ops of a block and of those inside it, in one sweep.

    In program order, operands are merged before their users. Values of a region are visible until its end, and values
    before the region are visible inside.
    """
    known: dict[Hashable, Operation] = {}
    stack: list[tuple[Iterator[Operation], list[Hashable]]] = [(iter(tuple(outermost.ops)), [])]
    merged = 0
    while stack:
        ops, added = stack[-1]
        is_inside = len(stack) > 1
        for op in ops:
            if op.regions:
                stack += [(iter(tuple(block.ops)), []) for region in op.regions for block in region.blocks]
                break
            if not op.results or _is_unique(op):
                continue
            properties = op.properties
            content = frozenset(properties.items()) if len(properties) > 1 else tuple(properties.items())
            operands = (frozenset(op.operands),) if op.name in _COMMUTATIVE else op.operands
            key = (op.name, content, *operands, *map(_TYPE, op.results))
            first = known.setdefault(key, op)
            if first is not op:
                merged += 1
                replace_op(op, first.results)
            elif is_inside:
                added.append(key)
        else:
            stack.pop()
            for left in added:
                del known[left]
    return merged


def _is_unique(op: Operation) -> bool:
    """Returns whether an op is more than a function of its operands: it has effects, reads or holds a state."""
    if not isinstance(op, tfl.TFLOp):
        return not tf_effects.is_pure(op)
    return _is_operator_unique(op.name) or (not op.operands and _holds_state(op.results[0]))


@cache
def _is_operator_unique(name: str) -> bool:
    operator = tfl.operator_of(name)
    return name in _READS_STATE or (operator is not None and (operator.has_effect or bool(operator.variables)))


@cache
def _variables(name: str) -> Sequence[int]:
    """Returns which operands of an operator are states that it changes in place."""
    operator = tfl.operator_of(name)
    return operator.variables if operator is not None else ()


def _holds_state(value: Value) -> bool:
    """Returns whether an operator changes a value in place, so that equal states don't stay equal."""
    use = value.first_use
    while use is not None:
        if use.index in _variables(use.operation.name):
            return True
        use = use.next
    return False
