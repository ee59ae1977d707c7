"""Pass `executor-to-functional`: breaks the islands of `tf_executor.graph`s up into plain `tf` ops in program order.

Control tokens are dropped: the order of ops in the graph respects them. From here on, program order alone orders side
effects. V1 control flow has no program order, so it must be functionalized before.

Before:

    func.func @main(%arg0: tensor<2xf32>) -> tensor<2xf32> {
      %0 = tf_executor.graph {
        %1, %2 = tf_executor.island wraps "tf.Relu"(%arg0) : (tensor<2xf32>) -> tensor<2xf32>
        %3, %4 = tf_executor.island(%2) {
          %5 = "tf.Neg"(%1) : (tensor<2xf32>) -> tensor<2xf32>
          %6 = "tf.Exp"(%5) : (tensor<2xf32>) -> tensor<2xf32>
          tf_executor.yield %6 : tensor<2xf32>
        }
        tf_executor.fetch %3 : tensor<2xf32>
      }
      func.return %0 : tensor<2xf32>
    }

After:

    func.func @main(%arg0: tensor<2xf32>) -> tensor<2xf32> {
      %0 = "tf.Relu"(%arg0) : (tensor<2xf32>) -> tensor<2xf32>
      %1 = "tf.Neg"(%0) : (tensor<2xf32>) -> tensor<2xf32>
      %2 = "tf.Exp"(%1) : (tensor<2xf32>) -> tensor<2xf32>
      func.return %2 : tensor<2xf32>
    }
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from tfconvert.converter.ir.edit import erase
from tfconvert.converter.pipeline.pass_result import NOTHING_DONE, PassResult
from tfconvert.schema.diagnostics import ConversionError, Diagnostic
from tfconvert.schema.dialects.locations import error_at, place_of
from tfconvert.schema.dialects.tf_executor import ControlTriggerOp, FetchOp, GraphOp, IslandOp
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

# Maximum number of nodes that the error names for each kind of V1 op.
_NAMED = 3


class ExecutorToFunctional:
    """Lifts the bodies of islands out of graphs."""

    __slots__ = ()

    name: ClassVar[str] = "executor-to-functional"

    def apply(self, module: ModuleOp) -> PassResult:
        """Rewrites every graph, those inside of islands first.

        Raises:
            ConversionError: Graphs hold executor ops that need dead values (`control-flow-v1`, one diagnostic for each
                kind of op), or an op comes before one that it depends on (`broken-order`).
        """
        graphs: list[GraphOp] = []
        refused: dict[str, list[Operation]] = {}
        todo: list[Operation] = [module]
        while todo:
            op = todo.pop()
            if isinstance(op, GraphOp):
                graphs.append(op)
                todo += _look_through(op, refused)
            else:
                todo += [
                    inner for region in op.regions for block in region.blocks for inner in block.ops if inner.regions
                ]
        if refused:
            raise ConversionError([_diagnostic(name, ops) for name, ops in refused.items()])
        for graph in reversed(graphs):
            _lift(graph)
        return NOTHING_DONE


def _look_through(graph: GraphOp, refused: dict[str, list[Operation]]) -> list[Operation]:
    """Returns the ops in a graph's islands that may hold graphs themselves; collects V1 ops by name."""
    nested: list[Operation] = []
    for op in graph.body.ops:
        if isinstance(op, IslandOp):
            inner = op.body.first_op
            while inner is not None:
                if inner.regions:
                    nested.append(inner)
                inner = inner.next_op
        elif not isinstance(op, FetchOp | ControlTriggerOp):
            refused.setdefault(op.name, []).append(op)
    return nested


def _diagnostic(name: str, ops: Sequence[Operation]) -> Diagnostic:
    places = [place for op in ops if (place := place_of(op.location)).node]
    count = f"{len(ops)} of them" if len(ops) > 1 else "one of them"
    others = f", for example {', '.join(place.node for place in places[:_NAMED])}" if len(ops) > 1 and places else ""
    return Diagnostic(
        "control-flow-v1",
        f"V1 control flow must be made functional first ({count}{others})",
        op=name,
        node=places[0].node if places else "",
        location=str(places[0]) if places else "",
        hint="run functionalize-loops and functionalize-conditionals before this pass",
    )


def _lift(graph: GraphOp) -> None:
    """Moves the ops of a graph's islands before the graph and replaces the islands' results by theirs."""
    fetch = graph.terminator
    lifted: dict[Value, Value] = {}
    for op in list(graph.body.ops):
        if op is fetch:
            continue
        if op.operands and any(operand not in lifted for operand in op.operands):
            raise _broken_order(op)
        if isinstance(op, IslandOp):
            _lift_island(op, graph, lifted)
        control: Value = op.results[-1]
        lifted[control] = control
    for graph_result, value in zip(graph.results, fetch.operands, strict=False):
        if value.owner is graph:
            raise _broken_order(fetch)
        graph_result.replace_all_uses_with(lifted.get(value, value))
    erase(graph, is_unused=False)
    for result in lifted:
        # Ops that were lifted before the island whose value they use still use the island's.
        if result.first_use is not None:
            raise _broken_order(result.first_use.operation)


def _lift_island(island: IslandOp, graph: GraphOp, lifted: dict[Value, Value]) -> None:
    """Moves the ops of one island; records the replacements of its results."""
    body, block = island.body, graph.parent
    terminator = body.last_op
    assert terminator is not None
    assert block is not None
    op = body.first_op
    while op is not None and op is not terminator:
        following = op.next_op
        for user in op.walk() if op.regions else (op,):
            for index, operand in enumerate(user.operands):
                if operand in lifted:
                    user.set_operand(index, lifted[operand])
        body.detach_op(op)
        block.insert_op_before(op, graph)
        op = following
    for result, value in zip(island.results, terminator.operands, strict=False):
        lifted[result] = lifted.get(value, value)


def _broken_order(op: Operation) -> ConversionError:
    return error_at(
        op, "broken-order", "it comes before an op whose value or control it uses", "sort the graph's ops topologically"
    )
