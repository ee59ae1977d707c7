"""Pass `lift-assertions`: moves assertions about indices out of branches and steps of loops, behind them.

IREE 3.13 doesn't wait for an assertion in a loop: it runs ops of the step before their operands are ready. So the
branch or the loop gets another result that states whether the assertion holds, and that is asserted. Until then, reads
clamp their indices and writes with bad indices are dropped, so no foreign memory is touched. Assertions about indices
in the condition of a loop are left out.

Before:

    func.func @main(%p: tensor<i1>, %i: tensor<i1>) -> tensor<f32> {
      %0 = "stablehlo.if"(%p) ({
        "stablehlo.custom_call"(%i) <{call_target_name = "shape_assertion", has_side_effect = true}>
          {error_message = "an index is out of range", tf.late} : (tensor<i1>) -> ()
        %1 = stablehlo.constant dense<1.0> : tensor<f32>
        "stablehlo.return"(%1) : (tensor<f32>) -> ()
      }, {
        %2 = stablehlo.constant dense<2.0> : tensor<f32>
        "stablehlo.return"(%2) : (tensor<f32>) -> ()
      }) : (tensor<i1>) -> tensor<f32>
      func.return %0 : tensor<f32>
    }

After:

    func.func @main(%p: tensor<i1>, %i: tensor<i1>) -> tensor<f32> {
      %0:2 = "stablehlo.if"(%p) ({
        %1 = "stablehlo.convert"(%i) : (tensor<i1>) -> tensor<i32>
        %2 = stablehlo.constant dense<1.0> : tensor<f32>
        "stablehlo.return"(%2, %1) : (tensor<f32>, tensor<i32>) -> ()
      }, {
        %3 = stablehlo.constant dense<2.0> : tensor<f32>
        %4 = stablehlo.constant dense<1> : tensor<i32>
        "stablehlo.return"(%3, %4) : (tensor<f32>, tensor<i32>) -> ()
      }) : (tensor<i1>) -> (tensor<f32>, tensor<i32>)
      %5 = "stablehlo.convert"(%0#1) : (tensor<i32>) -> tensor<i1>
      "stablehlo.custom_call"(%5) <{call_target_name = "shape_assertion", has_side_effect = true}>
        {error_message = "an index is out of range", tf.late} : (tensor<i1>) -> ()
      func.return %0#0 : tensor<f32>
    }
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from tfconvert.converter.ir.edit import erase, replace_op
from tfconvert.converter.pipeline.pass_result import PassResult
from tfconvert.converter.targets.stablehlo.legalize.constraints import LATE, is_assertion
from tfconvert.schema.dialects import stablehlo, tensor_data, types
from tfconvert.schema.dialects.func import defined_functions
from tfconvert.schema.ir.block import Block, Region
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

_WHILE = "stablehlo.while"
_HOLDERS = frozenset({_WHILE, "stablehlo.if", "stablehlo.case"})

# The type of the results for assertions; IREE 3.13 fails to compile loops that carry `i1`.
_FLAG = types.tensor(types.I32, ())


class LiftAssertions:
    """Moves assertions about indices out of branches and loops."""

    __slots__ = ()

    name: ClassVar[str] = "lift-assertions"

    def apply(self, module: ModuleOp) -> PassResult:
        """Rewrites every function; returns how many assertions were moved, and how many were left out."""
        counts: Counter[str] = Counter()
        for function in defined_functions(module).values():
            # The innermost come first: their assertions may have to be moved again.
            for op in reversed(list(function.walk())):
                if op.name in _HOLDERS:
                    counts += _lift(op)
        return PassResult.of(counts)


def _lift(holder: Operation) -> Counter[str]:
    """Moves the assertions in an op's regions behind it."""
    counts: Counter[str] = Counter()
    found: list[tuple[int, Operation]] = []
    for number, region in enumerate(holder.regions):
        late = [op for op in region.block.ops if is_assertion(op) and LATE in op.attributes]
        if holder.name == _WHILE and number == 0:
            for op in late:
                erase(op)
            counts["assertions that are left out"] += len(late)
        else:
            found += [(number, op) for op in late]
    if found:
        for (_, op), flag in zip(found, _with_results(holder, found), strict=True):
            owner = flag.owner
            assert isinstance(owner, Operation)
            op.detach()
            _block(owner).insert_op_after(op, owner)
            op.set_operands((_truth(flag, op),))
        counts["assertions that are moved"] += len(found)
    return counts


def _with_results(holder: Operation, asserted: Sequence[tuple[int, Operation]]) -> Sequence[Value]:
    """Adds a result to an op for each assertion in its regions: whether it holds. Returns these."""
    operands = [*holder.operands]
    for number, op in asserted:
        holds = _before(op, "convert", op.operands[0])
        if holder.name == _WHILE:
            operands.append(_one(holder))
            _carry(holder, holds)
            continue
        for at, region in enumerate(holder.regions):
            end = _end(region.block)
            end.set_operands((*end.operands, holds if at == number else _one(end)))
    kinds = (*holder.result_types, *[_FLAG] * len(asserted))
    regions = [Region(region.detach_block(region.block)) for region in holder.regions]
    new = stablehlo.build(holder.name, operands, kinds, holder.properties, regions, location=holder.location)
    new.attributes.update(holder.attributes)
    _block(holder).insert_op_after(new, holder)
    count = len(holder.results)
    replace_op(holder, new.results[:count])
    return new.results[count:]


def _carry(loop: Operation, holds: Value) -> None:
    """Makes a loop carry whether an assertion has held in every step so far."""
    condition, step = (region.block for region in loop.regions)
    condition.add_arg(_FLAG)
    end = _end(step)
    end.set_operands((*end.operands, _before(end, "and", step.add_arg(_FLAG), holds)))


def _truth(flag: Value, op: Operation) -> Value:
    kind = types.tensor(types.I1, ())
    return _inserted(stablehlo.build("stablehlo.convert", (flag,), (kind,), location=op.location), op)


def _before(op: Operation, name: str, *operands: Value) -> Value:
    return _inserted(stablehlo.build(f"stablehlo.{name}", operands, (_FLAG,), location=op.location), op)


def _one(op: Operation) -> Value:
    return _inserted(stablehlo.constant(tensor_data.of_array(np.array(1, np.int32)), op.location), op)


def _inserted(new: Operation, op: Operation) -> Value:
    _block(op).insert_op_before(new, op)
    return new.results[0]


def _block(op: Operation) -> Block:
    assert op.parent is not None
    return op.parent


def _end(block: Block) -> Operation:
    last = block.last_op
    assert last is not None
    return last
