"""Random V1 graphs in TensorFlow's executor and in ours: the same values, the same dead.

    python -m tests.differential.executor_graphs --count 10000

compares graphs of `tests/differential/random_executor_graphs.py`. It
also checks that each graph's text round-trips and that TensorFlow's MLIR accepts it. What a node
yields is seen by a PyFunc behind each of its outputs: it runs when the output is alive, in every iteration of a loop.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from random import Random
from types import ModuleType
from typing import Any

import numpy as np

from tests.differential.random_executor_graphs import BOOL, INT, random_graph
from tests.differential.summary import Totals, print_summary
from tfconvert.converter.executor import executor
from tfconvert.importers.graph.function_library import make_function
from tfconvert.importers.graph.node_graph import ImportContext, NodeGraphImporter, parse_graph_input
from tfconvert.importers.graph.op_signatures import OpRegistry
from tfconvert.ops.verification import verify
from tfconvert.schema.dialects import tf_executor
from tfconvert.schema.dialects.locations import node_of
from tfconvert.schema.dialects.parsing import IRParser
from tfconvert.schema.ir.block import Block
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb

# Output (`node:index`) -> the values it had, sorted; an output that was never alive is not there.
Seen = dict[str, list[int]]

_OUTPUTS = {"Switch": 2, "NoOp": 0, "ControlTrigger": 0}
_BATCH = 20


def outputs(node: pb.NodeDef) -> dict[str, pb.DataType]:
    """Returns a node's outputs with their DataTypes."""
    if node.op == "Merge":
        return {f"{node.name}:0": node.attr["T"].type, f"{node.name}:1": INT}
    element = node.attr["dtype" if node.op == "Const" else "T"].type or BOOL
    if node.op == "Less":
        element = BOOL
    count = node.attr["num_outs"].i if node.op == "_SwitchN" else _OUTPUTS.get(node.op, 1)
    return {f"{node.name}:{index}": element for index in range(count)}


class Session:
    """TensorFlow's executor, which runs graphs as they are written: nothing is folded, moved or left out."""

    def __init__(self, tf: ModuleType) -> None:
        self._tf = tf
        self._records: list[tuple[int, int]] = []
        self._graph = tf.Graph()  # Keeps the Python functions alive that the tokens name.
        self._tokens: list[bytes] = []
        config = tf.compat.v1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
        config.graph_options.rewrite_options.disable_meta_optimizer = True
        config.graph_options.optimizer_options.opt_level = -1
        self._config = config

    def _token(self, index: int) -> bytes:
        """Returns the function that a PyFunc calls to record a value of an output."""
        with self._graph.as_default():
            while len(self._tokens) <= index:

                def note(value: Any, at: int = len(self._tokens)) -> list[Any]:
                    self._records.append((at, int(value)))
                    return []

                op = self._tf.numpy_function(note, [self._tf.constant(0)], [])
                self._tokens.append(op.get_attr("token"))
        return self._tokens[index]

    def run(self, graphs: Sequence[pb.GraphDef]) -> list[Seen]:
        """Returns the values observed of each graph; they run side by side in one session."""
        whole = pb.GraphDef()
        watched: list[tuple[int, str]] = []
        for number, graph in enumerate(graphs):
            for node in graph.node:
                _add_prefixed(whole, node, f"g{number}/")
                for output, element in outputs(node).items():
                    watcher = whole.node.add(name=f"watch{len(watched)}", op="PyFunc", input=[f"g{number}/{output}"])
                    watcher.attr["Tin"].list.type.append(element)
                    watcher.attr["Tout"].list.SetInParent()
                    watcher.attr["token"].s = self._token(len(watched))
                    watched.append((number, output))
        tf1 = self._tf.compat.v1
        with self._tf.Graph().as_default() as built:
            self._tf.import_graph_def(tf1.GraphDef.FromString(whole.SerializeToString()), name="")
            self._records.clear()
            with tf1.Session(graph=built, config=self._config) as session:
                session.run([built.get_operation_by_name(f"watch{index}") for index in range(len(watched))])
        seen: list[Seen] = [defaultdict(list) for _ in graphs]
        for index, value in self._records:
            number, output = watched[index]
            seen[number][output].append(value)
        return [{output: sorted(values) for output, values in one.items()} for one in seen]


def _add_prefixed(whole: pb.GraphDef, node: pb.NodeDef, prefix: str) -> None:
    copy = whole.node.add()
    copy.CopyFrom(node)
    copy.name = prefix + node.name
    copy.input[:] = [f"^{prefix}{text[1:]}" if text.startswith("^") else prefix + text for text in node.input]
    if "frame_name" in node.attr:
        copy.attr["frame_name"].s = prefix.encode() + node.attr["frame_name"].s


def import_whole(graph: pb.GraphDef, name: str = "main") -> ModuleOp:
    """Returns the module of a graph of which nothing is pruned and nothing fetched."""
    importer = NodeGraphImporter(
        {node.name: node for node in graph.node}, ImportContext(OpRegistry(), is_raw=True), parse_graph_input
    )
    block = Block()
    importer.import_into(block, [], [node.name for node in graph.node])
    return ModuleOp.of([make_function(name, block, [], {}, [])])


