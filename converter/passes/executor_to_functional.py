"""Pass `executor-to-functional`: breaks the islands of `tf_executor.graph`s up into plain `tf` ops in program order.

Control tokens vanish: the graph's order, which respects them, is program order, and program order is what keeps
side-effecting ops in sequence from here on.

Before:

    func.func @main(%arg0: tensor<2xf32>) -> tensor<2xf32> {
      %0 = tf_executor.graph {
        %1, %2 = tf_executor.island wraps "tf.Relu"(%arg0) : (tensor<2xf32>) -> tensor<2xf32>
        %3, %4 = tf_executor.island(%2) wraps "tf.Neg"(%1) : (tensor<2xf32>) -> tensor<2xf32>
        tf_executor.fetch %3 : tensor<2xf32>
      }
      func.return %0 : tensor<2xf32>
    }

After:

    func.func @main(%arg0: tensor<2xf32>) -> tensor<2xf32> {
      %0 = "tf.Relu"(%arg0) : (tensor<2xf32>) -> tensor<2xf32>
      %1 = "tf.Neg"(%0) : (tensor<2xf32>) -> tensor<2xf32>
      func.return %1 : tensor<2xf32>
    }
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, SSAValue

from converter.rewrite.edit import erase
from schema.diagnostics import error
from schema.dialects import tf_executor


@dataclass(frozen=True, slots=True)
class ExecutorToFunctional:
    """Lifts the bodies of islands out of graphs."""

    name: ClassVar[str] = "executor-to-functional"

    def apply(self, module: ModuleOp) -> None:
        """Rewrites every function's graphs.

        Raises:
            ConversionError: A graph holds an executor op other than islands (`control-flow-v1`).
        """
        for function in module.ops:
            if isinstance(function, FuncOp):
                for block in function.body.blocks:
                    for op in list(block.ops):
                        if isinstance(op, tf_executor.GraphOp):
                            _lift(op, block)


def _lift(graph: tf_executor.GraphOp, block: Block) -> None:
    """Moves the ops of a graph's islands before the graph and lets its users use their results."""
    fetch = graph.terminator
    lifted: dict[SSAValue, SSAValue] = {}
    for island in list(graph.body.ops):
        if island is fetch:
            continue
        if not isinstance(island, tf_executor.IslandOp):
            raise error("control-flow-v1", "V1 control flow must be made functional first", op=island.name)
        body = island.body
        terminator = island.terminator
        for op in list(body.ops):
            if op is not terminator:
                body.detach_op(op)
                op.operands = [lifted.get(operand, operand) for operand in op.operands]
                block.insert_op_before(op, graph)
        for result, value in zip(island.results, terminator.operands, strict=False):
            lifted[result] = lifted.get(value, value)
    for result, value in zip(graph.results, fetch.operands, strict=False):
        result.replace_all_uses_with(lifted.get(value, value))
    erase(graph)
