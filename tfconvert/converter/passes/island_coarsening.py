"""Pass `island-coarsening`: joins islands that run, or are dead, together.

An island that uses values and controls of only one other island runs exactly when that one does, so both are joined.
Islands without operands always run and are joined with each other. So a graph without V1 control flow becomes one
island, and in other graphs dead values spread no further than before.

Before:

    func.func @main(%x: tensor<f32>, %text: tensor<!tf_type.string>, %p: tensor<i1>) -> tensor<f32> {
      %0 = tf_executor.graph {
        %neg, %1 = tf_executor.island wraps "tf.Neg"(%x) : (tensor<f32>) -> tensor<f32>
        %print = tf_executor.island(%1) wraps "tf.PrintV2"(%text) : (tensor<!tf_type.string>) -> ()
        %off, %on, %2 = tf_executor.Switch %neg, %p : tensor<f32>
        %abs, %3 = tf_executor.island wraps "tf.Abs"(%on) : (tensor<f32>) -> tensor<f32>
        %exp, %4 = tf_executor.island wraps "tf.Exp"(%abs) : (tensor<f32>) -> tensor<f32>
        %merge, %index, %5 = tf_executor.Merge %off, %exp, %print
          : (tensor<f32>, tensor<f32>, !tf_executor.control) -> (tensor<f32>, tensor<i32>, !tf_executor.control)
        tf_executor.fetch %merge : tensor<f32>
      }
      func.return %0 : tensor<f32>
    }

After:

    func.func @main(%x: tensor<f32>, %text: tensor<!tf_type.string>, %p: tensor<i1>) -> tensor<f32> {
      %0 = tf_executor.graph {
        %neg, %1 = tf_executor.island {
          %2 = "tf.Neg"(%x) : (tensor<f32>) -> tensor<f32>
          "tf.PrintV2"(%text) : (tensor<!tf_type.string>) -> ()
          tf_executor.yield %2 : tensor<f32>
        }
        %off, %on, %3 = tf_executor.Switch %neg, %p : tensor<f32>
        %exp, %4 = tf_executor.island {
          %5 = "tf.Abs"(%on) : (tensor<f32>) -> tensor<f32>
          %6 = "tf.Exp"(%5) : (tensor<f32>) -> tensor<f32>
          tf_executor.yield %6 : tensor<f32>
        }
        %merge, %index, %7 = tf_executor.Merge %off, %exp, %1
          : (tensor<f32>, tensor<f32>, !tf_executor.control) -> (tensor<f32>, tensor<i32>, !tf_executor.control)
        tf_executor.fetch %merge : tensor<f32>
      }
      func.return %0 : tensor<f32>
    }
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from tfconvert.converter.ir.edit import erase
from tfconvert.converter.pipeline.pass_result import PassResult
from tfconvert.schema.dialects.tf_executor import CONTROL, GraphOp, IslandOp, YieldOp
from tfconvert.schema.ir.block import Block, Region
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Use, Value

_APPLIED = "joined"


class IslandCoarsening:
    """Joins islands without making live values dead or dead values live."""

    __slots__ = ()

    name: ClassVar[str] = "island-coarsening"

    def apply(self, module: ModuleOp) -> PassResult:
        joined = 0
        for graph in reversed([op for op in module.walk() if isinstance(op, GraphOp)]):
            leaders = _leaders(graph.body)
            groups: dict[IslandOp, list[IslandOp]] = {}
            for island, leader in leaders.items():
                groups.setdefault(leader, []).append(island)
            for leader, islands in groups.items():
                if len(islands) > 1:
                    _join(islands, leader, leaders)
                    joined += len(islands) - 1
        return PassResult.of({_APPLIED: joined})


def _leaders(body: Block) -> dict[IslandOp, IslandOp]:
    """Returns for each island the first one, in the graph's order, that runs exactly when it does."""
    leaders: dict[IslandOp, IslandOp] = {}
    always: IslandOp | None = None
    for island in body.ops:
        if not isinstance(island, IslandOp):
            continue
        sources: set[Operation] = set()
        for op in island.walk():
            for operand in op.operands:
                owner = operand.owner
                if isinstance(owner, Operation) and owner.parent is body:
                    sources.add(leaders[owner] if isinstance(owner, IslandOp) else owner)
        only = next(iter(sources)) if len(sources) == 1 else None
        if not sources:
            always = always or island
            leaders[island] = always
        else:
            leaders[island] = only if isinstance(only, IslandOp) else island
    return leaders


def _join(islands: Sequence[IslandOp], leader: IslandOp, leaders: Mapping[IslandOp, IslandOp]) -> None:
    """Replaces several islands by one, in the place of the first."""
    body = leader.parent
    assert body is not None

    def is_inside(use: Use) -> bool:
        op = use.operation
        while op.parent is not body:
            parent = op.parent_op()
            assert parent is not None
            op = parent
        return isinstance(op, IslandOp) and leaders.get(op) is leader

    inside = Block()
    yielded: list[tuple[Value, Value]] = []
    for island in islands:
        terminator = island.terminator
        for op in list(island.body.ops):
            if op is not terminator:
                island.body.detach_op(op)
                inside.add_op(op)
        results: Sequence[Value] = island.results
        for result, value in zip(results, terminator.operands, strict=False):
            # Ops that have moved already are in no island; they can't use what follows.
            result.replace_uses_with_if(value, is_inside)
            if result.first_use is not None:
                yielded.append((result, value))
    inside.add_op(YieldOp.create(operands=[value for _, value in yielded]))
    types = [*(value.type for _, value in yielded), CONTROL]
    joined = IslandOp.create(
        operands=leader.operands, result_types=types, regions=(Region(inside),), location=leader.location
    )
    body.insert_op_before(joined, leader)
    for (old, _), new in zip(yielded, joined.results, strict=False):
        old.replace_all_uses_with(new)
    for island in reversed(islands):
        island.control.replace_all_uses_with(joined.control)
        erase(island)