def run_ours(module: ModuleOp) -> tuple[Seen, set[str]]:
    """Returns the values that our executor observes, and the outputs that depend on a Merge's first input."""
    values: dict[Any, int] = Counter()
    seen: Seen = defaultdict(list)

    def observe(op: Operation, results: Sequence[np.ndarray[Any, Any] | None] | None) -> None:
        if isinstance(op, tf_executor.NextIterationSinkOp) or results is None:
            return  # Its source yields the value.
        for index, (result, value) in enumerate(zip(op.results, results, strict=False)):
            if value is not None:
                values[result] += 1
                seen[f"{node_of(op.location)}:{index}"].append(int(value))

    executor.run(module, "main", [], observer=observe, max_iterations=100)
    return {output: sorted(each) for output, each in seen.items()}, _raced(module, values)


def _raced(module: ModuleOp, alive: dict[Any, int]) -> set[str]:
    """Returns the outputs that depend on a Merge with several live inputs, of which the first one counts."""
    raced: set[str] = set()
    waiting: list[Operation] = [
        op
        for op in module.walk()
        if isinstance(op, tf_executor.MergeOp)
        and sum(alive[value] for value in op.data_operands) > alive[op.results[0]]
    ]
    reached = set(waiting)
    while waiting:
        op = waiting.pop()
        raced.update(f"{node_of(op.location)}:{index}" for index in range(len(op.results)))
        following: Iterable[Operation] = [use.operation for result in op.results for use in result.uses]
        for user in following:
            while not isinstance(user, tf_executor.ExecutorOp) or isinstance(user, tf_executor.YieldOp):
                parent = user.parent_op()
                assert parent is not None
                user = parent
            if isinstance(user, tf_executor.NextIterationSinkOp):
                source = user.operands[0].owner
                assert isinstance(source, Operation)
                user = source
            if user not in reached:
                reached.add(user)
                waiting.append(user)
    return raced


def _is_same(node: pb.NodeDef, ours: list[int] | None, theirs: list[int] | None) -> bool:
    if node.attr["is_constant"].b and ours and theirs:
        return set(ours) == set(theirs)  # It runs once; its observer runs in every iteration.
    return ours == theirs


class Summary(Totals):
    """The result of a comparison.

    Attributes:
        counts: How many graphs, nodes, outputs, dead ones, ... there were.
        problems: The differences.
    """

    __slots__ = ()

    def compare(self, label: str, graph: pb.GraphDef, module: ModuleOp, theirs: Seen) -> None:
        """Runs a graph, imported as `module`, here and compares the observed values."""
        ours, raced = run_ours(module)
        self.counts["graphs"] += 1
        self.counts["nodes"] += len(graph.node)
        self.counts["loops"] += len({node.attr["frame_name"].s for node in graph.node if node.op == "Enter"})
        if any(node.op == "LoopCond" and f"{node.name}:0" in raced for node in graph.node):
            self.counts["left out: a race decides on a loop"] += 1
            return
        for node in graph.node:
            for output in outputs(node):
                if output in raced:
                    self.counts["outputs left out: they depend on a race"] += 1
                    continue
                self.counts["outputs"] += 1
                self.counts["dead outputs"] += output not in theirs
                if not _is_same(node, ours.get(output), theirs.get(output)):
                    self.problems.append(f"{label}: {output} is {ours.get(output)}, not {theirs.get(output)}")

    def check_text(self, tf: ModuleType, label: str, module: ModuleOp) -> None:
        """Checks that a module round-trips, and that TensorFlow's MLIR accepts the text."""
        text = str(module)
        again = IRParser(text).parse_module()
        verify(again)
        if str(again) != text:
            self.problems.append(f"{label}: what was read back prints differently")
        try:
            tf.mlir.experimental.run_pass_pipeline(text, "", False)
        except tf.errors.OpError as problem:
            self.problems.append(f"{label}: TensorFlow's MLIR refuses the text: {problem.message}")
        self.counts["texts"] += 1


def compare_graphs(tf: ModuleType, seeds: Sequence[int], size: int, *, texts: bool = True) -> Summary:
    """Compares the graphs of some seeds.

    Args:
        tf: TensorFlow.
        seeds: A graph each.
        size: The largest number of nodes that is drawn at the top of a graph.
        texts: Whether to check printing and parsing too.
    """
    summary, session = Summary(), Session(tf)
    for start in range(0, len(seeds), _BATCH):
        batch = seeds[start : start + _BATCH]
        graphs = [random_graph(Random(seed), size) for seed in batch]
        for seed, graph, theirs in zip(batch, graphs, session.run(graphs), strict=True):
            module = import_whole(graph)
            summary.compare(f"seed {seed}", graph, module, theirs)
            if texts:
                summary.check_text(tf, f"seed {seed}", module)
    return summary


def main() -> None:
    """Compares as many graphs as the command line states and prints the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1000, help="how many graphs")
    parser.add_argument("--seed", type=int, default=0, help="the first graph's seed")
    parser.add_argument("--size", type=int, default=20, help="the largest number of nodes drawn at a graph's top")
    parser.add_argument("--no-text", action="store_true", help="run only, don't print and parse")
    arguments = parser.parse_args()
    import tensorflow as tf

    start = time.perf_counter()
    seeds = range(arguments.seed, arguments.seed + arguments.count)
    summary = compare_graphs(tf, seeds, arguments.size, texts=not arguments.no_text)
    print_summary(summary.counts, summary.problems, time.perf_counter() - start)


if __name__ == "__main__":
    main()
