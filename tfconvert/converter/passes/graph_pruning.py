"""Pass `graph-pruning`: erases ops of a `tf_executor.graph` that its fetch doesn't need, side effects included.

Live are the ops whose values and controls the fetch uses, and those that live ops use. A `NextIteration.Sink` is live
if its `Source` is, because it provides the next iteration.

Before:

    func.func @main(%x: tensor<2xf32>, %text: tensor<!tf_type.string>) -> tensor<2xf32> {
      %0 = tf_executor.graph {
        %print = tf_executor.island wraps "tf.PrintV2"(%text) : (tensor<!tf_type.string>) -> ()
        %unused = tf_executor.island wraps "tf.PrintV2"(%text) : (tensor<!tf_type.string>) -> ()
        %neg, %1 = tf_executor.island wraps "tf.Neg"(%x) : (tensor<2xf32>) -> tensor<2xf32>
        %relu, %2 = tf_executor.island(%print) wraps "tf.Relu"(%x) : (tensor<2xf32>) -> tensor<2xf32>
        tf_executor.fetch %relu : tensor<2xf32>
      }
      func.return %0 : tensor<2xf32>
    }

After:

    func.func @main(%x: tensor<2xf32>, %text: tensor<!tf_type.string>) -> tensor<2xf32> {
      %0 = tf_executor.graph {
        %print = tf_executor.island wraps "tf.PrintV2"(%text) : (tensor<!tf_type.string>) -> ()
        %relu, %1 = tf_executor.island(%print) wraps "tf.Relu"(%x) : (tensor<2xf32>) -> tensor<2xf32>
        tf_executor.fetch %relu : tensor<2xf32>
      }
      func.return %0 : tensor<2xf32>
    }
"""

from __future__ import annotations

from typing import ClassVar

from tfconvert.converter.pipeline.pass_result import PassResult
from tfconvert.schema.dialects.tf_executor import TOKEN, GraphOp, NextIterationSourceOp
from tfconvert.schema.ir.block import Block
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation

_APPLIED = "pruned"


class GraphPruning:
    """Erases ops that no fetch needs, in nested graphs too."""

    __slots__ = ()

    name: ClassVar[str] = "graph-pruning"

    def apply(self, module: ModuleOp) -> PassResult:
        graphs = [op for op in module.walk() if isinstance(op, GraphOp)]
        pruned = sum(_prune(graph.body) for graph in reversed(graphs))
        return PassResult.of({_APPLIED: pruned})


def _prune(body: Block) -> int:
    """Erases the ops of a graph's block that its terminator doesn't reach."""
    reached = _reached(body)
    dead = [op for op in body.ops if op not in reached]
    for op in dead:
        op.detach()
        op.drop_all_references()
    return len(dead)


def _reached(body: Block) -> set[Operation]:
    """Returns the ops of a graph's block that its terminator needs, itself included."""
    last = body.last_op
    todo = [] if last is None else [last]
    reached = set(todo)
    while todo:
        op = todo.pop()
        needed = [operand.owner for inner in op.walk() for operand in inner.operands]
        if isinstance(op, NextIterationSourceOp):
            needed += [use.operation for result in op.results if result.type == TOKEN for use in result.uses]
        for owner in needed:
            if isinstance(owner, Operation) and owner.parent is body and owner not in reached:
                reached.add(owner)
                todo.append(owner)
    return reached
