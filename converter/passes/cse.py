"""Pass `cse`: of ops that compute the same from the same, the first one stays.

Before:

    %0 = "tfl.pseudo_const"() <{value = dense<1.0> : tensor<f32>}> : () -> tensor<f32>
    %1 = "tfl.pseudo_const"() <{value = dense<1.0> : tensor<f32>}> : () -> tensor<f32>
    %2 = "tfl.add"(%arg0, %0) : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
    %3 = "tfl.add"(%arg0, %1) : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
    %4 = "tfl.mul"(%2, %3) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    func.return %4 : tensor<2xf32>

After:

    %0 = "tfl.pseudo_const"() <{value = dense<1.0> : tensor<f32>}> : () -> tensor<f32>
    %2 = "tfl.add"(%arg0, %0) : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
    %4 = "tfl.mul"(%2, %2) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    func.return %4 : tensor<2xf32>
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, Use

from converter.rewrite.edit import erase
from schema.dialects import tf, tfl

_APPLIED = "cse"

_READS_STATE = frozenset({"tf.ReadVariableOp", "tf.VarHandleOp", "tf.Placeholder", "tfl.read_variable"})


@dataclass(frozen=True, slots=True)
class CommonSubexpressions:
    """Merges equal `tf` and `tfl` ops without side effects, block by block.

    Constants are equal if their attributes are: small ones by value, large ones by where their bytes come from.
    """

    name: ClassVar[str] = "cse"

    def apply(self, module: ModuleOp) -> Counter[str]:
        """Rewrites every function; returns how many ops went away."""
        merged = 0
        for function in module.ops:
            if isinstance(function, FuncOp):
                merged += sum(_merge(block) for block in function.body.blocks)
        return Counter({_APPLIED: merged}) if merged else Counter()


def _merge(block: Block) -> int:
    """Merges equal ops of a block in one sweep; program order makes operands meet before their users do."""
    first: dict[Hashable, Operation] = {}
    merged = 0
    for op in tuple(block.ops):
        if op.regions or not op.results or _is_unique(op):
            continue
        key = (op.name, tuple(map(id, op.operands)), tuple(op.properties.items()))
        known = first.setdefault(key, op)
        if known is op or any(a.type != b.type for a, b in zip(known.results, op.results, strict=True)):
            continue
        for old, new in zip(op.results, known.results, strict=True):
            old.replace_all_uses_with(new)
        erase(op)
        merged += 1
    return merged


def _is_unique(op: Operation) -> bool:
    """Tells whether an op is more than a function of its operands: it has effects, reads or holds a state."""
    if op.name in _READS_STATE:
        return True
    if not isinstance(op, tfl.TFLOp):
        return tf.has_side_effects(op)
    operator = op.operator
    if operator is None:
        return not op.operands and any(_holds_state(use) for use in op.results[0].uses)
    return operator.has_effect or bool(operator.variables)


def _holds_state(use: Use) -> bool:
    """Tells whether an operator changes an operand in place: two states that begin equal don't stay so."""
    user = use.operation
    operator = user.operator if isinstance(user, tfl.TFLOp) else None
    return operator is not None and use.index in operator.variables
